//! Clones: both files share their blocks, and no data is moved.

use std::os::fd::BorrowedFd;

use engines::{Span, Stop};
use rustix::fs::{Mode, OFlags, ioctl_ficlone, openat};
use rustix::io;

use super::data_copy::{DataCopy, observer};
use super::engine_choice::rule::SHARED_BLOCKS;
use crate::fs::Place;
use crate::report::{Chosen, ChosenBy, Offload, Result, SparseDetection};
use crate::request::{Reflink, Sparse};
use crate::shared::SharingLock;

impl DataCopy<'_, '_, '_> {
    /// Clones the whole file, if that is wanted and possible.
    pub(super) fn try_clone_all(&mut self, size: u64) -> Result<bool> {
        let is_small = self.is_small();
        let Some(clone) = &mut self.chains.clone else {
            self.test_clone_for_debug();
            return Ok(false);
        };
        self.report.offload.reflink = "unsupported";
        let pair = self.files.pair();
        let mut observe = observer(self.cx.report, &mut self.report.attempts);
        // A clone of a large file may take long, and need not wait for those of small ones.
        let guard = self.sharing_lock.filter(|_| is_small).map(SharingLock::lock);
        let moved = clone.file(pair).copy(Span::whole(size), &mut observe);
        drop(guard);
        drop(observe);
        self.advance(moved.bytes);
        let required = self.cx.options.reflink == Reflink::Always;
        match moved.stop {
            Stop::Done | Stop::Eof => {
                self.report.data_bytes = moved.bytes;
                if let Some(last) = self.report.attempts.last() {
                    let by =
                        if required { ChosenBy::Forced } else { ChosenBy::Rule(SHARED_BLOCKS) };
                    self.report.chosen = Some(Chosen { variant: last.variant.clone(), by });
                }
                self.report.offload = Offload {
                    offload: "unknown",
                    reflink: "yes",
                    sparse: SparseDetection::Unknown,
                };
                Ok(true)
            }
            Stop::Refused(_) if !required => Ok(false),
            Stop::Refused(errno) | Stop::Failed { errno, .. } => Err(self.files.clone_error(errno)),
        }
    }

    /// For a file without blocks, tests only whether clones are supported: for `--reflink=always`
    /// and for `--debug`.
    pub(super) fn clone_empty(&mut self) -> Result<()> {
        let required = self.cx.options.reflink == Reflink::Always;
        let wanted =
            self.cx.options.reflink != Reflink::Never && self.cx.options.sparse != Sparse::Never;
        if !wanted || !(required || self.cx.options.debug) {
            return Ok(());
        }
        match ioctl_ficlone(self.files.dst, self.files.src) {
            Ok(()) => self.report.offload.reflink = "yes",
            Err(errno) if required => return Err(self.files.clone_error(errno)),
            Err(_) => self.report.offload.reflink = "unsupported",
        }
        Ok(())
    }

    /// With `--sparse=always` files are not cloned; `--debug` tells whether they could have been.
    fn test_clone_for_debug(&mut self) {
        let options = self.cx.options;
        let wanted = options.reflink != Reflink::Never && options.sparse == Sparse::Always;
        let can = || matches!(test_clone(self.files.src, self.files.dst_place), Some(Ok(())));
        if wanted && options.debug && !can() {
            self.report.offload.reflink = "unsupported";
        }
    }
}

/// Tests whether `src` can be cloned into the directory of `dst`, with a temporary file without a
/// name. `None` if no such file can be created.
pub(crate) fn test_clone(src: BorrowedFd<'_>, dst: &Place<'_>) -> Option<io::Result<()>> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let scratch = openat(dst.dir, c".", flags, Mode::RUSR | Mode::WUSR).ok()?;
    Some(ioctl_ficlone(&scratch, src))
}
