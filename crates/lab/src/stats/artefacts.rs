//! Artefacts: evidence that the values of a cell violate the assumptions of a comparison.
//!
//! Each detector takes the times of one variant's runs in one cell, in run order and in any unit,
//! and uses their logarithms.

use statrs::distribution::{Binomial, DiscreteCDF};

use super::bisquare::MEDIAN_DEVIATION_OF_NORMAL;
use super::rank_sum::ranks;
use super::theil_sen::theil_sen;
use super::{dip, median, quantile};

/// The level at which a finding is beyond noise. An experiment has many cells, and false warnings
/// in one of twenty would make readers ignore warnings.
const LEVEL: f64 = 0.01;

/// The seed of simulations, so that the same runs have the same findings.
const SEED: u64 = 1;

/// Simulated samples or orders; the smallest possible p value is then 0.001.
const DRAWS: u32 = 999;

/// The simulation ends after this many draws as large as the sample. Of at most [`DRAWS`] draws
/// they are a larger share than the level.
const ENOUGH: u32 = 20;

/// Fewer runs do not show a distribution or a trend.
const RUNS_MIN: usize = 8;

/// An outlier lies farther than this from the median, in standard deviations estimated from the
/// median absolute deviation.
const OUTLIER_SDS: f64 = 5.0;

/// Undisturbed samples have a smaller share of such outliers: 0.7 % in normal samples of 8, and a
/// tenth of that in samples of 20.
const OUTLIER_SHARE: f64 = 0.01;

/// The result of a detector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    /// The size of the effect, in the measure that the detector documents.
    pub value: f64,
    /// The p value: the chance of an effect as large or larger from noise alone.
    pub p: f64,
}

impl Finding {
    /// Whether noise alone causes an effect as large in less than one sample of a hundred.
    pub fn is_beyond_noise(&self) -> bool {
        self.p <= LEVEL
    }
}

/// More than one mode: the value is Hartigan's dip. The p value is that of uniform samples, which
/// of all samples with one mode are the hardest to distinguish from two (Hartigan and Hartigan,
/// Annals of Statistics 13, 1985), by simulation. The dip, unlike a count of the peaks of a
/// density, needs no bandwidth and does not count a few slow runs as a mode. It needs many runs to
/// detect a small mode; [`outliers`] detects those. `None` with fewer than 8 runs.
pub fn modes(times: &[f64]) -> Option<Finding> {
    let logs = logs_of_enough(times)?;
    let value = dip::dip(&logs);
    let mut rng = fastrand::Rng::with_seed(SEED);
    let p = share_of_draws(value, || dip::of_sorted(&sorted_uniforms(&mut rng, logs.len())));
    Some(Finding { value, p })
}

/// Drift: the value is the time at the end over the time at the start, on the Theil-Sen line. The p
/// value is that of Spearman's rank correlation with the run order, in either direction, under
/// permutations of blocks of n^⅓ runs. Blocks keep most of the autocorrelation of neighbouring
/// runs. `None` with fewer than 8 runs.
pub fn drift(times: &[f64]) -> Option<Finding> {
    let logs = logs_of_enough(times)?;
    let ranks = ranks(&logs);
    let mut rng = fastrand::Rng::with_seed(SEED);
    let block = (logs.len() as f64).cbrt().round();
    // At least 2 and at most the number of runs.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let mut blocks: Vec<&[f64]> = ranks.chunks(block as usize).collect();
    let seen = order_score(ranks.iter()).abs();
    let p = share_of_draws(seen, || {
        rng.shuffle(&mut blocks);
        order_score(blocks.iter().copied().flatten()).abs()
    });
    let places: Vec<f64> = (0..logs.len()).map(|place| place as f64).collect();
    let slope = theil_sen(&places, &logs)?.value;
    Some(Finding { value: (slope * (logs.len() - 1) as f64).exp(), p })
}

/// Outliers: the value is the share of runs that lie more than 5 standard deviations from the
/// median, estimated from the median absolute deviation. The p value is binomial, with one outlier
/// in a hundred runs expected. No outlier is removed: many outliers are a mode or a disturbance,
/// which has to be reported. `None` with fewer than 8 runs.
pub fn outliers(times: &[f64]) -> Option<Finding> {
    let logs = logs_of_enough(times)?;
    let middle = median(&logs)?;
    let distances: Vec<f64> = logs.iter().map(|log| (log - middle).abs()).collect();
    let limit = OUTLIER_SDS * median(&distances)? / MEDIAN_DEVIATION_OF_NORMAL;
    let outside = distances.iter().filter(|&&distance| distance > limit).count() as u64;
    let chance = Binomial::new(OUTLIER_SHARE, logs.len() as u64).expect("a share");
    let p = outside.checked_sub(1).map_or(1.0, |fewer| chance.sf(fewer));
    Some(Finding { value: outside as f64 / logs.len() as f64, p })
}

/// A slow mode that one of two variants has and the other does not: the value is the share of its
/// runs beyond the 95th percentile of all runs of both. The p value is binomial: if neither variant
/// has the mode, the runs beyond that percentile belong to the two in proportion to their numbers
/// of runs. This detects modes that lie too close to the other runs to be [`outliers`]. `None` when
/// either variant has fewer than 8 runs.
pub fn slow_mode_beside(times: &[f64], other: &[f64]) -> Option<Finding> {
    if times.len().min(other.len()) < RUNS_MIN {
        return None;
    }
    let limit = quantile(times.iter().chain(other), 0.95)?;
    let beyond = |of: &[f64]| of.iter().filter(|&&time| time > limit).count() as u64;
    let (own, others) = (beyond(times), beyond(other));
    let p = chance_of_as_many((own, times.len()), (others, other.len()));
    Some(Finding { value: own as f64 / times.len() as f64, p })
}

/// The chance of as many slow runs, or more, among `own` runs if `others` have the same share of
/// them; both are (slow runs, all runs). Given their sum, the slow runs belong to the two in
/// proportion to their numbers of runs.
pub(super) fn chance_of_as_many(own: (u64, usize), others: (u64, usize)) -> f64 {
    let of_all = own.1 as f64 / (own.1 + others.1) as f64;
    let chance = Binomial::new(of_all, own.0 + others.0).expect("a share");
    own.0.checked_sub(1).map_or(1.0, |fewer| chance.sf(fewer))
}

fn logs_of_enough(times: &[f64]) -> Option<Vec<f64>> {
    (times.len() >= RUNS_MIN).then(|| times.iter().map(|time| time.ln()).collect())
}

/// The share of draws that are at least `seen`.
fn share_of_draws(seen: f64, mut draw: impl FnMut() -> f64) -> f64 {
    // Floating-point sums in another order differ in their last digits.
    p_of_draws(DRAWS, ENOUGH, || draw() >= seen - 1e-12 * seen.abs())
}

/// The share of `draws`, the sample itself included, that are as large as the sample. Drawing ends
/// once `enough` of them are, since noise then explains the sample; the share so far is a valid p
/// value (Besag and Clifford, Biometrika 78, 1991). This saves time, because most samples have no
/// artefact.
pub(super) fn p_of_draws(draws: u32, enough: u32, mut is_as_large: impl FnMut() -> bool) -> f64 {
    let mut as_large = 0;
    for drawn in 1..=draws {
        as_large += u32::from(is_as_large());
        if as_large == enough {
            return f64::from(as_large) / f64::from(drawn);
        }
    }
    (f64::from(as_large) + 1.0) / (f64::from(draws) + 1.0)
}

/// Uniform values in ascending order, up to a factor: sums of exponential spacings, which need no
/// sorting.
fn sorted_uniforms(rng: &mut fastrand::Rng, count: usize) -> Vec<f64> {
    let mut sum = 0.0;
    (0..count)
        .map(|_| {
            sum -= (1.0 - rng.f64()).ln();
            sum
        })
        .collect()
}

/// Spearman's correlation with the run order, up to a factor that all permutations share.
fn order_score<'a>(ranks: impl Iterator<Item = &'a f64>) -> f64 {
    ranks.enumerate().map(|(place, rank)| place as f64 * rank).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::normal;

    /// Times whose logarithms vary by 3 % and are autocorrelated from run to run.
    fn noise(rng: &mut fastrand::Rng, count: usize, memory: f64) -> Vec<f64> {
        let mut state = normal(rng);
        (0..count)
            .map(|_| {
                state = memory * state + (1.0 - memory * memory).sqrt() * normal(rng);
                (0.03 * state).exp()
            })
            .collect()
    }

    /// The share of samples from `sample` in which `detector` has a finding.
    fn found(
        samples: u32,
        mut sample: impl FnMut(&mut fastrand::Rng) -> Vec<f64>,
        detector: impl Fn(&[f64]) -> Option<Finding>,
    ) -> f64 {
        let mut rng = fastrand::Rng::with_seed(41);
        let hits = (0..samples)
            .filter(|_| detector(&sample(&mut rng)).expect("runs").is_beyond_noise())
            .count();
        hits as f64 / f64::from(samples)
    }

    fn slow_mode(rng: &mut fastrand::Rng, count: usize, share: f64) -> Vec<f64> {
        let mut times = noise(rng, count, 0.0);
        times.iter_mut().filter(|_| rng.f64() < share).for_each(|time| *time *= 1.3);
        times
    }

    fn drifting(rng: &mut fastrand::Rng, count: usize, by: f64) -> Vec<f64> {
        let times = noise(rng, count, 0.0).into_iter().enumerate();
        times.map(|(place, time)| time * (1.0 + by * place as f64 / count as f64)).collect()
    }

    #[test]
    fn noise_is_seldom_found() {
        let seldom = |name: &str, share: f64| assert!(share <= 0.04, "{name}: {share}");
        for count in [8, 40] {
            seldom("modes", found(60, |rng| noise(rng, count, 0.5), modes));
            seldom("drift", found(150, |rng| noise(rng, count, 0.0), drift));
            seldom("outliers", found(1000, |rng| noise(rng, count, 0.0), outliers));
        }
        // Autocorrelated runs are no drift.
        let taken = found(150, |rng| noise(rng, 40, 0.5), drift);
        assert!(taken <= 0.08, "{taken}");
    }

    #[test]
    fn what_is_there_is_found() {
        let often = |name: &str, share: f64| assert!(share >= 0.8, "{name}: {share}");
        often("modes", found(40, |rng| slow_mode(rng, 40, 0.5), modes));
        often("drift", found(60, |rng| drifting(rng, 40, 0.1), drift));
        often("outliers", found(200, |rng| slow_mode(rng, 80, 0.1), outliers));
    }

    #[test]
    fn a_slow_mode_shows_beside_an_arm_without_one() {
        let found = |share: f64| {
            let mut rng = fastrand::Rng::with_seed(53);
            let seen = (0..200).filter(|_| {
                let (slow, plain) = (slow_mode(&mut rng, 200, share), noise(&mut rng, 200, 0.0));
                slow_mode_beside(&slow, &plain).expect("runs").is_beyond_noise()
            });
            seen.count() as f64 / 200.0
        };
        assert!(found(0.1) >= 0.95 && found(0.0) <= 0.03);
        assert_eq!(slow_mode_beside(&[1.0; 7], &[1.0; 20]), None);
        let equal = slow_mode_beside(&[7.0; 20], &[7.0; 20]).expect("runs");
        assert_eq!(equal, Finding { value: 0.0, p: 1.0 });
    }

    #[test]
    fn values_say_how_much() {
        let mut rng = fastrand::Rng::with_seed(43);
        let drifted = drift(&drifting(&mut rng, 200, 0.1)).expect("runs").value;
        assert!((1.08..1.12).contains(&drifted), "{drifted}");
        let slow = outliers(&slow_mode(&mut rng, 1000, 0.1)).expect("runs").value;
        assert!((0.08..0.12).contains(&slow), "{slow}");
    }

    #[test]
    fn equal_or_few_runs_show_nothing() {
        let equal = [7.0; 20];
        for finding in [modes(&equal), drift(&equal)] {
            assert!(!finding.expect("enough runs").is_beyond_noise(), "{finding:?}");
        }
        assert_eq!(outliers(&equal), Some(Finding { value: 0.0, p: 1.0 }));
        let few = [7.0, 8.0, 9.0];
        assert_eq!((modes(&few), drift(&few)), (None, None));
        assert_eq!(outliers(&few), None);
    }
}
