//! Predicts how many sessions an effect needs.
//!
//! A session of R rounds has a log-ratio whose variance is between² + within² / R, and finding an
//! effect takes about (2.8 · deviation / effect)² sessions. To show that it exceeds δ, only the
//! part beyond δ counts as effect. For a true ratio of 1.05, at the 5 % level with a power of 80 %,
//! by the formula of [`smallest_effect`]:
//!
//! | deviation of a session | sessions to show a difference | to show more than 2 % |
//! |---|---|---|
//! | 1 % | 3 | 4 |
//! | 2 % | 4 | 6 |
//! | 5 % | 11 | 26 |
//! | 10 % | 35 | 96 |
//! | 18 % | 109 | 305 |
//!
//! Half the noise needs a quarter of the time. More rounds do not always reduce it in proportion.
//! Where the deviation of pairs comes from a tenth of the runs that were disturbed (20 to 100 %
//! slower), the estimator gives these little weight once a session has enough rounds to recognise
//! them. The table gives simulated numbers of sessions that show a ratio of 1.05 to differ from 1,
//! and to exceed 1.02:
//!
//! | runs vary by, and | deviation of pairs | 1 round | 4 rounds | 10 rounds |
//! |---|---|---|---|---|
//! | 5 %, nothing else | 7 % | 22, 59 | 7, 18 | 5, 9 |
//! | 12 %, nothing else | 17 % | 112, 281 | 36, 98 | 14, 36 |
//! | 2 %, a tenth disturbed | 21 % | 32, 67 | 8, 8 | 3, 4 |
//! | 5 %, a tenth disturbed | 22 % | 59, 128 | 11, 28 | 6, 11 |
//! | 5 %, a tenth disturbed, sessions by 2 % | 22 % | 59, 128 | 13, 32 | 7, 18 |
//! | 5 %, a tenth disturbed, sessions by 10 % | 24 % | 112, 321 | 59, 146 | 46, 128 |
//!
//! The plain mean would need (22 / 7)² = 10 times as many sessions in the fourth line as in the
//! first; this estimator needs 1.2 to 1.6 times as many from four rounds on. So a session has at
//! least four rounds, and more if sessions differ little ([`rounds_per_session`]). Where sessions
//! differ by 10 %, only more sessions help.

use super::{POWER, Sessions, estimate::t_quantile, median};

/// The median distance between two normal values, in standard deviations: √2 · 0.6745.
const MEDIAN_DISTANCE_OF_NORMALS: f64 = 0.953_87;

/// The fewest rounds of a session in which a disturbed one can be recognised.
const ROUNDS_MIN: u32 = 4;

/// The smallest effect, as a share, that `sessions` sessions find with a power of 80 % at the
/// two-sided level `alpha`, where the log-ratio of a session has the standard deviation
/// `session_sd` ([`Sessions::session_deviation`]):
/// exp((t(1 - α/2) + t(0.8)) · sd / √n) - 1 with n - 1 degrees of freedom, which is within one
/// session of the exact answer by the noncentral t. To show that an effect exceeds δ takes as many
/// sessions as an effect of (1 + effect) / (1 + δ) - 1.
///
/// # Panics
/// When there are fewer than two sessions, or `alpha` is not between 0 and 1.
pub fn smallest_effect(session_sd: f64, sessions: usize, alpha: f64) -> f64 {
    assert!(sessions >= 2, "{sessions} sessions find nothing");
    assert!(alpha > 0.0 && alpha < 1.0, "a level of {alpha} is none");
    let quantile = |p| t_quantile(p, (sessions - 1) as f64);
    let scores = quantile(1.0 - alpha / 2.0) + quantile(POWER);
    (scores * session_sd / (sessions as f64).sqrt()).exp_m1()
}

/// The number of rounds a session that minimises the error for a given time (Cochran, Sampling
/// Techniques, 1977): the root of (cost of a session without its rounds / cost of a round) ·
/// (variance of rounds within sessions / variance between sessions). It is at least 4, since fewer
/// rounds do not show which one was disturbed, and `rounds_max` if sessions differ no more than
/// their rounds explain.
pub fn rounds_per_session(
    session_overhead_ns: f64,
    round_ns: f64,
    deviations: Deviations,
    rounds_max: u32,
) -> u32 {
    let Deviations { within, between } = deviations;
    let rounds = (session_overhead_ns / round_ns).sqrt() * within / between;
    // The cast saturates at the range of the integer and makes 0 of NaN (0 / 0).
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let rounds = rounds.round() as u32;
    rounds.clamp(ROUNDS_MIN.min(rounds_max), rounds_max)
}

/// The two components of the noise, as standard deviations of log-ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Deviations {
    /// From round to round of a session.
    pub within: f64,
    /// From session to session, beyond what their rounds explain.
    pub between: f64,
}

impl Sessions {
    /// The two components of the noise so far. The one within sessions is the median distance
    /// between rounds of one session, scaled as for normal values, which a few disturbed rounds do
    /// not affect. The one between sessions is the remainder of the deviation of sessions. `None`
    /// with fewer than two sessions, or when no session has two rounds.
    pub fn deviations(&self) -> Option<Deviations> {
        let distances = self.log_ratios.iter().flat_map(|it| distances(it));
        let within = median(distances)? / MEDIAN_DISTANCE_OF_NORMALS;
        let shares = self.log_ratios.iter().map(|rounds| 1.0 / rounds.len() as f64);
        let explained = within * within * shares.sum::<f64>() / self.count() as f64;
        let between = (self.session_deviation()?.powi(2) - explained).max(0.0).sqrt();
        Some(Deviations { within, between })
    }
}

fn distances(values: &[f64]) -> impl Iterator<Item = f64> {
    values.iter().enumerate().flat_map(|(i, a)| values[..i].iter().map(move |b| (a - b).abs()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Machine, Noise};
    use super::*;

    /// The fewest sessions that find `effect`.
    fn sessions_for(session_sd: f64, effect: f64, alpha: f64) -> usize {
        let finds = |&sessions: &usize| smallest_effect(session_sd, sessions, alpha) <= effect;
        (2..).find(finds).expect("enough of them do")
    }

    /// Known answers, computed by `known_answers.py` beside this file with scipy's noncentral t.
    #[test]
    fn counts_agree_with_scipy() {
        for (session_sd, effect, alpha, expected) in
            [(0.1, 0.02, 0.05, 203), (0.05, 0.05, 0.01, 16), (0.01, 0.10, 0.05, 3)]
        {
            let found = sessions_for(session_sd, effect, alpha);
            assert!(found.abs_diff(expected) <= 1, "{found} for {expected}");
        }
        assert_eq!(sessions_for(0.0, 0.01, 0.05), 2);
    }

    #[test]
    fn the_parts_of_the_noise_are_told_apart() {
        let mut rng = fastrand::Rng::with_seed(37);
        for (session_sd, rounds) in [(0.0, 3), (0.1, 3), (0.1, 10)] {
            let machine = Machine { noise: Noise::Clean, run_sd: 0.1, session_sd };
            let measured = Sessions::new(machine.measure(&mut rng, 300, rounds, 0.0));
            let Deviations { within, between } = measured.deviations().expect("deviations");
            assert!((0.13..0.152).contains(&within), "{within}");
            assert!((between - session_sd).abs() < 0.03, "{between} for {session_sd}");
        }
        assert_eq!(Sessions::new(vec![vec![0.1], vec![0.2]]).deviations(), None);
    }

    #[test]
    fn rounds_follow_cost_and_noise() {
        let check = |within, between, expected| {
            assert_eq!(rounds_per_session(9.0, 1.0, Deviations { within, between }, 50), expected);
        };
        check(0.2, 0.1, 6);
        check(0.5, 0.1, 15);
        check(0.01, 0.1, 4);
        check(0.1, 0.0, 50);
        check(0.0, 0.0, 4);
    }

    /// The table of the documentation.
    #[test]
    fn sessions_follow_the_noise() {
        for (session_sd, any, beyond) in
            [(0.01, 3, 4), (0.02, 4, 6), (0.05, 11, 26), (0.10, 35, 96), (0.18, 109, 305)]
        {
            let sessions = |effect| sessions_for(session_sd, effect, 0.05);
            assert_eq!(
                (sessions(0.05), sessions(1.05 / 1.02 - 1.0)),
                (any, beyond),
                "{session_sd}"
            );
        }
    }
}
