//! Estimates how long a round takes before anything is measured. Only plans use it.

use engines::{Bytes, ParamKind, Variant};

use crate::definition::cell::Cell;
use crate::definition::{Definition, Part, without_label};
use crate::page_cache::state::State;

/// Bytes a second that common machines move from file to file in the page cache.
const WARM_BYTES_PER_SECOND: f64 = 1.5e9;

/// Bytes a second that common machines move if the source comes from a device.
const COLD_BYTES_PER_SECOND: f64 = 4e8;

/// Bytes a second at which a copy is compared.
const COMPARED_BYTES_PER_SECOND: f64 = 4e9;

/// The cost of a read or write apart from its bytes.
const CALL_SECONDS: f64 = 4e-7;

/// The time of a run outside the copy: setting and proving the state, creating, removing.
const RUN_SECONDS: f64 = 5e-4;

/// The time that an outside command takes to start and exit.
const COMMAND_SECONDS: f64 = 2e-2;

/// Seconds of one round of all cells.
pub fn seconds_of_rounds(definition: &Definition) -> f64 {
    definition.parts.iter().map(seconds_of_part).sum()
}

/// Seconds of one round of all cells of a part.
pub fn seconds_of_part(part: &Part) -> f64 {
    part.cells().iter().map(|cell| seconds_of_round(cell, part)).sum()
}

/// Seconds of one round of a cell of `part`.
pub fn seconds_of_round(cell: &Cell, part: &Part) -> f64 {
    part.variants.iter().map(|variant| seconds_of_run(cell, variant)).sum()
}

fn seconds_of_run(cell: &Cell, variant: &str) -> f64 {
    let bytes = cell.run_bytes() as f64 * f64::from(cell.at_once);
    let rate = match cell.state {
        State::Cold => COLD_BYTES_PER_SECOND,
        State::Warm | State::AsItComes => WARM_BYTES_PER_SECOND,
    };
    let runs = f64::from(cell.at_once) * f64::from(cell.files);
    let calls = buffer_bytes(variant).map_or(0.0, |buffer| 2.0 * bytes / buffer);
    let started = if cell.workload == "command" { COMMAND_SECONDS } else { 0.0 };
    bytes / rate
        + bytes / COMPARED_BYTES_PER_SECOND
        + calls * CALL_SECONDS
        + runs * RUN_SECONDS
        + started
}

/// The buffer of a variant: its engine's first parameter in bytes, or the first number in its text.
fn buffer_bytes(variant: &str) -> Option<f64> {
    let text = without_label(variant);
    if let Ok(variant) = text.parse::<Variant>() {
        let param =
            variant.engine.params.iter().find(|p| matches!(p.kind, ParamKind::Bytes { .. }))?;
        return Some(variant.tuning.get(param.name) as f64).filter(|&bytes| bytes > 0.0);
    }
    let words = text.split([':', ',', '=', ' ']);
    words.flat_map(str::parse::<Bytes>).map(|bytes| bytes.0 as f64).find(|&bytes| bytes > 0.0)
}
