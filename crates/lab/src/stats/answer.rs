//! The answer of a comparison of two variants.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

use super::{Estimate, Sessions, holm};

/// The power at which [`Sessions::sessions_needed`] predicts: the chance that so many sessions suffice.
pub const POWER: f64 = 0.8;

/// Whether one variant is slower than the other by more than δ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The whole interval of the ratio lies below 1 / (1 + δ).
    Faster,
    /// The whole interval lies above 1 + δ.
    Slower,
    /// The whole interval lies between these two: the difference is too small to matter.
    Equivalent,
    /// None of these is shown. More sessions may show one.
    Unresolved,
}

impl Answer {
    /// The answer as one word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Answer::Faster => "faster",
            Answer::Slower => "slower",
            Answer::Equivalent => "equivalent",
            Answer::Unresolved => "unresolved",
        }
    }

    /// The answer that the interval of confidence 1 - `alpha` gives for a difference of `delta`, a
    /// share. Always [`Answer::Unresolved`] with fewer than two sessions.
    ///
    /// # Panics
    /// When `delta` is negative.
    pub fn of(sessions: &Sessions, delta: f64, alpha: f64) -> Answer {
        assert!(delta >= 0.0, "a difference of {delta} that matters is none");
        let Some(ratio) = sessions.ratio(alpha) else { return Answer::Unresolved };
        let (low, high) = (ratio.interval.low, ratio.interval.high);
        let (slower, faster) = (1.0 + delta, 1.0 / (1.0 + delta));
        if low > slower {
            Answer::Slower
        } else if high < faster {
            Answer::Faster
        } else if faster <= low && high <= slower {
            Answer::Equivalent
        } else {
            Answer::Unresolved
        }
    }
}

/// The tests of one comparison, before the correction for other comparisons.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tested {
    /// The ratio; `None` with too few sessions.
    estimate: Option<Estimate>,
    /// The two-sided p value of the hypothesis that the two differ by at most δ.
    differs: f64,
    /// The p value of the hypothesis that they differ by δ or more.
    same: f64,
}

impl Tested {
    /// The tests against δ of a comparison that has the share `level` of its level left: 1 for a
    /// single analysis, less for one that ended at one of several interim analyses.
    ///
    /// # Panics
    /// When `delta` is negative.
    pub fn new(estimate: Option<Estimate>, delta: f64, level: f64) -> Tested {
        assert!(delta >= 0.0, "a difference of {delta} that matters is none");
        let (slower, faster) = (1.0 + delta, 1.0 / (1.0 + delta));
        let p_at_most = |ratio| estimate.map_or(1.0, |it| it.p_at_most(ratio) / level);
        let p_at_least = |ratio| estimate.map_or(1.0, |it| it.p_at_least(ratio) / level);
        let two_sided = |p: f64| (2.0 * p).min(1.0);
        Tested {
            estimate,
            differs: two_sided(p_at_most(slower).min(p_at_least(faster))),
            same: two_sided(p_at_least(slower).max(p_at_most(faster))),
        }
    }
}

/// The answers to one question asked of many comparisons.
///
/// `alpha` bounds two chances for all of them together, both by Holm's correction: that any whose
/// variants differ by at most δ is reported as faster or slower, and that any whose variants differ
/// by δ or more is reported as equivalent (two one-sided tests: Schuirmann, Journal of
/// Pharmacokinetics and Biopharmaceutics 15, 1987). A single one gets the answer of its interval,
/// which tests equivalence at half the level.
pub fn decide(tested: &[Tested], alpha: f64) -> Vec<Answer> {
    let adjusted = |p: fn(&Tested) -> f64| holm(&tested.iter().map(p).collect::<Vec<_>>());
    let (differs, same) = (adjusted(|it| it.differs), adjusted(|it| it.same));
    tested
        .iter()
        .zip(differs.iter().zip(same))
        .map(|(it, (&differs, same))| match it.estimate {
            Some(estimate) if differs < alpha && estimate.log > 0.0 => Answer::Slower,
            Some(_) if differs < alpha => Answer::Faster,
            Some(_) if same <= alpha => Answer::Equivalent,
            _ => Answer::Unresolved,
        })
        .collect()
}

impl Sessions {
    /// How many sessions in all would resolve this at δ = `delta`, at the level `alpha` and with a
    /// power of 80 %, if the present estimate is the true ratio and the noise stays the same:
    /// ((z(1 − α/2) + z(0.8)) · deviation of a session / distance to the nearest end of ±δ)², and at
    /// least one more than there are. An estimate close to an end needs very many. `None` with
    /// fewer than two sessions, or exactly on an end, where no number suffices.
    pub fn sessions_needed(&self, delta: f64, alpha: f64) -> Option<u64> {
        let estimate = self.ratio(alpha)?.estimate.ln().abs();
        let distance = (estimate - delta.ln_1p()).abs();
        if distance == 0.0 {
            return None;
        }
        let normal = Normal::standard();
        let scores = normal.inverse_cdf(1.0 - alpha / 2.0) + normal.inverse_cdf(POWER);
        let needed = (scores * self.session_deviation()? / distance).powi(2).ceil();
        // A float beyond the range becomes the largest integer.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Some((needed as u64).max(self.count() as u64 + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::super::InterimAnalyses;
    use super::super::tests::{Machine, Noise};
    use super::*;

    /// The answers to one question asked of `cells`.
    fn family(cells: &[Sessions]) -> Vec<Answer> {
        let tested = cells.iter().map(|cell| Tested::new(cell.estimate(), 0.02, 1.0));
        decide(&tested.collect::<Vec<_>>(), 0.05)
    }

    /// Sessions of one round each around `middle`, some ± `half` apart.
    fn around(middle: f64, half: f64) -> Sessions {
        Sessions::new((0..7).map(|i| vec![middle + half * (f64::from(i) / 3.0 - 1.0)]).collect())
    }

    #[test]
    fn the_interval_decides() {
        for (middle, half, expected) in [
            (0.10, 0.01, Answer::Slower),
            (-0.10, 0.01, Answer::Faster),
            (0.0, 0.01, Answer::Equivalent),
            (0.03, 0.05, Answer::Unresolved),
            (0.0, 0.10, Answer::Unresolved),
        ] {
            let cell = around(middle, half);
            assert_eq!(Answer::of(&cell, 0.02, 0.05), expected, "{middle} ± {half}");
            assert_eq!(family(&[cell]), [expected], "{middle} ± {half}");
        }
        assert_eq!(Answer::of(&Sessions::new(vec![]), 0.02, 0.05), Answer::Unresolved);
        let none = Sessions::new(vec![vec![0.5]]);
        assert_eq!(family(&[none]), [Answer::Unresolved]);
        // All sessions are equal, so the interval is a point, which may be the limit itself.
        assert_eq!(Answer::of(&around(0.5, 0.0), 0.02, 0.05), Answer::Slower);
        assert_eq!(Answer::of(&around(0.0, 0.0), 0.0, 0.05), Answer::Equivalent);
    }

    #[test]
    fn a_family_asks_for_more() {
        for (cell, alone) in
            [(around(0.05, 0.045), Answer::Slower), (around(0.0, 0.025), Answer::Equivalent)]
        {
            assert_eq!(family(std::slice::from_ref(&cell)), [alone]);
            let mut many = vec![cell; 20];
            assert!(family(&many).iter().all(|&answer| answer == Answer::Unresolved));
            many[3] = around(0.5, 0.01);
            assert_eq!(family(&many)[3], Answer::Slower);
        }
    }

    /// In how many of `trials` families of identical variants any comparison is reported as
    /// different if each is analysed at every interim analysis until it is answered or has 40
    /// sessions, as in an experiment.
    fn families_with_interim_analyses(trials: u32, cells: usize, noise: Noise) -> f64 {
        let error = 0.05 / cells as f64;
        let analyses = InterimAnalyses::new(40, 5, error);
        let machine = Machine { noise, run_sd: 0.03, session_sd: 0.02 };
        let mut rng = fastrand::Rng::with_seed(31);
        let mut any = 0;
        for _ in 0..trials {
            let tested = (0..cells).map(|_| {
                let measured = machine.measure(&mut rng, 40, 2, 0.0);
                let at = |count: u32| Sessions::new(measured[..count as usize].to_vec());
                let answered = |&count: &u32| {
                    let alpha = analyses.alpha_at(count).expect("a look");
                    Answer::of(&at(count), 0.0, alpha) != Answer::Unresolved
                };
                let stop = analyses.sessions().find(answered).unwrap_or(40);
                let alpha = analyses.alpha_at(stop).expect("a look");
                Tested::new(at(stop).estimate(), 0.0, alpha / error)
            });
            let answers = decide(&tested.collect::<Vec<_>>(), 0.05);
            any += u32::from(answers.iter().any(|it| *it != Answer::Unresolved));
        }
        f64::from(any) / f64::from(trials)
    }

    #[test]
    fn families_seldom_err_however_often_they_are_looked_at() {
        for noise in [Noise::Clean, Noise::Contaminated] {
            // 5 %, and more than two deviations of 1.7 %.
            let share = families_with_interim_analyses(160, 12, noise);
            assert!(share <= 0.09, "{noise:?}: {share}");
        }
    }

    /// The figures of METHODOLOGY.md:
    /// `cargo test --release -p haulage-lab the_error_of_a_family -- --ignored --nocapture`
    #[test]
    #[ignore = "takes minutes"]
    fn the_error_of_a_family() {
        for noise in [Noise::Clean, Noise::Contaminated, Noise::TwoModes] {
            for cells in [1, 12, 180] {
                let trials = if cells == 180 { 1000 } else { 6000 };
                let share = families_with_interim_analyses(trials, cells, noise);
                println!("{noise:?}, {cells} comparisons: {share:.4}");
                assert!(share <= 0.062, "{share}");
            }
        }
    }

    #[test]
    fn the_sessions_needed_follow_from_the_deviation() {
        let open = around(0.03, 0.05);
        let needed = open.sessions_needed(0.02, 0.05).expect("a number");
        let deviation = open.session_deviation().expect("sessions");
        let expected = (2.8016 * deviation / (0.03 - 0.02_f64.ln_1p())).powi(2).ceil();
        assert!((needed as f64 - expected).abs() <= 1.0, "{needed} for {expected}");
        assert_eq!(around(0.5, 0.01).sessions_needed(0.02, 0.05), Some(8));
        assert_eq!(Sessions::new(vec![vec![0.1]]).sessions_needed(0.02, 0.05), None);
    }
}
