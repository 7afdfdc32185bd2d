//! Published figures beside this run's, as ratios, with what was not controlled then.

use lab::analysis::Finding;
use lab::analysis::published::{Published, Row};
use lab::words::{nanoseconds, three_digits};

use super::{
    Along, Axis, Content, Dot, Facets, Figure, Group, Height, Key, Look, Mark, Panel, Shape, Stroke,
};
use crate::in_order::{distinct, gathered};
use crate::summary::{Summary, size_words, state_words};
use crate::table::{Entry, Table};

/// The figure; none when no part has published figures beside it.
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
        reading: "Hollow symbols are published figures, full ones this run's, with 95 % \
                  intervals where there are enough sessions; both are ratios to the same \
                  baseline in its own study, so that a faster machine does not show. A line \
                  joins the two: where it is short, the older finding holds here. Published \
                  figures have no interval: nobody knows how far they would have varied. The \
                  axis is logarithmic."
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
            facets: Facets {
                file_bytes: Some(first.now_bytes),
                state: Some(state_words(first.now_state)),
                file_system: Some(summary.source.file_system()),
            },
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
    let points = vec![[then, y], [now.value, y]];
    let then_text = format!(
        "{}, {}: {} × ({})",
        row.variant,
        row.then.year,
        three_digits(then),
        nanoseconds(row.then.elapsed_ns)
    );
    let now_text = format!(
        "{}, now: {} × ({})",
        row.variant,
        three_digits(now.value),
        nanoseconds(row.now_ns)
    );
    let dots = |dot: Dot, hollow: bool| {
        let dots = Shape::Dots { dots: vec![dot], along: Along::X, hollow };
        Mark::of(&row.variant, dots).unlisted()
    };
    let (low, high) = (now.low, now.high);
    vec![
        Mark::of(&row.variant, Shape::Line { points, stroke: Stroke::Thin }).unlisted(),
        dots(Dot { x: then, y, low: None, high: None, text: then_text }, true),
        dots(Dot { x: now.value, y, low, high, text: now_text }, false),
    ]
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
