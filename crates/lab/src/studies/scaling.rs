//! Time against the workers that share a file, and against the number of runs at once.

use serde::{Deserialize, Serialize};

use super::sheet::{Sheet, rate, size};
use crate::analysis::view::{CellView, View, workers_of};
use crate::definition::cell::Cell;
use crate::page_cache::state::State;
use crate::stats::{Estimated, median, unpaired};
use crate::words;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Of {
    /// Workers that share one file.
    Workers,
    /// Runs on files of their own.
    AtOnce,
}

/// One number of workers or of runs at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Workers or runs.
    pub of: Of,
    /// The variant without its workers.
    pub variant: String,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// The page cache state.
    pub state: State,
    /// How many workers, or runs at once.
    pub count: u32,
    /// The median of the time until all were done.
    pub elapsed_ns: f64,
    /// Of runs at once the median of the time of each; otherwise the same as `elapsed_ns`.
    pub each_ns: f64,
    /// Bytes a second of all together.
    pub bytes_per_second: f64,
    /// The rate of all over that of the least number: how many times as fast. None for that number
    /// itself, or with too few sessions.
    pub speed_up: Option<Estimated>,
}

pub(crate) fn of(view: &View<'_>) -> Option<Vec<Step>> {
    let mut steps: Vec<Step> =
        view.cells.iter().flat_map(|cell| with_workers(view, cell)).collect();
    let alike = |cell: &Cell| (cell.file_bytes, cell.files, cell.state, cell.destination);
    for mut cells in view.groups(alike) {
        if cells.len() > 1 {
            cells.sort_by_key(|cell| cell.cell.at_once);
            for (index, variant) in view.part.variants.iter().enumerate() {
                steps.extend(at_once(view, &cells, index, variant));
            }
        }
    }
    (!steps.is_empty()).then_some(steps)
}

/// Variants that differ in their workers, which ran in the same rounds.
fn with_workers(view: &View<'_>, cell: &CellView<'_>) -> Vec<Step> {
    let points = cell.points(view.part.measure);
    let variants = view.part.variants.iter().enumerate();
    let mut variants: Vec<((String, u32), usize)> =
        variants.map(|(index, variant)| (workers_of(variant), index)).collect();
    variants.sort();
    let mut steps = Vec::new();
    for family in variants.chunk_by(|a, b| a.0.0 == b.0.0).filter(|family| family.len() > 1) {
        let (_, least) = family[0];
        for &((ref alone, workers), index) in family {
            let other = (index != least).then_some(index);
            let speed_up = other.and_then(|index| view.ratio(cell, &points, (least, index)));
            steps.extend(step(Of::Workers, (alone, workers), cell, index, speed_up));
        }
    }
    steps
}

/// Cells that differ in how many run at once, which ran in sessions of their own.
fn at_once(view: &View<'_>, cells: &[&CellView<'_>], index: usize, variant: &str) -> Vec<Step> {
    let Some(least) = cells.iter().find(|cell| !cell.counted[index].is_empty()) else {
        return Vec::new();
    };
    let runs = |cell: &CellView<'_>| cell.points(view.part.measure).runs(index, false);
    let of = |cell: &&CellView<'_>| {
        let more = total_bytes(&cell.cell) / total_bytes(&least.cell);
        let times = unpaired(&runs(least), &runs(cell));
        let times = times.filter(|_| cell.cell.at_once != least.cell.at_once);
        let speed_up = times.map(|times| Estimated::from(times).map(|it| it * more));
        step(Of::AtOnce, (variant, cell.cell.at_once), cell, index, speed_up)
    };
    cells.iter().filter_map(of).collect()
}

/// The step of the variant at `index`. `None` if none of its runs counts.
fn step(
    of: Of,
    (variant, count): (&str, u32),
    cell: &CellView<'_>,
    index: usize,
    speed_up: Option<Estimated>,
) -> Option<Step> {
    let elapsed_ns = cell.median_ns(index, cell.part.measure)?;
    let runs = cell.counted[index].iter().filter(|_| of == Of::AtOnce);
    let each = runs.flat_map(|record| &record.measured.each_ns);
    Some(Step {
        of,
        variant: variant.to_owned(),
        file_bytes: cell.cell.file_bytes,
        state: cell.cell.state,
        count,
        elapsed_ns,
        each_ns: median(each.map(|&ns| ns as f64)).unwrap_or(elapsed_ns),
        bytes_per_second: total_bytes(&cell.cell) / elapsed_ns * 1e9,
        speed_up,
    })
}

fn total_bytes(cell: &Cell) -> f64 {
    cell.run_bytes() as f64 * f64::from(cell.at_once)
}

pub(crate) fn sheet(steps: &[Step]) -> Sheet {
    let with = |step: &&Step| match (step.of, step.count) {
        (Of::AtOnce, count) => format!("{count} at once"),
        (Of::Workers, 1) => "1 worker".to_owned(),
        (Of::Workers, count) => format!("{count} workers"),
    };
    let digits = words::three_digits;
    let speed_up = |step: &&Step| step.speed_up.map_or("1".to_owned(), |it| it.in_words(digits));
    let mut sheet = Sheet::of(
        "How the rate grows",
        4,
        steps,
        &[
            ("variant", &|step| step.variant.clone()),
            ("file", &|step| size(step.file_bytes)),
            ("state", &|step| step.state.name().to_owned()),
            ("with", &with),
            ("time", &|step| words::nanoseconds(step.elapsed_ns)),
            ("each", &|step| words::nanoseconds(step.each_ns)),
            ("together", &|step| rate(1e9 / step.bytes_per_second)),
            ("times as fast", &speed_up),
        ],
    );
    sheet.drop_if(steps.iter().all(|step| step.of == Of::Workers), "each");
    if let Some(said) = headline(steps) {
        sheet.say(format!("{said}."));
    }
    sheet.drop_if_uniform("state");
    sheet
}

/// The number with which the most is gained.
pub(crate) fn headline(steps: &[Step]) -> Option<String> {
    let low = |step: &Step| step.speed_up.map_or(1.0, |s| s.low.unwrap_or(s.value));
    let with_speed_up = steps.iter().filter(|step| step.speed_up.is_some());
    let best = with_speed_up.max_by(|a, b| low(a).total_cmp(&low(b)))?;
    let (Step { of, variant, count, state, .. }, speed_up) = (best, best.speed_up?);
    if speed_up.low.is_none_or(|low| low <= 1.0) {
        return Some("no number is shown to give a higher rate than the least does".to_owned());
    }
    let with = if *of == Of::Workers { "workers in one file" } else { "runs at once" };
    Some(format!(
        "the most is gained by {variant}, {}, with {count} {with}: {} times the rate",
        state.name(),
        speed_up.in_words(words::three_digits)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tests::Synthetic;

    #[test]
    fn workers_are_compared_within_rounds() {
        let mut made =
            Synthetic::new("copy", &["sendfile@1", "read_write:64K", "read_write:64K@2"], &["8M"]);
        made.measure(6, 2, |_, variant| if variant.ends_with("@2") { 4e6 } else { 6e6 });
        let steps = of(&made.view()).expect("steps");
        assert_eq!(steps.len(), 2, "{steps:?}");
        let two = &steps[1];
        assert_eq!((two.of, two.variant.as_str(), two.count), (Of::Workers, "read_write:64K", 2));
        let speed_up = two.speed_up.expect("sessions");
        assert!(speed_up.low < Some(1.5) && speed_up.high > Some(1.5), "{speed_up:?}");
    }

    #[test]
    fn runs_at_once_are_compared_by_the_bytes_of_all() {
        let mut made = Synthetic::new("copy", &["sendfile"], &["8M"]);
        made.part().at_once = vec![1, 4];
        made.measure_with(8, 2, |cell, _, record| {
            record.measured.each_ns = vec![7_000_000; cell.at_once as usize];
            if cell.at_once == 4 { 8e6 } else { 4e6 }
        });
        let steps = of(&made.view()).expect("steps");
        let four = &steps[1];
        assert_eq!((four.of, four.count, four.each_ns), (Of::AtOnce, 4, 7e6));
        // Four times the bytes in twice the time.
        let speed_up = four.speed_up.expect("sessions");
        assert!((speed_up.value - 2.0).abs() < 0.1, "{speed_up:?}");
    }
}
