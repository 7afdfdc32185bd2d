//! Compares every variant with a copy in memory, the least time in which the bytes can be moved.

use serde::{Deserialize, Serialize};

use super::sheet::{Sheet, cost, rate, size};
use crate::analysis::view::View;
use crate::definition::is_floor;
use crate::in_order::{distinct, gathered};
use crate::page_cache::state::State;
use crate::stats::Estimated;
use crate::words;

/// Ratios to the floor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Floor {
    /// The variant that copies memory.
    pub floor: String,
    /// Each variant in each cell.
    pub ratios: Vec<RatioToFloor>,
}

/// One variant in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RatioToFloor {
    /// The cell's short name.
    pub cell: String,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// The page cache state.
    pub state: State,
    /// The variant; the floor itself is the first of its cell, with a ratio of 1.
    pub variant: String,
    /// The median of its runs.
    pub median_ns: f64,
    /// The variant's time over the floor's, paired within rounds; none with too few sessions.
    pub ratio: Option<Estimated>,
}

pub(crate) fn of(view: &View<'_>) -> Option<Floor> {
    let floor = view.part.variants.iter().position(|variant| is_floor(variant))?;
    let mut ratios = Vec::new();
    for cell in &view.cells {
        let points = cell.points(view.part.measure);
        let rest = (0..view.part.variants.len()).filter(|&index| index != floor);
        for index in std::iter::once(floor).chain(rest) {
            let Some(median_ns) = cell.median_ns(index, view.part.measure) else { continue };
            let ratio = match index == floor {
                true => Some(Estimated { value: 1.0, low: None, high: None }),
                false => view.ratio(cell, &points, (index, floor)),
            };
            ratios.push(RatioToFloor {
                cell: cell.cell.id(),
                file_bytes: cell.cell.file_bytes,
                state: cell.cell.state,
                variant: view.part.variants[index].clone(),
                median_ns,
                ratio,
            });
        }
    }
    (!ratios.is_empty()).then(|| Floor { floor: view.part.variants[floor].clone(), ratios })
}

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
        sheet.table.columns.extend(cells.iter().map(|cell| match cell.state {
            State::Warm => size(cell.file_bytes),
            state => format!("{} {}", size(cell.file_bytes), state.name()),
        }));
        for (row, variant) in sheet.table.rows.iter_mut().zip(variants) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tests::Synthetic;

    #[test]
    fn ratios_are_to_the_floor() {
        let mut made =
            Synthetic::new("copy", &["sendfile", "memory", "read_write:4K"], &["4K", "1M"]);
        made.measure(5, 3, |cell, variant| {
            let factor = match variant {
                "memory" => 0.1,
                "sendfile" => 0.3,
                _ => 0.8,
            };
            cell.file_bytes as f64 * factor
        });
        let floor = of(&made.view()).expect("a floor");
        assert_eq!((floor.floor.as_str(), floor.ratios.len()), ("memory", 6));
        let of = |variant: &str| {
            let it = floor.ratios.iter().find(|it| it.variant == variant && it.cell == "part/1M");
            it.and_then(|it| it.ratio).expect("a ratio").value
        };
        assert!((of("sendfile") - 3.0).abs() < 0.1 && (of("read_write:4K") - 8.0).abs() < 0.2);
        let sheet = floor.sheet();
        assert_eq!(sheet.table.columns, ["variant", "4K", "1M"]);
        assert_eq!(sheet.table.rows[0][0], "memory");
        made.part().variants.retain(|variant| variant != "memory");
        assert_eq!(super::of(&made.view()), None, "there is no floor");
    }
}
