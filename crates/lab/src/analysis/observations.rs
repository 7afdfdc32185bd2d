//! From the samples of a cell to observations, and from those to comparisons of its variants.
//! Decides which samples count.

use std::collections::BTreeMap;

use crate::definition::Measure;
use crate::sample::measurement::Measurement;
use crate::sample::record::Sample;
use crate::stats::{Runs, Sessions, median};

/// The value of a run that is compared, in nanoseconds, at least 1: the kernel counts processor
/// time in microseconds, so a short run may have none.
pub fn value_ns(measured: &Measurement, measure: Measure) -> f64 {
    let value_ns = match measure {
        Measure::Elapsed => measured.elapsed_ns,
        Measure::Durable => measured.durable_ns.unwrap_or(measured.elapsed_ns),
        Measure::Processor => measured.user_ns.saturating_add(measured.system_ns),
    };
    (value_ns as f64).max(1.0)
}

/// The value of a run without the time that the run waited for a processor, where that is known.
pub fn undisturbed_ns(measured: &Measurement, measure: Measure) -> f64 {
    let waited_ns = waited_ns(measured, measure).unwrap_or(0);
    (value_ns(measured, measure) - waited_ns as f64).max(1.0)
}

/// What of the value of a run went by in waiting for a processor, where that is known.
fn waited_ns(measured: &Measurement, measure: Measure) -> Option<u64> {
    match measure {
        Measure::Elapsed | Measure::Durable => measured.processor_wait_ns,
        Measure::Processor => Some(0),
    }
}

/// For each round of a session how often it had been run before its last time, which counts. `runs` are
/// (session, round, repeat).
pub(super) fn last_repeats(
    runs: impl Iterator<Item = (u32, u32, u32)>,
) -> BTreeMap<(u32, u32), u32> {
    let mut last: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for (session, round, repeat) in runs {
        let of_round = last.entry((session, round)).or_default();
        *of_round = repeat.max(*of_round);
    }
    last
}

/// What a comparison needs of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// The index of the variant.
    pub variant: usize,
    /// The session, from 1.
    pub session: u32,
    /// The round of the session, from 1.
    pub round: u32,
    /// How often the round had been run before.
    pub repeat: u32,
    /// The value compared, in nanoseconds.
    pub value_ns: f64,
    /// Of that, what went by in waiting for a processor that other programs had, where it is known.
    pub processor_wait_ns: Option<f64>,
    /// What the speed probe took just before.
    pub probe_ns: f64,
    /// Whether the run's state was reached.
    pub counted: bool,
}

/// The runs of one cell.
#[derive(Clone, Debug, Default)]
pub struct Observations {
    observations: Vec<Observation>,
}

impl Observations {
    /// The runs of `records` that belong to one cell, by the names of its variants.
    pub fn of<'r>(
        records: impl IntoIterator<Item = &'r Sample>,
        variants: &[String],
        measure: Measure,
    ) -> Observations {
        let mut observations = Observations::default();
        for record in records {
            if let Some(variant) = variants.iter().position(|name| *name == record.variant) {
                observations.add(record, variant, measure);
            }
        }
        observations
    }

    /// Adds a run of the variant with this index.
    pub fn add(&mut self, record: &Sample, variant: usize, measure: Measure) {
        self.observations.push(Observation {
            variant,
            session: record.session,
            round: record.round,
            repeat: record.repeat,
            value_ns: value_ns(&record.measured, measure),
            processor_wait_ns: waited_ns(&record.measured, measure).map(|ns| ns as f64),
            probe_ns: (record.probe_ns as f64).max(1.0),
            counted: record.measured.counted,
        });
    }

    /// The runs that count: their state was reached, and their round was not run again.
    pub fn counted(&self) -> impl Iterator<Item = &Observation> {
        let last = last_repeats(self.observations.iter().map(|p| (p.session, p.round, p.repeat)));
        self.observations
            .iter()
            .filter(move |p| p.counted && last.get(&p.place()) == Some(&p.repeat))
    }

    /// The runs of each of `variants` that count, by what `key` has of them.
    fn grouped<K: Ord, const N: usize>(
        &self,
        variants: [usize; N],
        key: impl Fn(&Observation) -> K,
    ) -> BTreeMap<K, [Vec<&Observation>; N]> {
        let mut groups: BTreeMap<K, [Vec<&Observation>; N]> = BTreeMap::new();
        for observation in self.counted() {
            for side in (0..N).filter(|&side| variants[side] == observation.variant) {
                let group = groups.entry(key(observation));
                group.or_insert_with(|| [(); N].map(|()| Vec::new()))[side].push(observation);
            }
        }
        groups
    }

    /// The values of a variant in the order of its runs.
    pub fn values(&self, variant: usize) -> Vec<f64> {
        self.counted()
            .filter(|observation| observation.variant == variant)
            .map(|p| p.value_ns)
            .collect()
    }

    /// The values of a variant by session and round. Several of one round are represented by their
    /// geometric mean. If `undisturbed`, what runs waited for a processor is subtracted, where that
    /// is known: of several workers or runs at once it is not.
    pub fn runs(&self, variant: usize, undisturbed: bool) -> Runs {
        let value = |all: &[&Observation]| Some(means(all, undisturbed)?.0.exp());
        let rounds = self.grouped([variant], Observation::place).into_iter();
        rounds.filter_map(|(round, [all])| Some((round, value(&all)?))).collect()
    }

    /// Whether all runs of a variant tell how long they waited for a processor.
    pub fn tell_waits(&self, variant: usize) -> bool {
        let mut own = self.counted().filter(|observation| observation.variant == variant);
        own.all(|observation| observation.processor_wait_ns.is_some())
    }

    /// The values of a variant without what a run waited for a processor, as ratios to the median
    /// of `reference` in the same session: what distinguishes sessions hides no mode.
    pub fn relative_values(&self, variant: usize, reference: usize) -> Vec<f64> {
        let relative = |[runs, reference]: [Vec<&Observation>; 2]| -> Vec<f64> {
            let middle = median(reference.iter().map(|run| run.undisturbed_ns()));
            let ratio = |run: &Observation| Some(run.undisturbed_ns() / middle?);
            runs.into_iter().filter_map(ratio).collect()
        };
        let sessions = self.grouped([variant, reference], |observation| observation.session);
        sessions.into_values().flat_map(relative).collect()
    }

    /// How much longer `one` takes than `other`, paired by round and grouped by session. A variant
    /// that ran several times in a round is represented by their mean. What the runs of a round
    /// waited for a processor is subtracted if it is known of all of them: other programs take the
    /// processor in slices of milliseconds, from one run and not from the next.
    pub fn compare(&self, one: usize, other: usize) -> Sessions {
        let rounds = self.grouped([one, other], Observation::place);
        let (mut runs, mut probes) = ([Runs::new(), Runs::new()], Runs::new());
        for (round, sides) in rounds {
            let waits_known = sides.iter().flatten().all(|p| p.processor_wait_ns.is_some());
            let sides = sides.map(|observations| means(&observations, waits_known));
            for (runs, side) in runs.iter_mut().zip(sides) {
                runs.extend(side.map(|(log, _)| (round, log.exp())));
            }
            if let [Some((_, one)), Some((_, other))] = sides {
                probes.insert(round, one - other);
            }
        }
        Sessions::of_probed_runs(&runs[0], &runs[1], &probes)
    }

    /// The last session in which a variant ran, 0 when it never did: it may leave before others.
    pub fn last_session(&self, variant: usize) -> u32 {
        let of = self.observations.iter().filter(|observation| observation.variant == variant);
        of.map(|observation| observation.session).max().unwrap_or(0)
    }

    /// The number of all runs.
    pub fn count(&self) -> usize {
        self.observations.len()
    }

    /// Runs whose state was not reached.
    pub fn not_counted(&self) -> usize {
        self.observations.iter().filter(|observation| !observation.counted).count()
    }
}

impl Observation {
    /// The session and the round.
    fn place(&self) -> (u32, u32) {
        (self.session, self.round)
    }

    /// The value without the waiting for a processor.
    fn undisturbed_ns(&self) -> f64 {
        (self.value_ns - self.processor_wait_ns.unwrap_or(0.0)).max(1.0)
    }
}

/// The means of the logarithms of the runs' values and of the probes before them.
fn means(observations: &[&Observation], waits_known: bool) -> Option<(f64, f64)> {
    let count = observations.len() as f64;
    let value = |p: &Observation| if waits_known { p.undisturbed_ns() } else { p.value_ns };
    let value_sum: f64 = observations.iter().map(|observation| value(observation).ln()).sum();
    let probe_sum: f64 = observations.iter().map(|observation| observation.probe_ns.ln()).sum();
    (count > 0.0).then_some((value_sum / count, probe_sum / count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observation(variant: usize, session: u32, repeat: u32, value_ns: u64) -> Observation {
        let mut record = Sample { session, round: 1, repeat, probe_ns: 1, ..Sample::default() };
        (record.measured.elapsed_ns, record.measured.processor_wait_ns) = (value_ns, Some(0));
        record.measured.counted = true;
        let mut of = Observations::default();
        of.add(&record, variant, Measure::Elapsed);
        of.observations[0]
    }

    #[test]
    fn the_last_run_of_a_round_counts() {
        let observations = Observations {
            observations: vec![
                observation(0, 1, 0, 100),
                observation(1, 1, 0, 900),
                observation(0, 1, 1, 100),
                observation(1, 1, 1, 200),
                observation(0, 2, 0, 100),
                observation(1, 2, 0, 200),
                Observation { counted: false, ..observation(1, 3, 0, 5) },
                observation(0, 3, 0, 100),
            ],
        };
        let ratio = observations.compare(1, 0).ratio(0.05).expect("two sessions");
        assert!((ratio.estimate - 2.0).abs() < 1e-9, "{ratio:?}");
        assert_eq!(observations.values(1), [200.0, 200.0]);
        assert_eq!(observations.not_counted(), 1);
    }

    #[test]
    fn waiting_for_a_processor_is_taken_off_where_it_is_known_of_both() {
        let ratio = |waited: Option<f64>| {
            let disturbed = |session| Observation {
                processor_wait_ns: waited,
                ..observation(1, session, 0, 4_200)
            };
            let of = |session| [observation(0, session, 0, 200), disturbed(session)];
            let observations = Observations { observations: [of(1), of(2)].concat() };
            observations.compare(1, 0).ratio(0.05).expect("two sessions").estimate
        };
        assert!((ratio(Some(4_000.0)) - 1.0).abs() < 1e-9);
        assert!((ratio(None) - 21.0).abs() < 1e-9);
    }
}
