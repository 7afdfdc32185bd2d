//! Time against file size: distributions, medians, and what a call and a byte cost.

mod fits;

use lab::definition::{Analysis, Part};
use lab::in_order::distinct;
use lab::stats::density::{density, quantiles_supported};
use lab::stats::quantile;
use lab::studies::size_fit::FittedLine;
use lab::words::{nanoseconds, three_digits};

use super::{content, rows};
use crate::palette::engine_of;
use crate::plot::{
    About, Axis, Entry, Facets, Figure, Group, Height, Look, Mark, Panel, Shape, Stroke, Table,
    Violin,
};
use crate::summary::{CellSummary, Summary, VariantSummary};

/// Points of the outline of a violin.
const OUTLINE_POINTS: usize = 40;

/// Fewer runs than this are drawn one by one: a density of them would show noise.
const SHAPE_RUNS_MIN: usize = 10;

/// With more violins than this in a report, each has fewer points.
const VIOLINS_IN_FULL: usize = 50;

/// Variants that are shown at first. More violins side by side would be too narrow to see.
const SHOWN: usize = 6;

/// The violins of one size extend over at most this factor, so that they do not look like several
/// sizes.
const ROOM_MAX: f64 = 6.0;

const ABOUT: About = About {
    id: "size",
    title: "Time against file size",
    reading: "Each violin is the distribution of a variant's runs at one size. Its width is the density of \
              the logarithm of time, scaled to the same maximum for all violins. The tick is the median, \
              and a line joins the medians. Fewer than ten runs are drawn one by one. The violins in one \
              shaded band have the same size; they are side by side so that they do not overlap. Thin \
              dotted lines are fits t = c + f·n. The time that a run waited for a processor that other \
              programs used is subtracted first. If two lines that meet fit significantly better, both are \
              drawn and the break is marked. Both axes are logarithmic.",
    keys: &[(Look::Line, "medians"), (Look::Fit, "fit t = c + f·n")],
};

/// The figure. `None` if nothing was measured.
pub fn figure(summaries: &[Summary<'_>]) -> Option<Figure> {
    let violins: usize =
        summaries.iter().flat_map(|it| &it.cells).map(|cell| cell.variants.len()).sum();
    let points = (OUTLINE_POINTS * VIOLINS_IN_FULL / violins.max(1)).clamp(12, OUTLINE_POINTS);
    content::of_parts(&ABOUT, summaries, |figure, summary, part| {
        for cells in summary.series(part).iter().filter(|_| !elsewhere(part)) {
            add(figure, summary, part, cells, points);
        }
    })
}

/// Whether another figure shows the times of a part: sweeps of buffers, single calls, and sizes
/// that differ by a byte.
pub(super) fn elsewhere(part: &Part) -> bool {
    let own = [Analysis::Buffer, Analysis::Page, Analysis::PerCall];
    part.analyses.iter().any(|analysis| own.contains(analysis))
}

/// Adds the cells of a part that differ in the size only.
fn add(
    figure: &mut Figure,
    summary: &Summary<'_>,
    part: &Part,
    cells: &[&CellSummary<'_>],
    points: usize,
) {
    let variants: Vec<&str> = part
        .variants
        .iter()
        .map(String::as_str)
        .filter(|name| cells.iter().any(|cell| cell.variant(name).is_some()))
        .collect();
    // On an axis of variants each has its own place.
    let shown = match cells {
        [_] => variants.clone(),
        _ => shown_at_first(part, cells, &variants),
    };
    let facets = Facets {
        file_bytes: (cells.len() == 1).then(|| cells[0].cell.file_bytes),
        ..cells[0].facets.clone()
    };
    let what = part.measure.words();
    let title = cells[0].titled_part();
    let lines: Vec<&FittedLine> = fits::of(summary, part, cells);
    let mut marks = Vec::new();
    let room = room(cells);
    if cells.len() > 1 {
        // The shaded band behind the violins of one size.
        let slot = |bytes: f64| Shape::band(bytes / room.sqrt(), bytes * room.sqrt());
        let slot = |cell: &&CellSummary<'_>| Mark::neutral(slot(cell.cell.file_bytes as f64));
        marks.extend(cells.iter().map(slot));
    }
    // Variants that are hidden at first are drawn over the others.
    let (first, later): (Vec<&str>, Vec<&str>) =
        variants.iter().partition(|name| shown.contains(name));
    let count = first.len().max(1);
    let places = [first, later].concat();
    for (index, variant) in variants.iter().enumerate() {
        let place = places.iter().position(|name| name == variant).unwrap_or(0) % count;
        let (share, width) = ((place as f64 + 0.5) / count as f64, 0.94 / count as f64);
        let at = |cell: &CellSummary<'_>| match cells {
            [_] => [index as f64, 0.85],
            _ => [cell.cell.file_bytes as f64 * room.powf(share - 0.5), room.powf(width)],
        };
        let mut own = violins(cells, variant, at, points);
        if let Some(line) = lines.iter().find(|line| line.variant == *variant) {
            own.extend(fits::marks(line, cells));
        }
        own.iter_mut().for_each(|mark| mark.hidden = !shown.contains(variant));
        marks.extend(own);
    }
    if shown.len() < variants.len() {
        figure.notes.push(format!(
            "{title}: {} of {} variants are shown at first: the baseline, the fastest at each \
             size, and the fastest of each engine while there is room. A click on the legend \
             shows the others",
            shown.len(),
            variants.len()
        ));
    }
    let x = match cells {
        [_] => Axis::variants(&variants),
        _ => Axis::file_sizes(),
    };
    let alt = alt(part, cells);
    let y = Axis::time(what);
    let panel = Panel { title: String::new(), alt, facets, x, y, marks };
    let height = if cells.len() == 1 { Height::Strip } else { Height::Plot };
    let panels = vec![panel];
    figure.groups.push(Group { title: summary.titled(&title), panels, height });
    figure.tables.push(times(summary, &title, cells));
    if let Some(words) = fits::misfit_note(&lines) {
        figure.notes.push(format!("{title}: {words}"));
    }
    if !lines.is_empty() {
        figure.tables.push(fits::table(&summary.titled(&title), &lines));
    }
}

/// The baseline, the fastest at each size, and then the fastest of each engine at the largest.
fn shown_at_first<'v>(
    part: &'v Part,
    cells: &[&CellSummary<'v>],
    variants: &[&'v str],
) -> Vec<&'v str> {
    if variants.len() <= SHOWN {
        return variants.to_vec();
    }
    let ranked: Vec<Vec<&str>> = cells.iter().map(|cell| rows::ranked(&[cell])).collect();
    let mut wanted = vec![part.baseline.as_str()];
    wanted.extend(ranked.iter().rev().filter_map(|ranked| ranked.first()));
    let mut engines: Vec<&str> = wanted.iter().map(|name| engine_of(name)).collect();
    for name in ranked.last().into_iter().flatten() {
        if !engines.contains(&engine_of(name)) {
            engines.push(engine_of(name));
            wanted.push(name);
        }
    }
    let mut shown = distinct(wanted);
    shown.retain(|name| variants.contains(name));
    shown.truncate(SHOWN);
    shown
}

/// The width, as a factor, that the violins of one size share. A gap to the next size remains.
fn room(cells: &[&CellSummary<'_>]) -> f64 {
    let ratio =
        |pair: &[&CellSummary<'_>]| pair[1].cell.file_bytes as f64 / pair[0].cell.file_bytes as f64;
    cells.windows(2).map(ratio).fold(ROOM_MAX, f64::min).powf(0.8)
}

/// The violins of a variant, and the line that joins those of several sizes. `at` is the middle and the
/// width of a violin.
fn violins(
    cells: &[&CellSummary<'_>],
    name: &str,
    at: impl Fn(&CellSummary<'_>) -> [f64; 2],
    points: usize,
) -> Vec<Mark> {
    let mut marks = Vec::new();
    let mut medians = Vec::new();
    for cell in cells {
        let Some(variant) = cell.variant(name) else { continue };
        let [middle, width] = at(cell);
        medians.push([middle, variant.median_ns]);
        let few = variant.values_ns.len() < SHAPE_RUNS_MIN;
        let violin = Violin {
            size: cell.cell.file_bytes as f64,
            middle,
            width,
            outline: if few { Vec::new() } else { outline(&variant.values_ns, points) },
            runs: if few { variant.values_ns.clone() } else { Vec::new() },
            median: variant.median_ns,
            text: words(cell, variant),
        };
        marks.push(Mark::of(name, Shape::Violin(violin)));
    }
    if cells.len() > 1 {
        marks.insert(0, Mark::of(name, Shape::Line { points: medians, stroke: Stroke::Own }));
    }
    marks
}

/// Values, each with its density divided by the greatest. One point if all values are equal.
fn outline(values: &[f64], points: usize) -> Vec<[f64; 2]> {
    let Some(density) = density(values, points) else {
        return values.first().map(|value| vec![[*value, 1.0]]).unwrap_or_default();
    };
    let highest = density.iter().map(|point| point.density).fold(0.0, f64::max);
    density.iter().map(|point| [point.value, point.density / highest]).collect()
}

fn words(cell: &CellSummary<'_>, variant: &VariantSummary<'_>) -> String {
    format!(
        "{}, {}: median {} (95 % {} to {}), {} runs",
        variant.variant,
        cell.size_words(),
        nanoseconds(variant.median_ns),
        nanoseconds(variant.interval.low),
        nanoseconds(variant.interval.high),
        variant.counted.len()
    )
}

fn alt(part: &Part, cells: &[&CellSummary<'_>]) -> String {
    let fastest = |cell: &&CellSummary<'_>| {
        let variant = cell.variants.iter().min_by(|a, b| a.median_ns.total_cmp(&b.median_ns))?;
        let median = nanoseconds(variant.median_ns);
        Some(format!("{} {median} by {}", cell.size_words(), variant.variant))
    };
    let fastest: Vec<String> = cells.iter().filter_map(fastest).collect();
    format!("{} by file size. Least medians: {}.", part.measure.words(), fastest.join(", "))
}

/// Medians, and the percentiles that the number of runs supports.
fn times(summary: &Summary<'_>, title: &str, cells: &[&CellSummary<'_>]) -> Table {
    let runs = |cell: &&CellSummary<'_>| cell.variants.iter().map(|it| it.counted.len()).collect();
    let most = cells.iter().flat_map(|cell| -> Vec<usize> { runs(cell) }).max().unwrap_or(0);
    let quantiles = quantiles_supported(most);
    let mut columns = vec!["variant".to_owned(), "file size".to_owned()];
    columns.extend(["median", "95 % from", "to"].map(str::to_owned));
    columns.extend(
        quantiles.iter().filter(|q| **q != 0.5).map(|q| format!("{} %", three_digits(q * 100.0))),
    );
    columns.extend(["MB/s", "runs", "not counted"].map(str::to_owned));
    let mut table = Table { title: summary.titled(title), columns, rows: Vec::new() };
    for cell in cells {
        for variant in &cell.variants {
            let supported = quantiles_supported(variant.counted.len());
            let mut row = vec![
                Entry::words(variant.variant),
                cell.size_entry(),
                Entry::ns(variant.median_ns),
                Entry::ns(variant.interval.low),
                Entry::ns(variant.interval.high),
            ];
            for q in quantiles.iter().filter(|q| **q != 0.5) {
                let known = supported.contains(q).then(|| quantile(&variant.values_ns, *q));
                row.push(Entry::ns(known.flatten()));
            }
            // Megabytes per second are bytes per microsecond.
            row.push(Entry::digits(cell.cell.run_bytes() as f64 / variant.median_ns * 1e3));
            row.push(Entry::count(variant.counted.len() as f64));
            row.push(Entry::count((variant.all.len() - variant.counted.len()) as f64));
            table.rows.push(row);
        }
    }
    table
}
