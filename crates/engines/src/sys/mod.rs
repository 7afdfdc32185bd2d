//! Raw calls and raw memory, each behind a safe type. No other module of the workspace, the
//! bindings for other languages aside, may be unsafe.
#![allow(unsafe_code)]

pub(crate) mod buffer;
mod cachestat;
mod clone_range;
mod close;
pub(crate) mod guarded;
#[cfg(test)]
pub(crate) mod interruption;
mod locale;
pub(crate) mod map;
pub(crate) mod ring;
mod started;
pub(crate) mod stream;
mod sync_range;
mod usage;

pub use cachestat::{Cachestat, cachestat};
pub(crate) use clone_range::clone_range;
pub use close::close;
pub use locale::codeset;
pub use started::{is_ignored, sigpipe_was_ignored, stdout_was_closed};
pub use sync_range::{begin_writing_back, write_back};
pub use usage::{Usage, Whose, usage};

/// The error of the C call that has just failed on this thread.
fn last_errno() -> rustix::io::Errno {
    let error = std::io::Error::last_os_error();
    rustix::io::Errno::from_io_error(&error).expect("an OS error has a number")
}
