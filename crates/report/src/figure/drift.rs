//! Runs in their order: whether the machine became slower or faster, and which rounds the gates
//! found disturbed.

use std::collections::BTreeMap;

use lab::analysis::observations::value_ns;
use lab::sample::record::Sample;
use lab::stats::median;
use lab::verdict::CellVerdict;
use lab::words::{grouped, three_digits};

use super::content;
use crate::plot::{
    About, Axis, Entry, Figure, Group, Height, Look, Mark, Panel, Shape, Stroke, Table,
};
use crate::summary::{CellSummary, Summary};

/// The most points of all panels of a report together.
const POINTS_MAX: usize = 3_500;

/// With more sessions than this, lines at their beginnings would hide the runs.
const SESSIONS_MAX: usize = 60;

/// A panel with fewer points than this shows all of them.
const POINTS_MIN: usize = 120;

const ABOUT: About = About {
    id: "drift",
    title: "Drift: runs in their order",
    reading: "Each point is a run: its time divided by the median of its variant. If the machine did not \
              change, the points are level around 1. A round is from one whole number to the next; in it \
              each variant ran once, in shuffled order. Vertical lines are the beginnings of sessions. A \
              session is a process of its own with files of its own; more than 60 in a panel are not drawn. \
              Rounds that the gates found disturbed are shaded; the tooltip names the cause. The grey line \
              is the speed probe that runs before each sample, divided by its median. The vertical axis is \
              logarithmic.",
    keys: &[
        (Look::Rule, "a session begins"),
        (Look::Warning, "disturbed rounds"),
        (Look::Line, "speed probe"),
    ],
};

/// The figure. `None` if nothing was measured.
pub fn figure(summaries: &[Summary<'_>]) -> Option<Figure> {
    let cells: usize = summaries.iter().map(|summary| summary.cells.len()).sum();
    let points_max = (POINTS_MAX / cells.max(1)).max(POINTS_MIN);
    let (mut all, mut drawn) = (0, 0);
    let mut figure = content::of_runs(&ABOUT, summaries, |figure, summary| {
        for cell in &summary.cells {
            let panel = panel(cell, points_max);
            all += cell.variants.iter().map(|variant| variant.all.len()).sum::<usize>();
            drawn += panel.marks.iter().map(runs_of).sum::<usize>();
            let title = summary.titled(&cell.part.name);
            match figure.groups.last_mut().filter(|group| group.title == title) {
                Some(group) => group.panels.push(panel),
                None => {
                    let panels = vec![panel];
                    figure.groups.push(Group { title, panels, height: Height::Strip });
                }
            }
        }
        figure.tables.push(table(summary));
    })?;
    if drawn < all {
        figure.notes.push(format!(
            "{} of {} runs are drawn: the shortest and the longest of each group of consecutive runs of a \
             variant. samples.csv has all",
            grouped(&drawn.to_string()),
            grouped(&all.to_string())
        ));
    }
    Some(figure)
}

/// How many runs a mark is.
fn runs_of(mark: &Mark) -> usize {
    if let Shape::Cloud { points } = &mark.shape { points.len() } else { 0 }
}

fn panel(cell: &CellSummary<'_>, points_max: usize) -> Panel {
    let order = Order::of(cell);
    let each = (points_max / cell.variants.len().max(1)).max(2);
    let mut marks = disturbed(cell, &order);
    marks.extend(sessions(&order));
    marks.extend(probe(cell, &order, each));
    for variant in &cell.variants {
        let point = |record: &&Sample| {
            let value = value_ns(&record.measured, cell.part.measure);
            [order.places[&record.measured.started_ns], value / variant.median_ns]
        };
        let points = thinned(variant.all.iter().map(point).collect(), each);
        marks.push(Mark::of(variant.variant, Shape::Cloud { points }));
    }
    Panel {
        title: cell.words(),
        alt: format!("Runs at {} in their order. {}", cell.words(), drift_words(cell)),
        facets: cell.facets.clone(),
        x: Axis { label: "rounds in their order".to_owned(), ..Axis::default() },
        y: Axis::ratio("time / median"),
        marks,
    }
}

/// The order of a cell's rounds, and of the runs in each. An axis of time would be mostly empty:
/// the sessions of other cells are between those of a cell.
struct Order {
    /// Where each round, of a session, begins on x: at a whole number, from 1.
    rounds: BTreeMap<(u32, u32, u32), f64>,
    /// The place on x of the run that began then.
    places: BTreeMap<u64, f64>,
}

impl Order {
    fn of(cell: &CellSummary<'_>) -> Order {
        let mut started: BTreeMap<(u32, u32, u32), Vec<u64>> = BTreeMap::new();
        for record in cell.variants.iter().flat_map(|variant| &variant.all) {
            let round = started.entry((record.session, record.round, record.repeat)).or_default();
            round.push(record.measured.started_ns);
        }
        Order::of_rounds(started)
    }

    /// The order of runs that began then, by round.
    fn of_rounds(mut started: BTreeMap<(u32, u32, u32), Vec<u64>>) -> Order {
        started.values_mut().for_each(|runs| runs.sort_unstable());
        let mut started: Vec<_> = started.into_iter().collect();
        started.sort_by_key(|(_, runs)| runs[0]);
        let mut order = Order { rounds: BTreeMap::new(), places: BTreeMap::new() };
        for (index, (round, runs)) in started.into_iter().enumerate() {
            let begin = index as f64 + 1.0;
            order.rounds.insert(round, begin);
            let place = |run: usize| begin + (run as f64 + 0.5) / runs.len() as f64;
            order.places.extend(runs.iter().enumerate().map(|(run, &at)| (at, place(run))));
        }
        order
    }
}

/// The smallest and the largest of each group of consecutive points, so that outliers remain.
fn thinned(mut points: Vec<[f64; 2]>, most: usize) -> Vec<[f64; 2]> {
    points.sort_by(|a, b| a[0].total_cmp(&b[0]));
    if points.len() <= most {
        return points;
    }
    let stretch = (2 * points.len()).div_ceil(most);
    let ends = |stretch: &[[f64; 2]]| {
        let least = *stretch.iter().min_by(|a, b| a[1].total_cmp(&b[1])).expect("not empty");
        let greatest = *stretch.iter().max_by(|a, b| a[1].total_cmp(&b[1])).expect("not empty");
        if stretch.len() == 1 { vec![least] } else { vec![least, greatest] }
    };
    points.chunks(stretch).flat_map(ends).collect()
}

fn sessions(order: &Order) -> Vec<Mark> {
    let mut begun: BTreeMap<u32, f64> = BTreeMap::new();
    for (&(session, ..), &begin) in &order.rounds {
        let at = begun.entry(session).or_insert(begin);
        *at = begin.min(*at);
    }
    if begun.len() > SESSIONS_MAX {
        return Vec::new();
    }
    begun.into_values().map(|at| Mark::neutral(Shape::rule(at))).collect()
}

/// Rounds that a gate found disturbed. Consecutive ones are one band.
fn disturbed(cell: &CellSummary<'_>, order: &Order) -> Vec<Mark> {
    let mut bands: Vec<(f64, f64, Vec<String>)> = Vec::new();
    for round in cell.rounds.iter().filter(|round| !round.breach.is_empty()) {
        let key = (round.session, round.round, round.repeat);
        let Some(&from) = order.rounds.get(&key) else { continue };
        let what = if round.again { "disturbed, run again" } else { "disturbed" };
        let breach = &round.breach;
        let text = format!("session {}, round {}: {what}: {breach}", round.session, round.round);
        let to = from + 1.0;
        match bands.last_mut() {
            Some((_, end, texts)) if from - *end < 0.5 => {
                *end = to;
                texts.push(text);
            }
            _ => bands.push((from, to, vec![text])),
        }
    }
    let band = |(from, to, texts): (f64, f64, Vec<String>)| {
        let text = match texts.as_slice() {
            [first, .., last] if texts.len() > 2 => {
                format!("{first}; {} more rounds; {last}", texts.len() - 2)
            }
            texts => texts.join("; "),
        };
        let band = Shape::Band { from, to, text, warning: true };
        Mark::neutral(band)
    };
    bands.into_iter().map(band).collect()
}

fn probe(cell: &CellSummary<'_>, order: &Order, most: usize) -> Option<Mark> {
    let runs = cell.variants.iter().flat_map(|variant| &variant.all);
    let runs: Vec<_> = runs.filter(|it| it.probe_ns > 0).collect();
    let middle = median(runs.iter().map(|record| record.probe_ns as f64))?;
    let points = runs
        .iter()
        .map(|it| [order.places[&it.measured.started_ns], it.probe_ns as f64 / middle])
        .collect();
    let points = thinned(points, most.max(40));
    let line = Shape::Line { points, stroke: Stroke::Thin };
    Some(Mark::neutral(line))
}

/// The median of the last third of runs divided by that of the first, each run divided by the
/// median of its variant.
fn drift(cell: &CellSummary<'_>) -> Option<f64> {
    let mut runs: Vec<(u64, f64)> = Vec::new();
    for variant in &cell.variants {
        let values = variant.counted.iter().zip(&variant.values_ns);
        runs.extend(values.map(|(it, ns)| (it.measured.started_ns, ns / variant.median_ns)));
    }
    runs.sort_by_key(|(at, _)| *at);
    let third = runs.len() / 3;
    let middle = |runs: &[(u64, f64)]| median(runs.iter().map(|(_, it)| it));
    Some(middle(&runs[runs.len() - third..])? / middle(&runs[..third])?)
}

fn drift_words(cell: &CellSummary<'_>) -> String {
    drift(cell).map_or("Too few runs for an estimate of drift.".to_owned(), |ratio| {
        format!("The last third took {} × the time of the first.", three_digits(ratio))
    })
}

fn table(summary: &Summary<'_>) -> Table {
    let count = |cell: &CellSummary<'_>, of: fn(&CellVerdict) -> u32| {
        Entry::count(cell.verdict.map(|verdict| f64::from(of(verdict))))
    };
    let not_counted = |verdict: &CellVerdict| verdict.runs_not_counted as f64;
    Table::of(
        &summary.titled("Rounds and what disturbed them"),
        &summary.cells,
        &[
            ("cell", &|it| Entry::words(&format!("{}: {}", it.part.name, it.words()))),
            ("sessions", &|it| count(it, |verdict| verdict.sessions)),
            ("rounds", &|it| count(it, |verdict| verdict.rounds)),
            ("run again", &|it| count(it, |verdict| verdict.rounds_again)),
            ("disturbed every time", &|it| count(it, |verdict| verdict.rounds_disturbed)),
            ("runs not counted", &|it| Entry::count(it.verdict.map(not_counted))),
            ("last third / first", &|it| Entry::digits(drift(it))),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_outliers() {
        let mut points: Vec<[f64; 2]> = (0..1000).map(|i| [f64::from(i), 1.0]).collect();
        points[137][1] = 40.0;
        points[802][1] = 0.2;
        let kept = thinned(points, 100);
        assert!(kept.len() <= 100, "{}", kept.len());
        assert!(kept.contains(&[137.0, 40.0]) && kept.contains(&[802.0, 0.2]));
        assert_eq!(thinned(vec![[2.0, 1.0], [1.0, 1.0]], 100), [[1.0, 1.0], [2.0, 1.0]]);
    }

    #[test]
    fn the_places_of_a_round_are_below_the_next() {
        // The first round by its number began last.
        let started = [((0, 0, 0), vec![900]), ((0, 1, 0), vec![20, 10])];
        let order = Order::of_rounds(started.into());
        assert_eq!([10, 20, 900].map(|at| order.places[&at]), [1.25, 1.75, 2.5]);
        assert_eq!([(0, 1, 0), (0, 0, 0)].map(|round| order.rounds[&round]), [1.0, 2.0]);
    }
}
