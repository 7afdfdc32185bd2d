//! Single calls as a table and in sentences.

use super::{CallCost, CellCalls, PerCall};
use crate::studies::sheet::{Sheet, circumstances, cost, percent, plain_percent, rate, size};
use crate::words;

/// A cell with more rows than this has some of them in the table only.
const ROWS_MAX: usize = 24;

/// Modes that a row of the table names.
const MODES_NAMED_MAX: usize = 3;

impl PerCall {
    pub(crate) fn sheet(&self) -> Sheet {
        // The table has every buffer that is a power of two, or all where there are few.
        let rows = self.cells.iter().flat_map(|cell| {
            let few = cell.calls.len() <= ROWS_MAX;
            let shown = move |call: &&CallCost| few || call.buffer_bytes.is_power_of_two();
            cell.calls.iter().filter(shown).map(move |call| (cell, call))
        });
        let none = || "-".to_owned();
        let mut sheet = Sheet::of(
            "What single calls cost",
            3,
            rows,
            &[
                ("buffer", &|(_, call)| size(call.buffer_bytes)),
                ("call", &|(_, call)| call.op.clone()),
                ("file", &|(cell, _)| {
                    format!("{} {}", size(cell.file_bytes), circumstances(cell.state, cell.at_once))
                }),
                ("mean", &|(_, call)| cost(call.mean_ns)),
                ("median", &|(_, call)| cost(call.median_ns)),
                ("5 %", &|(_, call)| cost(call.p05_ns)),
                ("95 %", &|(_, call)| cost(call.p95_ns)),
                ("modes", &|(_, call)| largest_modes(call)),
                ("waits every", &|(_, call)| call.waits.map_or_else(none, |w| size(w.every_bytes))),
                ("then", &|(_, call)| call.then_median_ns.map_or_else(none, cost)),
            ],
        );
        sheet.sentences = self.cells.iter().flat_map(|it| it.in_words(self.overhead)).collect();
        sheet
    }

    /// The buffers recommended.
    pub(crate) fn headline(&self) -> Option<String> {
        let of = |cell: &CellCalls| {
            let bytes = cell.recommended_bytes?;
            let state = circumstances(cell.state, cell.at_once);
            Some(format!("{} {state}", bytes.in_words(words::about_bytes)))
        };
        let said: Vec<String> = self.cells.iter().filter_map(of).collect();
        (!said.is_empty()).then(|| {
            format!(
                "calls cost {} % with a buffer of {}",
                plain_percent(self.overhead),
                words::listed(&said)
            )
        })
    }
}

/// The times of the modes with the largest shares.
fn largest_modes(call: &CallCost) -> String {
    let mut modes = call.modes.clone();
    modes.sort_by(|a, b| b.share.total_cmp(&a.share));
    modes.truncate(MODES_NAMED_MAX);
    let modes: Vec<String> = modes.iter().map(|mode| cost(mode.at_ns)).collect();
    modes.join(" ")
}

impl CellCalls {
    fn in_words(&self, overhead: f64) -> Vec<String> {
        let state = circumstances(self.state, self.at_once);
        let mut said = Vec::new();
        for (op, line) in [("read", &self.read), ("write", &self.write)] {
            let Some(line) = line else { continue };
            said.push(format!(
                "A {op}, {state}: {} and {} a byte ({}); the line is off by up to {}, at {}.",
                line.call_ns.in_words(cost),
                line.byte_ns.in_words(cost),
                rate(line.byte_ns.value),
                percent(line.misfit.largest),
                size(line.misfit.at_bytes)
            ));
        }
        if let Some(bytes) = self.recommended_bytes {
            said.push(format!(
                "With a buffer of {} or more the calls add no more than {} % to what the bytes cost, \
                 {state}.",
                bytes.in_words(words::about_bytes),
                plain_percent(overhead)
            ));
        }
        said
    }
}
