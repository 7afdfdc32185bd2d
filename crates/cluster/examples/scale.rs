//! Prints the table of docs/scale.md:
//!
//!     cargo run --release -p haulage-cluster --example scale [ENTRIES [SHAPE]]

#[allow(dead_code, unused_imports, reason = "the tests use the rest")]
#[path = "../tests/simulation/mod.rs"]
mod simulation;

use std::time::Instant;

use simulation::{Outcome, Shape, Simulation};

const ENTRIES: u64 = 100_000_000;
const SPINE_ENTRIES: u64 = 2_000_000;
const RANKS: [u32; 6] = [4, 16, 64, 256, 1024, 4096];
const METADATA_US: [u64; 3] = [100, 1000, 5000];

fn main() {
    let mut args = std::env::args().skip(1);
    let entries = args.next().map_or(ENTRIES, |entries| entries.parse().expect("entries"));
    let only = args.next();
    let begun = Instant::now();
    let ranks = RANKS.map(|ranks| ranks.to_string()).join(" | ");
    println!(
        "| tree | metadata | {ranks} | bound at 1024 | at 4096 | messages | opening | records |"
    );
    println!("|---|---|{}", "---|".repeat(RANKS.len() + 5));
    for (name, shape) in Shape::ALL {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        // Deep stacks of directories take the simulation minutes.
        let entries = if shape == Shape::Spine { entries.min(SPINE_ENTRIES) } else { entries };
        for metadata_us in METADATA_US {
            print_row(name, shape, entries, metadata_us);
        }
    }
    eprintln!("{:.0} s", begun.elapsed().as_secs_f64());
}

fn print_row(name: &str, shape: Shape, entries: u64, metadata_us: u64) {
    let outcomes = RANKS.map(|ranks| run(shape, entries, metadata_us, ranks));
    let efficiencies: Vec<String> = outcomes
        .iter()
        .zip(RANKS)
        .map(|(outcome, ranks)| format!("{:.3}", outcome.efficiency(ranks)))
        .collect();
    let at = |ranks| {
        let column = RANKS.iter().position(|&column| column == ranks).expect("a column");
        &outcomes[column]
    };
    println!(
        "| {name} | {} ms | {} | {:.3} | {:.3} | {:.1} | {:.1} % | {} |",
        metadata_us as f64 / 1000.0,
        efficiencies.join(" | "),
        at(1024).efficiency_bound(1024),
        at(4096).efficiency_bound(4096),
        1000.0 * at(1024).messages as f64 / entries as f64,
        100.0 * at(1024).opening_ns as f64 / at(1024).useful_ns as f64,
        at(1024).records_most,
    );
}

fn run(shape: Shape, entries: u64, metadata_us: u64, ranks: u32) -> Outcome {
    let outcome = Simulation::of(shape, entries, ranks, metadata_us).run();
    assert_eq!(outcome.copied, entries, "every entry is copied");
    outcome
}
