//! The report as one HTML file, which opens from disk and uses no network.
//!
//! Figures are SVG, texts and tables are HTML, so all can be read without scripts. The scripts filter,
//! and show the values of marks.

mod figures;
mod head;
mod policy;
mod tables;

use std::path::Path;

use crate::drawing::style;
use crate::escape::{escaped, json};
use crate::plot::About;
use crate::report::Report;

const TEMPLATE: &str = include_str!("../../assets/page.html");
const CSS: &str = include_str!("../../assets/page.css");
const JS: [&str; 2] =
    [include_str!("../../assets/tables.js"), include_str!("../../assets/page.js")];

/// The page, for a file in the directory `home`. Links to samples are relative to it.
pub fn render(report: &Report<'_>, home: &Path) -> String {
    let (figures, rules) = figures::html_and_css(report);
    let js = format!("\"use strict\";\n(() => {{\n{}\n}})();\n", JS.join("\n"));
    let css = [&style::of_page(), CSS, &rules].concat();
    // Name and engine of each variant, in the order of their numbers.
    let variants: Vec<[&str; 2]> =
        report.styles.iter().map(|(name, style)| [name, style.engine.as_str()]).collect();
    let mut page = String::with_capacity(TEMPLATE.len() + figures.len() + (1 << 18));
    let parts = [
        ("policy", policy::policy(&js, &css)),
        ("title", escaped(&head::title(report))),
        ("head", head::head(report)),
        ("nav", nav(report)),
        ("filters", figures::filters(report)),
        ("symbols", style::symbols()),
        ("figures", figures),
        ("end", head::end(report, home)),
        ("css", css),
        ("variants", json(&variants)),
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

fn nav(report: &Report<'_>) -> String {
    let mut html = String::new();
    for About { id, title, .. } in report.figures.iter().map(|figure| figure.about) {
        html.push_str(&format!("<a href=\"#{id}\">{}</a>", escaped(title)));
    }
    html
}
