//! Copies memory without files: the floor of every copy.
//!
//! The engine `memory` runs as in a race: windows of two buffers, until as many bytes were moved as
//! the file of the cell has. A run of a few bytes measures little more than reading the clock.

use engines::{Floor, Kind, Variant, words_of_error};

use super::interface::{Needs, ReadyVariant, Setting, StartResult, Workload};
use super::parameters;
use crate::clock::{Clock, Counters};
use crate::sample::measurement::Measurement;
use crate::trial::NotRun;

pub(crate) static MEMORY: Workload = Workload {
    name: "memory",
    variants: "memory with its tuning, as memory:1M,untouched",
    check: |variant| parse(variant).map(drop),
    start,
    // Two buffers, both written in full.
    needs: |_| Needs { memory_bytes: 2 * WINDOW_BYTES, ..Needs::default() },
    has_state: false,
    can_be_durable: false,
    calls_of_run: None,
};

/// The engine's window where none is given.
const WINDOW_BYTES: u64 = 64 << 20;

fn parse(text: &str) -> Result<Variant, String> {
    let variant = parameters::variant_of(text)?;
    match variant.engine.kind {
        Kind::Floor { .. } => Ok(variant),
        Kind::Copier { .. } => Err(format!("{} copies files", variant.engine.name)),
    }
}

struct Copying {
    floor: Box<dyn Floor>,
    bytes: u64,
}

fn start(setting: &Setting<'_>, text: &str) -> StartResult {
    parameters::one_file(setting.cell)?;
    let variant = parse(text)?;
    let Kind::Floor { start } = variant.engine.kind else { unreachable!("parse has refused it") };
    let floor = start(&variant.tuning).map_err(|error| words_of_error(&error))?;
    Ok(Box::new(Copying { floor, bytes: setting.cell.file_bytes }))
}

impl ReadyVariant for Copying {
    fn run(&mut self, clock: Clock<'_>) -> Result<Measurement, NotRun> {
        let counters = Counters::read();
        let mut measured = Measurement::without_source();
        let result = clock.time(&mut measured, || self.floor.run(self.bytes));
        result.map_err(|error| words_of_error(&error))?;
        counters.fill_since(&mut measured);
        Ok(measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::measurement::Measurement;
    use crate::workload::tests::TestCell;

    #[test]
    fn untouched_memory_is_faulted_in() {
        let mut trial = TestCell::new(&MEMORY, 8 << 20);
        // Other programs make some runs slower, and other tests add faults to the process's;
        // neither makes the best of several runs better than it is.
        let mut runs = |text: &str| (0..7).map(|_| trial.run(text)).collect::<Vec<Measurement>>();
        let (touched, untouched) = (runs("memory:8M"), runs("memory:8M,untouched"));
        let least = |runs: &[Measurement], of: fn(&Measurement) -> u64| {
            runs.iter().map(of).min().expect("runs")
        };
        assert!(least(&touched, |run| run.elapsed_ns) > 100_000, "{touched:?}");
        assert!(least(&touched, |run| run.minor_faults) < 50, "{touched:?}");
        // The one side is read and the other written, each page of both for the first time: with
        // huge pages there are 4 of each, and some tables.
        assert!(least(&untouched, |run| run.minor_faults) > 8, "{untouched:?}");
        assert!(least(&untouched, |run| run.elapsed_ns) > least(&touched, |run| run.elapsed_ns));
        assert!(touched.iter().all(|run| run.counted && !run.verified));
        let why = trial.refusal("memory:8M,untouched,offset=16");
        assert!(why.contains("cannot have an offset"), "{why}");
    }
}
