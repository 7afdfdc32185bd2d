//! Figures as SVG and PNG, for papers: a file for each group of panels. A drawing is 174 mm wide,
//! two columns of most journals, with text of 8 points.

mod frame;
mod legend;
mod marks;
mod png;
mod svg;

use frame::{Frame, INK, SOFT, TEXT_PX, WIDTH};

use crate::canvas::{Anchor, Canvas, Pen, Type};
use crate::plot::{Axis, Figure, Group, Height, Panel, Unit};
use crate::report::Report;
use crate::scale::Range;

/// The width on paper.
const PAPER_MM: f64 = 174.0;

const GRID: &str = "#e3e6e9";

/// A drawing and the name of its file.
#[derive(Clone, Debug)]
pub struct Drawing {
    /// The name of the file, without its extension.
    pub name: String,
    title: String,
    canvas: Canvas,
    high: f64,
}

impl Drawing {
    /// The drawing as SVG.
    #[must_use]
    pub fn svg(&self) -> String {
        svg::file(&self.canvas, &self.title, PAPER_MM, [WIDTH, self.high])
    }

    /// The drawing as PNG, with `scale` pixels for each of its units, of which 96 are an inch.
    ///
    /// # Errors
    /// If the size is invalid or there is no memory for it, with the reason in words.
    pub fn png(&self, scale: f32) -> Result<Vec<u8>, String> {
        png::file(&self.canvas, [WIDTH, self.high.round()], scale)
    }
}

/// All figures of a report, a drawing for each group of panels.
#[must_use]
pub fn drawings(report: &Report<'_>) -> Vec<Drawing> {
    report.figures.iter().flat_map(|figure| of_figure(figure, report)).collect()
}

fn of_figure(figure: &Figure, report: &Report<'_>) -> Vec<Drawing> {
    let single = figure.groups.len() == 1;
    let drawing = |(index, group): (usize, &Group)| {
        let name =
            if single { figure.id.to_owned() } else { format!("{}-{}", figure.id, index + 1) };
        let title = format!("{}: {}", figure.title, group.title);
        let (canvas, high) = of_group(figure, group, report);
        Drawing { name, title, canvas, high }
    };
    figure.groups.iter().enumerate().map(drawing).collect()
}

/// The shapes of a group, and their height.
fn of_group(figure: &Figure, group: &Group, report: &Report<'_>) -> (Canvas, f64) {
    let mut canvas = Canvas::default();
    let bold = Type { px: TEXT_PX + 0.6, bold: true, colour: INK, anchor: Anchor::Start };
    canvas.text([0.0, 12.0], &format!("{}. {}", figure.title, group.title), bold, false);
    let top = legend::draw(&mut canvas, figure, group, report, 26.0);
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
            canvas.text([x0, y0 - 5.0], &panel.title, bold, false);
        }
        axes(&mut canvas, panel, &frame, column == 0 || !frame.rows);
        let id = format!("{}-{index}", figure.id);
        canvas.clip(&id, [frame.x0 - 5.0, frame.y0 - 1.0], [frame.x1 + 5.0, frame.y1 + 5.0]);
        marks::draw(&mut canvas, panel, &frame, report);
        canvas.unclip();
        marks::notes(&mut canvas, panel, &frame);
    }
    let lines = group.panels.len().div_ceil(plan.columns);
    (canvas, top + lines as f64 * plan.line_height())
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

fn axes(canvas: &mut Canvas, panel: &Panel, frame: &Frame, names: bool) {
    let soft = |anchor: Anchor| Type { px: TEXT_PX - 1.0, bold: false, colour: SOFT, anchor };
    // Labels of ticks must not overlap.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let most = |px: f64, each: f64| (px / each).max(2.0) as usize;
    let each = if panel.x.unit == Unit::Ratio { 30.0 } else { 50.0 };
    for (value, label) in ticks(&panel.x, frame.x, most(frame.x1 - frame.x0, each)) {
        let x = frame.x(value);
        canvas.line(&[[x, frame.y0], [x, frame.y1]], Pen::thin(GRID));
        canvas.text([x, frame.y1 + 12.0], &label, soft(Anchor::Middle), false);
    }
    for (value, label) in ticks(&panel.y, frame.y, most(frame.y1 - frame.y0, 26.0)) {
        let y = frame.y(value);
        canvas.line(&[[frame.x0, y], [frame.x1, y]], Pen::thin(GRID));
        if names {
            canvas.text([frame.x0 - 5.0, y + 3.5], &label, soft(Anchor::End), false);
        }
    }
    canvas.line(&[[frame.x0, frame.y1], [frame.x1, frame.y1]], Pen::thin(SOFT));
    let label = title(&panel.x, frame.x);
    if panel.x.categories.is_empty() {
        let middle = (frame.x0 + frame.x1) / 2.0;
        let fits = label.chars().count() as f64 * 5.6 < frame.x1 - frame.x0 + 40.0;
        let label = if fits { label } else { panel.x.label.clone() };
        canvas.text([middle, frame.y1 + 25.0], &label, soft(Anchor::Middle), false);
    }
    if panel.y.categories.is_empty() && names {
        let at = [frame.x0 - 50.0, (frame.y0 + frame.y1) / 2.0];
        let label = title(&panel.y, frame.y);
        let fits = label.chars().count() as f64 * 5.6 < frame.y1 - frame.y0 + 20.0;
        let label = if fits { label } else { panel.y.label.clone() };
        canvas.text(at, &label, soft(Anchor::Middle), true);
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
