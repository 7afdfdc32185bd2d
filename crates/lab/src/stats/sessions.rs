//! How much slower one variant is than another, from sessions of rounds.

use std::collections::BTreeMap;

use super::estimate::{Estimate, Ratio, Runs, trimmed};
use super::slow_runs::{Slowing, levels, slow_runs};
use super::{bisquare, covariate};

/// The ratio of the times of `one` to those of `other`, where they have no rounds in common:
/// different sizes, states, or numbers of runs at once, or two runs of one experiment. Value and
/// error of either are those of [`Sessions`], and the two are independent (Yuen, Biometrika 61,
/// 1974). Changes of the machine between the two are not cancelled, and the interval does not
/// include them. `None` when either has fewer than two sessions.
///
/// # Panics
/// When a time is not positive.
pub fn unpaired(one: &Runs, other: &Runs) -> Option<Estimate> {
    let slow = slow_runs(&[one, other], &Runs::new());
    let (own, its) = (&slow[0], &slow[1]);
    let typical = |runs: &Runs, keep: &dyn Fn(&(u32, u32)) -> bool| {
        let mut sessions: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for (round, time) in runs.iter().filter(|(round, _)| keep(round)) {
            sessions.entry(round.0).or_default().push(time.ln());
        }
        Sessions::new(sessions.into_values().collect()).estimate()
    };
    let one_fast = typical(one, &|round| !own.rounds.contains(round));
    let other_fast = typical(other, &|round| !its.rounds.contains(round));
    let Some((one_fast, other_fast)) = one_fast.zip(other_fast) else {
        return Some(typical(one, &|_| true)?.over(typical(other, &|_| true)?));
    };
    Some(own.beside(its).count(one_fast.over(other_fast)))
}

/// Log-ratios `ln(time of the one / time of the other)`, one a round in which both ran, grouped by
/// session.
///
/// The session is the replicate: a new process with new destinations. What is constant within a
/// session, such as the placement of its pages and the load of the machine, affects all of its
/// rounds, so that only the variation between sessions shows its effect. The source is the same in
/// all sessions: how its pages lie is in no interval.
///
/// Each session's value is the bisquare mean of its rounds. The scale is pooled over the sessions,
/// so that three rounds suffice to recognise an outlier. The estimate is the mean of these values
/// with an eighth trimmed from each end; its error is Yuen's, slightly widened. A race is one
/// session, whose rounds are the replicates: each counts as a session of one.
///
/// A rule that removes samples by their times favours the variant with more slow runs. So the
/// bisquare weights a round by its log-ratio: the farther it lies from those of the other rounds of
/// the session, in either direction, the smaller is its weight. Beyond a cutoff it is zero. Rounds
/// with a slow run ([`super::slow_runs`]) have no weight. Where one variant is shown to have more of
/// them, or is less surely the faster one with them, the factor by which they raise its mean multiplies
/// the ratio. Rounds are rejected only as a whole, by gates (`session/gates.rs`), which do not use
/// the times of variants. All samples stay in the run directory, and medians and detectors of
/// artefacts use all of those that count.
///
/// The estimator was chosen by simulation of 360 cases: 5 to 60 sessions of 1 to 20 rounds,
/// sessions that differ by 0 to 10 %, and undisturbed runs, a tenth of the runs slowed by 20 to
/// 100 %, a slow mode in a tenth, drift, bursts, and sessions of larger variance (`the_whole_sweep`
/// below). The table gives the least coverage of the 95 % interval in any case, and its width
/// relative to that of the plain mean over the undisturbed, the contaminated, the two-moded and the
/// bursty cases:
///
/// | rounds, then sessions | least coverage | clean | contaminated | two modes | bursts |
/// |---|---|---|---|---|---|
/// | mean, mean | 93.4 % | 1.00 | 1.00 | 1.00 | 1.00 |
/// | median, trimmed mean | 93.6 % | 1.11 | 0.68 | 0.67 | 0.88 |
/// | Hodges-Lehmann, trimmed mean | 93.4 % | 1.05 | 0.75 | 0.76 | 0.87 |
/// | **bisquare, trimmed mean** | 93.6 %, widened 93.9 % | 1.05 | 0.66 | 0.63 | 0.84 |
/// | medians' median, hierarchical bootstrap (percentile) | 90.7 % | 1.28 | 0.72 | 0.67 | 1.00 |
/// | Hodges-Lehmann, trimmed mean, the same bootstrap | 79.5 % | 0.97 | 0.86 | 0.87 | 0.86 |
/// | Hodges-Lehmann, trimmed mean, the same bootstrap, t | 86.0 % | 1.10 | 0.75 | 0.78 | 0.90 |
///
/// (2500 simulated experiments a case; for the bootstrap, 600 in 108 of the cases, 600 resamples
/// each.) The hierarchical bootstrap fails with few sessions: the variance of n sessions drawn with
/// replacement is too small by the factor 1 - 1/n, which no percentile corrects. Where it has its
/// nominal coverage, with medians, its intervals are a fifth wider.
#[derive(Clone, Debug, PartialEq)]
pub struct Sessions {
    /// Those of each session that has any.
    pub(super) log_ratios: Vec<Vec<f64>>,
    /// Degrees of freedom spent on the slope of a covariate.
    freedom_spent: f64,
    slowing: Slowing,
}

impl Sessions {
    /// The log-ratios of each session; sessions without any are left out.
    ///
    /// # Panics
    /// When a log-ratio is not finite: a time was not positive.
    pub fn new(log_ratios: Vec<Vec<f64>>) -> Sessions {
        let finite = log_ratios.iter().flatten().all(|value| value.is_finite());
        assert!(finite, "times are positive, hence the logarithms of their ratios finite");
        let log_ratios = log_ratios.into_iter().filter(|rounds| !rounds.is_empty()).collect();
        Sessions { log_ratios, freedom_spent: 0.0, slowing: Slowing::default() }
    }

    /// Pairs the runs of two variants, each the time of one (session, round), in any unit. Rounds in
    /// which only one of them ran do not count, but for its share of slow runs.
    ///
    /// # Panics
    /// When a time is not positive.
    pub fn of_runs(one: &Runs, other: &Runs) -> Sessions {
        Sessions::of_probed_runs(one, other, &Runs::new())
    }

    /// As [`Sessions::of_runs`], adjusted by `probes`: see [`Sessions::with_covariate`].
    ///
    /// # Panics
    /// When a time is not positive.
    pub fn of_probed_runs(one: &Runs, other: &Runs, probes: &Runs) -> Sessions {
        let both = [one, other];
        let slow = slow_runs(&both, &levels(&both));
        let (own, its) = (&slow[0], &slow[1]);
        let paired = |keep: &dyn Fn(&(u32, u32)) -> bool| {
            let mut sessions: BTreeMap<u32, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
            for (round, time) in one.iter().filter(|(round, _)| keep(round)) {
                if let Some(other_time) = other.get(round) {
                    let (ratios, before) = sessions.entry(round.0).or_default();
                    ratios.push((time / other_time).ln());
                    before.push(probes.get(round).copied().unwrap_or(0.0));
                }
            }
            let (ratios, before): (Vec<_>, Vec<_>) = sessions.into_values().unzip();
            Sessions::with_covariate(ratios, &before)
        };
        let fast = paired(&|round| !own.rounds.contains(round) && !its.rounds.contains(round));
        if fast.count() < 2 {
            return paired(&|_| true);
        }
        Sessions { slowing: own.beside(its), ..fast }
    }

    /// The log-ratios of each session, adjusted by a covariate. `probes` has the shape of
    /// `log_ratios` and holds, for each round, the log-ratio of the times that a fixed piece of
    /// work took just before the two runs. No variant influences the probe, so its mean is 0, and
    /// subtracting a multiple of it does not bias the ratio. The multiple is a shrunken slope
    /// (`stats/covariate.rs`), 0 where the probe explains nothing, and costs a degree of freedom.
    ///
    /// # Panics
    /// When a value is not finite or the shapes differ.
    pub fn with_covariate(log_ratios: Vec<Vec<f64>>, probes: &[Vec<f64>]) -> Sessions {
        let slope = covariate::slope(&log_ratios, probes);
        let adjusted = log_ratios.iter().zip(probes).map(|(rounds, probes)| {
            rounds.iter().zip(probes).map(|(value, probe)| value - slope * probe).collect()
        });
        let freedom_spent = if slope == 0.0 { 0.0 } else { 1.0 };
        Sessions { freedom_spent, ..Sessions::new(adjusted.collect()) }
    }

    /// The number of sessions.
    pub fn count(&self) -> usize {
        self.log_ratios.len()
    }

    /// The ratio of typical times, or of expected times where a slow mode is shown or would make the
    /// answer less sure; `None` with fewer than two sessions, which have no error estimate.
    pub fn estimate(&self) -> Option<Estimate> {
        Some(self.slowing.count(self.typical()?))
    }

    /// The ratio of expected times with every slow run so far, shown or not: to choose by, since a
    /// choice has to be made, and to drop by, since what is dropped runs no more.
    pub fn expected(&self) -> Option<Estimate> {
        Some(self.slowing.count_all(self.typical()?))
    }

    fn typical(&self) -> Option<Estimate> {
        let typical = trimmed(&bisquare::means(&self.log_ratios))?;
        Some(Estimate { freedom: (typical.freedom - self.freedom_spent).max(1.0), ..typical })
    }

    /// The ratio with its interval of confidence 1 - `alpha`. `None` with fewer than two sessions.
    pub fn ratio(&self, alpha: f64) -> Option<Ratio> {
        Some(self.estimate()?.ratio(alpha))
    }

    /// The effective standard deviation of a single session's log-ratio: the standard error of the
    /// estimate times the root of the number of sessions. Predictions use it. `None` with fewer
    /// than two sessions.
    pub fn session_deviation(&self) -> Option<f64> {
        Some(self.estimate()?.standard_error * (self.count() as f64).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Machine, NOISES, Noise};
    use super::super::{Interval, normal};
    use super::*;

    /// How often the 95 % interval contains the true ratio, and how often it excludes one that is
    /// 5 % off, in `trials` simulated experiments.
    fn coverage_and_power(
        trials: u32,
        (sessions, rounds): (usize, usize),
        machine: Machine,
    ) -> (f64, f64) {
        let mut rng = fastrand::Rng::with_seed(7);
        let (mut held, mut found) = (0, 0);
        for _ in 0..trials {
            let measured = Sessions::new(machine.measure(&mut rng, sessions, rounds, 0.0));
            let interval = measured.ratio(0.05).expect("sessions").interval;
            held += u32::from(interval.low <= 1.0 && 1.0 <= interval.high);
            found += u32::from(interval.low * 1.05 > 1.0);
        }
        (f64::from(held) / f64::from(trials), f64::from(found) / f64::from(trials))
    }

    #[test]
    fn coverage_is_nominal() {
        for noise in NOISES {
            for shape in [(5, 1), (8, 4), (20, 3)] {
                let machine = Machine { noise, run_sd: 0.05, session_sd: 0.03 };
                let (held, _) = coverage_and_power(400, shape, machine);
                assert!(held >= 0.92, "{noise:?} {shape:?}: {held}");
            }
        }
    }

    /// The figures of the documentation, in a minute or two:
    /// `cargo test --release -p haulage-lab the_whole_sweep -- --ignored --nocapture`
    #[test]
    #[ignore = "takes minutes"]
    fn the_whole_sweep() {
        let mut least: f64 = 1.0;
        for noise in NOISES {
            let (mut power, mut cases) = (0.0, 0.0);
            for sessions in [5, 8, 15, 30, 60] {
                for rounds in [1, 3, 8, 20] {
                    for session_sd in [0.0, 0.03, 0.1] {
                        let machine = Machine { noise, run_sd: 0.05, session_sd };
                        let (held, found) = coverage_and_power(2500, (sessions, rounds), machine);
                        assert!(held >= 0.93, "{machine:?} {sessions} x {rounds}: {held}");
                        least = least.min(held);
                        power += found;
                        cases += 1.0;
                    }
                }
            }
            println!("{noise:?}: least coverage so far {least:.3}, power {:.3}", power / cases);
        }
    }

    /// Coverage and mean width of the interval, without and with the covariate. The speed of the
    /// machine varies by 10 % with the autocorrelation `memory`. The probe follows it with an error
    /// of 3 %.
    fn with_and_without(
        (sessions, rounds): (usize, usize),
        memory: f64,
        follows: f64,
    ) -> [(f64, f64); 2] {
        let machine = Machine { noise: Noise::Contaminated, run_sd: 0.03, session_sd: 0.01 };
        let mut rng = fastrand::Rng::with_seed(19);
        let trials = 200;
        let mut sums = [(0.0, 0.0); 2];
        for _ in 0..trials {
            let mut runs = machine.measure(&mut rng, sessions, rounds, 0.0);
            let mut probes = runs.clone();
            let mut speed = normal(&mut rng);
            let mut next = |rng: &mut fastrand::Rng| {
                speed = memory * speed + (1.0 - memory * memory).sqrt() * normal(rng);
                (0.1 * follows * speed, 0.1 * speed + 0.03 * normal(rng))
            };
            for (run, probe) in runs.iter_mut().flatten().zip(probes.iter_mut().flatten()) {
                let ((one, probe_one), (other, probe_other)) = (next(&mut rng), next(&mut rng));
                *run += one - other;
                *probe = probe_one - probe_other;
            }
            let both = [Sessions::new(runs.clone()), Sessions::with_covariate(runs, &probes)];
            for (sum, sessions) in sums.iter_mut().zip(both) {
                let Interval { low, high } = sessions.ratio(0.05).expect("sessions").interval;
                sum.0 += f64::from(u8::from(low <= 1.0 && 1.0 <= high)) / f64::from(trials);
                sum.1 += (high / low).ln() / f64::from(trials);
            }
        }
        sums
    }

    #[test]
    fn a_covariate_narrows_the_interval_when_it_foretells_something() {
        for (shape, memory, follows, narrower) in [
            ((5, 6), 0.0, 0.0, 1.03),
            ((12, 6), 0.0, 0.3, 0.90),
            ((12, 6), 0.0, 1.0, 0.50),
            ((12, 6), 0.8, 1.0, 0.85),
            ((12, 1), 0.0, 1.0, 0.90),
            ((40, 2), 0.8, 0.0, 1.01),
        ] {
            let [without, with] = with_and_without(shape, memory, follows);
            assert!(with.0 >= 0.92, "{shape:?} {memory} {follows}: {with:?}");
            let ratio = with.1 / without.1;
            assert!(ratio <= narrower, "{shape:?} {memory} {follows}: {ratio}");
        }
    }

    #[test]
    fn runs_are_paired_by_session_and_round() {
        let one = Runs::from([((1, 1), 2.0), ((1, 2), 6.0), ((2, 1), 4.0), ((3, 1), 9.0)]);
        let other = Runs::from([((1, 1), 1.0), ((1, 2), 2.0), ((2, 1), 4.0), ((2, 2), 4.0)]);
        let paired = Sessions::of_runs(&one, &other);
        assert_eq!(paired.log_ratios, [vec![2.0_f64.ln(), 3.0_f64.ln()], vec![0.0]]);
    }

    #[test]
    fn one_session_shows_nothing() {
        let one = Sessions::new(vec![vec![0.1, 0.2, 0.1], vec![]]);
        assert_eq!((one.count(), one.ratio(0.05), one.estimate()), (1, None, None));
    }
}
