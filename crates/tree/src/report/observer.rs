//! The observer of a copy: it is told what is done, and answers questions.

use std::path::{Path, PathBuf};

use engines::{Moved, Span, Variant};
use rustix::fs::{FileType, Mode};

use super::diagnostic::Diagnostic;
use super::progress::ProgressTracker;
use super::receipt::{Attempt, Chosen, Offload, Receipt};

/// Called from any thread that copies. Only [`diagnose`](Observer::diagnose) is required.
pub trait Observer: Sync {
    /// Reports a failure, a warning or a notice.
    fn diagnose(&self, diagnostic: Diagnostic);

    /// Asks whether to do something. `false` skips the entry.
    fn confirm(&self, question: Question) -> bool {
        let _ = question;
        false
    }

    /// Whether [`selects`](Observer::selects) is called, which costs a path for each entry.
    fn is_selective(&self) -> bool {
        false
    }

    /// Whether the entry `src` below an operand is copied. `kind` is its type as its directory lists
    /// it, which may be unknown. Without it a directory is not entered. Entries that the filter of the
    /// options leaves out are not asked about.
    fn selects(&self, src: &Path, kind: FileType) -> bool {
        let _ = (src, kind);
        true
    }

    /// Whether [`directory`](Observer::directory) is called, which costs two paths for each directory.
    fn follows_directories(&self) -> bool {
        false
    }

    /// The copy of the directory `src` to `dst` is at `stage`. `false` at [`DirectoryStage::Entered`]
    /// leaves out its entries. Not called in a dry run.
    fn directory(&self, src: &Path, dst: &Path, stage: DirectoryStage) -> bool {
        let _ = (src, dst, stage);
        true
    }

    /// Called when [`Options::verbose`](crate::Options::verbose) or
    /// [`Options::debug`](crate::Options::debug) is on.
    fn announce(&self, announcement: Announcement) {
        let _ = announcement;
    }

    /// Whether [`finished`](Observer::finished) is called, which costs two paths for each entry.
    fn keeps_receipts(&self) -> bool {
        false
    }

    /// An entry is finished. A directory is finished after its last entry.
    fn finished(&self, receipt: Receipt) {
        let _ = receipt;
    }

    /// An engine has copied a span of a file's data; called several times for a large file.
    fn moved(&self, variant: &Variant, span: Span, moved: Moved) {
        let _ = (variant, span, moved);
    }

    /// The deferred initialisation: what a copy of one small file does not need, such as a thread
    /// that waits for signals. Called at most once, when there is more to copy or a file system may
    /// block.
    fn deferred_init(&self) {}

    /// Where the run shows its progress.
    fn progress(&self) -> Option<&ProgressTracker> {
        None
    }

    /// Whether to stop soon. Directories that were entered still get their attributes.
    fn interrupted(&self) -> bool {
        false
    }
}

/// How far the copy of a directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectoryStage {
    /// The destination exists. No entry in it was copied yet, and other users may lack access to it.
    Entered,
    /// All entries were copied. The attributes of the destination were not.
    Filled,
}

/// A question of `--interactive`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// Replace the destination `dst`?
    #[expect(missing_docs, reason = "explained above")]
    Overwrite { dst: PathBuf },
    /// The destination `dst` with the permissions `mode` is not writable. Remove it, if `removing`,
    /// or try to write?
    #[expect(missing_docs, reason = "explained above")]
    OverwriteUnwritable { dst: PathBuf, mode: Mode, removing: bool },
}

/// A message of `--verbose` or `--debug`. `src` is the source, `dst` the destination.
#[expect(missing_docs, reason = "the fields are explained above or with their variant")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// An entry is copied. `backup` is the backup of the existing file.
    Copied { src: PathBuf, dst: PathBuf, backup: Option<PathBuf> },
    /// A directory of `--parents` was created.
    ParentMade { src: PathBuf, dst: PathBuf },
    /// An existing destination was removed.
    Removed { dst: PathBuf },
    /// The copy failed, and the file was renamed from `backup` back to `dst`.
    Restored { backup: PathBuf, dst: PathBuf },
    /// An existing destination was kept. `--debug` only.
    Skipped { dst: PathBuf },
    /// An entry was left out by [`Options::filter`](crate::Options::filter). `--debug` only.
    LeftOut { src: PathBuf },
    /// How a regular file's data was copied, in the terms of GNU cp. `--debug` only.
    Data(Offload),
    /// Which engines copied it: the variant that was chosen, and all attempts. `--debug` only.
    Engine { src: PathBuf, dst: PathBuf, chosen: Chosen, attempts: Vec<Attempt> },
}

/// Receives nothing, for tests: a diagnostic ends them.
#[cfg(test)]
pub(crate) struct Silent;

#[cfg(test)]
impl Observer for Silent {
    fn diagnose(&self, diagnostic: Diagnostic) {
        panic!("{diagnostic:?}");
    }
}
