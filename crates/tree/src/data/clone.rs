//! Clones: both files share their blocks, and no data is moved.

use std::os::fd::BorrowedFd;
use std::time::Instant;

use engines::{Span, Stop};
use rustix::fs::{Mode, OFlags, ftruncate, ioctl_ficlone, openat, tell};
use rustix::io::{self, retry_on_intr};
use sys::{Fiemap, fiemap};

use super::data_copy::{DataCopy, OldContents, is_sparse, observer};
use super::engine_choice::rule::SHARED_BLOCKS;
use crate::fs::{BTRFS, Endpoints, FileId, Place, TMPFS, XFS, file_bytes, is_regular, is_reliable};
use crate::report::{
    Action, Chosen, ChosenBy, Diagnostic, Offload, Result, SparseDetection, failed,
};
use crate::request::{Options, Reflink, Sparse};

/// The most bytes that one write replaces as a whole: the smallest page size of Linux.
const PAGE_BYTES: u64 = 4096;

impl DataCopy<'_, '_, '_> {
    /// Truncates the destination, which is known not to be the source, unless its contents can be
    /// replaced at once. Returns what remains of them.
    ///
    /// xfs and btrfs replace one block atomically. A process killed while several extents are
    /// replaced would leave new and old ones in a file of full length. But if the files share their
    /// extents already, and no process writes to them meanwhile, xfs changes nothing.
    pub(super) fn truncate_or_keep(&mut self) -> Result<OldContents> {
        // An empty destination is truncated too, which sets its times.
        if self.files.new || !is_regular(self.files.dst.stat) {
            return Ok(OldContents::Gone);
        }
        if self.cx.report.interrupted() {
            return Err(Diagnostic::InterruptedBefore { dst: self.files.dst.place.path() });
        }
        if self.are_replaced_by_a_write() {
            return Ok(OldContents::UntilWritten);
        }
        let (old_bytes, bytes) = (file_bytes(self.files.dst.stat), file_bytes(self.files.src.stat));
        let keeps = self.chains.clone.is_some()
            && self.cx.options.reflink != Reflink::Always
            && matches!(self.facts.ends.dst.fs_type, Some(XFS | BTRFS))
            && FileId::of(self.files.src.stat).dev == FileId::of(self.files.dst.stat).dev
            && is_regular(self.files.src.stat)
            // A longer destination would keep its end.
            && bytes >= old_bytes.max(1)
            && self.may_be_cloned_over();
        if keeps {
            return Ok(OldContents::UntilCloned);
        }
        // The contents stay if a clone that is required is refused.
        if self.cx.options.reflink == Reflink::Always && is_regular(self.files.src.stat) {
            let tested = test_clone(self.files.src.fd, self.files.dst.place).unwrap_or(Ok(()));
            tested.map_err(|errno| self.files.clone_error(errno))?;
        }
        // A stream goes on where the descriptor is: what is before stays.
        let stays = match self.facts.is_regular {
            true => 0,
            false => tell(self.files.dst.fd).unwrap_or(0),
        };
        retry_on_intr(|| ftruncate(self.files.dst.fd, stays))
            .map_err(failed(Action::Truncate, self.files.dst.place))?;
        Ok(OldContents::Gone)
    }

    /// Whether one write replaces the old contents: both files fit in a page of a tmpfs. A kill finds the
    /// old page or the new one, and after a loss of power there is none. The page need not be freed and
    /// allocated again, which takes as long as the rest of the copy.
    fn are_replaced_by_a_write(&self) -> bool {
        let (options, Endpoints { src, dst }) = (self.cx.options, self.facts.ends);
        let (old_bytes, bytes) = (file_bytes(self.files.dst.stat), file_bytes(self.files.src.stat));
        dst.fs_type == Some(TMPFS)
            && bytes <= PAGE_BYTES
            // A kill before a longer file is cut would leave its end behind the new bytes.
            && (1..=bytes).contains(&old_bytes)
            // A server may give a part at a time, which is written before the next.
            && src.fs_type.is_some_and(is_reliable)
            // A hole is not written.
            && is_regular(self.files.src.stat)
            && !is_sparse(self.files.src.stat)
            && options.sparse != Sparse::Always
            && options.reflink != Reflink::Always
            // An engine that was named may write less at a time.
            && options.engine.is_none()
    }

    fn may_be_cloned_over(&mut self) -> bool {
        if file_bytes(self.files.src.stat) <= self.clone_over.block_bytes(self.files.dst.fd) {
            return self.clone_over.one_block.should_try();
        }
        if self.facts.ends.dst.fs_type != Some(XFS) || !self.clone_over.shared.should_try() {
            return false;
        }
        // Without syncing first: if the extents differ then, nothing has to be written.
        let shared = self.have_same_extents(false) && self.have_same_extents(true);
        if !shared {
            self.clone_over.shared.record(false);
        }
        shared
    }

    /// Whether both files share all their extents already, by FIEMAP, with `sync` after both were
    /// written.
    fn have_same_extents(&self, sync: bool) -> bool {
        let shared = fiemap(self.files.src.fd, sync).ok().filter(Fiemap::is_shared);
        shared.is_some_and(|src| fiemap(self.files.dst.fd, sync).is_ok_and(|dst| dst == src))
    }

    /// Clones the whole file, if that is wanted and possible. Afterwards old contents are replaced
    /// or truncated.
    pub(super) fn clone_all(&mut self, size: u64) -> Result<bool> {
        if self.old_contents == OldContents::Gone {
            return self.try_clone_all(size);
        }
        let started = Instant::now();
        let is_cloned = self.try_clone_all(size)?;
        self.clone_over.record(size, started.elapsed());
        if self.position.at < size {
            // The source has become shorter, or not all of it was cloned.
            retry_on_intr(|| ftruncate(self.files.dst.fd, self.position.at))
                .map_err(failed(Action::Truncate, self.files.dst.place))?;
        }
        self.old_contents = OldContents::Gone;
        Ok(is_cloned)
    }

    /// Cuts what is left of old contents behind those that were written. If nothing was, they stay.
    pub(super) fn cut_old_contents(&mut self, copied: Result<()>) -> Result<()> {
        let is_untouched = copied.is_err() && self.position.at == 0;
        if self.old_contents != OldContents::UntilWritten || is_untouched {
            return copied;
        }
        if file_bytes(self.files.dst.stat) > self.position.at {
            let cut = retry_on_intr(|| ftruncate(self.files.dst.fd, self.position.at));
            if copied.is_ok() {
                cut.map_err(failed(Action::Truncate, self.files.dst.place))?;
            }
        }
        self.old_contents = OldContents::Gone;
        copied
    }

    /// Clones the whole file, if that is wanted and possible.
    fn try_clone_all(&mut self, size: u64) -> Result<bool> {
        let Some(clone) = &mut self.chains.clone else {
            // With `--sparse=always` files are not cloned; `--debug` tells whether they could have been.
            let Options { reflink, sparse, debug, .. } = self.cx.options;
            let wanted = *debug && *reflink != Reflink::Never && *sparse == Sparse::Always;
            let (src, dst) = (self.files.src.fd, self.files.dst.place);
            if wanted && !matches!(test_clone(src, dst), Some(Ok(()))) {
                self.report.offload.reflink = "unsupported";
            }
            return Ok(false);
        };
        self.report.offload.reflink = "unsupported";
        let pair = self.files.pair();
        let mut observe = observer(self.cx.report, &mut self.report.attempts);
        let moved = clone.file(pair).copy(Span::whole(size), &mut observe);
        drop(observe);
        self.position.advance(moved.bytes);
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
        match ioctl_ficlone(self.files.dst.fd, self.files.src.fd) {
            Ok(()) => self.report.offload.reflink = "yes",
            Err(errno) if required => return Err(self.files.clone_error(errno)),
            Err(_) => self.report.offload.reflink = "unsupported",
        }
        Ok(())
    }
}

/// Tests whether `src` can be cloned into the directory of `dst`, with a temporary file without a
/// name. `None` if no such file can be created.
pub(crate) fn test_clone(src: BorrowedFd<'_>, dst: &Place<'_>) -> Option<io::Result<()>> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let scratch = openat(dst.dir, c".", flags, Mode::RUSR | Mode::WUSR).ok()?;
    Some(ioctl_ficlone(&scratch, src))
}
