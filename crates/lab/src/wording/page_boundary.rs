//! What one byte more than a page costs, as text.

use super::sheet::{Sheet, circumstances, size};
use crate::analysis::page_boundary::{Page, Step};
use crate::definition::deltas::Deltas;
use crate::words;

impl Page {
    fn shown(&self) -> impl Iterator<Item = &Step> {
        let deltas = Deltas { warm: self.delta, cold: self.delta_cold };
        self.steps.iter().filter(move |step| step.is_up(deltas))
    }

    /// The largest step that is shown.
    pub(crate) fn headline(&self) -> Option<String> {
        let ratio = |step: &Step| step.ratio.map_or(0.0, |ratio| ratio.value);
        let most = self.shown().max_by(|a, b| ratio(a).total_cmp(&ratio(b)));
        Some(match most {
            None => "no step to the next size is shown to cost anything".to_owned(),
            Some(step) => format!(
                "from {} to {} bytes {} takes {} x the time",
                step.from_bytes,
                step.to_bytes,
                step.variant,
                step.ratio?.in_words(words::three_digits)
            ),
        })
    }

    pub(crate) fn sheet(&self) -> Sheet {
        let ratio = |step: &&Step| match step.ratio {
            Some(ratio) => ratio.in_words(words::three_digits),
            None => "?".to_owned(),
        };
        let mut sheet = Sheet::of(
            "From one size to the next",
            4,
            &self.steps,
            &[
                ("variant", &|step| step.variant.clone()),
                ("state", &|step| circumstances(step.state, 1)),
                ("from", &|step| size(step.from_bytes)),
                ("to", &|step| size(step.to_bytes)),
                ("before", &|step| words::nanoseconds(step.from_median_ns)),
                ("after", &|step| words::nanoseconds(step.to_median_ns)),
                ("ratio", &ratio),
            ],
        );
        let up: Vec<String> = self
            .shown()
            .map(|step| format!("{} from {} to {}", step.variant, step.from_bytes, step.to_bytes))
            .collect();
        sheet.say(if up.is_empty() {
            "No step is shown to cost more than what does not matter.".to_owned()
        } else {
            format!("Shown to take longer: {}.", words::listed(&up))
        });
        sheet.drop_if_uniform("state");
        sheet
    }
}
