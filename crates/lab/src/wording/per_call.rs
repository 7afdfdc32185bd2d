//! Single calls as a table and in sentences.

use super::sheet::{Sheet, circumstances, cost, percent, plain_percent, rate, size};
use crate::analysis::per_call::{CellCalls, PerCall};
use crate::words;

/// A cell with more rows than this has some of them in the table only.
const ROWS_MAX: usize = 24;

/// Modes that a row of the table names.
const MODES_NAMED_MAX: usize = 3;

impl PerCall {
    pub(crate) fn sheet(&self) -> Sheet {
        let mut sheet = Sheet::new(
            "What single calls cost",
            &[
                "buffer",
                "call",
                "file",
                "mean",
                "median",
                "5 %",
                "95 %",
                "modes",
                "waits every",
                "then",
            ],
        )
        .keyed_by(3);
        for cell in &self.cells {
            let file =
                format!("{} {}", size(cell.file_bytes), circumstances(cell.state, cell.at_once));
            // The table has every buffer that is a power of two, or all where there are few.
            let few = cell.calls.len() <= ROWS_MAX;
            for call in cell.calls.iter().filter(|c| few || c.buffer_bytes.is_power_of_two()) {
                let mut modes = call.modes.clone();
                modes.sort_by(|a, b| b.share.total_cmp(&a.share));
                modes.truncate(MODES_NAMED_MAX);
                let modes: Vec<String> = modes.iter().map(|m| cost(m.at_ns)).collect();
                let none = || "-".to_owned();
                sheet.row(vec![
                    size(call.buffer_bytes),
                    call.op.clone(),
                    file.clone(),
                    cost(call.mean_ns),
                    cost(call.median_ns),
                    cost(call.p05_ns),
                    cost(call.p95_ns),
                    modes.join(" "),
                    call.waits.map_or_else(none, |waits| size(waits.every_bytes)),
                    call.then_median_ns.map_or_else(none, cost),
                ]);
            }
            for sentence in cell.in_words(self.overhead) {
                sheet.say(sentence);
            }
        }
        sheet
    }

    /// The buffers recommended.
    pub(crate) fn headline(&self) -> Option<String> {
        let of = |cell: &CellCalls| {
            let bytes = cell.recommended_bytes?;
            let state = circumstances(cell.state, cell.at_once);
            Some(format!("{} {state}", bytes.in_words(in_bytes)))
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

/// An estimate that may lie below nothing, in bytes.
fn in_bytes(bytes: f64) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Bytes.
    let bytes = bytes.max(0.0).round() as u64;
    words::bytes(bytes)
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
                percent(line.misfit_largest),
                size(line.misfit_at_bytes)
            ));
        }
        if let Some(bytes) = self.recommended_bytes {
            said.push(format!(
                "With a buffer of {} or more the calls add no more than {} % to what the bytes cost, \
                 {state}.",
                bytes.in_words(in_bytes),
                plain_percent(overhead)
            ));
        }
        said
    }
}
