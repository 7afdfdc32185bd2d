//! Notes about all cells: refusals, missing time, states that were not reached.

use crate::conduct::cell_run::{CellRun, Ended};
use crate::words;

/// Notes on how the cells were measured.
pub(crate) fn notes(cells: &[CellRun]) -> Vec<String> {
    let mut notes = Vec::new();
    let sum = |field: fn(&CellRun) -> u32| cells.iter().map(field).sum::<u32>();
    let (rounds, again) = (sum(|cell| cell.rounds), sum(|cell| cell.rounds_again));
    let disturbed = sum(|cell| cell.rounds_disturbed);
    notes.extend(disturbed_rounds(again, disturbed, rounds));
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

/// The note on rounds that were disturbed. `None` if there were none.
fn disturbed_rounds(again: u32, disturbed: u32, rounds: u32) -> Option<String> {
    let (were, count) = if disturbed == 1 { ("was", "counts") } else { ("were", "count") };
    let repeated = match again {
        0 if disturbed == 0 => return None,
        0 => {
            return Some(format!(
                "{disturbed} of {rounds} rounds {were} disturbed and {count} nevertheless"
            ));
        }
        1 => "1 round was disturbed and run again".to_owned(),
        _ => format!("{again} rounds were disturbed and run again"),
    };
    let every_time = format!(
        "{repeated}, {disturbed} of {rounds} {were} disturbed every time and {count} nevertheless"
    );
    Some(if disturbed == 0 { repeated } else { every_time })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbed_rounds_are_counted_in_words() {
        for (again, disturbed, expected) in [
            (0, 0, ""),
            (0, 1, "1 of 9 rounds was disturbed and counts nevertheless"),
            (1, 0, "1 round was disturbed and run again"),
            (4, 0, "4 rounds were disturbed and run again"),
            (
                4,
                1,
                "4 rounds were disturbed and run again, 1 of 9 was disturbed every time and counts \
                 nevertheless",
            ),
            (
                9,
                3,
                "9 rounds were disturbed and run again, 3 of 9 were disturbed every time and count \
                 nevertheless",
            ),
        ] {
            assert_eq!(disturbed_rounds(again, disturbed, 9).unwrap_or_default(), expected);
        }
    }
}
