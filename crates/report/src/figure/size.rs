//! Time against file size: distributions, medians, and what a call and a byte cost.

use lab::bench::definition::{Analysis, Part};
use lab::stats::density::{Density, quantiles_supported};
use lab::stats::models::{self, Estimate, Point, Segments};
use lab::stats::quantile;
use lab::words::{nanoseconds, three_digits};

use super::{
    Along, Axis, Dot, Facets, Figure, Group, Height, Key, Look, Mark, Panel, Scale, Shape, Stroke,
};
use crate::summary::{CellSummary, Summary, VariantSummary, measure_words};
use crate::table::{Entry, Table};

/// Points of the outline of a violin.
const OUTLINE_POINTS: usize = 40;

/// Fewer runs than this have no shape to speak of and are drawn one by one.
const SHAPE_RUNS_MIN: usize = 10;

/// Violins that a report may hold in full; with more of them each gets fewer points.
const VIOLINS_IN_FULL: usize = 1000;

/// Variants drawn before anybody asks for more: beyond these, violins become needles.
const SHOWN: usize = 6;

/// What the test for a break draws from.
const SEED: u64 = 0;

/// Columns of the strip of histograms.
const BINS: usize = 60;

/// The figure; none when nothing was measured.
#[must_use]
pub fn figure(summaries: &[Summary<'_>]) -> Option<Figure> {
    let violins: usize =
        summaries.iter().flat_map(|it| &it.cells).map(|cell| cell.variants.len()).sum();
    let points = (OUTLINE_POINTS * VIOLINS_IN_FULL / violins.max(1)).clamp(12, OUTLINE_POINTS);
    let mut figure = Figure {
        id: "size",
        title: "Time against file size".to_owned(),
        reading: "Each violin is the distribution of a variant's runs at a size, its width the \
                  density of the logarithm of time; the tick is the median, and a line joins the \
                  medians. Fewer than ten runs are drawn one by one. Violins on one shaded ground are of one size and stand side by side only \
                  to be seen apart. Thin dotted lines are fits t = c + f·n; where two lines \
                  that meet fit significantly better, they are drawn and the break is marked. The \
                  strip below counts runs by their time over the median of their variant and size, \
                  which shows tails and second modes. Both axes are logarithmic."
            .to_owned(),
        keys: vec![Key::new(Look::Line, "medians"), Key::new(Look::Fit, "fit t = c + f·n")],
        groups: Vec::new(),
        notes: Vec::new(),
        tables: Vec::new(),
    };
    for summary in summaries {
        for part in summary.source.run.definition.parts.iter().filter(|part| !elsewhere(part)) {
            for cells in series(summary, part) {
                groups_of(summary, part, &cells, points, &mut figure);
            }
        }
    }
    (!figure.groups.is_empty()).then_some(figure)
}

/// Whether a part's times are in a figure of their own: sweeps of buffers, single calls, and sizes that
/// differ by a byte.
pub(super) fn elsewhere(part: &Part) -> bool {
    let own = [Analysis::Buffer, Analysis::Page, Analysis::PerCall];
    part.analyses.iter().any(|analysis| own.contains(analysis))
}

/// Cells that differ in nothing but the size, ascending.
fn series<'a, 's>(summary: &'a Summary<'s>, part: &'a Part) -> Vec<Vec<&'a CellSummary<'s>>> {
    let mut series: Vec<Vec<&CellSummary<'_>>> = Vec::new();
    for cell in summary.of_part(part) {
        let same = |other: &&CellSummary<'_>| other.circumstances() == cell.circumstances();
        match series.iter_mut().find(|cells| cells.first().is_some_and(same)) {
            Some(cells) => cells.push(cell),
            None => series.push(vec![cell]),
        }
    }
    for cells in &mut series {
        cells.sort_by_key(|cell| cell.cell.file_bytes);
    }
    series
}

fn groups_of(
    summary: &Summary<'_>,
    part: &Part,
    cells: &[&CellSummary<'_>],
    points: usize,
    figure: &mut Figure,
) {
    let variants: Vec<&str> = part
        .variants
        .iter()
        .map(String::as_str)
        .filter(|name| cells.iter().any(|cell| cell.variant(name).is_some()))
        .collect();
    let shown = shown_at_first(part, cells, &variants);
    let facets = Facets {
        file_bytes: (cells.len() == 1).then(|| cells[0].cell.file_bytes),
        ..cells[0].facets()
    };
    let what = measure_words(part.measure);
    let title = cells[0].titled_part();
    let fits: Vec<(&str, Fit)> = match part.analyses.contains(&Analysis::SizeFit) {
        true => variants.iter().filter_map(|name| Some((*name, fit(cells, name)?))).collect(),
        false => Vec::new(),
    };
    let mut marks = Vec::new();
    let room = room(cells);
    if cells.len() > 1 {
        marks.extend(cells.iter().map(|cell| slot(cell.cell.file_bytes as f64, room)));
    }
    for (index, variant) in variants.iter().enumerate() {
        let mut own = violins(cells, variant, (index, room), points);
        if let Some((_, fit)) = fits.iter().find(|(name, _)| name == variant) {
            own.extend(fit.marks(variant, cells));
        }
        own.iter_mut().for_each(|mark| mark.hidden = !shown.contains(variant));
        marks.extend(own);
    }
    if shown.len() < variants.len() {
        figure.notes.push(format!(
            "{title}: {} of {} variants are drawn at first: the baseline, the fastest of each size, and \
             the best of each engine as far as there is room. A click in the legend shows the others",
            shown.len(),
            variants.len()
        ));
    }
    let x = match cells {
        [_] => Axis::variants(variants.iter().copied()),
        _ => Axis::file_sizes(),
    };
    let alt = alt(part, cells);
    let y = Axis::time(what);
    let panel = Panel { title: String::new(), alt, facets: facets.clone(), x, y, marks };
    let (panels, height) = (vec![panel], Height::Plot);
    figure.groups.push(Group { title: summary.titled(&title), panels, height });
    figure.groups.push(strip(summary, &title, cells, &shown, facets));
    figure.tables.push(times(summary, &title, cells));
    if !fits.is_empty() {
        figure.tables.push(fit_table(summary, &title, &fits));
    }
}

/// The baseline, the fastest of each size, and then the best of each engine at the largest.
fn shown_at_first<'v>(
    part: &Part,
    cells: &[&CellSummary<'_>],
    variants: &[&'v str],
) -> Vec<&'v str> {
    if variants.len() <= SHOWN {
        return variants.to_vec();
    }
    let fastest = |cell: &CellSummary<'_>| {
        let by_median =
            |a: &&VariantSummary<'_>, b: &&VariantSummary<'_>| a.median_ns.total_cmp(&b.median_ns);
        let mut sorted: Vec<&VariantSummary<'_>> = cell.variants.iter().collect();
        sorted.sort_by(|a, b| by_median(a, b));
        sorted.into_iter().map(|variant| variant.variant.to_owned()).collect::<Vec<_>>()
    };
    let mut wanted: Vec<String> = vec![part.baseline.clone()];
    wanted.extend(cells.iter().rev().filter_map(|cell| fastest(cell).into_iter().next()));
    let mut engines: Vec<String> =
        wanted.iter().map(|name| crate::palette::engine_of(name).to_owned()).collect();
    for name in cells.last().map(|cell| fastest(cell)).unwrap_or_default() {
        let engine = crate::palette::engine_of(&name).to_owned();
        if !engines.contains(&engine) {
            engines.push(engine);
            wanted.push(name);
        }
    }
    let mut shown: Vec<&str> = Vec::new();
    for name in wanted {
        let known = variants.iter().find(|variant| **variant == name);
        if let Some(variant) = known.filter(|it| !shown.contains(*it) && shown.len() < SHOWN) {
            shown.push(variant);
        }
    }
    shown
}

/// The room for the violins of one size, as a factor; those of the next size keep a distance.
fn room(cells: &[&CellSummary<'_>]) -> f64 {
    let ratio =
        |pair: &[&CellSummary<'_>]| pair[1].cell.file_bytes as f64 / pair[0].cell.file_bytes as f64;
    cells.windows(2).map(ratio).fold(16.0, f64::min).powf(0.8)
}

/// The ground on which the violins of one size stand.
fn slot(bytes: f64, room: f64) -> Mark {
    let (from, to) = (bytes / room.sqrt(), bytes * room.sqrt());
    let text = String::new();
    Mark::neutral("size", Shape::Band { cuts: Along::X, from, to, text, warning: false })
}

/// The violins of the variant with an index, which is its place where there is one size only.
fn violins(
    cells: &[&CellSummary<'_>],
    name: &str,
    (index, room): (usize, f64),
    points: usize,
) -> Vec<Mark> {
    let single = cells.len() == 1;
    let mut marks = Vec::new();
    let mut medians = Vec::new();
    for cell in cells {
        let Some(variant) = cell.variant(name) else { continue };
        let at = if single { index as f64 } else { cell.cell.file_bytes as f64 };
        medians.push([at, variant.median_ns]);
        let few = variant.values_ns.len() < SHAPE_RUNS_MIN;
        let violin = Shape::Violin {
            at,
            room: if single { 0.85 } else { room },
            outline: if few { Vec::new() } else { outline(&variant.values_ns, points) },
            runs: if few { variant.values_ns.clone() } else { Vec::new() },
            median: variant.median_ns,
            text: words(cell, variant),
        };
        marks.push(Mark::of(name, violin).unlisted());
    }
    if !single {
        marks.insert(0, Mark::of(name, Shape::Line { points: medians, stroke: Stroke::Own }));
    }
    marks
}

/// Values with the share of the greatest density there. Runs that all took the same are a point.
fn outline(values: &[f64], points: usize) -> Vec<[f64; 2]> {
    let Some(density) = Density::of(values, points) else {
        return values.first().map(|value| vec![[*value, 1.0]]).unwrap_or_default();
    };
    let highest = density.points.iter().map(|point| point.density).fold(0.0, f64::max);
    density.points.iter().map(|point| [point.value, point.density / highest]).collect()
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
    format!("{} by file size. Least medians: {}.", measure_words(part.measure), fastest.join(", "))
}

/// A row a variant: how often runs took which multiple of their median.
fn strip(
    summary: &Summary<'_>,
    title: &str,
    cells: &[&CellSummary<'_>],
    shown: &[&str],
    facets: Facets,
) -> Group {
    let (low, high) = (0.5f64, 4.0f64);
    let step = (high / low).ln() / BINS as f64;
    let mut rows = Vec::new();
    for name in shown {
        let mut counts = vec![0.0; BINS];
        for variant in cells.iter().filter_map(|cell| cell.variant(name)) {
            for value in &variant.values_ns {
                let ratio = (value / variant.median_ns).clamp(low, high);
                // In range: the ratio is.
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                let bin = (((ratio / low).ln() / step) as usize).min(BINS - 1);
                counts[bin] += 1.0;
            }
        }
        let most = counts.iter().copied().fold(1.0, f64::max);
        rows.push(counts.iter().map(|count| (*count > 0.0).then_some(count / most)).collect());
    }
    let middle = |bin: usize| low * ((bin as f64 + 0.5) * step).exp();
    let heat = Shape::Heat {
        xs: (0..BINS).map(middle).collect(),
        ys: (0..shown.len()).map(|row| row as f64).collect(),
        rows,
        label: "runs, of the fullest bin".to_owned(),
        scale: Scale::Share,
    };
    let mut x = Axis::ratio("time / median of its variant and size (ends hold what lies beyond)");
    x.reach = Some(1.0);
    let panel = Panel {
        title: String::new(),
        alt: "How runs spread around the median of their variant and size.".to_owned(),
        facets,
        x,
        y: Axis::variants(shown.iter().copied()),
        marks: vec![Mark::neutral("runs", heat)],
    };
    let title = summary.titled(&format!("{title}, spread of runs"));
    Group { title, panels: vec![panel], height: Height::Rows }
}

/// One line, and two where they fit better.
struct Fit {
    line: models::CostLine,
    segments: Option<Segments>,
}

fn fit(cells: &[&CellSummary<'_>], name: &str) -> Option<Fit> {
    let mut points = Vec::new();
    for cell in cells {
        let Some(variant) = cell.variant(name) else { continue };
        for (record, value) in variant.counted.iter().zip(&variant.values_ns) {
            points.push(Point {
                bytes: cell.cell.run_bytes() as f64,
                elapsed_ns: *value,
                session: record.session,
            });
        }
    }
    let line = models::cost_line(&points)?;
    Some(Fit { line, segments: models::segments(&points, SEED) })
}

impl Fit {
    fn broken(&self) -> Option<&models::Broken> {
        self.segments.as_ref().filter(|segments| segments.is_broken()).map(|it| &it.two)
    }

    fn misfit(&self) -> models::Misfit {
        self.broken().map_or(self.line.misfit, |two| two.misfit)
    }

    /// The modelled time, in nanoseconds.
    fn time(&self, bytes: f64) -> f64 {
        match self.broken() {
            Some(two) => {
                let at = two.break_bytes.value;
                two.call_ns.value
                    + two.below_byte_ns.value * bytes.min(at)
                    + two.above_byte_ns.value * (bytes - at).max(0.0)
            }
            None => self.line.call_ns.value + self.line.byte_ns.value * bytes,
        }
    }

    fn marks(&self, name: &str, cells: &[&CellSummary<'_>]) -> Vec<Mark> {
        let (Some(first), Some(last)) = (cells.first(), cells.last()) else { return Vec::new() };
        let (low, high) = (first.cell.file_bytes as f64, last.cell.file_bytes as f64);
        let at = |step: u32| low * (high / low).powf(f64::from(step) / 48.0);
        // A line that begins below zero has no place on a logarithmic axis there.
        let points: Vec<[f64; 2]> = (0..=48)
            .map(|step| [at(step), self.time(at(step))])
            .filter(|[_, time]| *time > 0.0)
            .collect();
        let mut marks =
            vec![Mark::of(name, Shape::Line { points, stroke: Stroke::Fit }).unlisted()];
        if let Some(two) = self.broken() {
            let at = two.break_bytes;
            let dot = Dot {
                x: at.value,
                y: self.time(at.value),
                low: at.interval.map(|it| it.low),
                high: at.interval.map(|it| it.high),
                text: format!("{name}: break at {}", estimate_words(&at, bytes_words)),
            };
            let dots = Shape::Dots { dots: vec![dot], along: Along::X, hollow: true };
            marks.push(Mark::of(name, dots).unlisted());
        }
        marks
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Lengths are not negative.
fn bytes_words(bytes: f64) -> String {
    lab::words::bytes(bytes.round() as u64)
}

/// An estimate with its interval.
fn estimate_words(estimate: &Estimate, show: impl Fn(f64) -> String) -> String {
    match estimate.interval {
        Some(it) => format!("{} ({} to {})", show(estimate.value), show(it.low), show(it.high)),
        None => show(estimate.value),
    }
}

fn estimate_entry(estimate: &Estimate, show: impl Fn(f64) -> String) -> Entry {
    Entry::Number { value: estimate.value, shown: estimate_words(estimate, show) }
}

fn signed_ns(ns: f64) -> String {
    if ns < 0.0 { format!("−{}", nanoseconds(-ns)) } else { nanoseconds(ns) }
}

fn fit_table(summary: &Summary<'_>, title: &str, fits: &[(&str, Fit)]) -> Table {
    let mut table = Table::new(
        &summary.titled(&format!("{title}: fits t = c + f·n, with 95 % intervals")),
        &[
            "variant",
            "c, per file",
            "f, ns/byte",
            "break at",
            "f beyond, ns/byte",
            "largest misfit, %",
            "at size",
            "p of fit",
            "p of one line",
        ],
    );
    for (name, fit) in fits {
        let digits = |value: f64| format!("{value:.3}");
        let (call, byte) = match fit.broken() {
            Some(two) => (two.call_ns, two.below_byte_ns),
            None => (fit.line.call_ns, fit.line.byte_ns),
        };
        let (break_at, beyond) = match fit.broken() {
            Some(two) => (
                estimate_entry(&two.break_bytes, bytes_words),
                estimate_entry(&two.above_byte_ns, digits),
            ),
            None => (Entry::Nothing, Entry::Nothing),
        };
        let misfit = fit.misfit();
        let share = misfit.largest * 100.0;
        table.rows.push(vec![
            Entry::words(name),
            estimate_entry(&call, signed_ns),
            estimate_entry(&byte, digits),
            break_at,
            beyond,
            Entry::Number { value: share, shown: format!("{share:+.0}") },
            Entry::bytes(Some(misfit.at_bytes)),
            p_entry(misfit.p),
            p_entry(fit.segments.as_ref().map(|segments| segments.p)),
        ]);
    }
    table
}

fn p_entry(p: Option<f64>) -> Entry {
    match p {
        Some(value) if value < 0.001 => Entry::Number { value, shown: "< 0.001".to_owned() },
        Some(value) => Entry::Number { value, shown: format!("{value:.3}") },
        None => Entry::Nothing,
    }
}

/// Medians and the percentiles that so many runs can tell.
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
                Entry::Number { value: cell.cell.file_bytes as f64, shown: cell.size_words() },
                Entry::ns(Some(variant.median_ns)),
                Entry::ns(Some(variant.interval.low)),
                Entry::ns(Some(variant.interval.high)),
            ];
            for q in quantiles.iter().filter(|q| **q != 0.5) {
                let known = supported.contains(q).then(|| quantile(&variant.values_ns, *q));
                row.push(Entry::ns(known.flatten()));
            }
            // Megabytes in a second are bytes in a microsecond.
            row.push(Entry::digits(Some(cell.cell.run_bytes() as f64 / variant.median_ns * 1e3)));
            row.push(Entry::count(Some(variant.counted.len() as f64)));
            row.push(Entry::count(Some((variant.all.len() - variant.counted.len()) as f64)));
            table.rows.push(row);
        }
    }
    table
}
