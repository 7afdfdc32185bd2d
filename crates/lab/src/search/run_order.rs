//! The order of runs: randomized complete blocks.

use crate::sample::Stage;

/// Orders of rounds, all of them following from one recorded seed.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The seed; the same one gives the same orders.
    pub seed: u64,
}

impl Plan {
    /// The order of one round: each of `entrants` once, shuffled. Every round has an order of its
    /// own, so that no variant always runs after the same other.
    #[must_use]
    pub fn order(self, stage: Stage, round: u32, entrants: &[usize]) -> Vec<usize> {
        let stage = match stage {
            Stage::Heat => 1,
            Stage::WarmUp => 2,
            Stage::Final => 3,
        };
        // The generator's first step mixes seeds that lie close together.
        let seed = self.seed ^ (stage << 32 | u64::from(round)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut order = entrants.to_vec();
        fastrand::Rng::with_seed(seed).shuffle(&mut order);
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_runs_once_a_round_in_an_order_that_the_seed_gives() {
        let plan = Plan { seed: 7 };
        let entrants: Vec<usize> = (0..10).collect();
        let first = plan.order(Stage::Final, 1, &entrants);
        assert_eq!(first, plan.order(Stage::Final, 1, &entrants));
        assert_ne!(first, plan.order(Stage::Final, 2, &entrants));
        assert_ne!(first, plan.order(Stage::Heat, 1, &entrants));
        assert_ne!(first, Plan { seed: 8 }.order(Stage::Final, 1, &entrants));
        let mut sorted = first;
        sorted.sort_unstable();
        assert_eq!(sorted, entrants);
    }

    #[test]
    fn every_place_falls_to_each_about_as_often() {
        let plan = Plan { seed: 1 };
        let mut firsts = [0_u32; 4];
        for round in 0..4000 {
            firsts[plan.order(Stage::Final, round, &[0, 1, 2, 3])[0]] += 1;
        }
        assert!(firsts.iter().all(|&times| (850..1150).contains(&times)), "{firsts:?}");
    }
}
