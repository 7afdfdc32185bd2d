//! The report as one HTML file, which opens from disk and uses no network.
//!
//! Text and tables are HTML, so they need no JavaScript. Figures are data in the page: `page.js`
//! draws them with plotly, which is in the same file.

mod head;
mod policy;
mod tables;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use serde::Serialize;

use crate::escape::{escaped, json};
use crate::figure::EPSILON;
use crate::in_order::distinct;
use crate::palette::Style;
use crate::plot::Figure;
use crate::report::Report;
use crate::summary::state_words;

const TEMPLATE: &str = include_str!("../../assets/page.html");
const CSS: &str = include_str!("../../assets/page.css");
const JS: [&str; 5] = [
    include_str!("../../assets/axes.js"),
    include_str!("../../assets/marks.js"),
    include_str!("../../assets/tables.js"),
    include_str!("../../assets/controls.js"),
    include_str!("../../assets/page.js"),
];
const PLOTLY_GZ: &[u8] = include_bytes!("../../assets/plotly-cartesian-4.1.1.min.js.gz");
const PLOTLY_LICENSE: &str = include_str!("../../assets/plotly-LICENSE");

/// What `page.js` reads.
#[derive(Serialize)]
struct Data<'r> {
    figures: &'r [Figure],
    styles: &'r BTreeMap<String, Style>,
    file_bytes: Vec<u64>,
    states: Vec<&'static str>,
    file_systems: Vec<String>,
    epsilon: f64,
}

/// The page, for a file in the directory `home`. Links to samples are relative to it.
#[must_use]
pub fn render(report: &Report<'_>, home: &Path) -> String {
    let plotly = plotly();
    // Only plotly is global.
    let js = format!("\"use strict\";\n(() => {{\n{}\n}})();\n", JS.join("\n"));
    let mut page = String::with_capacity(TEMPLATE.len() + plotly.len() + (1 << 20));
    let parts = [
        ("policy", policy::policy(&[&plotly, &js], &[CSS])),
        ("title", escaped(&head::title(report))),
        ("head", head::head(report)),
        ("nav", nav(report)),
        ("figures", report.figures.iter().map(section).collect()),
        ("end", head::end(report, home)),
        ("css", CSS.to_owned()),
        ("data", json(&data(report))),
        ("plotly_license", PLOTLY_LICENSE.to_owned()),
        ("plotly", plotly),
        ("js", js),
    ];
    let mut rest = TEMPLATE;
    // Inserted text is not scanned again, so `{{` in it is no placeholder.
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) =
            after.split_once("}}").expect("placeholders in the template are closed");
        let (_, text) = parts
            .iter()
            .find(|(of, _)| *of == name)
            .expect("the template's placeholders are known");
        page.push_str(before);
        page.push_str(text);
        rest = after;
    }
    page.push_str(rest);
    page
}

/// plotly. It is compressed in the program, of which it would be an eighth otherwise.
fn plotly() -> String {
    let mut text = String::new();
    let read = GzDecoder::new(PLOTLY_GZ).read_to_string(&mut text);
    read.expect("the embedded file is whole");
    text
}

fn data<'r>(report: &'r Report<'_>) -> Data<'r> {
    let cells = || report.summaries.iter().flat_map(|summary| &summary.cells);
    let mut file_bytes: Vec<u64> = cells().map(|cell| cell.cell.file_bytes).collect();
    file_bytes.sort_unstable();
    file_bytes.dedup();
    let epsilon = report.summaries.first().map_or(EPSILON, |summary| summary.epsilon);
    Data {
        figures: &report.figures,
        styles: &report.styles,
        file_bytes,
        states: distinct(cells().map(|cell| state_words(cell.cell.state))),
        file_systems: distinct(cells().map(|cell| cell.file_system.clone())),
        epsilon,
    }
}

fn nav(report: &Report<'_>) -> String {
    let mut html = String::new();
    for Figure { id, title, .. } in &report.figures {
        let _ = write!(html, "<a href=\"#{id}\">{}</a>", escaped(title));
    }
    html
}

/// A figure: its texts, empty elements for its panels, and its tables.
fn section(figure: &Figure) -> String {
    let Figure { id, title, reading, notes, groups, tables, .. } = figure;
    let title = escaped(title);
    let mut html = format!(
        "<section class=\"figure\" id=\"{id}\" aria-labelledby=\"{id}-title\">\n\
         <div class=\"bar\"><h2 id=\"{id}-title\">{title}</h2>\
         <div class=\"tools\" role=\"group\" aria-label=\"Options of: {title}\"></div></div>\n\
         <p class=\"keys\"></p>\n",
    );
    for (index, group) in groups.iter().enumerate() {
        let alt: Vec<&str> = group.panels.iter().map(|panel| panel.alt.as_str()).collect();
        let _ = writeln!(
            html,
            "<div class=\"group\" data-figure=\"{id}\" data-group=\"{index}\">\
             <h3>{}</h3><div class=\"plot\" role=\"img\" aria-label=\"{}\"></div></div>",
            escaped(&group.title),
            escaped(&alt.join(" "))
        );
    }
    html.push_str("<p class=\"none\" hidden>The filters above hide all of this figure.</p>\n");
    let _ = writeln!(html, "<p class=\"reading\"><b>How to read it.</b> {}</p>", escaped(reading));
    for note in notes {
        let _ = writeln!(html, "<p class=\"note\">{}.</p>", escaped(note));
    }
    for table in tables {
        html.push_str(&tables::html(table));
    }
    html.push_str("</section>\n");
    html
}
