//! A variant on its way through the race.

use std::time::Duration;

use engines::{Kind, Variant};

use crate::sample::{Sample, Stage};
use crate::search::winner::Racer;
use crate::stats::median;

/// A variant and what is known of it so far.
#[derive(Debug)]
pub(super) struct Entrant {
    pub(super) variant: Variant,
    pub(super) progressing: Progressing,
    /// Every run, heats included.
    pub(super) samples: Vec<Sample>,
    /// What the last run took in all: setting the state, copying, comparing, removing.
    pub(super) cost: Duration,
    /// Files that the last run copied.
    files: usize,
}

/// A copy of this length takes longer to compare and to remove than to begin.
pub(super) const LONG_BYTES: u64 = 8 << 20;

/// Whether it goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Progressing {
    /// It takes part.
    Running,
    /// It was too slow in the heats for the final; in words.
    OutInHeats(String),
    /// It took part in the final until it was clear that it is slower.
    Beaten,
    /// It does not work here; in words.
    Refused(String),
}

/// Those of which a winner is sought, apart from each other: moving bytes and sharing extents
/// answer different wishes.
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
    /// Their median, in nanoseconds.
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

impl Entrant {
    pub(super) fn new(variant: Variant) -> Entrant {
        Entrant {
            variant,
            progressing: Progressing::Running,
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

    /// Bytes of the longest run in the heats.
    pub(super) fn heat_bytes(&self) -> u64 {
        let heats = self.samples.iter().filter(|sample| sample.stage == Stage::Heat);
        heats.map(|sample| sample.bytes).max().unwrap_or(0)
    }

    /// Its longest runs in the heats.
    pub(super) fn longest_heats(&self) -> Vec<&Sample> {
        let bytes = self.heat_bytes();
        let heats = self.samples.iter().filter(|sample| sample.stage == Stage::Heat);
        heats.filter(|sample| sample.bytes == bytes).collect()
    }

    /// Nanoseconds a byte in its longest heats.
    pub(super) fn heat_pace(&self) -> Option<f64> {
        let heats = self.longest_heats();
        let times: Vec<f64> =
            heats.iter().map(|sample| sample.measured.elapsed_ns as f64).collect();
        Some(median(&times)? / self.heat_bytes().max(1) as f64)
    }

    /// Its best time over `bytes` in the heats. The least and not the median: on a shared machine
    /// others only ever add time, and the heats are few.
    pub(super) fn heat_ns(&self, bytes: u64) -> Option<f64> {
        let heats = self.samples.iter().filter(|sample| sample.stage == Stage::Heat);
        heats
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

    /// Its counted runs of the final.
    pub(super) fn racer(&self) -> Racer {
        let counted =
            self.samples.iter().filter(|sample| sample.is_final() && sample.measured.counted);
        Racer {
            variant: self.variant.to_string(),
            times_ns: counted
                .map(|sample| (sample.round, sample.measured.elapsed_ns as f64))
                .collect(),
        }
    }

    /// The times of its longest runs in this part of the race, or of the heats before the final has
    /// reached it.
    fn line(&self, stage: Stage) -> Option<Line> {
        let in_final: Vec<&Sample> = self.final_samples();
        let shown = match stage {
            Stage::Final | Stage::WarmUp if !in_final.is_empty() => in_final,
            _ => self.longest_heats(),
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
            running: self.progressing == Progressing::Running,
        })
    }
}

/// The places so far, fastest first; those that are out come last.
pub(super) fn standings(entrants: &[Entrant], stage: Stage) -> Vec<Line> {
    let refused = |entrant: &&Entrant| !matches!(entrant.progressing, Progressing::Refused(_));
    let mut lines: Vec<Line> =
        entrants.iter().filter(refused).filter_map(|entrant| entrant.line(stage)).collect();
    let pace = |line: &Line| line.median_ns / line.bytes.max(1) as f64;
    lines.sort_by(|a, b| b.running.cmp(&a.running).then_with(|| pace(a).total_cmp(&pace(b))));
    lines
}
