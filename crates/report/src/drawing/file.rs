//! The drawing of a group as a file.

use super::frame::in_xml;
use super::group::{Plan, RIGHT, WIDTH, panels};
use super::{legend, style};
use crate::palette::Styles;
use crate::plot::{Figure, Group};
use crate::report::Report;

/// The width on paper.
const PAPER_MM: f64 = 174.0;

/// The height of a line of the legend.
const LINE: f64 = 15.0;

/// A drawing and the name of its file.
#[derive(Clone, Debug)]
pub struct Drawing {
    /// The name of the file, without its extension.
    pub name: String,
    /// The drawing as SVG.
    pub svg: String,
}

/// All figures of a report, a drawing for each group of panels.
pub fn drawings(report: &Report<'_>) -> Vec<Drawing> {
    report.figures.iter().flat_map(|figure| of_figure(figure, &report.styles)).collect()
}

fn of_figure(figure: &Figure, styles: &Styles) -> Vec<Drawing> {
    let single = figure.groups.len() == 1;
    let drawing = |(index, group): (usize, &Group)| {
        let id = figure.about.id;
        let name = if single { id.to_owned() } else { format!("{id}-{}", index + 1) };
        Drawing { name, svg: of_group(figure, group, styles) }
    };
    figure.groups.iter().enumerate().map(drawing).collect()
}

/// The complete file of a group.
fn of_group(figure: &Figure, group: &Group, styles: &Styles) -> String {
    let (legend, top) = legend_above(figure, group, styles);
    let plan = Plan::of(group);
    let [wide, tall] = plan.size;
    let line_height = plan.head + tall + plan.foot;
    let high = top + group.panels.len().div_ceil(plan.columns) as f64 * line_height;
    let title = in_xml(&format!("{}. {}", figure.about.title, group.title));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{PAPER_MM}mm\" height=\"{:.1}mm\" viewBox=\"0 0 {WIDTH} \
         {high:.0}\" font-family=\"DejaVu Sans, Verdana, sans-serif\" role=\"img\">\n<title>{title}</title>\n\
         <style>\n{}</style>\n{}\n<rect width=\"{WIDTH}\" height=\"{high:.0}\" fill=\"#ffffff\"/>\n\
         <text class=\"title\" x=\"0\" y=\"12\">{title}</text>\n{legend}",
        PAPER_MM * high / WIDTH,
        style::of_file(),
        style::symbols(),
    );
    for (index, panel) in panels(group, &plan, styles).iter().enumerate() {
        let (column, line) = (index % plan.columns, index / plan.columns);
        let x = plan.left + column as f64 * (wide + plan.gap);
        let y = top + line as f64 * line_height + plan.head;
        let class = if column > 0 { " class=\"rest\"" } else { "" };
        svg.push_str(&format!(
            "<g{class}><svg x=\"{x:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{tall:.1}\" \
             overflow=\"visible\">{panel}</svg></g>\n"
        ));
    }
    svg.push_str("</svg>\n");
    svg
}

/// The legend, and where it ends.
fn legend_above(figure: &Figure, group: &Group, styles: &Styles) -> (String, f64) {
    let keys = figure.about.keys.iter().filter(|(look, _)| legend::concerns(*look, group));
    let keys = keys.map(|(look, text)| (legend::picture(*look), *text));
    let shown = legend::entries(group).into_iter().filter(|(_, shown)| *shown);
    let variants = shown.filter_map(|(name, _)| Some((legend::swatch(styles.get(name)?), name)));
    let mut svg = String::new();
    let (mut x, mut y) = (0.0, 26.0);
    for (picture, text) in keys.chain(variants) {
        let width = 28.0 + text.chars().count() as f64 * 5.9 + 14.0;
        if x > 0.0 && x + width > WIDTH - RIGHT {
            (x, y) = (0.0, y + LINE);
        }
        svg.push_str(&format!(
            "<g transform=\"translate({x:.1} {:.1})\">{picture}<text class=\"word\" x=\"30\" y=\"9.5\">{}</text></g>\n",
            y - legend::SIZE[1] / 2.0,
            in_xml(text)
        ));
        x += width;
    }
    (svg, if x > 0.0 { y + LINE } else { 24.0 })
}
