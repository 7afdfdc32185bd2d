//! A candidate of a race: its times, what its runs cost, and whether it still takes part.

use std::time::Duration;

use engines::{Kind, Variant};

use super::winner::{self, ROUNDS_TO_MEET_A_SLOW_MODE};
use crate::definition::deltas::DELTA_LEAST as DELTA;
use crate::sample::Stage;
use crate::sample::measurement::Measurement;
use crate::stats::{Ratio, Runs, median};
use crate::trial::Runner;

/// A copy of this length takes longer to compare and to remove than to begin.
pub(crate) const LONG_BYTES: u64 = 8 << 20;

/// What GNU cp tries with each file: to share extents, then to have the kernel copy, and where that
/// is refused, to read and write.
const GNU_CP_TRIES: [&str; 3] = ["reflink", "copy_file_range", "read_write:128K"];

/// One variant in a race.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// What it is called in tables and records.
    pub(crate) name: String,
    /// What runs; for another copier, the variant that it ends up with.
    pub(crate) variant: Variant,
    pub(crate) role: Role,
    pub(crate) status: Status,
    /// Bytes of its longest elimination rounds.
    pub(crate) elimination_bytes: u64,
    /// The times of these.
    pub(crate) elimination_ns: Vec<f64>,
    /// Its runs in final rounds, whether they count or not.
    pub(crate) final_runs: usize,
    /// The counted times of its final rounds, each as a session of one.
    pub(crate) finals_ns: Runs,
    pub(crate) shares_extents: bool,
    /// What the last of its longest runs took in all (setting the state, copying, comparing, removing), or, before the
    /// first, what that will take.
    pub(crate) cost: Option<Duration>,
    pub(crate) last: Option<LastRun>,
}

/// The extent of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastRun {
    timed: Duration,
    bytes: u64,
    files: usize,
}

/// The role of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A variant that competes.
    Contender,
    /// A baseline: it is measured however slow it is. It can win too.
    Baseline,
    /// Another copier, which no profile can name.
    OtherCopier,
}

/// Whether a candidate still takes part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Running,
    /// The candidate was dropped in the elimination rounds; why.
    Slow(String),
    /// The candidate was shown to be slower in the final.
    Beaten,
    /// The candidate does not work here; why.
    Refused(String),
}

/// Candidates are compared within a class: moving bytes and sharing extents serve different
/// purposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
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
    /// Runs so far in this part.
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
    pub(crate) fn new(variant: Variant, role: Role) -> Candidate {
        Candidate {
            name: variant.to_string(),
            variant,
            role,
            status: Status::Running,
            elimination_bytes: 0,
            elimination_ns: Vec::new(),
            final_runs: 0,
            finals_ns: Runs::new(),
            shares_extents: false,
            cost: None,
            last: None,
        }
    }

    /// GNU cp since version 9.0, by the variant that copies where extents cannot be shared.
    pub(crate) fn gnu_cp() -> Candidate {
        let main = "copy_file_range".parse().expect("the engine is in the table");
        Candidate { name: "gnu_cp".to_owned(), ..Candidate::new(main, Role::OtherCopier) }
    }

    /// Starts what it runs.
    ///
    /// # Errors
    /// Why it cannot be started here, in words.
    pub(crate) fn start(&self) -> Result<Runner, String> {
        if self.role != Role::OtherCopier {
            return Runner::start(&self.variant);
        }
        let tries = GNU_CP_TRIES.map(|text| text.parse().expect("the engine is in the table"));
        Ok(Runner::of_variants(&self.variant, &tries))
    }

    /// Whether a profile can name it and it moves bytes.
    pub(crate) fn can_be_chosen(&self) -> bool {
        self.role != Role::OtherCopier && self.is_working_mover()
    }

    pub(crate) fn is_working_mover(&self) -> bool {
        !self.is_refused() && self.class() == Class::Mover
    }

    pub(crate) fn runs(&self) -> bool {
        self.status == Status::Running
    }

    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.status, Status::Refused(_))
    }

    pub(crate) fn class(&self) -> Class {
        match self.variant.engine.kind {
            Kind::Floor { .. } => Class::Floor,
            Kind::Copier { .. } if self.shares_extents => Class::Sharer,
            Kind::Copier { .. } => Class::Mover,
        }
    }

    /// Notes the end of a run in `round` of `stage`, over `bytes` in so many files, that took `cost` in all. Of
    /// the times of eliminations the longest are kept, of those of finals the ones that count.
    pub(crate) fn ran(
        &mut self,
        (stage, round): (Stage, u32),
        measured: &Measurement,
        cost: Duration,
        (bytes, files): (u64, usize),
    ) {
        // What a longer run takes tells more.
        if self.last.is_none_or(|last| bytes >= last.bytes) {
            self.cost = Some(cost);
            let timed = Duration::from_nanos(measured.elapsed_ns);
            self.last = Some(LastRun { timed, bytes, files });
        }
        self.shares_extents = measured.shares_extents;
        let ns = measured.elapsed_ns as f64;
        match stage {
            Stage::Elimination => {
                if bytes != self.elimination_bytes {
                    self.elimination_ns.clear();
                }
                self.elimination_bytes = bytes;
                self.elimination_ns.push(ns);
            }
            Stage::Final => {
                self.final_runs += 1;
                if measured.counted {
                    self.finals_ns.insert((round, 1), ns);
                }
            }
            Stage::WarmUp => {}
        }
    }

    /// The median of its elimination rounds; of two, the lesser. Not the minimum: now and then a
    /// run gets memory that is faster than that of any other run.
    pub(crate) fn elimination_median_ns(&self) -> Option<f64> {
        let mut times = self.elimination_ns.clone();
        times.sort_by(f64::total_cmp);
        times.get(times.len().checked_sub(1)? / 2).copied()
    }

    /// The median of its elimination rounds over `bytes`, if none were longer.
    pub(crate) fn elimination_ns_at(&self, bytes: u64) -> Option<f64> {
        self.elimination_median_ns().filter(|_| self.elimination_bytes == bytes)
    }

    /// The ratio of its time to the other's in the final.
    pub(crate) fn ratio(&self, other: &Candidate) -> Option<Ratio> {
        winner::ratio(&self.finals_ns, &other.finals_ns)
    }

    /// What a run over `bytes` will take in all, going by the last. The copy itself grows with the
    /// bytes. So do the comparison and the removal of a long copy, and the creation of many files;
    /// what a short one or a floor takes beside the timed part is mostly its start, which does not
    /// grow.
    pub(crate) fn cost_of(&self, bytes: u64) -> Option<Duration> {
        let Some(last) = self.last else { return self.cost };
        let growth = bytes as f64 / last.bytes.max(1) as f64;
        let beside = self.cost?.saturating_sub(last.timed);
        let is_long = last.bytes >= LONG_BYTES || last.files > 1;
        let beside_grows = is_long && self.class() != Class::Floor;
        let beside = if beside_grows { beside.mul_f64(growth) } else { beside };
        Some(last.timed.mul_f64(growth) + beside)
    }

    /// The candidate's place by its final, or by its elimination rounds before the final has reached it.
    fn line(&self) -> Option<Line> {
        let finals: Vec<f64> = self.finals_ns.values().copied().collect();
        let in_final = !finals.is_empty();
        let times = if in_final { &finals } else { &self.elimination_ns };
        let last_bytes = self.last.map_or(0, |last| last.bytes);
        Some(Line {
            variant: self.name.clone(),
            runs: times.len(),
            median_ns: median(times)?,
            bytes: if in_final { last_bytes } else { self.elimination_bytes },
            in_final,
            floor: self.class() == Class::Floor,
            running: self.runs(),
        })
    }
}

/// The ranking so far, fastest first; dropped candidates come last.
pub(crate) fn ranking(candidates: &[Candidate]) -> Vec<Line> {
    let works = candidates.iter().filter(|candidate| !candidate.is_refused());
    let mut lines: Vec<Line> = works.filter_map(Candidate::line).collect();
    let ns_per_byte = |line: &Line| line.median_ns / line.bytes.max(1) as f64;
    lines.sort_by(|a, b| {
        b.running.cmp(&a.running).then_with(|| ns_per_byte(a).total_cmp(&ns_per_byte(b)))
    });
    lines
}

/// The indices of the candidates of the final that still work and are `of` a field.
pub(crate) fn field(candidates: &[Candidate], of: impl Fn(&Candidate) -> bool) -> Vec<usize> {
    let raced = |it: &Candidate| !it.finals_ns.is_empty() && !it.is_refused() && of(it);
    (0..candidates.len()).filter(|&index| raced(&candidates[index])).collect()
}

/// The fastest of `field`.
pub(crate) fn best(candidates: &[Candidate], field: &[usize]) -> Option<usize> {
    winner::best(&times_of(candidates, field)).map(|place| field[place])
}

/// Drops those of `field` that are shown to be slower than the best and that `may_leave`, which is asked
/// with the best. Where nothing is decided for good yet, `keep_last`, they are not dropped if only the
/// best would be left: a lead is measured better by more rounds. Those that were dropped before the best
/// had its first slow run come back.
pub(crate) fn drop_beaten(
    candidates: &mut [Candidate],
    field: &[usize],
    keep_last: bool,
    may_leave: impl Fn(&Candidate, &Candidate) -> bool,
) {
    let is_beaten = |&place: &usize| candidates[field[place]].status == Status::Beaten;
    let dropped: Vec<usize> = (0..field.len()).filter(is_beaten).collect();
    let back = winner::no_longer_beaten(&times_of(candidates, field), &dropped);
    for place in back {
        candidates[field[place]].status = Status::Running;
    }
    let running: Vec<usize> =
        field.iter().copied().filter(|&index| candidates[index].runs()).collect();
    let Some(best) = best(candidates, &running) else { return };
    let mut beaten = winner::beaten(&times_of(candidates, &running));
    beaten.retain(|&place| may_leave(&candidates[running[place]], &candidates[best]));
    if keep_last && beaten.len() + 1 >= running.len() {
        return;
    }
    for place in beaten {
        candidates[running[place]].status = Status::Beaten;
    }
}

/// Whether more rounds would not change the choice among `field`: each that still runs is shown to be within
/// δ of the best, in enough rounds to meet a slow mode. Those that are slower by more are dropped, which takes
/// a stricter level than an interval that is looked at after each round.
pub(crate) fn is_settled(candidates: &[Candidate], field: &[usize]) -> bool {
    let Some(best) = best(candidates, field) else { return true };
    let is_known = |it: &Candidate| it.finals_ns.len() >= ROUNDS_TO_MEET_A_SLOW_MODE as usize;
    let is_as_good = |it: &Candidate| {
        it.ratio(&candidates[best]).is_some_and(|ratio| ratio.interval.high <= 1.0 + DELTA)
    };
    let others = field.iter().filter(|&&index| index != best).map(|&index| &candidates[index]);
    let mut running = others.filter(|it| it.runs());
    is_known(&candidates[best]) && running.all(|it| is_known(it) && is_as_good(it))
}

fn times_of<'c>(candidates: &'c [Candidate], field: &[usize]) -> Vec<&'c Runs> {
    field.iter().map(|&index| &candidates[index].finals_ns).collect()
}

/// A candidate with these times in the rounds of its final, for tests.
#[cfg(test)]
pub(crate) fn raced(text: &str, role: Role, times: &[f64]) -> Candidate {
    let finals_ns = winner::by_round((1..).zip(times.iter().copied()));
    let candidate = Candidate::new(text.parse().expect(text), role);
    Candidate { final_runs: times.len(), finals_ns, ..candidate }
}
