//! Notes about all cells: refusals, missing time, states that were not reached.

use crate::conduct::cell_run::{CellRun, Ended};
use crate::words;

/// Notes on how the cells were measured.
pub(crate) fn notes(cells: &[CellRun]) -> Vec<String> {
    let mut notes = Vec::new();
    let sum = |field: fn(&CellRun) -> u32| cells.iter().map(field).sum::<u32>();
    let (rounds, again) = (sum(|cell| cell.rounds), sum(|cell| cell.rounds_again));
    let disturbed = sum(|cell| cell.rounds_disturbed);
    if again > 0 {
        notes.push(format!(
            "{again} rounds were disturbed and run again, {disturbed} of {rounds} were disturbed every \
             time and count nevertheless"
        ));
    }
    let out_of_reach: Vec<String> = cells
        .iter()
        .filter(|cell| cell.ended == Some(Ended::OutOfReach))
        .map(|cell| cell.cell.id())
        .collect();
    if !out_of_reach.is_empty() {
        let named = words::listed(&out_of_reach);
        notes.push(format!("the page cache state asked for was out of reach in {named}"));
    }
    notes
}
