//! A candidate of a race: its samples, what its runs cost, and whether it still takes part.

use std::time::Duration;

use engines::{Kind, Variant};

use super::heuristics::LONG_BYTES;
use crate::sample::{Sample, Stage};
use crate::search::winner::CandidateTimes;
use crate::stats::median;

/// A variant and its samples so far.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) variant: Variant,
    pub(super) status: Status,
    /// Every run, elimination rounds included.
    pub(super) samples: Vec<Sample>,
    /// What the last run took in all: setting the state, copying, comparing, removing.
    pub(super) cost: Duration,
    /// Files that the last run copied.
    files: usize,
}

/// Whether it goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// The candidate takes part.
    Running,
    /// The candidate was too slow in the elimination rounds for the final; in words.
    Eliminated(String),
    /// The candidate took part in the final until it was clear that it is slower.
    Beaten,
    /// The candidate does not work here; in words.
    Refused(String),
}

/// Candidates are compared within a class: moving bytes and sharing extents serve different
/// purposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Bytes are moved.
    Mover,
    /// The destination shares the source's extents.
    Sharer,
    /// No file is copied.
    Floor,
}

/// One variant's place so far.
#[derive(Clone, Debug)]
pub struct Line {
    /// The variant.
    pub variant: String,
    /// Runs so far in this part of the race.
    pub runs: usize,
    /// The median time of the runs, in nanoseconds.
    pub median_ns: f64,
    /// Bytes of one run.
    pub bytes: u64,
    /// Whether these are runs of the final.
    pub in_final: bool,
    /// Whether it is a floor.
    pub floor: bool,
    /// Whether it still takes part.
    pub running: bool,
}

impl Candidate {
    pub(super) fn new(variant: Variant) -> Candidate {
        Candidate {
            variant,
            status: Status::Running,
            samples: Vec::new(),
            cost: Duration::ZERO,
            files: 1,
        }
    }

    pub(super) fn add(&mut self, sample: Sample, cost: Duration, files: usize) {
        self.samples.push(sample);
        self.cost = cost;
        self.files = files;
    }

    pub(super) fn class(&self) -> Class {
        match self.variant.engine.kind {
            Kind::Floor { .. } => Class::Floor,
            Kind::Copier { .. }
                if self.samples.last().is_some_and(|s| s.measured.shares_extents) =>
            {
                Class::Sharer
            }
            Kind::Copier { .. } => Class::Mover,
        }
    }

    /// Bytes of the longest run in the elimination rounds.
    pub(super) fn elimination_bytes(&self) -> u64 {
        let eliminations = self.samples.iter().filter(|sample| sample.stage == Stage::Elimination);
        eliminations.map(|sample| sample.bytes).max().unwrap_or(0)
    }

    /// The longest runs of the candidate in the elimination rounds.
    pub(super) fn longest_eliminations(&self) -> Vec<&Sample> {
        let bytes = self.elimination_bytes();
        let eliminations = self.samples.iter().filter(|sample| sample.stage == Stage::Elimination);
        eliminations.filter(|sample| sample.bytes == bytes).collect()
    }

    /// Nanoseconds a byte in its longest elimination rounds.
    pub(super) fn elimination_ns_per_byte(&self) -> Option<f64> {
        let eliminations = self.longest_eliminations();
        let times: Vec<f64> =
            eliminations.iter().map(|sample| sample.measured.elapsed_ns as f64).collect();
        Some(median(&times)? / self.elimination_bytes().max(1) as f64)
    }

    /// The best time of the candidate over `bytes` in the elimination rounds. The minimum and not
    /// the median: other programs only add time, and there are few elimination rounds.
    pub(super) fn elimination_ns(&self, bytes: u64) -> Option<f64> {
        let eliminations = self.samples.iter().filter(|sample| sample.stage == Stage::Elimination);
        eliminations
            .filter(|sample| sample.bytes == bytes)
            .map(|sample| sample.measured.elapsed_ns as f64)
            .min_by(f64::total_cmp)
    }

    /// What a run over `bytes` will take in all, going by the last. The copy itself grows with the
    /// bytes. So do the comparison and the removal of a long copy, and the creation of many files;
    /// what a short one or a floor takes beside the timed part is mostly its start, which does not
    /// grow.
    pub(super) fn cost_of(&self, bytes: u64) -> Duration {
        let Some(last) = self.samples.last() else { return Duration::ZERO };
        let growth = bytes as f64 / last.bytes.max(1) as f64;
        let timed = Duration::from_nanos(last.measured.elapsed_ns);
        let beside = self.cost.saturating_sub(timed);
        let is_long = last.bytes >= LONG_BYTES || self.files > 1;
        let beside_grows = is_long && self.class() != Class::Floor;
        timed.mul_f64(growth) + if beside_grows { beside.mul_f64(growth) } else { beside }
    }

    pub(super) fn final_samples(&self) -> Vec<&Sample> {
        self.samples.iter().filter(|sample| sample.is_final()).collect()
    }

    /// The counted runs of the candidate in the final.
    pub(super) fn times(&self) -> CandidateTimes {
        let counted =
            self.samples.iter().filter(|sample| sample.is_final() && sample.measured.counted);
        let times = counted.map(|sample| (sample.round, sample.measured.elapsed_ns as f64));
        CandidateTimes::new(self.variant.to_string(), times)
    }

    /// The times of its longest runs in this part of the race, or of the elimination rounds before
    /// the final has reached it.
    fn line(&self, stage: Stage) -> Option<Line> {
        let in_final: Vec<&Sample> = self.final_samples();
        let shown = match stage {
            Stage::Final | Stage::WarmUp if !in_final.is_empty() => in_final,
            _ => self.longest_eliminations(),
        };
        let times: Vec<f64> =
            shown.iter().map(|sample| sample.measured.elapsed_ns as f64).collect();
        Some(Line {
            variant: self.variant.to_string(),
            runs: shown.len(),
            median_ns: median(&times)?,
            bytes: shown[0].bytes,
            in_final: shown[0].is_final(),
            floor: self.class() == Class::Floor,
            running: self.status == Status::Running,
        })
    }
}

/// The ranking so far, fastest first; dropped candidates come last.
pub(super) fn ranking(candidates: &[Candidate], stage: Stage) -> Vec<Line> {
    let refused = |candidate: &&Candidate| !matches!(candidate.status, Status::Refused(_));
    let mut lines: Vec<Line> =
        candidates.iter().filter(refused).filter_map(|candidate| candidate.line(stage)).collect();
    let ns_per_byte = |line: &Line| line.median_ns / line.bytes.max(1) as f64;
    lines.sort_by(|a, b| {
        b.running.cmp(&a.running).then_with(|| ns_per_byte(a).total_cmp(&ns_per_byte(b)))
    });
    lines
}
