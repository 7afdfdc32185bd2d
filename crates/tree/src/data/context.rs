//! The state of a run that is needed to copy data, and the two files of one copy.

use engines::Pair;
use rustix::io::Errno;

use super::engine_choice::profile::EngineContext;
use super::sync::Syncer;
use crate::fs::FileAt;
use crate::report::{Diagnostic, Reporter};
use crate::request::Options;
use crate::shared::{RateLimit, SharedFile};

/// Both open files.
pub(crate) struct Files<'f> {
    pub(crate) src: FileAt<'f>,
    pub(crate) dst: FileAt<'f>,
    /// This run created the destination.
    pub(crate) new: bool,
    /// If the copy fails, the name is as before: the destination has not got it yet (`--atomic`), or a backup gets it
    /// back.
    pub(crate) atomic: bool,
    /// This run opened the destination, which it never does with O_APPEND.
    pub(crate) opened_here: bool,
    /// Partners copy parts of the file as well.
    pub(crate) shared: Option<Shared<'f>>,
}

/// What a process has to know of a file that others copy as well.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'f> {
    /// The account of the owner; `None` in a process that helps.
    pub(crate) owned: Option<&'f SharedFile>,
    /// Called before each piece: tells partners that wait of the file.
    pub(crate) look: &'f dyn Fn(),
}

impl<'f> Files<'f> {
    /// Files that this run has opened, and of which this process copies all.
    pub(crate) fn opened(src: FileAt<'f>, dst: FileAt<'f>, new: bool) -> Files<'f> {
        Files { src, dst, new, atomic: false, opened_here: true, shared: None }
    }

    /// Both descriptors, for an engine.
    pub(super) fn pair(&self) -> Pair<'_> {
        let pair = Pair::new(self.src.fd, self.dst.fd);
        if self.opened_here { pair.without_append() } else { pair }
    }

    /// The error of a clone.
    pub(super) fn clone_error(&self, errno: Errno) -> Diagnostic {
        Diagnostic::Clone { src: self.src.place.path(), dst: self.dst.place.path(), errno }
    }

    /// The run was interrupted while the copy was verified.
    pub(super) fn interrupted_unverified(&self) -> Diagnostic {
        let dst = self.dst.place.path();
        match self.atomic {
            true => Diagnostic::InterruptedBefore { dst },
            false => Diagnostic::InterruptedUnverified { dst },
        }
    }
}

/// Shared by reference among all workers.
pub(crate) struct DataContext<'r> {
    pub(crate) options: &'r Options,
    pub(crate) report: &'r Reporter<'r>,
    pub(super) engines: EngineContext<'r>,
    pub(crate) syncer: Syncer<'r>,
    pub(super) rate_limit: Option<RateLimit>,
}

impl<'r> DataContext<'r> {
    /// For a run that starts now.
    pub(crate) fn new(options: &'r Options, report: &'r Reporter<'r>) -> DataContext<'r> {
        DataContext {
            options,
            report,
            engines: EngineContext::new(options, report),
            syncer: Syncer::new(options.durable && !options.dry_run, report),
            rate_limit: options.limit_rate.map(RateLimit::new),
        }
    }
}
