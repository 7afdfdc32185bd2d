//! Time against the number of copies at once, and of workers on one file.

use lab::in_order::{distinct, gathered};
use lab::studies::Finding;
use lab::studies::scaling::{Of, Step};
use lab::words::{bytes, nanoseconds, three_digits};

use super::content;
use crate::plot::{
    About, Axis, Dot, Entry, Figure, Group, Height, Look, Mark, Panel, Shape, Stroke, Table, Unit,
};
use crate::summary::Summary;

const ABOUT: About = About {
    id: "concurrency",
    title: "Several at once",
    reading: "Left: the median time until all are done, against their number. Each of several copies moves \
              its own file, so a level line means that they do not slow each other. Workers share one \
              file, so a falling line is a gain. Right: the bytes per second of all together, divided by \
              those of one alone, with 95 % intervals. On the dotted line each is as fast as one alone.",
    keys: &[(Look::Fit, "each as fast as one alone")],
};

/// The figure. `None` if no part has an analysis of scaling.
pub fn figure(summaries: &[Summary<'_>]) -> Option<Figure> {
    content::of_findings(&ABOUT, summaries, |figure, summary, part, finding| {
        let Finding::Scaling { steps: all } = finding else { return };
        for (title, steps) in kinds(all) {
            let title = summary.titled(&format!("{}: {title}", part.name));
            figure.groups.push(group(summary, &title, &steps));
        }
        figure.tables.push(table(&summary.titled(&part.name), all));
    })
}

/// Steps that differ in the variant and the number only.
fn kinds(steps: &[Step]) -> Vec<(String, Vec<&Step>)> {
    gathered(steps, |step| {
        format!("{}, {}, {}", of(step.of), bytes(step.file_bytes), step.state.name())
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
    let facets = summary.source.facets(Some(first.file_bytes), first.state);
    let x = Axis { label: of(first.of).to_owned(), unit: Unit::Count, ..Axis::default() };
    let variants = distinct(steps.iter().map(|step| step.variant.as_str()));
    let most = steps.iter().map(|step| step.count).max().unwrap_or(1);
    let points = vec![[1.0, 1.0], [f64::from(most), f64::from(most)]];
    let ideal = Mark::neutral(Shape::Line { points, stroke: Stroke::Fit });
    let (mut times, mut rates) = (Vec::new(), vec![ideal]);
    let last = variants.len().saturating_sub(1) as f64;
    for (index, variant) in variants.into_iter().enumerate() {
        // Shifted a little, so that no interval hides another.
        let aside = 0.012 * f64::from(most) * (index as f64 - last / 2.0);
        let of: Vec<&&Step> = steps.iter().filter(|step| step.variant == variant).collect();
        let time = |step: &&&Step| {
            let [all, each] = [step.elapsed_ns, step.each_ns].map(nanoseconds);
            let text = format!("{variant}, {}: {all} until all are done, {each} each", step.count);
            Dot::at(f64::from(step.count) + aside, step.elapsed_ns, text)
        };
        times.extend(Mark::joined(variant, of.iter().map(time).collect(), Stroke::Own));
        let rate = |step: &&&Step| {
            let (x, text) = (f64::from(step.count) + aside, format!("{variant}, {}", step.count));
            match step.speed_up {
                None => (step.count == 1).then(|| Dot::at(x, 1.0, text)),
                Some(ratio) => {
                    let text = format!("{text}: {} ×", three_digits(ratio.value));
                    Some(Dot::at(x, ratio.value, text).within(ratio.low, ratio.high))
                }
            }
        };
        let dots = of.iter().filter_map(rate).collect();
        rates.extend(Mark::joined(variant, dots, Stroke::Own));
    }
    let panel = |title: &str, y: Axis, marks: Vec<Mark>| Panel {
        title: title.to_owned(),
        alt: format!("{title} against {}.", x.label),
        facets: facets.clone(),
        x: x.clone(),
        y,
        marks,
    };
    let rate = Axis { log: false, ..Axis::ratio("bytes per second, divided by one alone") };
    let panels = vec![
        panel("time until all are done", Axis::time("time"), times),
        panel("bytes per second of all together", rate, rates),
    ];
    Group { title: title.to_owned(), panels, height: Height::Plot }
}

fn table(title: &str, steps: &[Step]) -> Table {
    Table::of(
        &format!("{title}: several at once"),
        steps,
        &[
            ("what", &|step| Entry::words(of(step.of))),
            ("variant", &|step| Entry::words(&step.variant)),
            ("file size", &|step| Entry::bytes(step.file_bytes as f64)),
            ("state", &|step| Entry::words(step.state.name())),
            ("number", &|step| Entry::count(f64::from(step.count))),
            ("until all are done", &|step| Entry::ns(step.elapsed_ns)),
            ("each", &|step| Entry::ns(step.each_ns)),
            ("MB/s together", &|step| Entry::digits(step.bytes_per_second / 1e6)),
            ("speed-up", &|step| Entry::digits(step.speed_up.map(|it| it.value))),
            ("95 % from", &|step| Entry::digits(step.speed_up.and_then(|it| it.low))),
            ("to", &|step| Entry::digits(step.speed_up.and_then(|it| it.high))),
        ],
    )
}
