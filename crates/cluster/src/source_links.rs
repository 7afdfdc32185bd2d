//! Files with several names: one rank decides which of the ranks that meet such a name copies the
//! file. The others link their names to that copy.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::RankId;

/// A file of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct InodeId {
    /// The device number (`st_dev`), as the rank that entered the file system sees it.
    pub dev: u64,
    /// The inode number (`st_ino`).
    pub ino: u64,
}

/// A name that waits for an answer, as the rank that has it numbers it.
pub type Ticket = u64;

impl InodeId {
    /// The rank that decides about this file: the same on every rank.
    pub fn owner(self, ranks: u32) -> RankId {
        // The finalizer of SplitMix64 (Steele, Lea and Flood 2014). Inode numbers of one directory
        // are often consecutive or have a common factor.
        let mut bits = self.ino ^ self.dev.rotate_left(32);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        // The high half of a product maps to 0..ranks without a division (Lemire 2019).
        let owner = (u128::from(bits) * u128::from(ranks)) >> 64;
        RankId::try_from(owner).expect("less than the number of ranks")
    }
}

/// A name of a file, and the rank that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asker {
    pub(crate) rank: RankId,
    pub(crate) ticket: Ticket,
}

/// Askers, and the copy to which each links its name. An asker without one copies the file.
pub(crate) type Answers<N> = Vec<(Asker, Option<N>)>;

/// The files that one rank decides about.
#[derive(Debug)]
pub(crate) struct SourceLinks<N>(BTreeMap<InodeId, State<N>>);

#[derive(Debug)]
enum State<N> {
    /// The first asker copies the file. These wait.
    Copying(Vec<Asker>),
    Copied(N),
}

impl<N: Clone> SourceLinks<N> {
    pub(crate) fn new() -> SourceLinks<N> {
        SourceLinks(BTreeMap::new())
    }

    /// The answer for `asker`, unless it has to wait.
    pub(crate) fn ask(&mut self, inode: InodeId, asker: Asker) -> Answers<N> {
        match self.0.get_mut(&inode) {
            None => {
                self.0.insert(inode, State::Copying(Vec::new()));
                vec![(asker, None)]
            }
            Some(State::Copying(waiting)) => {
                waiting.push(asker);
                Vec::new()
            }
            Some(State::Copied(name)) => vec![(asker, Some(name.clone()))],
        }
    }

    /// The file was copied to `name`, or could not be copied: then the next asker tries. Returns
    /// the answers to those that waited.
    ///
    /// # Panics
    /// If nobody was to copy the file.
    pub(crate) fn copied(&mut self, inode: InodeId, name: Option<N>) -> Answers<N> {
        let state = self.0.remove(&inode);
        let Some(State::Copying(waiting)) = state else {
            panic!("{inode:?} was copied, and nobody was asked to copy it");
        };
        if let Some(name) = name {
            self.0.insert(inode, State::Copied(name));
        }
        waiting.into_iter().flat_map(|asker| self.ask(inode, asker)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_spread_evenly() {
        for (ranks, step) in [(7_u32, 1), (64, 64), (1000, 2)] {
            let mut owned = vec![0; ranks as usize];
            for index in 0..1000 * u64::from(ranks) {
                owned[InodeId { dev: 42, ino: index * step }.owner(ranks) as usize] += 1;
            }
            assert!(owned.iter().all(|&files| (850..1150).contains(&files)), "{ranks}: {owned:?}");
        }
    }
}
