//! Variants beside the floor, as text.

use super::sheet::{Sheet, cost, rate, size};
use crate::analysis::floor::{Floor, RatioToFloor};
use crate::in_order::{distinct, gathered};
use crate::page_cache::state::State;
use crate::words;

impl Floor {
    pub(crate) fn sheet(&self) -> Sheet {
        let cells = gathered(&self.ratios, |ratio| &ratio.cell);
        let cells: Vec<&RatioToFloor> = cells.into_iter().map(|(_, ratios)| ratios[0]).collect();
        let variants = distinct(self.ratios.iter().map(|ratio| ratio.variant.as_str()));
        let mut sheet = Sheet::of(
            "Times as long as a copy in memory",
            1,
            variants.iter().copied(),
            &[("variant", &|variant: &&str| (*variant).to_owned())],
        );
        sheet.columns.extend(cells.iter().map(|cell| match cell.state {
            State::Warm => size(cell.file_bytes),
            state => format!("{} {}", size(cell.file_bytes), state.name()),
        }));
        for (row, variant) in sheet.rows.iter_mut().zip(variants) {
            let value = |cell: &&RatioToFloor| {
                let of = |it: &&RatioToFloor| it.cell == cell.cell && it.variant == variant;
                match self.ratios.iter().find(of) {
                    Some(it) if it.variant == self.floor => cost(it.median_ns),
                    Some(it) => it.ratio.map_or("?".to_owned(), |r| words::three_digits(r.value)),
                    None => "-".to_owned(),
                }
            };
            row.extend(cells.iter().map(value));
        }
        if let Some(largest) = cells.iter().max_by_key(|cell| cell.file_bytes) {
            let of = |it: &&RatioToFloor| it.cell == largest.cell && it.variant == self.floor;
            if let Some(floor) = self.ratios.iter().find(of) {
                sheet.say(format!(
                    "{} copies {} of memory at {}; it makes no system call and reads no file.",
                    self.floor,
                    size(largest.file_bytes),
                    rate(floor.median_ns / largest.file_bytes as f64)
                ));
            }
        }
        sheet
    }
}
