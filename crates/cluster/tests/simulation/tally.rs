//! What the ranks of a simulation have done, and what must not happen.

use std::collections::{BTreeMap, BTreeSet};

use super::shape::Dir;
use cluster::RankId;
use cluster::{InodeId, Ticket};

/// What the ranks did together.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) useful_ns: u128,
    pub(super) opening_ns: u128,
    pub(super) shares: u64,
    pub(super) summed: u64,
    pub(super) finished: bool,
    counts_names: bool,
    pub(super) names: BTreeMap<(u64, u64), u32>,
    pub(super) told: Vec<(u64, u64)>,
    pub(super) failed: Vec<(u64, u64)>,
    /// The first names of files with several names.
    firsts: BTreeMap<InodeId, (RankId, Ticket)>,
    first_names: BTreeSet<(RankId, Ticket)>,
}

impl Tally {
    pub(super) fn new(counts_names: bool) -> Tally {
        Tally { counts_names, ..Tally::default() }
    }

    pub(super) fn copied(&mut self, dir: &Dir, first: u64, count: u64) {
        assert!(!self.finished, "an entry is copied after the end of the run");
        if self.counts_names {
            for name in first..first + count {
                *self.names.entry((dir.seed, name)).or_default() += 1;
            }
        }
    }

    /// A file with several names was copied under the first.
    pub(super) fn copied_first(&mut self, rank: RankId, ticket: Ticket, inode: InodeId) {
        let before = self.firsts.insert(inode, (rank, ticket));
        assert!(before.is_none(), "{inode:?} is copied twice");
        self.first_names.insert((rank, ticket));
    }

    pub(super) fn check_linked(&self, rank: RankId, first: Ticket) {
        assert!(self.first_names.contains(&(rank, first)), "linked before it is copied");
    }
}
