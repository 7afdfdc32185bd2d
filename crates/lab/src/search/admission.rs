//! Which candidates go on from the elimination rounds to the final, and how much of the source the
//! final copies, when the time is limited.

use std::time::Duration;

/// As many candidates reach the final as can run this many rounds in the time; of a large source
/// only a part is copied so that they can. Slower ones are dropped during the final, so the best
/// run more rounds.
const ROUNDS_WANTED: f64 = 8.0;

/// Fewer rounds than these decide nothing.
pub const ROUNDS_MIN: u32 = 3;

/// A variant that is slower than the best by up to this factor may still be the best: the
/// elimination rounds are short and few, and a variant with several workers suffers most from other
/// load. It is kept as long as [`ROUNDS_MIN`] rounds fit.
const CLOSE: f64 = 2.0;

/// The least and the most candidates for which the final should have time.
const FINALISTS: std::ops::RangeInclusive<usize> = 3..=8;

/// How many reach a final.
#[derive(Clone, Copy, Debug)]
pub struct Admission {
    /// As many as can run this many rounds in the time.
    rounds_wanted: f64,
    /// Where so many rounds do not fit, up to this many that are close to the best.
    close_max: usize,
}

impl Admission {
    /// To the final of a race.
    pub const RACE: Admission =
        Admission { rounds_wanted: ROUNDS_WANTED, close_max: *FINALISTS.end() };

    /// To the finals of the visits of a search for a profile, where a choice that is as good as the best
    /// will do: fewer candidates, and more rounds for each.
    pub const VISIT: Admission = Admission { rounds_wanted: 20.0, close_max: 5 };
}

/// What the elimination rounds showed of a variant.
#[derive(Clone, Copy, Debug)]
pub struct Contender {
    /// The best time of the variant for the piece.
    pub elimination_ns: f64,
    /// What one run of the final would take in all: state, copy, comparison, removal.
    pub run_cost: Duration,
    /// Whether it always takes part: it shares extents, which is not compared with moving bytes and
    /// takes no time.
    pub always: bool,
}

/// The contenders that take part in a final of `time`, by index, fastest first.
pub fn admit(contenders: &[Contender], time: Duration, admission: Admission) -> Vec<usize> {
    let (mut admitted, mut rest): (Vec<usize>, Vec<usize>) =
        (0..contenders.len()).partition(|&index| contenders[index].always);
    rest.sort_by(|&a, &b| contenders[a].elimination_ns.total_cmp(&contenders[b].elimination_ns));
    let mut cost: f64 =
        admitted.iter().map(|&index| contenders[index].run_cost.as_secs_f64()).sum();
    let best_ns = rest.first().map_or(0.0, |&index| contenders[index].elimination_ns);
    for (rank, &index) in rest.iter().enumerate() {
        let Contender { elimination_ns, run_cost, .. } = contenders[index];
        let rounds = time.as_secs_f64() / (cost + run_cost.as_secs_f64());
        let close = elimination_ns <= best_ns * CLOSE
            && rank < admission.close_max
            && rounds >= f64::from(ROUNDS_MIN);
        if rank < 2 || rounds >= admission.rounds_wanted || close {
            admitted.push(index);
            cost += run_cost.as_secs_f64();
        } else {
            break;
        }
    }
    admitted
}

/// The share of the source, up to 1, of which enough rounds fit `time`, for all that are close in
/// the elimination rounds. The contenders' `run_cost` is that of the whole source.
pub fn affordable_share(contenders: &[Contender], time: Duration) -> f64 {
    let mut movers: Vec<&Contender> = contenders.iter().filter(|p| !p.always).collect();
    movers.sort_by(|a, b| a.elimination_ns.total_cmp(&b.elimination_ns));
    let Some(best) = movers.first() else { return 1.0 };
    let close = movers.iter().filter(|p| p.elimination_ns <= best.elimination_ns * CLOSE).count();
    let count = close.clamp(*FINALISTS.start(), *FINALISTS.end());
    let round: f64 = movers.iter().take(count).map(|p| p.run_cost.as_secs_f64()).sum();
    // One more run warms up.
    let needed = round * ROUNDS_WANTED + best.run_cost.as_secs_f64();
    (time.as_secs_f64() / needed).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contender(elimination_ns: f64, cost_ms: u64) -> Contender {
        Contender { elimination_ns, run_cost: Duration::from_millis(cost_ms), always: false }
    }

    fn admitted(contenders: &[Contender], seconds: u64) -> Vec<usize> {
        admit(contenders, Duration::from_secs(seconds), Admission::RACE)
    }

    #[test]
    fn all_take_part_when_there_is_time() {
        let contenders = [contender(3.0, 100), contender(1.0, 100), contender(9.0, 100)];
        assert_eq!(admitted(&contenders, 20), [1, 0, 2]);
    }

    #[test]
    fn the_close_ones_take_part_when_there_is_less() {
        let contenders = [
            contender(1.0, 1000),
            contender(1.1, 1000),
            contender(1.9, 1000),
            contender(2.1, 1000),
        ];
        assert_eq!(admitted(&contenders, 20), [0, 1, 2]);
        assert_eq!(admitted(&contenders, 9), [0, 1, 2]);
        assert_eq!(admitted(&contenders, 8), [0, 1]);
        assert_eq!(admitted(&contenders, 1), [0, 1], "two make a race");
    }

    #[test]
    fn a_visit_has_fewer_candidates_and_more_rounds() {
        let contenders = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5].map(|ns| contender(ns, 100));
        let admitted =
            |seconds, admission| admit(&contenders, Duration::from_secs(seconds), admission).len();
        assert_eq!((admitted(8, Admission::RACE), admitted(8, Admission::VISIT)), (6, 5));
        assert_eq!(admitted(12, Admission::VISIT), 6);
    }

    #[test]
    fn variants_that_share_extents_always_take_part() {
        let mut contenders = [contender(1.0, 1000), contender(2.0, 1000), contender(50.0, 10)];
        contenders[2].always = true;
        assert_eq!(admitted(&contenders, 1), [2, 0, 1]);
    }

    #[test]
    fn a_source_too_large_is_raced_in_part() {
        // Four are close: 8 rounds of them and a run to warm up are 33 s.
        let contenders =
            [1.0, 1.1, 1.2, 2.0, 2.1, 9.0].map(|elimination_ns| contender(elimination_ns, 1000));
        let whole = affordable_share(&contenders, Duration::from_secs(34));
        assert!((whole - 1.0).abs() < 1e-12);
        let part = affordable_share(&contenders, Duration::from_millis(16_500));
        assert!((part - 0.5).abs() < 1e-12, "{part}");
        assert!((affordable_share(&[], Duration::ZERO) - 1.0).abs() < 1e-12);
    }
}
