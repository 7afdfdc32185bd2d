//! How large a buffer has to be: the time with each buffer at each file size, and the curve at the
//! largest file.

use std::collections::BTreeSet;

use lab::analysis::view::buffer_of;
use lab::definition::deltas::Deltas;
use lab::in_order::gathered;
use lab::studies::Finding;
use lab::studies::buffer::{Buffer, Sweep};
use lab::studies::sheet::{circumstances, in_both_states};
use lab::words::{bytes, nanoseconds};

use super::content;
use crate::plot::{
    About, Axis, Dot, Entry, Figure, Group, Height, Look, Mark, Panel, Shape, Stroke, Table,
};
use crate::summary::Summary;

const ABOUT: About = About {
    id: "buffer",
    title: "How large a buffer has to be",
    reading: "Each tile is a buffer at a file size. The stronger its colour, the longer the median compared \
              with the best buffer for that size; from four times on the colour is the same. The curve is \
              for the largest file: dots are medians with 95 % intervals. In the shaded range, the plateau, \
              every buffer is shown to be as fast as the best, or slower by too little to matter. From the \
              thin line on no buffer is shown to be slower by more than that. The plateau begins between \
              the two.",
    keys: &[
        (Look::Tiles, "the best to 4 × as long"),
        (Look::Full, "median, 95 % interval"),
        (Look::Band, "plateau"),
        (Look::Rule, "the plateau may begin here"),
    ],
};

/// The figure. `None` if no part is a sweep over buffers.
pub fn figure(summaries: &[Summary<'_>]) -> Option<Figure> {
    content::of_findings(&ABOUT, summaries, |figure, summary, part, finding| {
        let Finding::Buffer(buffer) = finding else { return };
        for sweeps in families(buffer) {
            let Sweep { family, state, at_once, .. } = sweeps[0];
            let kind = format!("{}: {family}, {}", part.name, circumstances(*state, *at_once));
            let title = summary.titled(&kind);
            if sweeps.len() > 1 {
                figure.groups.push(tiles(summary, &title, &sweeps));
            }
            figure.groups.extend(curve(summary, &title, &sweeps));
        }
        let part = summary.titled(&part.name);
        figure.tables.push(table(&part, buffer));
        let deltas = Deltas { warm: buffer.epsilon, cold: buffer.epsilon_cold };
        let little = in_both_states(deltas);
        figure.notes.push(format!("{part}: differences up to {little} are too small to matter"));
    })
}

/// Sweeps that differ in the file size only, ascending.
fn families(buffer: &Buffer) -> Vec<Vec<&Sweep>> {
    let common = |sweep: &&Sweep| (sweep.family.clone(), sweep.state, sweep.at_once);
    let mut families = gathered(&buffer.sweeps, common);
    families.iter_mut().for_each(|(_, sweeps)| sweeps.sort_by_key(|sweep| sweep.file_bytes));
    families.into_iter().map(|(_, sweeps)| sweeps).collect()
}

fn tiles(summary: &Summary<'_>, title: &str, sweeps: &[&Sweep]) -> Group {
    let buffers = sweeps.iter().flat_map(|sweep| &sweep.buffers).map(|it| it.buffer_bytes);
    let buffers: BTreeSet<u64> = buffers.collect();
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
    };
    let panel = Panel {
        title: String::new(),
        alt: format!(
            "The time with each buffer divided by that of the best, by file size, for {title}."
        ),
        facets: summary.source.facets(None, sweeps[0].state),
        x: Axis::buffers(),
        y: Axis::names("file size", sweeps.iter().map(|sweep| bytes(sweep.file_bytes))),
        marks: vec![Mark::neutral(heat)],
    };
    Group { title: title.to_owned(), panels: vec![panel], height: Height::Rows }
}

/// The curve for the largest file.
fn curve(summary: &Summary<'_>, title: &str, sweeps: &[&Sweep]) -> Option<Group> {
    let sweep = sweeps.last()?;
    let cell = summary.cell(&sweep.cell)?;
    let mut marks = Vec::new();
    if let (Some(from), Some(to)) = (sweep.plateau_shown_from_bytes, sweep.best_bytes) {
        marks.push(Mark::neutral(Shape::band(from as f64, to as f64)));
    }
    if let Some(at) = sweep.plateau_possible_from_bytes {
        let text = format!("from {} on", bytes(at));
        marks.push(Mark::neutral(Shape::Rule { at: at as f64, text }));
    }
    let mut dots: Vec<(&str, Dot)> = Vec::new();
    for variant in &cell.variants {
        let of = buffer_of(variant.variant).filter(|(family, _)| *family == sweep.family);
        let Some((_, buffer_bytes)) = of else { continue };
        let text = format!("{}: median {}", variant.variant, nanoseconds(variant.median_ns));
        let dot = Dot::at(buffer_bytes as f64, variant.median_ns, text);
        let dot = dot.within(variant.interval.low, variant.interval.high);
        dots.push((variant.variant, dot));
    }
    dots.sort_by(|a, b| a.1.x.total_cmp(&b.1.x));
    let first = dots.first()?.0;
    let dots = dots.into_iter().map(|(_, dot)| dot).collect();
    marks.extend(Mark::joined(first, dots, Stroke::Thin));
    let size = bytes(sweep.file_bytes);
    let panel = Panel {
        title: String::new(),
        alt: format!("Time against buffer for a file of {size}. {}", words(sweep)),
        facets: summary.source.facets(Some(sweep.file_bytes), sweep.state),
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
    let optional = |value: Option<u64>| Entry::bytes(value.map(|value| value as f64));
    let sweeps = buffer.sweeps.iter();
    Table::of(
        &format!("{title}: buffers"),
        sweeps.flat_map(|sweep| sweep.buffers.iter().map(move |heat| (sweep, heat))),
        &[
            ("sweep", &|(sweep, _)| Entry::words(&sweep.family)),
            ("state", &|(sweep, _)| Entry::words(sweep.state.name())),
            ("file size", &|(sweep, _)| Entry::bytes(sweep.file_bytes as f64)),
            ("buffer", &|(_, heat)| Entry::bytes(heat.buffer_bytes as f64)),
            ("median", &|(_, heat)| Entry::ns(heat.median_ns)),
            ("time / best", &|(_, heat)| Entry::digits(heat.ratio_to_best)),
            ("the best", &|(sweep, _)| optional(sweep.best_bytes)),
            ("plateau from", &|(sweep, _)| optional(sweep.plateau_shown_from_bytes)),
        ],
    )
}
