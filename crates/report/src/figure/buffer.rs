//! How large a buffer has to be: the time with each buffer at each file size, and the curve at the
//! largest file.

use lab::analysis::Finding;
use lab::analysis::buffer::{Buffer, Sweep};
use lab::analysis::view::buffer_of;
use lab::definition::deltas::Deltas;
use lab::words::{bytes, nanoseconds};

use super::content::Content;
use crate::in_order::gathered;
use crate::plot::{
    Along, Axis, Dot, Entry, Figure, Group, Height, Key, Look, Mark, Panel, Shape, Stroke, Table,
    Unit,
};
use crate::summary::{Summary, state_words};

/// The figure. `None` if no part is a sweep over buffers.
#[must_use]
pub fn figure(summaries: &[Summary<'_>]) -> Option<Figure> {
    let mut epsilons = Vec::new();
    let Content { groups, tables, .. } =
        Content::of_findings(summaries, |content, summary, part, finding| {
            let Finding::Buffer(buffer) = finding else { return };
            let deltas = Deltas { warm: buffer.epsilon, cold: buffer.epsilon_cold };
            epsilons.extend(buffer.sweeps.iter().map(|sweep| deltas.of(sweep.state)));
            for sweeps in families(buffer) {
                let title = summary.titled(&format!("{}: {}", part.name, of(&sweeps)));
                if sweeps.len() > 1 {
                    content.groups.push(tiles(summary, &title, &sweeps));
                }
                content.groups.extend(curve(summary, &title, &sweeps));
            }
            content.tables.push(table(&summary.titled(&part.name), buffer));
        })?;
    let epsilon = epsilons.into_iter().fold(0.0, f64::max) * 100.0;
    Some(Figure {
        id: "buffer",
        title: "How large a buffer has to be".to_owned(),
        reading: format!(
            "Each tile is a buffer at a file size. The stronger its colour, the longer the median \
             compared with the best buffer for that size; from four times on the colour is the \
             same. The curve is for the largest file: dots are medians with 95 % intervals. In \
             the shaded range, the plateau, every buffer is shown to be within {} % of the best. \
             From the thin line on no buffer is shown to be slower by more than that. The plateau \
             begins between the two.",
            crate::scale::shown(Unit::Ratio, epsilon)
        ),
        keys: vec![
            Key::new(Look::Tiles, "the best to 4 × as long"),
            Key::new(Look::Full, "median, 95 % interval"),
            Key::new(Look::Band, "plateau"),
            Key::new(Look::Rule, "the plateau may begin here"),
        ],
        groups,
        notes: Vec::new(),
        tables,
    })
}

/// Sweeps that differ in the file size only, ascending.
fn families<'b>(buffer: &'b Buffer) -> Vec<Vec<&'b Sweep>> {
    let common = |sweep: &&Sweep| (sweep.family.clone(), sweep.state, sweep.at_once);
    let ascending = |(_, mut sweeps): (_, Vec<&'b Sweep>)| {
        sweeps.sort_by_key(|sweep| sweep.file_bytes);
        sweeps
    };
    gathered(&buffer.sweeps, common).into_iter().map(ascending).collect()
}

fn of(sweeps: &[&Sweep]) -> String {
    let first = sweeps[0];
    let at_once = match first.at_once {
        1 => String::new(),
        count => format!(", {count} at once"),
    };
    format!("{}, {}{at_once}", first.family, state_words(first.state))
}

fn tiles(summary: &Summary<'_>, title: &str, sweeps: &[&Sweep]) -> Group {
    let mut buffers: Vec<u64> =
        sweeps.iter().flat_map(|sweep| &sweep.buffers).map(|it| it.buffer_bytes).collect();
    buffers.sort_unstable();
    buffers.dedup();
    let row = |sweep: &&Sweep| -> Vec<Option<f64>> {
        let ratio = |bytes: &u64| {
            let heat = sweep.buffers.iter().find(|heat| heat.buffer_bytes == *bytes);
            heat.map(|heat| heat.ratio_to_best)
        };
        buffers.iter().map(ratio).collect()
    };
    let heat = Shape::Heat {
        xs: buffers.iter().map(|&bytes| bytes as f64).collect(),
        rows: sweeps.iter().map(row).collect(),
        label: "× the best".to_owned(),
    };
    let panel = Panel {
        title: String::new(),
        alt: format!(
            "The time with each buffer divided by that of the best, by file size, for {title}."
        ),
        facets: summary.facets(None, sweeps[0].state),
        x: Axis::buffers(),
        y: Axis::names("file size", sweeps.iter().map(|sweep| bytes(sweep.file_bytes))),
        marks: vec![Mark::neutral("time over the best", heat)],
    };
    Group { title: title.to_owned(), panels: vec![panel], height: Height::Rows }
}

/// The curve for the largest file.
fn curve(summary: &Summary<'_>, title: &str, sweeps: &[&Sweep]) -> Option<Group> {
    let sweep = sweeps.last()?;
    let cell = summary.cell(&sweep.cell)?;
    let mut marks = Vec::new();
    if let (Some(from), Some(to)) = (sweep.plateau_shown_from_bytes, sweep.best_bytes) {
        let (from, to) = (from as f64, to as f64);
        let text = String::new();
        let band = Shape::Band { from, to, text, warning: false };
        marks.push(Mark::neutral("plateau", band));
    }
    if let Some(at) = sweep.plateau_possible_from_bytes {
        let text = format!("from {} on", bytes(at));
        let (at, stroke) = (at as f64, Stroke::Thin);
        marks.push(Mark::neutral("possible", Shape::Rule { at, text, stroke }));
    }
    let mut dots: Vec<(&str, Dot)> = Vec::new();
    for variant in &cell.variants {
        let Some((family, buffer_bytes)) = buffer_of(variant.variant) else { continue };
        if family != sweep.family {
            continue;
        }
        let text = format!("{}: median {}", variant.variant, nanoseconds(variant.median_ns));
        let (low, high) = (Some(variant.interval.low), Some(variant.interval.high));
        let dot = Dot { x: buffer_bytes as f64, y: variant.median_ns, low, high, text };
        dots.push((variant.variant, dot));
    }
    dots.sort_by(|a, b| a.1.x.total_cmp(&b.1.x));
    let (first, _) = dots.first()?;
    let points = dots.iter().map(|(_, dot)| [dot.x, dot.y]).collect();
    marks.push(Mark::of(first, Shape::Line { points, stroke: Stroke::Thin }).unlisted());
    let engine = (*first).to_owned();
    let dots = dots.into_iter().map(|(_, dot)| dot).collect();
    marks.push(Mark::of(&engine, Shape::Dots { dots, along: Along::Y, hollow: false }).unlisted());
    let size = bytes(sweep.file_bytes);
    let panel = Panel {
        title: String::new(),
        alt: format!("Time against buffer for a file of {size}. {}", words(sweep)),
        facets: summary.facets(Some(sweep.file_bytes), sweep.state),
        x: Axis::buffers(),
        y: Axis::time(&format!("time for {size}")),
        marks,
    };
    let title = format!("{title}: the curve at {size}");
    Some(Group { title, panels: vec![panel], height: Height::Plot })
}

fn words(sweep: &Sweep) -> String {
    match (sweep.best_bytes, sweep.plateau_shown_from_bytes) {
        (Some(best), Some(from)) => {
            format!("The best buffer is {}, the plateau begins at {}.", bytes(best), bytes(from))
        }
        _ => "Too few sessions to tell a plateau.".to_owned(),
    }
}

fn table(title: &str, buffer: &Buffer) -> Table {
    let mut table = Table::new(
        &format!("{title}: buffers"),
        &[
            "sweep",
            "state",
            "file size",
            "buffer",
            "median",
            "time / best",
            "the best",
            "plateau from",
        ],
    );
    let optional = |value: Option<u64>| Entry::bytes(value.map(|value| value as f64));
    for sweep in &buffer.sweeps {
        for heat in &sweep.buffers {
            table.rows.push(vec![
                Entry::words(&sweep.family),
                Entry::words(state_words(sweep.state)),
                Entry::bytes(Some(sweep.file_bytes as f64)),
                Entry::bytes(Some(heat.buffer_bytes as f64)),
                Entry::ns(Some(heat.median_ns)),
                Entry::digits(Some(heat.ratio_to_best)),
                optional(sweep.best_bytes),
                optional(sweep.plateau_shown_from_bytes),
            ]);
        }
    }
    table
}
