//! What an experiment runs: one file a workload and one row each in `WORKLOADS`.

pub(crate) mod cached_source;
pub(crate) mod calls;
pub(crate) mod command;
pub(crate) mod copy;
pub(crate) mod create;
pub(crate) mod digest;
pub(crate) mod memory;
pub(crate) mod output;
pub(crate) mod pattern;
pub(crate) mod peer;
pub(crate) mod receive;
pub(crate) mod send;
pub mod session_files;
pub(crate) mod socket_copy;
pub(crate) mod source_facts;
pub(crate) mod syscall;
#[cfg(test)]
pub(crate) mod test_cell;
pub(crate) mod tree;

use crate::clock::Clock;
use crate::definition::cell::Cell;
use crate::error::Error;
use crate::sample::call_times::CallTimes;
use crate::trial::Outcome;
use session_files::Site;

/// A kind of work that can be timed, as data.
#[derive(Debug)]
pub struct Workload {
    /// Its name in experiments and samples.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// What a variant of it is, in words for an error message.
    pub variants: &'static str,
    /// Why a text is no variant of it, in words.
    pub check: fn(&str) -> Result<(), String>,
    /// Starts a variant in this process: buffers, rings and sockets are made, and sources too.
    pub start: fn(&Setting<'_>, &str) -> Result<Started, Error>,
    /// What one run at a time needs.
    pub needs: fn(&Cell) -> Needs,
    /// Whether it reads a file, so that the state of the page cache means something.
    pub has_state: bool,
    /// Whether it can go on until all is on the medium, or with the receiver.
    pub can_be_durable: bool,
    /// Calls of a run, where what is asked is the time of one of them.
    pub calls_of_run: Option<u64>,
}

/// A variant that is ready to run; or why it does not work here, in words.
pub type Started = Result<Box<dyn Arm>, String>;

/// A variant that is ready to run, again and again.
pub trait Arm {
    /// Runs once: the state is set and proved, the work timed by the setting's clock, what it made
    /// verified and removed.
    ///
    /// # Errors
    /// When something fails that is no matter of the variant, or what was made is wrong: no sample.
    fn run(&mut self, clock: Clock<'_>) -> Result<Outcome, Error>;

    /// Runs once without a clock and counts the calls that move bytes; `None` where that cannot be
    /// told.
    ///
    /// # Errors
    /// As [`Arm::run`].
    fn count_calls(&mut self) -> Result<Option<u64>, Error> {
        Ok(None)
    }

    /// Processes that work for its runs and go on between them.
    fn helpers(&self) -> Vec<u32> {
        Vec::new()
    }

    /// What the single calls of the last run took, where a workload is about that; `None` when it was
    /// asked for before.
    fn take_call_times(&mut self) -> Option<CallTimes> {
        None
    }
}

/// Where a variant runs.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'s> {
    /// The cell.
    pub cell: &'s Cell,
    /// The directories.
    pub site: &'s Site,
    /// Which of the runs at once this is, from 0.
    pub nth: u32,
}

/// What one run takes, besides the sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Bytes of its source.
    pub src_bytes: u64,
    /// Bytes that it makes in the destination's directory.
    pub dst_bytes: u64,
    /// Of these, what it keeps until the session ends, while other variants run.
    pub kept_bytes: u64,
    /// Bytes of memory besides the page cache.
    pub memory_bytes: u64,
}

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
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Workload> {
    WORKLOADS.iter().copied().find(|workload| workload.name == name)
}

/// What is noted of the state of a run that reads no file.
const NO_SOURCE: &str = "no file is read, so the page cache plays no part";

/// A number of bytes of a variant's text, at least 1 and at most `max`; otherwise why it is none.
fn bytes_of(text: &str, max: u64) -> Result<usize, String> {
    let bytes = text.parse::<engines::Bytes>().ok().filter(|bytes| (1..=max).contains(&bytes.0));
    bytes.and_then(|bytes| usize::try_from(bytes.0).ok()).ok_or_else(|| {
        let max = engines::Bytes(max);
        format!("'{text}' is no number of bytes from 1 to {max}, as 4096, 64K or 8M")
    })
}

/// A window that is mapped: bytes of a variant's text, as many as pages have.
fn window_bytes_of(text: &str, max: u64) -> Result<usize, String> {
    let window_bytes = bytes_of(text, max)?;
    match window_bytes % rustix::param::page_size() {
        0 => Ok(window_bytes),
        _ => Err(format!("'{text}' is no multiple of a page")),
    }
}

/// Refuses a cell of several files where a workload is about one.
fn one_file(cell: &Cell) -> Result<(), String> {
    match cell.shape {
        crate::definition::cell::Shape::File => Ok(()),
        _ => Err(format!("the workload {} is about one file at a time", cell.workload)),
    }
}
