//! Warnings about drift, several modes and outliers in the times of one variant.

use statrs::distribution::{Binomial, DiscreteCDF};

use crate::analysis::view::CellView;
use crate::stats::artefacts::{self, Finding};
use crate::stats::median;
use crate::words;

/// The most runs of a series that detectors examine: enough to see what matters, and few enough for
/// hundreds of series.
const SERIES_MAX: usize = 200;

/// How often a detector finds something in noise.
const BY_CHANCE: f64 = 0.01;

/// Findings are reported if chance causes as many with at most this probability.
const REPORT_P_MAX: f64 = 0.02;

/// Drift, modes and outliers, counted over all variants and cells: among many, some look so by
/// chance.
pub(crate) fn of(cells: &[&CellView<'_>]) -> Vec<String> {
    let [mut drift, mut modes, mut outliers] = <[Found; 3]>::default();
    for cell in cells {
        for (index, variant) in cell.part.variants.iter().enumerate() {
            let times = cell.values(index, cell.part.measure);
            let step = times.len().div_ceil(SERIES_MAX).max(1);
            let times: Vec<f64> = times.into_iter().step_by(step).collect();
            let at = || format!("{variant} at {}", cell.cell.id());
            // The distance from no drift, whatever its direction.
            let magnitude = |value: f64| value.ln().abs();
            drift.add(artefacts::drift(&times), magnitude, at);
            modes.add(artefacts::modes(&times), |_| spread(&times), at);
            outliers.add(artefacts::outliers(&times), |share| share, at);
        }
    }
    let drifting = |by: f64, at: &str| {
        format!(
            "the times drift over the run order, by up to {:.0} % ({at}): rounds take that out of \
             comparisons and nothing takes it out of medians",
            by.exp_m1() * 100.0
        )
    };
    let parted = |by: f64, at: &str| {
        format!(
            "runs are of more than one kind, at most {} x apart ({at}): one median does not describe \
             them",
            words::three_digits(by)
        )
    };
    let outlying = |share: f64, at: &str| {
        format!(
            "many runs lie far from the others, up to {:.0} % ({at}): ratios count those that take twice as long, and others little",
            share * 100.0
        )
    };
    [drift.in_words(drifting), modes.in_words(parted), outliers.in_words(outlying)]
        .into_iter()
        .flatten()
        .collect()
}

/// The upper quartile over the lower.
fn spread(times: &[f64]) -> f64 {
    let middle = median(times).unwrap_or(1.0);
    let low = median(times.iter().filter(|&&time| time <= middle));
    let high = median(times.iter().filter(|&&time| time >= middle));
    high.unwrap_or(middle) / low.unwrap_or(middle)
}

/// The findings of a detector over many variants and cells.
#[derive(Default)]
struct Found {
    series: u64,
    found: u64,
    most: Option<(f64, String)>,
}

impl Found {
    fn add(
        &mut self,
        finding: Option<Finding>,
        size: impl Fn(f64) -> f64,
        at: impl Fn() -> String,
    ) {
        let Some(finding) = finding else { return };
        self.series += 1;
        if finding.is_beyond_noise() {
            self.found += 1;
            let size = size(finding.value);
            if self.most.as_ref().is_none_or(|(most, _)| size > *most) {
                self.most = Some((size, at()));
            }
        }
    }

    /// Reported only if there are more than chance explains.
    fn in_words(&self, said: impl Fn(f64, &str) -> String) -> Option<String> {
        let (size, at) = self.most.as_ref()?;
        let chance = Binomial::new(BY_CHANCE, self.series).expect("a share");
        if chance.sf(self.found - 1) > REPORT_P_MAX {
            return None;
        }
        Some(format!("in {} of {} series of runs {}", self.found, self.series, said(*size, at)))
    }
}
