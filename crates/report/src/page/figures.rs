//! Figures and their controls. They are complete without scripts; `page.js` hides what a reader
//! filters out.

use std::collections::BTreeSet;

use lab::in_order::{distinct, gathered};

use crate::drawing::group::{Plan, panels};
use crate::drawing::legend::{self, SIZE};
use crate::escape::escaped;
use crate::palette::{Style, Styles};
use crate::plot::{About, Figure, Group, Panel, Shape};
use crate::report::Report;
use crate::scale::shown;

/// The figures of a page as HTML, and the rules for the arrangements of their panels, which each have a
/// class.
pub(super) fn html_and_css(report: &Report<'_>) -> (String, String) {
    let mut arrangements: Vec<String> = Vec::new();
    let mut html = String::new();
    for figure in &report.figures {
        section(&mut html, figure, &report.styles, &mut arrangements);
    }
    let rules = arrangements.iter().enumerate();
    let css = rules.map(|(index, rule)| rule.replace("{class}", &format!("a{index}")));
    (html, css.collect())
}

fn section(html: &mut String, figure: &Figure, styles: &Styles, arrangements: &mut Vec<String>) {
    let Figure { about, groups, notes, tables } = figure;
    let About { id, title, reading, keys } = about;
    html.push_str(&format!(
        "<section class=\"figure\" id=\"{id}\" aria-labelledby=\"{id}-title\">\n\
         <div class=\"bar\"><h2 id=\"{id}-title\">{}</h2>{}</div>\n<p class=\"keys\">",
        escaped(title),
        slider(figure)
    ));
    for (look, text) in *keys {
        let picture = framed(&legend::picture(*look));
        html.push_str(&format!("<span>{picture}{}</span>", escaped(text)));
    }
    html.push_str("</p>\n");
    for (index, group) in groups.iter().enumerate() {
        let key = format!("{id}.{index}");
        of_group(html, &key, group, styles, arrangements);
    }
    html.push_str("<p class=\"none\" hidden>The filters above hide all of this figure.</p>\n");
    html.push_str(&format!(
        "<p class=\"reading\"><b>How to read it.</b> {}</p>\n",
        escaped(reading)
    ));
    for note in notes {
        html.push_str(&format!("<p class=\"note\">{}.</p>\n", escaped(note)));
    }
    for table in tables {
        html.push_str(&super::tables::html(table));
    }
    html.push_str("</section>\n");
}

fn of_group(
    html: &mut String,
    key: &str,
    group: &Group,
    styles: &Styles,
    arrangements: &mut Vec<String>,
) {
    let plan = Plan::of(group);
    let rule = arrangement(&plan);
    let class = arrangements.iter().position(|of| *of == rule).unwrap_or_else(|| {
        arrangements.push(rule);
        arrangements.len() - 1
    });
    let title = escaped(&group.title);
    html.push_str(&format!("<div class=\"group\"><h3>{title}</h3>"));
    let chip = |(name, is_shown): (&str, bool)| {
        let style = styles.get(name)?;
        let inside = framed(&legend::swatch(style)) + &escaped(name);
        let more = format!(" data-of=\"{}\"", style.number);
        Some(chip("legend", &format!("{key}.{name}"), &inside, is_shown, &more))
    };
    let chips: String = legend::entries(group).into_iter().filter_map(chip).collect();
    if !chips.is_empty() {
        html.push_str(&format!(
            "<div class=\"legend\" role=\"group\" aria-label=\"Legend of {title}\">{chips}</div>"
        ));
    }
    html.push_str(&format!("<div class=\"panels a{class}\">\n"));
    for (panel, drawn) in group.panels.iter().zip(panels(group, &plan, styles)) {
        html.push_str(&format!(
            "<div class=\"panel\"{}><svg class=\"drawing\" height=\"{}\" overflow=\"visible\" role=\"img\" \
             aria-label=\"{}\">{drawn}</svg></div>\n",
            facets(panel),
            plan.size[1],
            escaped(&panel.alt)
        ));
    }
    html.push_str("</div></div>\n");
}

/// The rules of an arrangement. On a phone panels are below each other, and each has its names.
fn arrangement(plan: &Plan) -> String {
    let Plan { page_columns: columns, left, narrow_left, gap, head, foot, .. } = plan;
    let narrow = match left > narrow_left {
        true => format!(
            "@media (max-width: 40rem) {{ .{{class}} {{ padding-left: {narrow_left}px; }}\n\
             .{{class}} .drawing .name {{ font-size: 8.2px; }} }}\n"
        ),
        false => String::new(),
    };
    format!(
        ".{{class}} {{ padding-left: {left}px; column-gap: {gap}px; }}\n\
         .{{class}} .drawing {{ margin: {head}px 0 {foot:.0}px; }}\n\
         @media (min-width: 40.01rem) {{ .{{class}} {{ grid-template-columns: repeat({columns}, minmax(0, 1fr)); }}\n\
         .{{class}} > :not(:nth-child({columns}n+1 of :not([hidden]))) .name {{ display: none; }} }}\n{narrow}"
    )
}

/// What the filters compare, as attributes.
fn facets(panel: &Panel) -> String {
    let facets = &panel.facets;
    let values = [
        ("sizes", facets.file_bytes.map(|bytes| bytes.to_string())),
        ("states", facets.state.map(str::to_owned)),
        ("systems", facets.file_system.clone()),
    ];
    let attribute = |(name, value): (&str, Option<String>)| {
        Some(format!(" data-{name}=\"{}\"", escaped(&value?)))
    };
    values.into_iter().filter_map(attribute).collect()
}

/// A small picture in a line of text.
fn framed(picture: &str) -> String {
    let [width, height] = SIZE;
    format!(
        "<svg class=\"swatch\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         aria-hidden=\"true\">{picture}</svg>"
    )
}

/// A switch: `value` is shown or not. `inside` is HTML.
fn chip(set: &str, value: &str, inside: &str, is_shown: bool, more: &str) -> String {
    format!(
        "<button type=\"button\" class=\"chip\" data-set=\"{set}\" data-value=\"{}\" data-shown=\"{is_shown}\" \
         aria-pressed=\"{is_shown}\"{more}>{inside}</button>",
        escaped(value)
    )
}

/// The slider of ε from 0.1 to 20 % by factors, of a figure that recommends buffers.
fn slider(figure: &Figure) -> String {
    let mut marks = figure.groups.iter().flat_map(|it| &it.panels).flat_map(|panel| &panel.marks);
    let epsilon = marks.find_map(|mark| match mark.shape {
        Shape::Recommended { epsilon, .. } => Some(epsilon),
        _ => None,
    });
    let Some(epsilon) = epsilon else { return String::new() };
    format!(
        "<label class=\"slider scripted\"><span>calls may add ε = {} %</span> <input type=\"range\" \
         min=\"-3\" max=\"-0.7\" step=\"0.05\" value=\"{:.2}\" data-epsilon=\"{epsilon}\" \
         aria-label=\"ε: the share that calls may add to what their bytes cost\"></label>",
        shown(crate::plot::Unit::Ratio, epsilon * 100.0),
        epsilon.log10()
    )
}

/// The filters of all figures.
pub(super) fn filters(report: &Report<'_>) -> String {
    let cells = || report.summaries.iter().flat_map(|summary| &summary.cells);
    let sizes: BTreeSet<u64> = cells().map(|cell| cell.cell.file_bytes).collect();
    let engines = gathered(report.styles.values(), |style| &style.engine).into_iter();
    let engines = engines.map(|(engine, styles)| {
        let swatch = legend::swatch(&Style { dash: 0, ..styles[0].clone() });
        (engine.clone(), framed(&swatch) + &escaped(engine))
    });
    let plain = |value: String| (value.clone(), escaped(&value));
    let sizes = sizes.into_iter().map(|bytes| (bytes.to_string(), lab::words::file_size(bytes)));
    let states = distinct(cells().map(|cell| cell.cell.state.name().to_owned()));
    let systems = distinct(cells().filter_map(|cell| cell.facets.file_system.clone()));
    [
        choices("Engines", "engines", engines.collect()),
        choices("File sizes", "sizes", sizes.collect()),
        choices("Page cache", "states", states.into_iter().map(plain).collect()),
        choices("File systems", "systems", systems.into_iter().map(plain).collect()),
    ]
    .concat()
}

fn choices(title: &str, set: &str, items: Vec<(String, String)>) -> String {
    if items.len() < 2 {
        return String::new();
    }
    let chips = items.iter().map(|(value, inside)| chip(set, value, inside, true, ""));
    format!(
        "<div class=\"choices\" role=\"group\" aria-label=\"{title}\"><span>{title}</span>{}</div>\n",
        chips.collect::<String>()
    )
}
