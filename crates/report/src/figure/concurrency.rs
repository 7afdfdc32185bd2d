//! Time against the number of copies at once, and of workers on one file.

use lab::analysis::Finding;
use lab::analysis::scaling::{Of, Scaling, Step};
use lab::words::{bytes, nanoseconds, three_digits};

use super::content::Content;
use crate::in_order::{distinct, gathered};
use crate::plot::{
    Along, Axis, Dot, Entry, Figure, Group, Height, Key, Look, Mark, Panel, Shape, Stroke, Table,
    Unit,
};
use crate::summary::{Summary, state_words};

/// The figure. `None` if no part has an analysis of scaling.
#[must_use]
pub fn figure(summaries: &[Summary<'_>]) -> Option<Figure> {
    let Content { groups, tables, .. } =
        Content::of_findings(summaries, |content, summary, part, finding| {
            let Finding::Scaling(scaling) = finding else { return };
            for (title, steps) in kinds(scaling) {
                let title = summary.titled(&format!("{}: {title}", part.name));
                content.groups.push(group(summary, &title, &steps));
            }
            content.tables.push(table(&summary.titled(&part.name), scaling));
        })?;
    Some(Figure {
        id: "concurrency",
        title: "Several at once".to_owned(),
        reading: "Left: the median time until all are done, against their number. Each of several \
                  copies moves its own file, so a level line means that they do not slow each \
                  other. Workers share one file, so a falling line is a gain. Right: the bytes \
                  per second of all together, divided by those of one alone, with 95 % intervals. \
                  On the dotted line each is as fast as one alone."
            .to_owned(),
        keys: vec![Key::new(Look::Fit, "each as fast as one alone")],
        groups,
        notes: Vec::new(),
        tables,
    })
}

/// Steps that differ in the variant and the number only.
fn kinds(scaling: &Scaling) -> Vec<(String, Vec<&Step>)> {
    gathered(&scaling.steps, |step| {
        format!("{}, {}, {}", of(step.of), bytes(step.file_bytes), state_words(step.state))
    })
}

fn of(of: Of) -> &'static str {
    match of {
        Of::Workers => "workers on one file",
        Of::AtOnce => "copies at once",
    }
}

fn group(summary: &Summary<'_>, title: &str, steps: &[&Step]) -> Group {
    let first = steps[0];
    let facets = summary.facets(Some(first.file_bytes), first.state);
    let x = Axis { label: of(first.of).to_owned(), unit: Unit::Count, ..Axis::default() };
    let variants = distinct(steps.iter().map(|step| step.variant.as_str()));
    let (mut times, mut rates) = (Vec::new(), Vec::new());
    let most = steps.iter().map(|step| step.count).max().unwrap_or(1);
    let points = vec![[1.0, 1.0], [f64::from(most), f64::from(most)]];
    rates.push(Mark::neutral("ideal", Shape::Line { points, stroke: Stroke::Fit }));
    let last = variants.len().saturating_sub(1) as f64;
    for (index, variant) in variants.into_iter().enumerate() {
        // Shifted a little, so that no interval hides another.
        let aside = 0.012 * f64::from(most) * (index as f64 - last / 2.0);
        let of: Vec<&&Step> = steps.iter().filter(|step| step.variant == variant).collect();
        let time = |step: &&&Step| Dot {
            x: f64::from(step.count) + aside,
            y: step.elapsed_ns,
            low: None,
            high: None,
            text: format!(
                "{variant}, {}: {} until all are done, {} each",
                step.count,
                nanoseconds(step.elapsed_ns),
                nanoseconds(step.each_ns)
            ),
        };
        times.extend(joined(variant, of.iter().map(time).collect(), true));
        let rate = |step: &&&Step| {
            let alone = Dot {
                x: f64::from(step.count) + aside,
                y: 1.0,
                low: None,
                high: None,
                text: format!("{variant}, {}", step.count),
            };
            match step.speed_up {
                None if step.count == 1 => Some(alone),
                None => None,
                Some(ratio) => Some(Dot {
                    y: ratio.value,
                    low: ratio.low,
                    high: ratio.high,
                    text: format!("{variant}, {}: {} ×", step.count, three_digits(ratio.value)),
                    ..alone
                }),
            }
        };
        rates.extend(joined(variant, of.iter().filter_map(rate).collect(), false));
    }
    let panel = |title: &str, y: Axis, marks: Vec<Mark>| Panel {
        title: title.to_owned(),
        alt: format!("{title} against {}.", x.label),
        facets: facets.clone(),
        x: x.clone(),
        y,
        marks,
    };
    let rate = Axis {
        label: "bytes per second, divided by one alone".to_owned(),
        unit: Unit::Ratio,
        reach: Some(1.0),
        ..Axis::default()
    };
    let panels = vec![
        panel("time until all are done", Axis::time("time"), times),
        panel("bytes per second of all together", rate, rates),
    ];
    Group { title: title.to_owned(), panels, height: Height::Plot }
}

/// Dots and the line that joins them.
fn joined(variant: &str, dots: Vec<Dot>, legend: bool) -> Vec<Mark> {
    let points = dots.iter().map(|dot| [dot.x, dot.y]).collect();
    let mut line = Mark::of(variant, Shape::Line { points, stroke: Stroke::Own });
    line.legend = legend;
    let dots = Shape::Dots { dots, along: Along::Y, hollow: false };
    vec![line, Mark::of(variant, dots).unlisted()]
}

fn table(title: &str, scaling: &Scaling) -> Table {
    let mut table = Table::new(
        &format!("{title}: several at once"),
        &[
            "what",
            "variant",
            "file size",
            "state",
            "number",
            "until all are done",
            "each",
            "MB/s together",
            "speed-up",
            "95 % from",
            "to",
        ],
    );
    for step in &scaling.steps {
        table.rows.push(vec![
            Entry::words(of(step.of)),
            Entry::words(&step.variant),
            Entry::bytes(Some(step.file_bytes as f64)),
            Entry::words(state_words(step.state)),
            Entry::count(Some(f64::from(step.count))),
            Entry::ns(Some(step.elapsed_ns)),
            Entry::ns(Some(step.each_ns)),
            Entry::digits(Some(step.bytes_per_second / 1e6)),
            Entry::digits(step.speed_up.map(|it| it.value)),
            Entry::digits(step.speed_up.and_then(|it| it.low)),
            Entry::digits(step.speed_up.and_then(|it| it.high)),
        ]);
    }
    table
}
