//! What a workload is: its row in the table, and a variant of it that is ready to run.

use super::scratch_dirs::ScratchDirs;
use crate::clock::Clock;
use crate::definition::cell::Cell;
use crate::error::Error;
use crate::sample::call_times::CallTimes;
use crate::sample::measurement::Measurement;
use crate::trial::NotRun;

/// A kind of work that can be timed, as data.
#[derive(Debug)]
pub struct Workload {
    /// The name of the workload in experiments and samples.
    pub name: &'static str,
    /// What a variant of it is, in words for an error message.
    pub variants: &'static str,
    /// Why a text is no variant of it, in words.
    pub check: fn(&str) -> Result<(), String>,
    /// Starts a variant in this process: buffers, rings and sockets are made, and sources too.
    pub start: fn(&Setting<'_>, &str) -> StartResult,
    /// What one run at a time needs.
    pub needs: fn(&Cell) -> Needs,
    /// Whether it reads a file, so that the state of the page cache means something.
    pub has_state: bool,
    /// Whether it can be timed until all data is on the medium, or has reached the receiver.
    pub can_be_durable: bool,
    /// The number of calls of a run, if the time of one call is reported.
    pub calls_of_run: Option<u64>,
}

/// A variant that is ready to run, or why it is not started.
pub type StartResult = Result<Box<dyn ReadyVariant>, NotRun>;

/// A variant that is ready to run, again and again.
pub trait ReadyVariant {
    /// Runs once: the state is set and proved, the work timed by the setting's clock, what it made
    /// verified and removed.
    ///
    /// # Errors
    /// When the variant refuses, something else fails, or the result is wrong: that is no sample.
    fn run(&mut self, clock: Clock<'_>) -> Result<Measurement, NotRun>;

    /// Runs once without a clock and counts the calls that move bytes; `None` where that cannot be
    /// told.
    ///
    /// # Errors
    /// When something fails, or the result is wrong.
    fn count_calls(&mut self) -> Result<Option<u64>, Error> {
        Ok(None)
    }

    /// Processes that work for its runs and continue between them.
    fn helpers(&self) -> Vec<u32> {
        Vec::new()
    }

    /// The times of the single calls of the last run, if the workload times them; `None` if they
    /// were taken before.
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
    pub dirs: &'s ScratchDirs,
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
