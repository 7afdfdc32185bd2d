//! Old contents of a destination, which the new ones take the place of.

use std::time::Instant;

use engines::sys::{Fiemap, fiemap};
use rustix::fs::ftruncate;
use rustix::io::retry_on_intr;

use super::clone::try_clone;
use super::clone_over::CloneOverPolicy;
use super::engine_choice::endpoint::Endpoint;
use super::file_copy::FileCopy;
use super::files::Files;
use crate::fs::{BTRFS, FileId, XFS, file_bytes, is_regular};
use crate::report::{Action, Diagnostic, failed};
use crate::request::{Options, Reflink};

impl Files<'_> {
    /// Whether the destination has contents that have to go.
    fn has_old(&self) -> bool {
        // One that is empty already is emptied as well: its times tell of the copy.
        !self.new && is_regular(self.dst_stat)
    }

    /// Takes the old contents away, now that it is sure that they are not the source's. Where sharing
    /// blocks is a must, they stay until it is sure that it can be done.
    fn empty(&self, options: &Options) -> Result<(), Diagnostic> {
        if options.reflink == Reflink::Always && is_regular(self.src_stat) {
            // Where no scratch file can be had nothing is learnt.
            let tried = try_clone(self.src, self.dst_place).unwrap_or(Ok(()));
            tried.map_err(|errno| Diagnostic::Clone {
                src: self.src_place.path(),
                dst: self.dst_place.path(),
                errno,
            })?;
        }
        retry_on_intr(|| ftruncate(self.dst, 0)).map_err(failed(Action::Truncate, self.dst_place))
    }

    /// Takes the old contents away, unless the source's blocks can come straight in their place. Returns
    /// whether they are there still.
    ///
    /// What xfs and btrfs change for one block they change at once. Of several blocks, which may be as
    /// many extents, who is killed between two would leave some of the source's and some old ones in a
    /// file of the full length; but where the two files share them already, and nobody writes to them
    /// meanwhile, xfs changes nothing.
    pub(super) fn truncate_or_keep(
        &self,
        options: &Options,
        dst: Endpoint<'_>,
        may_clone: bool,
        clone_over: &mut CloneOverPolicy,
    ) -> Result<bool, Diagnostic> {
        if !self.has_old() {
            return Ok(false);
        }
        let (old_bytes, bytes) = (file_bytes(self.dst_stat), file_bytes(self.src_stat));
        let keeps = may_clone
            && options.reflink != Reflink::Always
            && matches!(dst.fs_type, Some(XFS | BTRFS))
            && FileId::of(self.src_stat).dev == FileId::of(self.dst_stat).dev
            && is_regular(self.src_stat)
            // What is longer would keep its end.
            && bytes >= old_bytes.max(1)
            && self.may_be_cloned_over(dst, clone_over);
        if !keeps {
            self.empty(options)?;
        }
        Ok(keeps)
    }

    fn may_be_cloned_over(&self, dst: Endpoint<'_>, over: &mut CloneOverPolicy) -> bool {
        if file_bytes(self.src_stat) <= over.block_bytes(self.dst) {
            return over.one_block.should_try();
        }
        if dst.fs_type != Some(XFS) || !over.shared.should_try() {
            return false;
        }
        // Where they do not look the same nothing has to be written first.
        let share = self.share_their_blocks(false) && self.share_their_blocks(true);
        if !share {
            over.shared.record(false);
        }
        share
    }

    /// Whether nothing changes when the destination gets the source's blocks, as far as both are written.
    fn share_their_blocks(&self, sync: bool) -> bool {
        let shared = fiemap(self.src, sync).ok().filter(Fiemap::is_shared);
        shared.is_some_and(|src| fiemap(self.dst, sync).is_ok_and(|dst| dst == src))
    }
}

impl FileCopy<'_, '_, '_> {
    /// Shares all blocks, if that is wanted and can be. Old contents that stand are replaced, or gone.
    pub(super) fn clone_all(&mut self, size: u64) -> Result<bool, Diagnostic> {
        if !self.old_data_remains {
            return self.share_all(size);
        }
        let begun = Instant::now();
        let is_shared = self.share_all(size)?;
        self.clone_over.took(size, begun.elapsed());
        if self.at < size {
            // The source has become shorter, or nothing was shared, or not all.
            retry_on_intr(|| ftruncate(self.files.dst, self.at))
                .map_err(failed(Action::Truncate, self.files.dst_place))?;
        }
        self.old_data_remains = false;
        Ok(is_shared)
    }
}
