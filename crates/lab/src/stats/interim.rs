//! When the samples of a comparison are analysed, and at what level.

use statrs::distribution::{Continuous, ContinuousCDF, Normal};

/// The share of the error that is spent. Student's intervals at levels computed for normal
/// estimates take the rest, as 600,000 simulated comparisons showed.
const SPENT_SHARE: f64 = 0.97;

/// Points of the integral between two boundaries. 200 give the levels to five digits.
const POINTS: usize = 240;

/// The interim analyses of a comparison, fixed before it starts.
///
/// Stopping at the first of several uncorrected analyses that shows a difference errs far more
/// often than a single analysis: with five analyses, in one of six comparisons rather than one of
/// twenty. Each interim analysis therefore has a stricter level of its own, such that all of them
/// together err in 5 %.
///
/// With at most 80 sessions and the first interim analysis after 5, a difference of 2.4 deviations
/// of a session takes 8 sessions on average, one of 1.2 takes 16, one of 0.65 takes 34, and all of
/// these are found. Of differences of 0.41, which 80 sessions without interim analyses find in
/// 95 %, 91 % are found, in 56 sessions. (Spending by the root of the sessions takes 6, 13, 32 and
/// finds 88 %; by their square 11, 20, 39, and 93 %.) Identical variants were found to differ in
/// 5.0 % of 100,000 simulated comparisons without disturbances, in 4.1 % with a tenth of the runs slowed, in 4.7 % with
/// two modes, and in 4.0 to 4.8 % when the time ended the comparison after 33 or 7 sessions.
///
/// The error is spent in proportion to the sessions measured (Lan and DeMets, Biometrika 70, 1983).
/// The levels follow by integration over the sums that earlier interim analyses left undecided
/// (Armitage, McPherson and Rowe, Journal of the Royal Statistical Society A 132, 1969). They are
/// computed for normal estimates and used for Student's intervals, which is the significance level
/// approach of Jennison and Turnbull (Group Sequential Methods, 2000).
#[derive(Clone, Debug, PartialEq)]
pub struct InterimAnalyses {
    analyses: Vec<InterimAnalysis>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct InterimAnalysis {
    sessions: u32,
    /// The two-sided level at this interim analysis.
    alpha: f64,
    /// The level here if this is the last analysis, which spends all of the error that is left.
    alpha_last: f64,
}

impl InterimAnalyses {
    /// Interim analyses after `first` sessions, after about twice as many each time, and after
    /// `max_sessions`, which together err in the share `error` of comparisons. Comparisons of one
    /// family share the error before it is spent.
    ///
    /// # Panics
    /// When `first` is less than 2, since one session has no error estimate, or `error` not between
    /// 0 and 1.
    pub fn new(max_sessions: u32, first: u32, error: f64) -> InterimAnalyses {
        assert!(first >= 2, "{first} sessions show nothing");
        assert!(error > 0.0 && error < 1.0, "an error of {error} is none");
        InterimAnalyses { analyses: levels(&counts(max_sessions, first), error * SPENT_SHARE) }
    }

    /// The session counts after which there is an interim analysis, ascending.
    pub fn sessions(&self) -> impl Iterator<Item = u32> {
        self.analyses.iter().map(|analysis| analysis.sessions)
    }

    /// The level of the interim analysis after `sessions` sessions; `None` when there is none then.
    /// The intervals of all interim analyses, each at its level, jointly contain the true ratio in
    /// 95 % of experiments, so that any rule may decide when to stop.
    pub fn alpha_at(&self, sessions: u32) -> Option<f64> {
        let then = self.analyses.iter().find(|analysis| analysis.sessions == sessions);
        then.map(|analysis| analysis.alpha)
    }

    /// The level of a last analysis before the next regular one, after `analyses_done` of them,
    /// because the time is over. It spends all of the error that is left. The level holds for any
    /// number of sessions up to that of the next interim analysis, provided that the results of the
    /// sessions are not the reason to end. After all interim analyses, the level of the last one.
    pub fn alpha_last(&self, analyses_done: usize) -> f64 {
        let last = self.analyses.len() - 1;
        self.analyses[analyses_done.min(last)].alpha_last
    }
}

/// The session counts of the interim analyses. The last interim analysis replaces one that would
/// come shortly before it.
fn counts(max_sessions: u32, first: u32) -> Vec<u32> {
    let doubling = std::iter::successors(Some(first), |count| count.checked_mul(2));
    let early = doubling.take_while(|&count| u64::from(count) * 3 <= u64::from(max_sessions) * 2);
    early.chain([max_sessions.max(2)]).collect()
}

fn levels(counts: &[u32], error: f64) -> Vec<InterimAnalysis> {
    let max = f64::from(counts[counts.len() - 1]);
    let mut undecided = Undecided::at_start();
    let mut spent = 0.0;
    let mut analyses = Vec::with_capacity(counts.len());
    for &sessions in counts {
        let by_now = error * f64::from(sessions) / max;
        let boundary = undecided.boundary(f64::from(sessions), by_now - spent);
        let last_boundary = undecided.boundary(f64::from(sessions), error - spent);
        let (alpha, alpha_last) = (two_sided_level(boundary), two_sided_level(last_boundary));
        analyses.push(InterimAnalysis { sessions, alpha, alpha_last });
        undecided = undecided.after(f64::from(sessions), boundary);
        spent = by_now;
    }
    analyses
}

/// The density of the sum of all sessions if no interim analysis has decided yet, on points, in
/// standard deviations of one session. It carries the dependence between the interim analyses of
/// one comparison, which share their sessions.
struct Undecided {
    sessions: f64,
    /// Sums and their probabilities.
    points: Vec<(f64, f64)>,
}

impl Undecided {
    /// Before the first interim analysis the sum is 0.
    fn at_start() -> Undecided {
        Undecided { sessions: 0.0, points: vec![(0.0, 1.0)] }
    }

    /// The standard score at which an interim analysis after `sessions` decides with probability
    /// `spend`.
    fn boundary(&self, sessions: f64, spend: f64) -> f64 {
        bisected((0.0, 40.0), 80, |boundary| self.decides(sessions, boundary) > spend)
    }

    fn decides(&self, sessions: f64, boundary: f64) -> f64 {
        let edge = boundary * sessions.sqrt();
        let step = Normal::new(0.0, (sessions - self.sessions).sqrt()).expect("more sessions");
        let decides = |(sum, p): &(f64, f64)| p * (step.sf(edge - sum) + step.cdf(-edge - sum));
        self.points.iter().map(decides).sum()
    }

    fn after(&self, sessions: f64, boundary: f64) -> Undecided {
        let edge = boundary * sessions.sqrt();
        let step = Normal::new(0.0, (sessions - self.sessions).sqrt()).expect("more sessions");
        let width = 2.0 * edge / POINTS as f64;
        let point = |index: usize| {
            let sum = width * index as f64 - edge;
            let density: f64 = self.points.iter().map(|(at, p)| p * step.pdf(sum - at)).sum();
            (sum, density * width * simpson(index))
        };
        Undecided { sessions, points: (0..=POINTS).map(point).collect() }
    }
}

/// Where `is_below` changes from true to false between two ends, by so many halvings.
pub(super) fn bisected(
    (mut low, mut high): (f64, f64),
    halvings: u32,
    is_below: impl Fn(f64) -> bool,
) -> f64 {
    for _ in 0..halvings {
        let middle = (low + high) / 2.0;
        if is_below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// The weight of a point in Simpson's rule.
fn simpson(index: usize) -> f64 {
    match index {
        0 | POINTS => 1.0 / 3.0,
        _ if index % 2 == 1 => 4.0 / 3.0,
        _ => 2.0 / 3.0,
    }
}

fn two_sided_level(boundary: f64) -> f64 {
    2.0 * Normal::standard().sf(boundary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Sessions;
    use crate::stats::tests::{Machine, Noise};

    /// Known answers, computed by `known_answers.py` beside this file with scipy's integral over
    /// the multivariate normal density.
    #[test]
    fn levels_agree_with_scipy() {
        let analyses = InterimAnalyses { analyses: levels(&counts(20, 5), 0.05) };
        for (sessions, expected) in
            [(5, 0.012_500_000_0), (10, 0.016_076_972_7), (20, 0.032_197_619_9)]
        {
            let got = analyses.alpha_at(sessions).expect("a look");
            assert!((got - expected).abs() < 2e-6, "{sessions}: {got} for {expected}");
        }
        let boundary = Normal::standard().inverse_cdf(0.975);
        let mut undecided = Undecided::at_start();
        let mut decided = 0.0;
        for sessions in [5.0, 10.0, 20.0, 40.0, 80.0] {
            decided += undecided.decides(sessions, boundary);
            undecided = undecided.after(sessions, boundary);
        }
        assert!((decided - 0.170_228_255_1).abs() < 1e-5, "{decided}");
    }

    #[test]
    fn looks_double_and_end_with_the_last() {
        let check = |max, first, expected: &[u32]| {
            let analyses = InterimAnalyses::new(max, first, 0.05);
            assert_eq!(analyses.sessions().collect::<Vec<_>>(), expected);
            let spent: Vec<f64> =
                expected.iter().map(|&n| analyses.alpha_at(n).expect("a look")).collect();
            let error = 0.05 * SPENT_SHARE;
            assert!(spent.iter().all(|&alpha| alpha > 0.0 && alpha <= error + 1e-9), "{spent:?}");
            assert!((analyses.alpha_last(0) - error).abs() < 1e-9);
            assert_eq!(
                analyses.alpha_last(expected.len()),
                analyses.alpha_last(expected.len() - 1)
            );
        };
        check(80, 5, &[5, 10, 20, 40, 80]);
        check(45, 5, &[5, 10, 20, 45]);
        check(65, 5, &[5, 10, 20, 40, 65]);
        check(5, 5, &[5]);
        check(3, 5, &[3]);
        assert_eq!(InterimAnalyses::new(80, 5, 0.05).alpha_at(6), None);
    }

    /// The share of simulated experiments that find a difference, at the first interim analysis
    /// that shows it and after `end` sessions at the latest, and the mean number of their sessions.
    fn found(trials: u32, noise: Noise, effect: f64, end: u32) -> (f64, f64) {
        let analyses = InterimAnalyses::new(80, 5, 0.05);
        let machine = Machine { noise, run_sd: 0.05, session_sd: 0.08 };
        let mut rng = fastrand::Rng::with_seed(3);
        let (mut found, mut total) = (0, 0);
        for _ in 0..trials {
            let measured = machine.measure(&mut rng, end as usize, 2, effect);
            let shows = |sessions: u32, alpha| {
                let so_far = Sessions::new(measured[..sessions as usize].to_vec());
                let interval = so_far.ratio(alpha).expect("sessions").interval;
                interval.low > 1.0 || interval.high < 1.0
            };
            let regular: Vec<u32> = analyses.sessions().filter(|&count| count <= end).collect();
            let mut all: Vec<_> =
                regular.iter().map(|&n| (n, analyses.alpha_at(n).expect("a look"))).collect();
            if !regular.contains(&end) {
                all.push((end, analyses.alpha_last(regular.len())));
            }
            let first = all.iter().find(|&&(sessions, alpha)| shows(sessions, alpha));
            found += u32::from(first.is_some());
            total += first.map_or(end, |&(sessions, _)| sessions);
        }
        (f64::from(found) / f64::from(trials), f64::from(total) / f64::from(trials))
    }

    #[test]
    fn equal_arms_differ_seldom_whenever_it_ends() {
        for (noise, end) in [(Noise::Contaminated, 80), (Noise::Clean, 33), (Noise::Clean, 7)] {
            let (share, _) = found(400, noise, 0.0, end);
            assert!(share <= 0.07, "{noise:?} {end}: {share}");
        }
        let (share, sessions) = found(200, Noise::Clean, 0.15, 80);
        assert!(share >= 0.99 && sessions < 20.0, "{share} {sessions}");
    }

    /// The figures of the documentation:
    /// `cargo test --release -p haulage-lab the_power_curve -- --ignored --nocapture`
    #[test]
    #[ignore = "takes minutes"]
    fn the_power_curve() {
        for noise in [Noise::Clean, Noise::Contaminated, Noise::TwoModes] {
            for end in [80, 33, 7] {
                let (none, _) = found(100_000, noise, 0.0, end);
                println!("{noise:?}, at most {end} sessions: A/A {none:.4}");
                assert!(none <= 0.052, "{none}");
                for effect in [0.02, 0.05, 0.1, 0.3] {
                    let (share, sessions) = found(2000, noise, effect, end);
                    println!("  {effect}: {share:.3} after {sessions:.1}");
                }
            }
        }
    }
}
