//! Compares files just below and just above a multiple of the page size: what the last byte costs.

use serde::{Deserialize, Serialize};

use super::sheet::{Sheet, circumstances, size};
use crate::analysis::view::View;
use crate::definition::cell::Cell;
use crate::definition::deltas::Deltas;
use crate::page_cache::state::State;
use crate::stats::{Estimated, unpaired};
use crate::words;

/// Steps from one size to the next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// Each variant and step.
    pub steps: Vec<Step>,
    /// The share that does not matter, of runs whose source is in the page cache.
    pub delta: f64,
    /// The share that does not matter, of cold runs.
    #[serde(default = "Deltas::least")]
    pub delta_cold: f64,
}

/// Two neighbouring sizes of one variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The variant.
    pub variant: String,
    /// The page cache state.
    pub state: State,
    /// The smaller size.
    pub from_bytes: u64,
    /// The larger one.
    pub to_bytes: u64,
    /// The median at the smaller.
    pub from_median_ns: f64,
    /// The median at the larger.
    pub to_median_ns: f64,
    /// The larger's time over the smaller's. The two did not run in the same rounds.
    pub ratio: Option<Estimated>,
}

pub(crate) fn of(view: &View<'_>) -> Option<Page> {
    let mut steps = Vec::new();
    let measure = view.part.measure;
    let alike = |cell: &Cell| (cell.state, cell.destination, cell.at_once);
    for mut cells in view.groups(alike) {
        cells.sort_by_key(|cell| cell.cell.file_bytes);
        for (index, variant) in view.part.variants.iter().enumerate() {
            for pair in cells.windows(2) {
                let [from, to] = [pair[0], pair[1]];
                let medians = (from.median_ns(index, measure), to.median_ns(index, measure));
                let (Some(from_median_ns), Some(to_median_ns)) = medians else { continue };
                let ratio = unpaired(
                    &to.points(measure).runs(index, true),
                    &from.points(measure).runs(index, true),
                );
                steps.push(Step {
                    variant: variant.clone(),
                    state: from.cell.state,
                    from_bytes: from.cell.file_bytes,
                    to_bytes: to.cell.file_bytes,
                    from_median_ns,
                    to_median_ns,
                    ratio: ratio.map(Estimated::from),
                });
            }
        }
    }
    let Deltas { warm, cold } = view.rules.deltas;
    (!steps.is_empty()).then_some(Page { steps, delta: warm, delta_cold: cold })
}

impl Page {
    /// The steps whose larger size is shown to take longer, by more than δ.
    fn shown(&self) -> impl Iterator<Item = &Step> {
        let deltas = Deltas { warm: self.delta, cold: self.delta_cold };
        self.steps.iter().filter(move |step| {
            let low = step.ratio.and_then(|ratio| ratio.low);
            low.is_some_and(|low| low > 1.0 + deltas.of(step.state))
        })
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
        let digits = words::three_digits;
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
                ("ratio", &|step| step.ratio.map_or("?".to_owned(), |it| it.in_words(digits))),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tests::Synthetic;

    #[test]
    fn the_step_over_a_page_is_found_and_no_other() {
        let sizes = ["4095", "4096", "4097", "4098"];
        let mut made = Synthetic::new("copy", &["stdio:4K"], &sizes);
        made.measure(10, 3, |cell, _| if cell.file_bytes > 4096 { 24_000.0 } else { 20_000.0 });
        let page = of(&made.view()).expect("steps");
        assert_eq!(page.steps.len(), 3);
        let ratio = page.steps[1].ratio.expect("sessions");
        assert!(ratio.low < Some(1.2) && ratio.high > Some(1.2), "{ratio:?}");
        let said = page.sheet().sentences;
        assert_eq!(said, ["Shown to take longer: stdio:4K from 4096 to 4097."]);
    }
}
