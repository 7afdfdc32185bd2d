//! What the ranks of a simulation have done, and what must not happen.

use std::collections::BTreeMap;

use super::shape::Dir;
use cluster::{InodeId, RankId, Ticket};

/// How a simulated copy went.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// From the start until the last rank knows that the run is over.
    pub(crate) elapsed_ns: u64,
    /// What one rank alone would need.
    pub(crate) useful_ns: u128,
    /// The longest sequence of steps that each need the one before.
    pub(crate) critical_ns: u64,
    /// What ranks spent on opening the directories of shares.
    pub(crate) opening_ns: u128,
    /// Entries that were copied, as the ranks' summaries say.
    pub(crate) copied: u64,
    /// Of these, by each rank.
    pub(crate) copied_by: Vec<u64>,
    /// Messages between ranks.
    pub(crate) messages: u64,
    /// Directories and shares that one rank kept in mind at a time, at most.
    pub(crate) records_most: usize,
    /// How often each entry was copied, by its directory and number, if names are counted.
    pub(crate) names: BTreeMap<(u64, u64), u32>,
    pub(super) counts_names: bool,
    /// Everything is copied.
    pub(super) finished: bool,
    /// The first names of files with several names.
    pub(super) firsts: BTreeMap<InodeId, (RankId, Ticket)>,
}

impl Outcome {
    /// The time of one rank, divided by the ranks' times together: 1 at best.
    pub(crate) fn efficiency(&self, ranks: u32) -> f64 {
        self.useful_ns as f64 / (f64::from(ranks) * self.elapsed_ns as f64)
    }

    /// The efficiency that no protocol can exceed with this tree.
    pub(crate) fn efficiency_bound(&self, ranks: u32) -> f64 {
        let parallel = self.useful_ns as f64 / f64::from(ranks);
        parallel / parallel.max(self.critical_ns as f64)
    }

    pub(super) fn add_copied(&mut self, dir: &Dir, first: u64, count: u64) {
        assert!(!self.finished, "an entry is copied after the end of the run");
        if self.counts_names {
            for name in first..first + count {
                *self.names.entry((dir.seed, name)).or_default() += 1;
            }
        }
    }

    /// A file with several names was copied under the first.
    pub(super) fn copied_first(&mut self, name: (RankId, Ticket), inode: InodeId) {
        let before = self.firsts.insert(inode, name);
        assert!(before.is_none(), "{inode:?} is copied twice");
    }

    pub(super) fn check_linked(&self, rank: RankId, first: Ticket) {
        let is_copied = self.firsts.values().any(|&name| name == (rank, first));
        assert!(is_copied, "linked before it is copied");
    }
}
