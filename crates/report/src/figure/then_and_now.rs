//! Published results beside those of this run, as ratios, with what was not controlled then.

use lab::analysis::Finding;
use lab::analysis::published::{Published, Row};
use lab::words::{nanoseconds, three_digits};

use super::content::Content;
use crate::in_order::{distinct, gathered};
use crate::plot::{Axis, Dot, Entry, Figure, Group, Height, Key, Look, Mark, Panel, Table};
use crate::summary::{Summary, size_words, state_words};

/// The figure. `None` if no part has published results to compare with.
#[must_use]
pub fn figure(summaries: &[Summary<'_>]) -> Option<Figure> {
    let Content { groups, tables, notes } =
        Content::of_findings(summaries, |content, summary, part, finding| {
            let Finding::Published(of) = finding else { return };
            content.groups.extend(group(summary, &part.name, of));
            content.tables.push(table(&summary.titled(&part.name), of));
            let uncontrolled = of.not_controlled.trim().trim_end_matches('.');
            content.notes.push(format!(
                "{}: not controlled then: {uncontrolled} ({})",
                part.name, of.source
            ));
        })?;
    Some(Figure {
        id: "then-and-now",
        title: "Then and now".to_owned(),
        reading: "Hollow symbols are published results, full symbols those of this run, with 95 % \
                  intervals if there are enough sessions. Both are ratios to the same baseline in \
                  the same study, so the speed of the machine cancels out. A line joins the two: \
                  if it is short, the published result holds here. Published results have no \
                  interval, as their variation is unknown. The axis is logarithmic."
            .to_owned(),
        keys: vec![Key::new(Look::Hollow, "published"), Key::new(Look::Full, "this run")],
        groups,
        notes,
        tables,
    })
}

fn group(summary: &Summary<'_>, part: &str, of: &Published) -> Option<Group> {
    let compared = |row: &&Row| row.then_ratio.is_some() && row.now_ratio.is_some();
    let rows: Vec<&Row> =
        of.rows.iter().filter(compared).filter(|row| row.variant != of.baseline).collect();
    let variants = distinct(rows.iter().map(|row| row.variant.as_str()));
    let cells = gathered(&rows, |row| row.cell.as_str());
    if cells.is_empty() {
        return None;
    }
    let panel = |(_, of_cell): &(&str, Vec<&&Row>)| {
        let first = of_cell[0];
        let at = format!("{}, {}", size_words(first.now_bytes), state_words(first.now_state));
        Panel {
            title: at.clone(),
            alt: format!("Published ratios to {} and this run's at {at}.", of.baseline),
            facets: summary.facets(Some(first.now_bytes), first.now_state),
            x: Axis::ratio(&format!("time / {}", of.baseline)),
            y: Axis::variants(variants.iter().copied()),
            marks: of_cell.iter().flat_map(|row| marks(row, &variants)).collect(),
        }
    };
    Some(Group {
        title: summary.titled(&format!("{part}: ratios to {}", of.baseline)),
        panels: cells.iter().map(panel).collect(),
        height: Height::Rows,
    })
}

fn marks(row: &Row, variants: &[&str]) -> Vec<Mark> {
    let (Some(then), Some(now)) = (row.then_ratio, row.now_ratio) else { return Vec::new() };
    let y = variants.iter().position(|name| *name == row.variant).unwrap_or(0) as f64;
    let text = |when: &str, ratio: f64, ns: f64| {
        format!("{}, {when}: {} × ({})", row.variant, three_digits(ratio), nanoseconds(ns))
    };
    let then = Dot {
        x: then,
        y,
        low: None,
        high: None,
        text: text(&row.then.year.to_string(), then, row.then.elapsed_ns),
    };
    let text = text("now", now.value, row.now_ns);
    let now = Dot { x: now.value, y, low: now.low, high: now.high, text };
    Mark::pair(&row.variant, then, now).into()
}

fn table(title: &str, of: &Published) -> Table {
    let mut table = Table::new(
        &format!("{title}: published beside measured"),
        &[
            "variant",
            "published as",
            "year",
            "where",
            "file size then",
            "then",
            "ratio then",
            "file size now",
            "state now",
            "now",
            "ratio now",
            "95 % from",
            "to",
        ],
    );
    for row in &of.rows {
        table.rows.push(vec![
            Entry::words(&row.variant),
            Entry::words(&row.series),
            Entry::Number { value: f64::from(row.then.year), shown: row.then.year.to_string() },
            Entry::words(&row.then.system),
            Entry::bytes(Some(row.then.file_bytes as f64)),
            Entry::ns(Some(row.then.elapsed_ns)),
            Entry::digits(row.then_ratio),
            Entry::bytes(Some(row.now_bytes as f64)),
            Entry::words(state_words(row.now_state)),
            Entry::ns(Some(row.now_ns)),
            Entry::digits(row.now_ratio.map(|ratio| ratio.value)),
            Entry::digits(row.now_ratio.and_then(|ratio| ratio.low)),
            Entry::digits(row.now_ratio.and_then(|ratio| ratio.high)),
        ]);
    }
    table
}
