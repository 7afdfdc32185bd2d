//! Properties of every run, over random trees, ranks, latencies and faults.

#[allow(dead_code, reason = "examples/scale.rs uses the rest")]
mod simulation;

use proptest::prelude::*;
use proptest::sample::select;
use simulation::{Costs, Faults, Outcome, Shape, Simulation};

fn simulation() -> impl Strategy<Value = Simulation> {
    let hand_back = select(&[0, 100, 500, 1000]);
    let failures = select(&[0, 1, 50, 1000]);
    let (links, gives_up) = (select(&[0, 2, 20]), select(&[0, 100, 700, 1000]));
    let faults = (hand_back, failures, links, gives_up).prop_map(
        |(hand_back_per_mille, failures_per_mille, link_every, gives_up_per_mille)| Faults {
            hand_back_per_mille,
            failures_per_mille,
            link_every,
            gives_up_per_mille,
            cancel: None,
        },
    );
    let costs = (1_u64..5000, 1_u64..5000, 0_u64..5000).prop_map(
        |(metadata_us, message_us, receive_ns)| {
            let message_ns_max = message_us * 1000;
            Costs { message_ns_max, receive_ns, ..Costs::with_metadata_us(metadata_us) }
        },
    );
    let shape = select(Shape::ALL.map(|(_, shape)| shape).to_vec());
    (shape, 0_u64..4000, 1_u32..70, costs, faults, any::<u64>()).prop_map(
        |(shape, entries, ranks, costs, faults, seed)| {
            let counts_names = true;
            Simulation { shape, entries, ranks, costs, faults, seed, counts_names }
        },
    )
}

/// What every run keeps to. The simulation itself panics if an entry is copied after the end, if a
/// file is linked before it is copied, or if something is left or under way at the end.
fn assert_no_entry_twice(outcome: &Outcome) {
    assert!(outcome.names.values().all(|&times| times == 1), "an entry is copied twice");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn each_entry_is_copied_once(simulation in simulation()) {
        let simulation = Simulation { counts_names: simulation.shape != Shape::Chain, ..simulation };
        let outcome = simulation.run();
        prop_assert_eq!(outcome.copied, simulation.entries);
        if simulation.counts_names {
            prop_assert_eq!(outcome.names.len() as u64, simulation.entries);
        }
        assert_no_entry_twice(&outcome);
    }

    #[test]
    fn a_cancelled_run_ends_and_copies_nothing_twice(
        simulation in simulation(),
        at_us in 0_u64..200_000,
        rank in 0_u32..70,
    ) {
        let cancel = Some((at_us * 1000, rank % simulation.ranks));
        let faults = Faults { cancel, ..simulation.faults };
        let outcome = Simulation { faults, ..simulation }.run();
        prop_assert!(outcome.copied <= simulation.entries);
        assert_no_entry_twice(&outcome);
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let faults = Faults { link_every: 3, hand_back_per_mille: 10, ..Faults::default() };
    let simulation = Simulation::of(Shape::PowerLaw, 20_000, 33, 100);
    let simulation = Simulation { faults, seed: 5, counts_names: true, ..simulation };
    let (first, second) = (simulation.run(), simulation.run());
    assert_eq!((first.elapsed_ns, first.messages), (second.elapsed_ns, second.messages));
    assert_ne!(first.elapsed_ns, Simulation { seed: 6, ..simulation }.run().elapsed_ns);
}

/// A small part of the table in docs/scale.md.
#[test]
fn ranks_are_used_well_where_the_tree_allows_it() {
    // The shape, its entries, ranks, and the least efficiency.
    for (shape, entries, ranks, least) in [
        (Shape::Flat, 2_000_000, 128, 0.9),
        (Shape::SmallDirectories, 2_000_000, 128, 0.9),
        (Shape::PowerLaw, 2_000_000, 128, 0.9),
        (Shape::LargeFiles, 64 * 1025, 128, 0.85),
    ] {
        let outcome = Simulation::of(shape, entries, ranks, 1000).run();
        assert_eq!(outcome.copied, entries);
        let efficiency = outcome.efficiency(ranks);
        assert!(efficiency >= least, "{shape:?} on {ranks} ranks: {efficiency:.3}");
        assert!(efficiency <= outcome.efficiency_bound(ranks), "{shape:?}: {efficiency:.3}");
    }
}

/// Two of three ranks give up, so that some ranks have no neighbour left.
#[test]
fn a_rank_gets_work_though_its_neighbours_give_up() {
    let faults = Faults { gives_up_per_mille: 700, ..Faults::default() };
    let mut isolated = 0;
    for seed in 0..12 {
        let simulation = Simulation::of(Shape::SmallDirectories, 200_000, 64, 1000);
        let simulation = Simulation { faults, seed, ..simulation };
        let outcome = simulation.run();
        assert_eq!(outcome.copied, simulation.entries);
        let stays = |rank: u32| faults.shares_taken(rank, seed).is_none();
        let staying: Vec<u32> = (0..64).filter(|&rank| stays(rank)).collect();
        isolated +=
            staying.iter().filter(|&rank| (0..6).all(|bit| !stays(rank ^ (1 << bit)))).count();
        let least = simulation.entries / staying.len() as u64 / 2;
        for rank in staying {
            let copied = outcome.copied_by[rank as usize];
            assert!(copied >= least, "seed {seed}: rank {rank} copied {copied} of {least}");
        }
    }
    assert!(isolated > 5, "the case is rare: {isolated}");
}
