//! Old contents of a destination, which the new ones take the place of.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use engines::sys::{Fiemap, fiemap};
use rustix::fs::{fstatfs, ftruncate};
use rustix::io::retry_on_intr;

use super::{Copying, Files, try_clone};
use crate::diagnostic::{Action, Diagnostic};
use crate::extents::{BTRFS, XFS};
use crate::identity::{FileId, file_bytes, is_regular};
use crate::measured::End;
use crate::options::{Options, Reflink};
use crate::routes::Routes;
use crate::run::{Run, failed};

/// Blocks take the place of others in less, unless what is yet to be written of those is written
/// first.
const CLONING_OVER_TIME_MAX: Duration = Duration::from_micros(100);

/// So many files, at most, are emptied before one is cloned over again.
const EMPTIED_MAX: u32 = 1024;

/// Whether cloning over old contents is of use here.
#[derive(Debug, Default)]
pub(crate) struct CloningOver {
    /// Bytes of a block of the destination's file system, once that was asked.
    block_bytes: Option<u64>,
    /// Of files of one block, whether that is quick.
    one_block: Trying,
    /// Of longer ones, whether they share their blocks already.
    shared: Trying,
}

/// What is tried as long as it is of use, and seldom where it was not.
#[derive(Debug, Default)]
struct Trying {
    /// How many files are emptied before it is tried again, and how many are left of them.
    emptied: u32,
    left: u32,
}

impl Trying {
    /// Whether it is tried with the next file.
    fn tries_next(&mut self) -> bool {
        let tries = self.left == 0;
        self.left = self.left.saturating_sub(1);
        tries
    }

    fn was_of_use(&mut self, of_use: bool) {
        self.emptied = if of_use { 0 } else { (4 * self.emptied).clamp(4, EMPTIED_MAX) };
        self.left = self.emptied;
    }
}

impl CloningOver {
    fn block_bytes(&mut self, dst: BorrowedFd<'_>) -> u64 {
        let asked = || fstatfs(dst).ok().and_then(|statfs| u64::try_from(statfs.f_bsize).ok());
        *self.block_bytes.get_or_insert_with(|| asked().unwrap_or(0))
    }

    /// Notes how long it took of a file of so many bytes.
    fn took(&mut self, bytes: u64, elapsed: Duration) {
        let is_one_block = self.block_bytes.is_some_and(|block_bytes| bytes <= block_bytes);
        let trying = if is_one_block { &mut self.one_block } else { &mut self.shared };
        trying.was_of_use(elapsed < CLONING_OVER_TIME_MAX);
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
    /// file of the full length; but where the two files share them already, and nobody writes to them
    /// meanwhile, xfs changes nothing.
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
            && FileId::of(self.src_stat).dev == FileId::of(self.dst_stat).dev
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
        if file_bytes(self.src_stat) <= over.block_bytes(self.dst) {
            return over.one_block.tries_next();
        }
        if dst.kind != Some(XFS) || !over.shared.tries_next() {
            return false;
        }
        // Where they do not look the same nothing has to be written first.
        let share = self.share_their_blocks(false) && self.share_their_blocks(true);
        if !share {
            over.shared.was_of_use(false);
        }
        share
    }

    /// Whether nothing changes when the destination gets the source's blocks, as far as both are written.
    fn share_their_blocks(&self, sync: bool) -> bool {
        let shared = fiemap(self.src, sync).ok().filter(Fiemap::is_shared);
        shared.is_some_and(|src| fiemap(self.dst, sync).is_ok_and(|dst| dst == src))
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
        self.routes.cloning_over.took(size, begun.elapsed());
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
    fn what_is_of_no_use_is_seldom_tried() {
        let mut trying = Trying::default();
        let mut tries_of_1000 = |of_use: bool| {
            let mut tries = 0;
            for _ in 0..1000 {
                if trying.tries_next() {
                    tries += 1;
                    trying.was_of_use(of_use);
                }
            }
            tries
        };
        assert_eq!(tries_of_1000(true), 1000);
        assert!((3..=6).contains(&tries_of_1000(false)));
        assert!(tries_of_1000(true) > 500, "soon after it is of use again");
    }

    #[test]
    fn long_files_say_nothing_of_short_ones() {
        let mut over = CloningOver { block_bytes: Some(4096), ..CloningOver::default() };
        over.took(5000, Duration::from_millis(5));
        assert!(over.one_block.tries_next() && !over.shared.tries_next());
        over.took(4096, Duration::from_millis(5));
        assert!(!over.one_block.tries_next());
    }
}
