//! Blocks that both files share, rather than data that is moved.

use std::os::fd::BorrowedFd;

use engines::{Pair, Span, Stop};
use rustix::fs::{Mode, OFlags, ioctl_ficlone, openat};
use rustix::io;

use super::file_copy::{FileCopy, observer};
use crate::fs::Place;
use crate::report::{Chosen, ChosenBy, Diagnostic, Offload, SparseDetection};
use crate::request::{Reflink, Sparse};

impl FileCopy<'_, '_, '_> {
    /// Shares all blocks, if that is wanted and can be.
    pub(super) fn share_all(&mut self, size: u64) -> Result<bool, Diagnostic> {
        let Some(clone) = &mut self.chains.clone else {
            self.ask_about_clones();
            return Ok(false);
        };
        self.report.offload.reflink = "unsupported";
        let pair = Pair::new(self.files.src, self.files.dst);
        let mut observe = observer(self.cx.report, &mut self.report.attempts);
        let moved = clone.file(pair).copy(Span::whole(size), &mut observe);
        drop(observe);
        self.advance(moved.bytes);
        let required = self.cx.options.reflink == Reflink::Always;
        match moved.stop {
            Stop::Done | Stop::Eof => {
                self.report.data_bytes = moved.bytes;
                self.chose_clone(required);
                self.report.offload = Offload {
                    offload: "unknown",
                    reflink: "yes",
                    sparse: SparseDetection::Unknown,
                };
                Ok(true)
            }
            Stop::Refused(_) if !required => Ok(false),
            Stop::Refused(errno) | Stop::Failed { errno, .. } => Err(Diagnostic::Clone {
                src: self.files.src_place.path(),
                dst: self.files.dst_place.path(),
                errno,
            }),
        }
    }

    fn chose_clone(&mut self, required: bool) {
        if let Some(last) = self.report.attempts.last() {
            let by = if required { ChosenBy::Forced } else { ChosenBy::Rule };
            self.report.chosen = Some(Chosen { variant: last.variant.clone(), by });
        }
    }

    /// Where there is no block to share it matters only whether that can be done at all: to those
    /// who insist on it, and to those who want to know.
    pub(super) fn clone_nothing(&mut self) -> Result<(), Diagnostic> {
        let required = self.cx.options.reflink == Reflink::Always;
        let wanted =
            self.cx.options.reflink != Reflink::Never && self.cx.options.sparse != Sparse::Never;
        if !wanted || !(required || self.cx.options.debug) {
            return Ok(());
        }
        match ioctl_ficlone(self.files.dst, self.files.src) {
            Ok(()) => self.report.offload.reflink = "yes",
            Err(errno) if required => {
                return Err(Diagnostic::Clone {
                    src: self.files.src_place.path(),
                    dst: self.files.dst_place.path(),
                    errno,
                });
            }
            Err(_) => self.report.offload.reflink = "unsupported",
        }
        Ok(())
    }

    /// Holes that are to be made everywhere cannot be shared; `--debug` tells whether blocks could
    /// have been.
    fn ask_about_clones(&mut self) {
        let options = self.cx.options;
        let wanted = options.reflink != Reflink::Never && options.sparse == Sparse::Always;
        let can = || matches!(try_clone(self.files.src, self.files.dst_place), Some(Ok(())));
        if wanted && options.debug && !can() {
            self.report.offload.reflink = "unsupported";
        }
    }
}

/// Shares the blocks of `src` with a file beside `dst` that has no name and goes away at once. `None`
/// where no such file can be had.
pub(crate) fn try_clone(src: BorrowedFd<'_>, dst: &Place<'_>) -> Option<io::Result<()>> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let scratch = openat(dst.dir, c".", flags, Mode::RUSR | Mode::WUSR).ok()?;
    Some(ioctl_ficlone(&scratch, src))
}
