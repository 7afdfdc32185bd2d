//! What one run does: one file a workload, and one row each in `WORKLOADS`.

pub(crate) mod cached_source;
pub(crate) mod calls;
pub(crate) mod command;
pub(crate) mod copy;
pub(crate) mod create;
pub(crate) mod digest;
pub mod interface;
pub(crate) mod memory;
pub(crate) mod output;
mod parameters;
pub(crate) mod pattern;
pub(crate) mod peer;
pub(crate) mod receive;
pub mod scratch_dirs;
pub(crate) mod send;
pub(crate) mod source_facts;
pub(crate) mod syscall;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod tree;
mod windows;

use interface::Workload;

/// Every workload there is.
pub static WORKLOADS: &[&Workload] = &[
    &copy::COPY,
    &digest::DIGEST,
    &digest::READ,
    &create::CREATE,
    &calls::CALLS,
    &send::SEND,
    &receive::RECEIVE,
    &memory::MEMORY,
    &syscall::SYSCALL,
    &command::COMMAND,
];

/// The row called `name`.
pub fn by_name(name: &str) -> Option<&'static Workload> {
    WORKLOADS.iter().copied().find(|workload| workload.name == name)
}
