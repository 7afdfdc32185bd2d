//! What goes wrong in a simulation, and which files have several names.

use super::shape::Dir;
use cluster::{InodeId, RankId};

/// What goes wrong in a simulated copy.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// Of a thousand shares, how many the receiver cannot open.
    pub(crate) hand_back_per_mille: u64,
    /// Of a thousand files with several names, how many cannot be copied under the first.
    pub(crate) failures_per_mille: u64,
    /// One file of so many has several names; 0 for none. They
    /// are names of 100 inodes.
    pub(crate) link_every: u64,
    /// Of a thousand ranks, how many take no share after a few. Rank 0 always does.
    pub(crate) gives_up_per_mille: u64,
    /// When the user interrupts the copy, in nanoseconds, and at which rank.
    pub(crate) cancel: Option<(u64, RankId)>,
}

impl Faults {
    pub(super) fn fails(&self, dir: &Dir, name: u64) -> bool {
        mixed(dir.seed ^ name.rotate_left(17)) % 1000 < self.failures_per_mille
    }

    /// How many shares the rank takes; `None` if it does not give up.
    pub(crate) fn shares_taken(&self, rank: RankId, seed: u64) -> Option<u64> {
        let bits = mixed(seed ^ (u64::from(rank) << 20));
        let gives_up = rank != 0 && bits % 1000 < self.gives_up_per_mille;
        gives_up.then_some(bits / 1000 % 4)
    }

    /// The inode of a file with several names.
    pub(super) fn inode(&self, dir: &Dir, name: u64) -> Option<InodeId> {
        let bits = mixed(dir.seed.wrapping_add(name));
        let is_linked = bits.checked_rem(self.link_every) == Some(0);
        is_linked.then(|| InodeId { dev: 1, ino: bits / self.link_every % 100 })
    }
}

/// A random number that depends on `bits` alone.
pub(super) fn mixed(bits: u64) -> u64 {
    fastrand::Rng::with_seed(bits).u64(..)
}
