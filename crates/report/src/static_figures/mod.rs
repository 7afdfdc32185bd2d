//! Figures as SVG and PNG, for papers: a file for each group of panels. A drawing is 174 mm wide,
//! two columns of most journals, with text of 8 points.

mod frame;
mod legend;
mod marks;

use frame::{Frame, INK, SOFT, TEXT_PX, WIDTH};

use crate::plot::{Axis, Figure, Group, Height, Panel, Unit};
use crate::report::Report;
use crate::scale::Range;
use crate::svg::{Anchor, Pen, Svg, Type};

/// The width on paper.
const PAPER_MM: f64 = 174.0;

const GRID: &str = "#e3e6e9";

/// A drawing and the name of its file.
#[derive(Clone, Debug)]
pub struct Drawing {
    /// The name of the file, without its extension.
    pub name: String,
    /// The SVG.
    pub svg: String,
}

/// All figures of a report, a drawing for each group of panels.
#[must_use]
pub fn drawings(report: &Report<'_>) -> Vec<Drawing> {
    report.figures.iter().flat_map(|figure| of_figure(figure, report)).collect()
}

fn of_figure(figure: &Figure, report: &Report<'_>) -> Vec<Drawing> {
    let single = figure.groups.len() == 1;
    let drawing = |(index, group): (usize, &Group)| Drawing {
        name: if single { figure.id.to_owned() } else { format!("{}-{}", figure.id, index + 1) },
        svg: of_group(figure, group, report),
    };
    figure.groups.iter().enumerate().map(drawing).collect()
}

fn of_group(figure: &Figure, group: &Group, report: &Report<'_>) -> String {
    let mut svg = Svg::default();
    let bold = Type { px: TEXT_PX + 0.6, bold: true, colour: INK, anchor: Anchor::Start };
    svg.text([0.0, 12.0], &format!("{}. {}", figure.title, group.title), bold, false);
    let top = legend::draw(&mut svg, figure, group, report, 26.0);
    let plan = Plan::of(group);
    let joined = common_range(group);
    for (index, panel) in group.panels.iter().enumerate() {
        let (column, line) = (index % plan.columns, index / plan.columns);
        let x0 = plan.left + column as f64 * (plan.wide + plan.gap);
        let y0 = top + line as f64 * plan.line_height() + plan.head;
        let frame = Frame {
            x0,
            y0,
            x1: x0 + plan.wide,
            y1: y0 + plan.tall,
            x: joined.unwrap_or_else(|| Range::of_x(panel)),
            y: Range::of_y(panel),
            rows: !panel.y.categories.is_empty(),
        };
        if !panel.title.is_empty() {
            let bold = Type { px: TEXT_PX, bold: true, colour: INK, anchor: Anchor::Start };
            svg.text([x0, y0 - 5.0], &panel.title, bold, false);
        }
        axes(&mut svg, panel, &frame, column == 0 || !frame.rows);
        let id = format!("{}-{index}", figure.id);
        svg.clip(&id, [frame.x0 - 5.0, frame.y0 - 1.0], [frame.x1 + 5.0, frame.y1 + 5.0]);
        marks::draw(&mut svg, panel, &frame, report);
        svg.unclip();
        marks::notes(&mut svg, panel, &frame);
    }
    let lines = group.panels.len().div_ceil(plan.columns);
    let high = top + lines as f64 * plan.line_height();
    svg.finish(&format!("{}: {}", figure.title, group.title), PAPER_MM, WIDTH, high)
}

/// The arrangement of the panels of a group.
struct Plan {
    columns: usize,
    left: f64,
    gap: f64,
    wide: f64,
    tall: f64,
    head: f64,
    foot: f64,
}

impl Plan {
    fn of(group: &Group) -> Plan {
        let rows = group.height == Height::Rows;
        let labels = &group.panels[0].y.categories;
        let longest = labels.iter().map(|label| label.label.chars().count()).max().unwrap_or(0);
        let left = if labels.is_empty() { 62.0 } else { (longest as f64 * 6.1 + 8.0).min(220.0) };
        let (least, gap) = match group.height {
            Height::Rows => (92.0, 14.0),
            Height::Strip => (170.0, 52.0),
            Height::Plot => (230.0, 56.0),
        };
        // At least one column, and at most one for each panel.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let fit =
            (((WIDTH - left - 8.0 + gap) / (least + gap)) as usize).clamp(1, group.panels.len());
        let columns = group.panels.len().div_ceil(group.panels.len().div_ceil(fit));
        let wide = (WIDTH - left - 8.0 - gap * (columns - 1) as f64) / columns as f64;
        let tall = match group.height {
            Height::Rows if rows => labels.len().max(1) as f64 * 15.0 + 4.0,
            Height::Strip => 110.0,
            _ => 250.0,
        };
        let titled = group.panels.iter().any(|panel| !panel.title.is_empty());
        let head = if titled { 20.0 } else { 6.0 };
        Plan { columns, left, gap, wide, tall, head, foot: 36.0 }
    }

    fn line_height(&self) -> f64 {
        self.head + self.tall + self.foot
    }
}

/// The common range of panels that all show ratios of the same quantities.
fn common_range(group: &Group) -> Option<Range> {
    let first = &group.panels[0].x;
    let alike = |panel: &Panel| panel.x.unit == Unit::Ratio && panel.x.label == first.label;
    if group.panels.len() < 2 || !group.panels.iter().all(alike) {
        return None;
    }
    group.panels.iter().map(Range::of_x).reduce(Range::joined)
}

fn axes(svg: &mut Svg, panel: &Panel, frame: &Frame, names: bool) {
    let soft = |anchor: Anchor| Type { px: TEXT_PX - 1.0, bold: false, colour: SOFT, anchor };
    // Labels of ticks must not overlap.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let most = |px: f64, each: f64| (px / each).max(2.0) as usize;
    let each = if panel.x.unit == Unit::Ratio { 30.0 } else { 50.0 };
    for (value, label) in ticks(&panel.x, frame.x, most(frame.x1 - frame.x0, each)) {
        let x = frame.x(value);
        svg.line(&[[x, frame.y0], [x, frame.y1]], Pen::thin(GRID));
        svg.text([x, frame.y1 + 12.0], &label, soft(Anchor::Middle), false);
    }
    for (value, label) in ticks(&panel.y, frame.y, most(frame.y1 - frame.y0, 26.0)) {
        let y = frame.y(value);
        svg.line(&[[frame.x0, y], [frame.x1, y]], Pen::thin(GRID));
        if names {
            svg.text([frame.x0 - 5.0, y + 3.5], &label, soft(Anchor::End), false);
        }
    }
    svg.line(&[[frame.x0, frame.y1], [frame.x1, frame.y1]], Pen::thin(SOFT));
    let label = title(&panel.x, frame.x);
    if panel.x.categories.is_empty() {
        let middle = (frame.x0 + frame.x1) / 2.0;
        let fits = label.chars().count() as f64 * 5.6 < frame.x1 - frame.x0 + 40.0;
        let label = if fits { label } else { panel.x.label.clone() };
        svg.text([middle, frame.y1 + 25.0], &label, soft(Anchor::Middle), false);
    }
    if panel.y.categories.is_empty() && names {
        let at = [frame.x0 - 50.0, (frame.y0 + frame.y1) / 2.0];
        let label = title(&panel.y, frame.y);
        let fits = label.chars().count() as f64 * 5.6 < frame.y1 - frame.y0 + 20.0;
        let label = if fits { label } else { panel.y.label.clone() };
        svg.text(at, &label, soft(Anchor::Middle), true);
    }
}

fn ticks(axis: &Axis, range: Range, most: usize) -> Vec<(f64, String)> {
    if axis.categories.is_empty() {
        return range.ticks(axis, most);
    }
    let names = axis.categories.iter().enumerate();
    names.map(|(index, category)| (index as f64, category.label.clone())).collect()
}

fn title(axis: &Axis, range: Range) -> String {
    let unit = if axis.unit == Unit::Seconds { " (s)" } else { "" };
    let log = if range.log { " (log scale)" } else { "" };
    format!("{}{unit}{log}", axis.label)
}

/// A drawing as PNG, with `scale` pixels for each of its units.
///
/// # Errors
/// If the SVG or the size is invalid, with the reason in words.
pub fn png(svg: &str, scale: f32) -> Result<Vec<u8>, String> {
    use resvg::{tiny_skia, usvg};
    let mut options = usvg::Options { font_family: "DejaVu Sans".to_owned(), ..Default::default() };
    // Only the embedded fonts, so that a drawing is the same on every machine.
    for font in FONTS {
        options.fontdb_mut().load_font_data(font.to_vec());
    }
    let tree = usvg::Tree::from_str(svg, &options).map_err(|error| error.to_string())?;
    let size = tree.size().to_int_size().scale_by(scale).ok_or("the drawing has no size")?;
    let mut pixels =
        tiny_skia::Pixmap::new(size.width(), size.height()).ok_or("the drawing is too large")?;
    let turn = tiny_skia::Transform::from_scale(scale, scale);
    resvg::render(&tree, turn, &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| error.to_string())
}

const FONTS: [&[u8]; 2] = [
    include_bytes!("../../assets/DejaVuSans-subset.ttf"),
    include_bytes!("../../assets/DejaVuSans-Bold-subset.ttf"),
];
