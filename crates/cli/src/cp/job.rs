//! `cp` as one of the ranks of a parallel job, which all have the same arguments.

use std::sync::Arc;
use std::time::Duration;

use haulage::events::{Observer, Outcome, Progress};
use haulage::options::{Follow, Options, Request};

use crate::cp::command_line::CopyCommand;

/// The observer of a rank's copy, and on rank 0 what it does with what the other ranks send.
pub trait Collector: Observer + Send {
    /// Writes messages to the terminal.
    fn tell(&self, lines: &[u8]);

    /// Writes receipts to their file.
    fn add_receipts(&self, lines: &[u8]);

    /// Writes the receipts that are still buffered. Called about once a second, so that little of
    /// them is missing if the job is killed.
    fn flush_receipts(&self);
}

/// How far the other ranks are, as they told a moment ago.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OtherRanks {
    /// The sums over them.
    pub progress: Progress,
    /// How many there are.
    pub ranks: u32,
    /// The other ranks that have nothing to do.
    pub waiting: u32,
}

/// What another rank had to say at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The rank.
    pub rank: u32,
    /// The exit status of the rank.
    pub status: u8,
    /// What it called [`Job::summarize`] with; empty if it did not.
    pub summary: Vec<u8>,
}

/// What a rank does in its own way.
pub trait Job: Send + Sync {
    /// Whether this is rank 0, whose copy has the operands.
    fn is_first(&self) -> bool;

    /// Takes messages for the user: whole lines.
    fn put(&self, lines: &[u8]);

    /// Copies together with the other ranks. What they send goes to `collector`, which observes the copy.
    fn copy(&self, request: Request, options: Options, collector: &Arc<dyn Collector>) -> Outcome;

    /// The name of this host.
    fn host(&self) -> String;

    /// How long no worker of this rank has had anything to do.
    fn waited(&self) -> Duration;

    /// How far the others are. On rank 0.
    fn others(&self) -> OtherRanks;

    /// Sends a line of receipts to rank 0. Waits while too many are under way. On another rank.
    fn put_receipt(&self, line: &[u8]);

    /// Sends what this rank has done to rank 0. Called after the copy, at most once. On another rank.
    fn summarize(&self, summary: Vec<u8>);

    /// The ends of the other ranks. Called after the copy. On rank 0.
    fn ended(&self) -> Vec<Ended>;
}

/// An option that cannot be kept where several processes copy at once, and why.
pub(super) fn refused(command: &CopyCommand) -> Option<(&'static str, &'static str)> {
    let options = &command.options;
    let in_order = "they copy in no order";
    [
        (options.ask, "--interactive", "only one of them has the terminal"),
        (options.dry_run, "--dry-run", in_order),
        (options.debug, "--debug", in_order),
        (options.verbose, "--verbose", in_order),
        (
            options.backup.is_some(),
            "--backup",
            "none of them knows which names the others give to copies",
        ),
        (options.parents, "--parents", "they would create the same directories"),
        (
            options.keep_directory_symlink,
            "--keep-directory-symlink",
            "a symbolic link may lead to what another of them writes",
        ),
        (
            options.recursive && options.follow == Follow::Always,
            "--dereference",
            "a symbolic link may lead to what another of them writes",
        ),
    ]
    .into_iter()
    .find_map(|(is_given, option, why)| is_given.then_some((option, why)))
}
