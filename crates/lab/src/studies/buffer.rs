//! Finds the buffer size from which on a larger buffer gains nothing, for each engine with several.

use serde::{Deserialize, Serialize};

use super::sheet::{Sheet, circumstances, in_both_states, size};
use crate::analysis::view::{CellView, View, buffer_of};
use crate::definition::deltas::Deltas;
use crate::in_order::gathered;
use crate::page_cache::state::State;
use crate::stats::models::{Setting, plateau};
use crate::words;

/// Fewer buffers are no sweep.
const BUFFERS_MIN: usize = 3;

/// Sweeps over buffers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Buffer {
    /// Each sweep in each cell.
    pub sweeps: Vec<Sweep>,
    /// The share within which buffers are called equal where the source is in the page cache.
    pub epsilon: f64,
    /// The share within which buffers of cold runs are called equal.
    #[serde(default = "Deltas::least")]
    pub epsilon_cold: f64,
}

/// One sweep in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// The cell's short name.
    pub cell: String,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// The page cache state.
    pub state: State,
    /// Runs at once.
    pub at_once: u32,
    /// The variants, with `*` for the buffer.
    pub family: String,
    /// The buffer whose runs are the fastest; none with too few sessions to compare.
    pub best_bytes: Option<u64>,
    /// From this buffer up to the best all are shown to be within ε of it.
    pub plateau_shown_from_bytes: Option<u64>,
    /// From this one up to the best none is shown to be slower by more: the plateau begins between
    /// the two.
    pub plateau_possible_from_bytes: Option<u64>,
    /// Each buffer: a row of the heat map of buffers and sizes.
    pub buffers: Vec<BufferTime>,
}

/// A buffer in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BufferTime {
    /// The bytes of the buffer.
    pub buffer_bytes: u64,
    /// The median of its runs.
    pub median_ns: f64,
    /// That over the least median of the sweep.
    pub ratio_to_best: f64,
}

/// The sweeps of a part. Buffers that differ by no more than δ count as equal.
pub(crate) fn of(view: &View<'_>) -> Option<Buffer> {
    let variants = view.part.variants.iter().enumerate();
    let buffers = variants.filter_map(|(index, variant)| Some((index, buffer_of(variant)?)));
    let families = gathered(buffers, |(_, (family, _))| family.clone());
    let sweeps: Vec<Sweep> = families
        .iter()
        .filter(|(_, buffers)| buffers.len() >= BUFFERS_MIN)
        .flat_map(|(family, buffers)| {
            view.cells.iter().filter_map(move |cell| sweep(view, cell, family, buffers))
        })
        .collect();
    let Deltas { warm, cold } = view.rules.deltas;
    (!sweeps.is_empty()).then_some(Buffer { sweeps, epsilon: warm, epsilon_cold: cold })
}

fn sweep(
    view: &View<'_>,
    cell: &CellView<'_>,
    family: &str,
    buffers: &[(usize, (String, u64))],
) -> Option<Sweep> {
    let measure = view.part.measure;
    let points = cell.points(measure);
    let settings: Vec<Setting> = buffers
        .iter()
        .map(|&(index, (_, buffer_bytes))| Setting { buffer_bytes, runs: points.runs(index, true) })
        .collect();
    let medians: Vec<(u64, f64)> = buffers
        .iter()
        .filter_map(|&(index, (_, bytes))| Some((bytes, cell.median_ns(index, measure)?)))
        .collect();
    let least = medians.iter().map(|(_, ns)| *ns).min_by(f64::total_cmp)?;
    let mut times: Vec<BufferTime> = medians
        .into_iter()
        .map(|(buffer_bytes, median_ns)| BufferTime {
            buffer_bytes,
            median_ns,
            ratio_to_best: median_ns / least,
        })
        .collect();
    times.sort_by_key(|time| time.buffer_bytes);
    let flat = plateau(&settings, view.rules.deltas.of(cell.cell.state));
    Some(Sweep {
        cell: cell.cell.id(),
        file_bytes: cell.cell.file_bytes,
        state: cell.cell.state,
        at_once: cell.cell.at_once,
        family: family.to_owned(),
        best_bytes: flat.map(|flat| flat.best_bytes),
        plateau_shown_from_bytes: flat.map(|flat| flat.shown_from_bytes),
        plateau_possible_from_bytes: flat.map(|flat| flat.possible_from_bytes),
        buffers: times,
    })
}

impl Buffer {
    pub(crate) fn sheet(&self) -> Sheet {
        let bytes = |bytes: Option<u64>| bytes.map_or_else(|| "?".to_owned(), size);
        let smallest = |sweep: &&Sweep| {
            let BufferTime { buffer_bytes, ratio_to_best, .. } = sweep.buffers[0];
            format!("{} x at {}", words::three_digits(ratio_to_best), size(buffer_bytes))
        };
        let mut sheet = Sheet::of(
            "Where a larger buffer gains nothing",
            3,
            &self.sweeps,
            &[
                ("buffers of", &|sweep| sweep.family.clone()),
                ("state", &|sweep| circumstances(sweep.state, sweep.at_once)),
                ("file", &|sweep| size(sweep.file_bytes)),
                ("flat from", &|sweep| bytes(sweep.plateau_shown_from_bytes)),
                ("perhaps from", &|sweep| bytes(sweep.plateau_possible_from_bytes)),
                ("fastest", &|sweep| bytes(sweep.best_bytes)),
                ("smallest costs", &smallest),
            ],
        );
        sheet.say(format!(
            "Flat: every buffer from there up to the fastest is shown to be within {} of it. \
             Perhaps: no buffer is shown to be slower. More sessions would decide between the two.",
            in_both_states(Deltas { warm: self.epsilon, cold: self.epsilon_cold })
        ));
        sheet.drop_if_uniform("state");
        sheet
    }

    /// From where on a larger buffer gains nothing, of the largest files.
    pub(crate) fn headline(&self) -> Option<String> {
        let largest = self.sweeps.iter().map(|sweep| sweep.file_bytes).max()?;
        let sweeps: Vec<&Sweep> =
            self.sweeps.iter().filter(|sweep| sweep.file_bytes == largest).collect();
        let of = |sweep: &&Sweep| {
            let (shown, possible) =
                (sweep.plateau_shown_from_bytes?, sweep.plateau_possible_from_bytes?);
            let perhaps = match shown == possible {
                true => String::new(),
                false => format!(", perhaps {}", size(possible)),
            };
            let which = match sweeps.len() {
                1 => String::new(),
                _ => format!("{} {} ", sweep.family, circumstances(sweep.state, sweep.at_once)),
            };
            Some(format!("{which}from {}{perhaps}", size(shown)))
        };
        let said: Vec<String> = sweeps.iter().filter_map(of).collect();
        (!said.is_empty()).then(|| format!("flat at {} {}", size(largest), words::listed(&said)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tests::Synthetic;

    #[test]
    fn the_plateau_begins_where_calls_cost_too_little_to_matter() {
        let variants = ["1K", "4K", "16K", "64K", "256K", "1M"].map(|b| format!("read_write:{b}"));
        let variants: Vec<&str> = variants.iter().map(String::as_str).collect();
        let mut made = Synthetic::new("copy", &variants, &["16M"]);
        // 1000 ns a call: 64 KiB makes it 6 % of what the bytes cost, 256 KiB 1.5 %.
        made.measure(12, 4, |cell, variant| {
            let (_, buffer) = buffer_of(variant).expect("a buffer");
            let bytes = cell.file_bytes as f64;
            bytes * 0.25 + bytes / buffer as f64 * 1_000.0
        });
        made.rules.deltas.warm = 0.03;
        let found = of(&made.view()).expect("a sweep");
        let sweep = &found.sweeps[0];
        assert_eq!((sweep.family.as_str(), sweep.buffers.len()), ("read_write:*", 6));
        assert_eq!(sweep.plateau_shown_from_bytes, Some(256 << 10), "{sweep:?}");
        assert_eq!(sweep.plateau_possible_from_bytes, Some(256 << 10), "{sweep:?}");
        assert!((4.5..5.1).contains(&sweep.buffers[0].ratio_to_best), "{sweep:?}");
        let said = found.headline().expect("a plateau");
        assert_eq!(said, "flat at 16M from 256K");
        made.part().variants.truncate(2);
        assert_eq!(of(&made.view()), None, "two buffers are no sweep");
    }

    #[test]
    fn what_counts_as_equal_depends_on_the_state() {
        let variants = ["read_write:64K", "read_write:256K", "read_write:1M"];
        let mut made = Synthetic::new("copy", &variants, &["16M"]);
        made.part().states = vec![State::Warm, State::Cold];
        // 64 KiB takes 5 % longer in either state: a cold machine that noisy calls it equal.
        made.measure(12, 4, |_, variant| if variant.ends_with(":64K") { 1.05e6 } else { 1e6 });
        made.rules.deltas = Deltas { warm: 0.02, cold: 0.10 };
        let found = of(&made.view()).expect("sweeps");
        let from = |sweep: &Sweep| sweep.plateau_shown_from_bytes;
        let from: Vec<Option<u64>> = found.sweeps.iter().map(from).collect();
        assert_eq!(from, [Some(256 << 10), Some(64 << 10)], "{found:?}");
        let said = found.sheet().sentences.join(" ");
        assert!(said.contains("within 2 % warm and 10 % cold of it"), "{said}");
    }
}
