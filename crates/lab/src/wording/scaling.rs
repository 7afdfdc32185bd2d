//! Time against workers and against runs at once, as text.

use super::sheet::{Sheet, rate, size};
use crate::analysis::scaling::{Of, Scaling, Step};
use crate::words;

impl Scaling {
    pub(crate) fn sheet(&self) -> Sheet {
        let with = |step: &&Step| match (step.of, step.count) {
            (Of::AtOnce, count) => format!("{count} at once"),
            (Of::Workers, 1) => "1 worker".to_owned(),
            (Of::Workers, count) => format!("{count} workers"),
        };
        let speed_up = |step: &&Step| match step.speed_up {
            Some(speed_up) => speed_up.in_words(words::three_digits),
            None => "1".to_owned(),
        };
        let mut sheet = Sheet::of(
            "How the rate grows",
            4,
            &self.steps,
            &[
                ("variant", &|step| step.variant.clone()),
                ("file", &|step| size(step.file_bytes)),
                ("state", &|step| step.state.name().to_owned()),
                ("with", &with),
                ("time", &|step| words::nanoseconds(step.elapsed_ns)),
                ("each", &|step| words::nanoseconds(step.each_ns)),
                ("together", &|step| rate(1e9 / step.bytes_per_second)),
                ("times as fast", &speed_up),
            ],
        );
        if self.steps.iter().all(|step| step.of == Of::Workers) {
            sheet.drop("each");
        }
        if let Some(said) = self.headline() {
            sheet.say(format!("{said}."));
        }
        sheet.drop_if_uniform("state");
        sheet
    }

    /// The number with which the most is gained.
    pub(crate) fn headline(&self) -> Option<String> {
        let low = |step: &Step| step.speed_up.map_or(1.0, |s| s.low.unwrap_or(s.value));
        let best = self
            .steps
            .iter()
            .filter(|step| step.speed_up.is_some())
            .max_by(|a, b| low(a).total_cmp(&low(b)))?;
        let Step { of, variant, count, speed_up: Some(speed_up), state, .. } = best else {
            return None;
        };
        if speed_up.low.is_none_or(|low| low <= 1.0) {
            return Some("no number is shown to give a higher rate than the least does".to_owned());
        }
        let with = if *of == Of::Workers { "workers in one file" } else { "runs at once" };
        Some(format!(
            "the most is gained by {variant}, {}, with {count} {with}: {} times the rate",
            state.name(),
            speed_up.in_words(words::three_digits)
        ))
    }
}
