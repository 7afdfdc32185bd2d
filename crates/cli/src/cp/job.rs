//! `cp` as one of the ranks of a parallel job, which all have the same arguments.

use std::sync::Arc;

use haulage::events::{Observer, Outcome};
use haulage::options::{Follow, Options, Request};

use crate::cp::command_line::CopyCommand;

/// Writes lines of other ranks to the terminal.
pub type Tell = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// What a rank does in its own way.
pub trait Job: Send + Sync {
    /// Whether this is rank 0, whose copy has the operands.
    fn is_first(&self) -> bool;

    /// Takes messages for the user: whole lines.
    fn put(&self, lines: &[u8]);

    /// Copies together with the other ranks. What they have to say goes to `tell`.
    fn copy(
        &self,
        request: Request,
        options: Options,
        observer: &Arc<dyn Observer + Send>,
        tell: &Tell,
    ) -> Outcome;
}

/// An option that cannot be kept where several processes copy at once, and why.
pub(super) fn refused(command: &CopyCommand) -> Option<(&'static str, &'static str)> {
    let (options, reports) = (&command.options, &command.reports);
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
        (reports.receipt.is_some(), "--receipt", "each would write to the file"),
        (reports.stats, "--stats", "each has a part of them"),
        (reports.progress, "--progress", "each has a part of it"),
    ]
    .into_iter()
    .find_map(|(is_given, option, why)| is_given.then_some((option, why)))
}
