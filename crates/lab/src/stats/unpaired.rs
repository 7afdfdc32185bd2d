//! The ratio of two variants that did not run in the same rounds.

use std::collections::BTreeMap;

use super::{Ratio, Runs, Sessions, TwoSamples};

/// The ratio of the times of `one` to those of `other`, with the interval of confidence 1 -
/// `alpha`, where they have no rounds in common: different sizes, states, or numbers of runs at
/// once. The value of each session is computed as in [`Sessions`], and the two samples of sessions
/// are compared as [`TwoSamples`]. Changes of the machine between the two are not cancelled, so the
/// interval is wider than that of paired runs. `None` when either has fewer than two sessions.
///
/// # Panics
/// When a time is not positive.
#[must_use]
pub fn unpaired(one: &Runs, other: &Runs, alpha: f64) -> Option<Ratio> {
    let [one, other] = [one, other].map(|runs| by_session(runs).session_log_ratios());
    Some(TwoSamples::new(&one, &other)?.ratio(alpha))
}

fn by_session(runs: &Runs) -> Sessions {
    let mut sessions: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (&(session, _), time) in runs {
        sessions.entry(session).or_default().push(time.ln());
    }
    Sessions::new(sessions.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::normal;

    fn runs(rng: &mut fastrand::Rng, sessions: u32, time: f64) -> Runs {
        let mut runs = Runs::new();
        for session in 1..=sessions {
            let shift = 0.03 * normal(rng);
            for round in 1..=3 {
                runs.insert((session, round), time * (shift + 0.02 * normal(rng)).exp());
            }
        }
        runs
    }

    #[test]
    fn the_interval_contains_the_true_ratio() {
        let mut rng = fastrand::Rng::with_seed(5);
        let mut held = 0;
        for _ in 0..400 {
            let (one, other) = (runs(&mut rng, 6, 300.0), runs(&mut rng, 12, 200.0));
            let interval = unpaired(&one, &other, 0.05).expect("sessions").interval;
            held += u32::from(interval.low <= 1.5 && 1.5 <= interval.high);
        }
        assert!((368..=396).contains(&held), "{held} of 400");
    }

    #[test]
    fn one_session_has_no_interval() {
        let mut rng = fastrand::Rng::with_seed(5);
        let (one, other) = (runs(&mut rng, 1, 300.0), runs(&mut rng, 12, 200.0));
        assert_eq!(unpaired(&one, &other, 0.05), None);
    }
}
