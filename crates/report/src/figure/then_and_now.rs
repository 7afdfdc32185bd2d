//! Published results beside those of this run, as ratios, with what was not controlled then.

use lab::in_order::{distinct, gathered};
use lab::studies::Finding;
use lab::studies::published::{Published, Row};
use lab::words::{file_size, nanoseconds, three_digits};

use super::{content, rows};
use crate::plot::{About, Axis, Dot, Entry, Figure, Group, Look, Mark, Panel, Table};
use crate::summary::Summary;

const ABOUT: About = About {
    id: "then-and-now",
    title: "Then and now",
    reading: "Hollow symbols are published results, full symbols those of this run, with 95 % intervals if \
              there are enough sessions. Both are ratios to the same baseline in the same study, so the \
              speed of the machine cancels out. A line joins the two: if it is short, the published \
              result holds here. Published results have no interval, as their variation is unknown. The \
              axis is logarithmic.",
    keys: &[(Look::Hollow, "published"), (Look::Full, "this run")],
};

/// The figure. `None` if no part has published results to compare with.
pub fn figure(summaries: &[Summary<'_>]) -> Option<Figure> {
    content::of_findings(&ABOUT, summaries, |figure, summary, part, finding| {
        let Finding::Published(of) = finding else { return };
        figure.groups.extend(group(summary, &part.name, of));
        figure.tables.push(table(&summary.titled(&part.name), of));
        let uncontrolled = of.not_controlled.trim().trim_end_matches('.');
        let (part, source) = (&part.name, &of.source);
        figure.notes.push(format!("{part}: not controlled then: {uncontrolled} ({source})"));
    })
}

fn group(summary: &Summary<'_>, part: &str, of: &Published) -> Option<Group> {
    let compared = |row: &&Row| row.then_ratio.is_some() && row.now_ratio.is_some();
    let rows: Vec<&Row> =
        of.rows.iter().filter(compared).filter(|row| row.variant != of.baseline).collect();
    let variants = distinct(rows.iter().map(|row| row.variant.as_str()));
    let cells = gathered(&rows, |row| row.cell.as_str());
    let panel = |(_, of_cell): &(&str, Vec<&&Row>)| {
        let first = of_cell[0];
        let at = format!("{}, {}", file_size(first.now_bytes), first.now_state.name());
        Panel {
            title: at.clone(),
            alt: format!("Published ratios to {} and this run's at {at}.", of.baseline),
            facets: summary.source.facets(Some(first.now_bytes), first.now_state),
            x: Axis::ratio(&format!("time / {}", of.baseline)),
            y: Axis::variants(&variants),
            marks: of_cell.iter().flat_map(|row| marks(row, &variants)).collect(),
        }
    };
    let title = summary.titled(&format!("{part}: ratios to {}", of.baseline));
    Group::of_rows(title, cells.iter().map(panel).collect())
}

fn marks(row: &Row, variants: &[&str]) -> Vec<Mark> {
    let (Some(then), Some(now)) = (row.then_ratio, row.now_ratio) else { return Vec::new() };
    let y = rows::row_of(variants, &row.variant);
    let dot = |when: &str, ratio: f64, ns: f64| {
        let (variant, ns) = (&row.variant, nanoseconds(ns));
        Dot::at(ratio, y, format!("{variant}, {when}: {} × ({ns})", three_digits(ratio)))
    };
    let then = dot(&row.then.year.to_string(), then, row.then.elapsed_ns);
    let now = dot("now", now.value, row.now_ns).within(now.low, now.high);
    Mark::pair(&row.variant, then, now).into()
}

fn table(title: &str, of: &Published) -> Table {
    Table::of(
        &format!("{title}: published beside measured"),
        &of.rows,
        &[
            ("variant", &|row| Entry::words(&row.variant)),
            ("published as", &|row| Entry::words(&row.series)),
            ("year", &|row| Entry::number(f64::from(row.then.year), |year| year.to_string())),
            ("where", &|row| Entry::words(&row.then.system)),
            ("file size then", &|row| Entry::bytes(row.then.file_bytes as f64)),
            ("then", &|row| Entry::ns(row.then.elapsed_ns)),
            ("ratio then", &|row| Entry::digits(row.then_ratio)),
            ("file size now", &|row| Entry::bytes(row.now_bytes as f64)),
            ("state now", &|row| Entry::words(row.now_state.name())),
            ("now", &|row| Entry::ns(row.now_ns)),
            ("ratio now", &|row| Entry::digits(row.now_ratio.map(|ratio| ratio.value))),
            ("95 % from", &|row| Entry::digits(row.now_ratio.and_then(|ratio| ratio.low))),
            ("to", &|row| Entry::digits(row.now_ratio.and_then(|ratio| ratio.high))),
        ],
    )
}
