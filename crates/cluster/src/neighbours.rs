//! Which ranks a rank asks for work.

use fastrand::Rng;

use crate::ids::RankId;

/// The neighbours of `rank` in a hypercube of `ranks` corners, of which the last may be missing.
/// Every rank is connected with rank 0: clearing one bit after the other leads there.
pub(crate) fn neighbours(rank: RankId, ranks: u32) -> impl Iterator<Item = RankId> {
    (0..u32::BITS - ranks.saturating_sub(1).leading_zeros())
        .map(move |bit| rank ^ (1 << bit))
        .filter(move |&neighbour| neighbour < ranks)
}

/// A rank other than `rank`, each with the same probability.
pub(crate) fn random_other(rng: &mut Rng, rank: RankId, ranks: u32) -> Option<RankId> {
    let others = ranks.checked_sub(1).filter(|&others| others > 0)?;
    Some((rank + 1 + rng.u32(..others)) % ranks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_mutual_and_connect_all_ranks() {
        for ranks in [1, 2, 3, 5, 7, 8, 33, 1000] {
            let mut reached = vec![false; ranks as usize];
            let mut next = vec![0];
            while let Some(rank) = next.pop() {
                if std::mem::replace(&mut reached[rank as usize], true) {
                    continue;
                }
                for neighbour in neighbours(rank, ranks) {
                    assert!(neighbours(neighbour, ranks).any(|back| back == rank));
                    next.push(neighbour);
                }
            }
            assert!(reached.iter().all(|&reached| reached), "{ranks} ranks");
        }
    }

    #[test]
    fn every_other_rank_is_asked_and_never_this_one() {
        let mut rng = Rng::with_seed(1);
        let mut asked = [0; 5];
        for _ in 0..1000 {
            asked[random_other(&mut rng, 3, 5).expect("there are others") as usize] += 1;
        }
        assert_eq!(asked[3], 0);
        assert!(asked.iter().filter(|&&times| times > 150).count() == 4, "{asked:?}");
        assert_eq!(random_other(&mut rng, 0, 1), None);
    }
}
