//! The record of a tuning, as JSON and as lines of a profile.

use std::collections::BTreeMap;

use engines::profile::{Choice, InFlight, Line, Measured, Other, Residency, Situation, SizeClass};
use serde::{Deserialize, Serialize};

use super::candidates;
use super::search::Search;
use crate::search::candidate::{Candidate, Role, Status};
use crate::search::winner;
use crate::stats::{Interval, Ratio, Runs, SlowMode, median};

/// The number of this form. It changes when a field changes its meaning or goes. 3: ratios are of
/// typical times until a slow mode is shown, as in `bench`; in 2 they were of expected times, in 1 of
/// typical ones.
pub const SCHEMA_VERSION: u32 = 3;

/// The oldest version that can be read.
const SCHEMA_VERSION_MIN: u32 = 1;

/// What `kind` says in a record, so that a reader knows it from other results.
pub const KIND: &str = "tune";

/// What one command measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Records {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// [`KIND`].
    pub kind: String,
    /// One for each pair of directories.
    pub pairs: Vec<Record>,
}

/// The searches between two directories.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// When it was started, in UTC.
    pub date: String,
    /// The machine, the file systems and the program: the object of
    /// [`Environment`](crate::environment::Environment).
    pub environment: serde_json::Value,
    /// Seconds that were allowed.
    pub seconds_allowed: f64,
    /// Seconds that it took.
    pub seconds: f64,
    /// Copies in flight where several were.
    pub at_once: usize,
    /// Differences up to this share do not matter.
    pub delta: f64,
    /// One a situation, in the order in which they were measured.
    pub situations: Vec<Finding>,
    /// The variants that do not work here.
    pub refused: Vec<Refused>,
}

/// A variant that does not work, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The text of the variant.
    pub variant: String,
    /// Why, in words.
    pub reason: String,
}

/// What is best in one situation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// The class of lengths: `16M to 256M`.
    pub size: String,
    /// `resident` or `absent`.
    pub residency: String,
    /// `one` or `several`.
    pub in_flight: String,
    /// The copy was to leave nothing in the page cache; times are until it was written out.
    pub no_cache: bool,
    /// The situation in words.
    pub words: String,
    /// Bytes of each file.
    pub file_bytes: u64,
    /// Files that a run copied one after another, in each copy slot.
    pub files: u32,
    /// Why there is no answer; empty where there is one.
    pub why_not: String,
    /// What to use.
    pub choice: Option<String>,
    /// The fastest that was found, which may be no better than the choice.
    pub best: Option<String>,
    /// What a copy does without a profile of the user's.
    pub default: String,
    /// Whether more rounds would not have changed the choice.
    pub settled: bool,
    /// Rounds of the final.
    pub rounds: u32,
    /// Seconds that it took.
    pub seconds: f64,
    /// What it costs to go by the default.
    pub default_loss: Option<Loss>,
    /// What GNU cp costs.
    pub gnu_cp_loss: Option<Loss>,
    /// What it costs always to use copy_file_range.
    pub copy_file_range_loss: Option<Loss>,
    /// Every variant that was tried, fastest first.
    pub variants: Vec<VariantResult>,
    /// In a [summary](Record::summary) those of them that left in the elimination rounds: the time
    /// of the median elimination round of a variant over that of the best.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left: BTreeMap<String, f64>,
}

/// What a variant costs against the best.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// The ratio of its time to that of the best, with its 95 % interval.
    Ratio {
        /// The estimate.
        ratio: f64,
        /// The lower end.
        low: f64,
        /// The upper end.
        high: f64,
    },
    /// The variant moves no bytes here: the copy then shares the source's extents.
    SharesExtents,
    /// The variant does not work here.
    Refused,
    /// There were too few rounds to tell.
    Unknown,
}

/// One variant in a search.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VariantResult {
    /// The variant, or the name of another copier.
    pub name: String,
    /// `chosen`, `raced`, `beaten`, `slow` (left in the elimination rounds), `untried` (no
    /// time), `refused`.
    pub outcome: String,
    /// Why it was refused; empty otherwise.
    pub reason: String,
    /// The destination then shares the source's extents.
    pub shares_extents: bool,
    /// The median time of a file in nanoseconds, in the final.
    pub file_ns_median: Option<f64>,
    /// Millions of bytes a second in one copy slot, from that.
    pub megabytes_per_second: Option<f64>,
    /// The variant's time over that of the best; a slow mode that is shown is included.
    pub ratio_to_best: Option<f64>,
    /// The lower end of its 95 % interval.
    pub ratio_low: Option<f64>,
    /// The upper end.
    pub ratio_high: Option<f64>,
    /// The slow mode of the variant, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_mode: Option<SlowMode>,
    /// The times of its longest elimination rounds in nanoseconds, as for all files of a copy slot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elimination_ns: Vec<f64>,
    /// The times of the final, by round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds_ns: Vec<(u32, f64)>,
}

impl Records {
    /// The records of `pairs`.
    pub fn of(pairs: Vec<Record>) -> Records {
        Records { schema_version: SCHEMA_VERSION, kind: KIND.to_owned(), pairs }
    }

    /// Reads a text of JSON.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(text: &[u8]) -> Result<Records, String> {
        let records: Records = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        if records.kind != KIND {
            return Err(format!("it holds '{}' and no tuning", records.kind));
        }
        let version = records.schema_version;
        if !(SCHEMA_VERSION_MIN..=SCHEMA_VERSION).contains(&version) {
            return Err(format!(
                "its version is {version}, expected {SCHEMA_VERSION_MIN} to {SCHEMA_VERSION}"
            ));
        }
        Ok(records)
    }
}

impl Record {
    /// The findings as lines of a profile.
    pub fn lines(&self) -> Vec<Line> {
        self.situations.iter().filter_map(|finding| finding.line(&self.date)).collect()
    }

    /// The slow modes in sentences, with variant and situation, the costliest first.
    pub fn slow_modes(&self) -> Vec<String> {
        let mut found = Vec::new();
        for finding in &self.situations {
            for result in &finding.variants {
                let Some(mode) = &result.slow_mode else { continue };
                let sentence = format!("{}, {}: {}.", result.name, finding.words, mode.in_words());
                found.push((mode.added_share(), sentence));
            }
        }
        found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        found.into_iter().map(|(_, sentence)| sentence).collect()
    }

    /// The record without the times of single runs, from which all else was made, and with little
    /// of those variants that were dropped before the final.
    #[must_use]
    pub fn summary(mut self) -> Record {
        for finding in &mut self.situations {
            finding.left = finding.left();
            finding.variants.retain(|result| result.file_ns_median.is_some());
            for result in &mut finding.variants {
                result.elimination_ns.clear();
                result.rounds_ns.clear();
            }
        }
        self
    }
}

impl Finding {
    /// The finding of a search, answered or not.
    pub(super) fn of(search: &Search) -> Finding {
        let candidates = &search.candidates;
        let answered = search.why_not.is_empty();
        let best = candidates::best(candidates).filter(|_| answered);
        let chosen = candidates::choose(candidates, search.default()).filter(|_| answered);
        let name = |index: Option<usize>| index.map(|index| candidates[index].name.clone());
        let loss = |is_it: &dyn Fn(&Candidate) -> bool| {
            let index = candidates.iter().position(is_it)?;
            answered.then(|| Loss::of(index, best, candidates))
        };
        let case = search.case;
        let Situation { size, residency, in_flight, no_cache } = case.situation;
        Finding {
            size: size.to_string(),
            residency: residency.name().to_owned(),
            in_flight: in_flight.name().to_owned(),
            no_cache,
            words: case.words(),
            file_bytes: case.file_bytes,
            files: case.files,
            why_not: search.why_not.clone(),
            choice: name(chosen),
            best: name(best),
            default: search.default().to_string(),
            settled: search.settled && answered,
            rounds: search.rounds(),
            seconds: search.took.as_secs_f64(),
            default_loss: loss(&|candidate| {
                candidate.variant == *search.default() && candidate.role != Role::OtherCopier
            }),
            gnu_cp_loss: loss(&|candidate| candidate.role == Role::OtherCopier),
            copy_file_range_loss: loss(&|candidate| {
                candidate.name == "copy_file_range" && candidate.role != Role::OtherCopier
            }),
            variants: variant_results(search, best, chosen),
            left: BTreeMap::new(),
        }
    }

    /// The situation; `None` where this build knows no such one.
    pub fn situation(&self) -> Option<Situation> {
        let residency = Residency::ALL.into_iter().find(|r| r.name() == self.residency)?;
        let in_flight = InFlight::ALL.into_iter().find(|f| f.name() == self.in_flight)?;
        let size: SizeClass = self.size.parse().ok()?;
        Some(Situation { size, residency, in_flight, no_cache: self.no_cache })
    }

    /// What those that left in the elimination rounds took there, against the best, to thousandths.
    fn left(&self) -> BTreeMap<String, f64> {
        let median_ns = |result: &VariantResult| median(&result.elimination_ns);
        let best = self.best.as_deref().and_then(|best| self.variant_result(best));
        let Some(best_ns) = best.and_then(median_ns) else { return BTreeMap::new() };
        let left = self.variants.iter().filter(|result| result.file_ns_median.is_none());
        let ratio =
            |result: &VariantResult| Some((median_ns(result)? / best_ns * 1000.0).round() / 1000.0);
        left.filter_map(|result| Some((result.name.clone(), ratio(result)?))).collect()
    }

    /// The variant called `name`.
    pub fn variant_result(&self, name: &str) -> Option<&VariantResult> {
        self.variants.iter().find(|result| result.name == name)
    }

    /// The variant to use.
    pub fn chosen(&self) -> Option<&VariantResult> {
        self.variant_result(self.choice.as_deref()?)
    }

    /// The finding's line of a profile.
    fn line(&self, date: &str) -> Option<Line> {
        let chosen = self.chosen()?;
        let times = |of: &VariantResult| winner::by_round(of.rounds_ns.iter().copied());
        let own = times(chosen);
        let compared = |result: &&VariantResult| {
            result.name != chosen.name
                && !result.shares_extents
                && result.name.parse::<engines::Variant>().is_ok()
        };
        let raced = self.variants.iter().filter(compared);
        let others = raced.filter_map(|result| {
            let Ratio { estimate: ratio, interval } = winner::ratio(&times(result), &own)?;
            let Interval { low, high } = interval;
            Some(Other { variant: result.name.clone(), ratio, low, high })
        });
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A time, positive.
        let median_ns = chosen.file_ns_median.map(|ns| ns.round() as u64);
        let measured = Measured {
            median_ns,
            bytes: Some(self.file_bytes),
            rounds: Some(self.rounds),
            date: Some(date.to_owned()),
            others: others.collect(),
        };
        let choice = Choice { variant: chosen.name.clone(), measured };
        Some(Line::of(self.situation()?, choice))
    }
}

impl Loss {
    /// The loss of the candidate at `index`.
    fn of(index: usize, best: Option<usize>, candidates: &[Candidate]) -> Loss {
        let candidate = &candidates[index];
        if candidate.is_refused() {
            return Loss::Refused;
        }
        if candidate.shares_extents {
            return Loss::SharesExtents;
        }
        let Some(best) = best else { return Loss::Unknown };
        if candidate.name == candidates[best].name {
            return Loss::Ratio { ratio: 1.0, low: 1.0, high: 1.0 };
        }
        candidate.ratio(&candidates[best]).map_or(Loss::Unknown, |ratio| Loss::Ratio {
            ratio: ratio.estimate,
            low: ratio.interval.low,
            high: ratio.interval.high,
        })
    }
}

fn variant_results(
    search: &Search,
    best: Option<usize>,
    chosen: Option<usize>,
) -> Vec<VariantResult> {
    let candidates = &search.candidates;
    let files = f64::from(search.case.files);
    // Sharing extents takes no time, and tells nothing of what slowed a round.
    let none = Runs::new();
    let finals = candidates.iter().map(|it| if it.shares_extents { &none } else { &it.finals_ns });
    let finals: Vec<&Runs> = finals.collect();
    let standings = winner::standings(&finals, best);
    let mut results: Vec<VariantResult> = Vec::new();
    for ((index, candidate), (ratio, slow_mode)) in candidates.iter().enumerate().zip(standings) {
        let file_ns_median = median(candidate.finals_ns.values()).map(|ns| ns / files);
        let one = (best == Some(index)).then_some(1.0);
        let (outcome, reason) = match &candidate.status {
            _ if chosen == Some(index) => ("chosen", ""),
            Status::Refused(why) => ("refused", why.as_str()),
            Status::Beaten => ("beaten", ""),
            _ if candidate.elimination_ns.is_empty() => ("untried", ""),
            Status::Running => ("raced", ""),
            Status::Slow(_) => ("slow", ""),
        };
        let growth = search.case.slot_bytes() as f64 / candidate.elimination_bytes.max(1) as f64;
        let moved = file_ns_median.filter(|_| !candidate.shares_extents);
        results.push(VariantResult {
            name: candidate.name.clone(),
            outcome: outcome.to_owned(),
            reason: reason.to_owned(),
            shares_extents: candidate.shares_extents,
            file_ns_median,
            megabytes_per_second: moved.map(|ns| search.case.file_bytes as f64 * 1e3 / ns.max(1.0)),
            ratio_to_best: ratio.map(|ratio| ratio.estimate).or(one),
            ratio_low: ratio.map(|ratio| ratio.interval.low).or(one),
            ratio_high: ratio.map(|ratio| ratio.interval.high).or(one),
            slow_mode,
            elimination_ns: candidate.elimination_ns.iter().map(|ns| ns * growth).collect(),
            rounds_ns: candidate.finals_ns.iter().map(|((round, _), &ns)| (*round, ns)).collect(),
        });
    }
    let order = |result: &VariantResult| {
        let least_ns = result.elimination_ns.iter().copied().min_by(f64::total_cmp);
        (result.ratio_to_best.unwrap_or(f64::INFINITY), least_ns.unwrap_or(f64::INFINITY))
    };
    results.sort_by(|a, b| {
        let ((one, one_ns), (other, other_ns)) = (order(a), order(b));
        one.total_cmp(&other).then(one_ns.total_cmp(&other_ns))
    });
    results
}
