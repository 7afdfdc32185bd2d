//! The summary of all runs of one variant in a race.

use serde::Serialize;

use super::sample::RaceSample;
use crate::stats::{SlowMode, median, median_interval};

/// How far a variant came, in the order of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VariantStage {
    /// The variant took part in the final.
    Raced,
    /// The variant ran in elimination rounds only, on the start of the source.
    Eliminated,
    /// The variant copies no file and is measured beside the others to compare with.
    Floor,
    /// The variant does not work here.
    Refused,
}

/// The runs of one variant in short. Times are medians over the counted runs.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The variant in its text form.
    pub variant: String,
    /// The engine of the variant.
    pub engine: &'static str,
    /// Workers that shared each file.
    pub workers: usize,
    /// How far it came.
    pub stage: VariantStage,
    /// Why it did not come further; empty when it raced.
    pub reason: String,
    /// Counted runs.
    pub runs: usize,
    /// Runs whose state was not reached.
    pub runs_not_counted: usize,
    /// Bytes that one run copied.
    pub bytes: u64,
    /// The time of a run.
    pub elapsed_ns_median: Option<f64>,
    /// The lower end of its 95 % bootstrap interval.
    pub elapsed_ns_median_low: Option<f64>,
    /// The upper end.
    pub elapsed_ns_median_high: Option<f64>,
    /// Millions of bytes a second, from the median; none when no bytes were moved.
    pub megabytes_per_second: Option<f64>,
    /// The variant's time over that of the best, with a slow mode that is shown: the best of those
    /// that move bytes, or of those that share extents, whichever it does. Of a variant measured in
    /// the elimination rounds only, the time over that of the best there, without interval.
    pub ratio_to_best: Option<f64>,
    /// The lower end of its 95 % interval.
    pub ratio_low: Option<f64>,
    /// The upper end.
    pub ratio_high: Option<f64>,
    /// The slow mode of the variant, if it has one.
    pub slow_mode: Option<SlowMode>,
    /// Processor time in user mode.
    pub user_ns_median: Option<f64>,
    /// Processor time in the kernel.
    pub system_ns_median: Option<f64>,
    /// Page faults, minor and major together.
    pub faults_median: Option<f64>,
    /// Bytes of source and destination in the page cache after a run.
    pub resident_bytes_after_median: Option<f64>,
    /// Bytes that devices read.
    pub device_read_bytes_median: Option<f64>,
    /// Bytes that devices wrote or were left to write.
    pub device_written_bytes_median: Option<f64>,
    /// The destination then shares the source's extents.
    pub shares_extents: bool,
    /// The share of bytes that `read_write` moved after a refusal.
    pub last_resort_share: f64,
    /// The words of that refusal; empty for none.
    pub refusals: String,
}

impl Summary {
    /// The summary of `samples`, all of one variant.
    pub fn of(variant: &engines::Variant, stage: VariantStage, samples: &[&RaceSample]) -> Summary {
        let counted: Vec<&RaceSample> =
            samples.iter().copied().filter(|s| s.measured.counted).collect();
        let of = |value: fn(&RaceSample) -> Option<u64>| {
            let values: Option<Vec<f64>> =
                counted.iter().map(|sample| Some(value(sample)? as f64)).collect();
            median(&values?)
        };
        let elapsed: Vec<f64> =
            counted.iter().map(|sample| sample.measured.elapsed_ns as f64).collect();
        let elapsed_ns_median = median(&elapsed);
        let interval = median_interval(&[&elapsed]);
        let bytes = counted.first().or(samples.first()).map_or(0, |sample| sample.bytes);
        let last = counted.last();
        let shares_extents = last.is_some_and(|sample| sample.measured.shares_extents);
        Summary {
            variant: variant.to_string(),
            engine: variant.engine.name,
            workers: variant.workers,
            stage,
            reason: String::new(),
            runs: counted.len(),
            runs_not_counted: samples.len() - counted.len(),
            bytes,
            elapsed_ns_median,
            elapsed_ns_median_low: interval.map(|interval| interval.low),
            elapsed_ns_median_high: interval.map(|interval| interval.high),
            megabytes_per_second: elapsed_ns_median
                .filter(|_| !shares_extents)
                .map(|ns| bytes as f64 * 1e3 / ns.max(1.0)),
            ratio_to_best: None,
            ratio_low: None,
            ratio_high: None,
            slow_mode: None,
            user_ns_median: of(|sample| Some(sample.measured.user_ns)),
            system_ns_median: of(|sample| Some(sample.measured.system_ns)),
            faults_median: of(|sample| {
                Some(sample.measured.minor_faults + sample.measured.major_faults)
            }),
            resident_bytes_after_median: of(|sample| sample.measured.resident_bytes_after()),
            device_read_bytes_median: of(|sample| sample.measured.device_read_bytes),
            device_written_bytes_median: of(|sample| sample.measured.device_written_bytes),
            shares_extents,
            last_resort_share: last.map_or(0.0, |sample| {
                sample.measured.last_resort_bytes as f64 / sample.bytes.max(1) as f64
            }),
            refusals: last.map_or_else(String::new, |sample| sample.measured.refusals.clone()),
        }
    }
}
