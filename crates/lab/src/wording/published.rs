//! Published figures beside measured ones, as text.

use super::sheet::{Sheet, size};
use crate::analysis::estimated::Estimated;
use crate::analysis::published::{Published, Row};
use crate::definition::is_floor;
use crate::stats::median;
use crate::words;

/// The heads of what part of the time was the processor's in the kernel.
const KERNEL_THEN: &str = "kernel then";

const KERNEL_NOW: &str = "kernel now";

/// A table of more rows than this is for programs; people get a row a size.
const ROWS_MAX: usize = 32;

impl Row {
    /// The rate now over the rate then.
    fn times_the_rate(&self) -> f64 {
        let then = self.then.file_bytes as f64 / self.then.elapsed_ns;
        self.now_bytes as f64 / self.now_ns / then
    }
}

/// The row with the least value, of rows of a cell.
fn least<'r>(rows: &[&'r Row], value: fn(&Row) -> f64) -> &'r Row {
    rows.iter().min_by(|a, b| value(a).total_cmp(&value(b))).expect("a chunk has rows")
}

impl Published {
    pub(crate) fn sheet(&self) -> Sheet {
        let mut sheet =
            if self.rows.len() <= ROWS_MAX { self.every_row() } else { self.a_row_a_cell() };
        sheet.title = format!("Then and now: {}", self.source);
        if let Some(said) = self.directions_in_words() {
            sheet.say(said);
        }
        if sheet.columns.iter().any(|column| column == KERNEL_NOW) {
            sheet.say("Kernel: the processor's time there, as a share of the time by the clock.");
        }
        if self.rows.iter().any(|row| row.then.file_bytes != row.now_bytes) {
            sheet.say(
                "Files then and now are not of one size: compare ratios and rates, not times.",
            );
        }
        let mut systems: Vec<String> =
            self.rows.iter().map(|row| format!("{}, {}", row.then.year, row.then.system)).collect();
        systems.sort();
        systems.dedup();
        sheet.say(format!("Then: {}.", systems.join("; ")));
        sheet.say(format!("Not controlled then: {}", self.not_controlled));
        sheet
    }

    fn every_row(&self) -> Sheet {
        let then = format!("then, to {}", self.baseline);
        let digits = words::three_digits;
        let none = || "-".to_owned();
        let share = |system_ns: Option<f64>, elapsed_ns: f64| {
            system_ns.map_or_else(none, |ns| format!("{:.0} %", ns / elapsed_ns * 100.0))
        };
        let mut sheet = Sheet::of(
            "",
            2,
            &self.rows,
            &[
                ("variant", &|row| row.variant.clone()),
                ("cell", &|row| row.cell.clone()),
                ("file then", &|row| size(row.then.file_bytes)),
                ("then", &|row| words::nanoseconds(row.then.elapsed_ns)),
                ("now", &|row| words::nanoseconds(row.now_ns)),
                ("times the rate", &|row| digits(row.times_the_rate())),
                (&then, &|row| row.then_ratio.map_or_else(none, digits)),
                ("now, to it", &|row| row.now_ratio.map_or_else(none, |it| it.in_words(digits))),
                (KERNEL_THEN, &|row| share(row.then.system_ns, row.then.elapsed_ns)),
                (KERNEL_NOW, &|row| share(row.now_system_ns, row.now_ns)),
            ],
        );
        if self.rows.iter().all(|row| row.then.file_bytes == row.now_bytes) {
            sheet.drop("file then");
        }
        if self.rows.iter().all(|row| row.then.system_ns.is_none()) {
            sheet.drop(KERNEL_THEN);
            sheet.drop(KERNEL_NOW);
        }
        if self.rows.iter().all(|row| row.now_ratio.is_none()) {
            sheet.drop("now, to it");
        }
        sheet
    }

    /// Who was the fastest, and how much faster all is.
    fn a_row_a_cell(&self) -> Sheet {
        let moving: Vec<&Row> = self.rows.iter().filter(|row| !is_floor(&row.variant)).collect();
        let then = |rows: &&[&Row]| least(rows, |row| row.then.elapsed_ns).clone();
        let now = |rows: &&[&Row]| least(rows, |row| row.now_ns).clone();
        let times_the_rate = |rows: &&[&Row]| {
            let ratios: Vec<f64> = rows.iter().map(|row| row.times_the_rate()).collect();
            median(&ratios).map_or_else(String::new, words::three_digits)
        };
        Sheet::of(
            "",
            1,
            moving.chunk_by(|a, b| a.cell == b.cell),
            &[
                ("cell", &|rows| rows[0].cell.clone()),
                ("methods", &|rows| rows.len().to_string()),
                ("fastest then", &|rows| then(rows).variant),
                ("took", &|rows| words::nanoseconds(then(rows).then.elapsed_ns)),
                ("fastest now", &|rows| now(rows).variant),
                ("takes", &|rows| words::nanoseconds(now(rows).now_ns)),
                ("times the rate", &times_the_rate),
            ],
        )
    }

    /// How many ratios lie on the same side of 1 now as then.
    fn directions_in_words(&self) -> Option<String> {
        let both: Vec<(f64, Estimated)> =
            self.rows.iter().filter_map(|row| Some((row.then_ratio?, row.now_ratio?))).collect();
        if both.is_empty() {
            return None;
        }
        let (mut same, mut other) = (0, 0);
        for (then, now) in &both {
            let slower = now.low.is_some_and(|low| low > 1.0);
            let faster = now.high.is_some_and(|high| high < 1.0);
            same += usize::from((slower && *then > 1.0) || (faster && *then < 1.0));
            other += usize::from((slower && *then < 1.0) || (faster && *then > 1.0));
        }
        let baseline = &self.baseline;
        if both.len() == 1 {
            return Some(match (same, other) {
                (1, _) => format!("The ratio to {baseline} lies on the same side of 1 as then."),
                (_, 1) => format!("The ratio to {baseline} lies on the other side of 1 than then."),
                _ => format!("The ratio to {baseline} is not distinguishable from 1 now."),
            });
        }
        Some(format!(
            "Of {} ratios to {baseline}, {same} lie on the same side of 1 as then, {other} on the other, and {} \
             are not distinguishable from 1 now.",
            both.len(),
            both.len() - same - other
        ))
    }
}
