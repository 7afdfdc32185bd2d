//! When the old contents of a destination are truncated: before the copy, unless the source can be
//! cloned over them, or one write replaces them in memory (docs/design/old-contents.md).

use std::time::Instant;

use engines::sys::{Fiemap, fiemap};
use rustix::fs::ftruncate;
use rustix::io::retry_on_intr;

use super::clone::test_clone;
use super::clone_over::CloneOverPolicy;
use super::data_copy::{DataCopy, OldContents, is_sparse};
use super::files::Files;
use crate::fs::{BTRFS, Endpoint, FileId, TMPFS, XFS, file_bytes, is_regular, is_reliable};
use crate::report::{Action, Result, failed};
use crate::request::{Options, Reflink, Sparse};

/// The most bytes that one write replaces as a whole: the smallest page size of Linux.
const PAGE_BYTES: u64 = 4096;

impl Files<'_> {
    /// Truncates the destination, which is known not to be the source. With `--reflink=always` a
    /// clone is tested first, so that the contents stay if it is refused.
    fn truncate_old(&self, options: &Options) -> Result<()> {
        if options.reflink == Reflink::Always && is_regular(self.src_stat) {
            let tested = test_clone(self.src, self.dst_place).unwrap_or(Ok(()));
            tested.map_err(|errno| self.clone_error(errno))?;
        }
        retry_on_intr(|| ftruncate(self.dst, 0)).map_err(failed(Action::Truncate, self.dst_place))
    }

    /// Truncates the destination, unless its contents can be replaced at once. Returns what remains of
    /// them.
    ///
    /// xfs and btrfs replace one block atomically. A process killed while several extents are
    /// replaced would leave new and old ones in a file of full length. But if the files share their
    /// extents already, and no process writes to them meanwhile, xfs changes nothing.
    pub(super) fn truncate_or_keep(
        &self,
        options: &Options,
        (src, dst): (Endpoint<'_>, Endpoint<'_>),
        may_clone: bool,
        clone_over: &mut CloneOverPolicy,
    ) -> Result<OldContents> {
        // An empty destination is truncated too, which sets its times.
        if self.new || !is_regular(self.dst_stat) {
            return Ok(OldContents::Gone);
        }
        if self.are_replaced_by_a_write(options, src, dst) {
            return Ok(OldContents::UntilWritten);
        }
        let (old_bytes, bytes) = (file_bytes(self.dst_stat), file_bytes(self.src_stat));
        let keeps = may_clone
            && options.reflink != Reflink::Always
            && matches!(dst.fs_type, Some(XFS | BTRFS))
            && FileId::of(self.src_stat).dev == FileId::of(self.dst_stat).dev
            && is_regular(self.src_stat)
            // A longer destination would keep its end.
            && bytes >= old_bytes.max(1)
            && self.may_be_cloned_over(dst, clone_over);
        if keeps {
            return Ok(OldContents::UntilCloned);
        }
        self.truncate_old(options)?;
        Ok(OldContents::Gone)
    }

    /// Whether one write replaces the old contents: both files fit in a page of a tmpfs. A kill finds the
    /// old page or the new one, and after a loss of power there is none. The page need not be freed and
    /// allocated again, which takes as long as the rest of the copy.
    fn are_replaced_by_a_write(
        &self,
        options: &Options,
        src: Endpoint<'_>,
        dst: Endpoint<'_>,
    ) -> bool {
        let (old_bytes, bytes) = (file_bytes(self.dst_stat), file_bytes(self.src_stat));
        dst.fs_type == Some(TMPFS)
            && bytes <= PAGE_BYTES
            // A kill before a longer file is cut would leave its end behind the new bytes.
            && (1..=bytes).contains(&old_bytes)
            // A server may give a part at a time, which is written before the next.
            && src.fs_type.is_some_and(is_reliable)
            // A hole is not written.
            && is_regular(self.src_stat)
            && !is_sparse(self.src_stat)
            && options.sparse != Sparse::Always
            && options.reflink != Reflink::Always
            // An engine that was named may write less at a time.
            && options.engine.is_none()
    }

    fn may_be_cloned_over(&self, dst: Endpoint<'_>, over: &mut CloneOverPolicy) -> bool {
        if file_bytes(self.src_stat) <= over.block_bytes(self.dst) {
            return over.one_block.should_try();
        }
        if dst.fs_type != Some(XFS) || !over.shared.should_try() {
            return false;
        }
        // Without syncing first: if the extents differ then, nothing has to be written.
        let shared = self.have_same_extents(false) && self.have_same_extents(true);
        if !shared {
            over.shared.record(false);
        }
        shared
    }

    /// Whether both files share all their extents already, by FIEMAP, with `sync` after both were
    /// written.
    fn have_same_extents(&self, sync: bool) -> bool {
        let shared = fiemap(self.src, sync).ok().filter(Fiemap::is_shared);
        shared.is_some_and(|src| fiemap(self.dst, sync).is_ok_and(|dst| dst == src))
    }
}

impl DataCopy<'_, '_, '_> {
    /// Clones the whole file, if that is wanted and possible. Afterwards old contents are replaced
    /// or truncated.
    pub(super) fn clone_all(&mut self, size: u64) -> Result<bool> {
        if self.old_contents == OldContents::Gone {
            return self.try_clone_all(size);
        }
        let started = Instant::now();
        let is_cloned = self.try_clone_all(size)?;
        self.clone_over.record(size, started.elapsed());
        if self.at < size {
            // The source has become shorter, or not all of it was cloned.
            retry_on_intr(|| ftruncate(self.files.dst, self.at))
                .map_err(failed(Action::Truncate, self.files.dst_place))?;
        }
        self.old_contents = OldContents::Gone;
        Ok(is_cloned)
    }

    /// Cuts what is left of old contents behind those that were written. If nothing was, they stay.
    pub(super) fn cut_old_contents(&mut self, copied: Result<()>) -> Result<()> {
        let is_untouched = copied.is_err() && self.at == 0;
        if self.old_contents != OldContents::UntilWritten || is_untouched {
            return copied;
        }
        if file_bytes(self.files.dst_stat) > self.at {
            let cut = retry_on_intr(|| ftruncate(self.files.dst, self.at));
            if copied.is_ok() {
                cut.map_err(failed(Action::Truncate, self.files.dst_place))?;
            }
        }
        self.old_contents = OldContents::Gone;
        copied
    }
}
