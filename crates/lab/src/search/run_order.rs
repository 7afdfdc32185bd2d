//! The order of runs: randomised complete blocks.

use crate::sample::Stage;

/// The order of one round: each of `candidates` once, shuffled. Every round has an order of its own, so
/// that no variant always runs after the same other. All orders follow from one recorded `seed`.
#[must_use]
pub fn order(seed: u64, stage: Stage, round: u32, candidates: &[usize]) -> Vec<usize> {
    let stage = match stage {
        Stage::Elimination => 1,
        Stage::WarmUp => 2,
        Stage::Final => 3,
    };
    // The generator's first step mixes seeds that lie close together.
    let seed = seed ^ (stage << 32 | u64::from(round)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut order = candidates.to_vec();
    fastrand::Rng::with_seed(seed).shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_runs_once_a_round_in_an_order_that_the_seed_gives() {
        let candidates: Vec<usize> = (0..10).collect();
        let first = order(7, Stage::Final, 1, &candidates);
        assert_eq!(first, order(7, Stage::Final, 1, &candidates));
        assert_ne!(first, order(7, Stage::Final, 2, &candidates));
        assert_ne!(first, order(7, Stage::Elimination, 1, &candidates));
        assert_ne!(first, order(8, Stage::Final, 1, &candidates));
        let mut sorted = first;
        sorted.sort_unstable();
        assert_eq!(sorted, candidates);
    }

    #[test]
    fn every_place_falls_to_each_about_as_often() {
        let mut firsts = [0_u32; 4];
        for round in 0..4000 {
            firsts[order(1, Stage::Final, round, &[0, 1, 2, 3])[0]] += 1;
        }
        assert!(firsts.iter().all(|&times| (850..1150).contains(&times)), "{firsts:?}");
    }
}
