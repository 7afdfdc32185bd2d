//! Old contents of a destination, which the new ones take the place of.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use engines::sys::{Fiemap, fiemap};
use rustix::fs::{fstatfs, ftruncate};
use rustix::io::retry_on_intr;

use super::{Copying, Files, try_clone};
use crate::diagnostic::{Action, Diagnostic};
use crate::extents::{BTRFS, XFS};
use crate::identity::{file_bytes, is_regular};
use crate::measured::End;
use crate::options::{Options, Reflink};
use crate::routes::Routes;
use crate::run::{Run, failed};

/// Blocks take the place of others in less, unless what is yet to be written of those is written
/// first.
const CLONING_OVER_TIME_MAX: Duration = Duration::from_micros(100);

/// So many files, at most, are emptied before one is cloned over again.
const EMPTIED_MAX: u32 = 1024;

/// Whether cloning over old contents is quick here.
#[derive(Debug, Default)]
pub(crate) struct CloningOver {
    /// Bytes of a block of the destination's file system, once that was asked.
    block_bytes: Option<u64>,
    /// How many files are emptied before it is tried again, and how many are left of them.
    emptied: u32,
    left: u32,
}

impl CloningOver {
    /// Whether the next file may be cloned over.
    fn tries_next(&mut self) -> bool {
        let tries = self.left == 0;
        self.left = self.left.saturating_sub(1);
        tries
    }

    fn block_bytes(&mut self, dst: BorrowedFd<'_>) -> u64 {
        let asked = || fstatfs(dst).ok().and_then(|statfs| u64::try_from(statfs.f_bsize).ok());
        *self.block_bytes.get_or_insert_with(|| asked().unwrap_or(0))
    }

    fn took(&mut self, elapsed: Duration) {
        if elapsed < CLONING_OVER_TIME_MAX {
            self.emptied = 0;
        } else {
            self.was_no_use();
        }
    }

    fn was_no_use(&mut self) {
        self.emptied = (4 * self.emptied).clamp(4, EMPTIED_MAX);
        self.left = self.emptied;
    }
}

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
    /// file of the full length; but where the two files share them already, xfs changes nothing.
    pub(super) fn clear_or_keep_old(
        &self,
        run: &Run<'_>,
        dst: End<'_>,
        routes: &mut Routes,
    ) -> Result<bool, Diagnostic> {
        if !self.has_old() {
            return Ok(false);
        }
        let (old_bytes, bytes) = (file_bytes(self.dst_stat), file_bytes(self.src_stat));
        let over = &mut routes.cloning_over;
        let stays = routes.clone.is_some()
            && run.options.reflink != Reflink::Always
            && matches!(dst.kind, Some(XFS | BTRFS))
            && is_regular(self.src_stat)
            // What is longer would keep its end.
            && bytes >= old_bytes.max(1)
            && self.may_be_cloned_over(dst, over);
        if !stays {
            self.empty(run.options)?;
        }
        Ok(stays)
    }

    fn may_be_cloned_over(&self, dst: End<'_>, over: &mut CloningOver) -> bool {
        let is_one_block = file_bytes(self.src_stat) <= over.block_bytes(self.dst);
        if !is_one_block && dst.kind != Some(XFS) || !over.tries_next() {
            return false;
        }
        let may = is_one_block || self.share_their_blocks();
        if !may {
            over.was_no_use();
        }
        may
    }

    /// Whether nothing changes when the destination gets the source's blocks.
    fn share_their_blocks(&self) -> bool {
        let shared = fiemap(self.src).ok().filter(Fiemap::is_shared);
        shared.is_some_and(|src| fiemap(self.dst).is_ok_and(|dst| dst == src))
    }
}

impl Copying<'_, '_, '_> {
    /// Shares all blocks, if that is wanted and can be. Old contents that stand are replaced, or gone.
    pub(super) fn clone_all(&mut self, size: u64) -> Result<bool, Diagnostic> {
        if !self.old_stands {
            return self.share_all(size);
        }
        let begun = Instant::now();
        let is_shared = self.share_all(size)?;
        self.routes.cloning_over.took(begun.elapsed());
        if self.at < size {
            // The source has become shorter, or nothing was shared, or not all.
            retry_on_intr(|| ftruncate(self.files.dst, self.at))
                .map_err(failed(Action::Truncate, self.files.dst_place))?;
        }
        self.old_stands = false;
        Ok(is_shared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_it_is_slow_it_is_seldom_tried() {
        let mut over = CloningOver::default();
        let quick = Duration::from_micros(5);
        let slow = Duration::from_millis(5);
        let mut tries_of_1000 = |takes: Duration| {
            let mut tries = 0;
            for _ in 0..1000 {
                if over.tries_next() {
                    tries += 1;
                    over.took(takes);
                }
            }
            tries
        };
        assert_eq!(tries_of_1000(quick), 1000);
        assert!((3..=6).contains(&tries_of_1000(slow)));
        assert!(tries_of_1000(quick) > 500, "soon after it is quick again");
    }
}
