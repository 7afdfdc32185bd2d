//! Which candidate won, if the rounds can tell: paired ratios, corrected for the number of
//! comparisons.

use std::collections::BTreeMap;

use serde::Serialize;

use super::admission::ROUNDS_MIN;
use crate::stats::{Paired, Ratio, holm, median};
use crate::words;

/// δ of races. Smaller differences are no reason to prefer a variant, and the placement of memory
/// makes two runs of one program differ as much.
pub const DELTA: f64 = 0.02;

/// A candidate is beaten if the chance that it is as good as the best is at most this, for all
/// candidates together.
const BEATEN_AT: f64 = 0.01;

/// The same for the last one, whose drop ends the race. It is tested after every round, and so many
/// tests need a lower level: at 0.01, two identical variants whose runs vary by 30 % had a winner
/// in one simulated race of ten.
const LAST_BEATEN_AT: f64 = 0.001;

/// Names that a sentence can hold.
const NAMED_MAX: usize = 4;

/// The times of one variant, by round.
#[derive(Clone, Debug)]
pub struct CandidateTimes {
    /// The variant.
    pub variant: String,
    /// Nanoseconds of each counted round.
    pub times_ns: BTreeMap<u32, f64>,
}

/// What the race has shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The kind of answer.
    pub kind: Kind,
    /// The winner, if there is one.
    pub winner: Option<String>,
    /// The next after the winner.
    pub runner_up: Option<String>,
    /// Time of the runner-up over the time of the winner.
    pub ratio: Option<f64>,
    /// The lower end of its 95 % interval.
    pub ratio_low: Option<f64>,
    /// The upper end.
    pub ratio_high: Option<f64>,
    /// Every candidate that may be the fastest, fastest first by median.
    pub contenders: Vec<String>,
    /// The least difference that counts, as a share.
    pub delta: f64,
    /// The answer in words.
    pub sentence: String,
}

/// Kinds of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One variant is faster than every other by more than δ.
    Winner,
    /// Several may be the fastest, or differ by no more than δ.
    TooClose,
    /// Too few runs, or none in the state wanted.
    NoVerdict,
}

impl CandidateTimes {
    /// The median of its times.
    #[must_use]
    pub fn median_ns(&self) -> Option<f64> {
        median(&self.times_ns.values().copied().collect::<Vec<_>>())
    }

    /// Its times against those of `best`, in the rounds that both ran.
    #[must_use]
    pub fn against(&self, best: &CandidateTimes) -> Paired {
        Paired::new(
            self.times_ns
                .iter()
                .filter_map(|(round, &time)| Some((time, *best.times_ns.get(round)?))),
        )
    }
}

/// The index of the fastest among those that stayed to the end: one that ran fewer rounds had been
/// beaten. The time may have ended the last round before all of them ran.
///
/// Medians alone do not suffice: with few and noisy rounds, another can be faster round by round.
#[must_use]
pub fn best(candidates: &[CandidateTimes]) -> Option<usize> {
    let most = candidates
        .iter()
        .map(|candidate| candidate.times_ns.len())
        .max()
        .filter(|&most| most > 0)?;
    let stayed = || (0..candidates.len()).filter(|&i| candidates[i].times_ns.len() + 1 >= most);
    let mut best = stayed()
        .filter_map(|index| Some((index, candidates[index].median_ns()?)))
        .min_by(|(_, a), (_, b)| a.total_cmp(b))
        .map(|(index, _)| index)?;
    // Trimmed means need not agree on an order, hence an end to the search.
    for _ in 0..candidates.len() {
        let faster = stayed()
            .filter(|&index| index != best)
            .filter_map(|index| {
                Some((index, candidates[index].against(&candidates[best]).ratio()?))
            })
            .filter(|(_, ratio)| ratio.estimate < 1.0)
            .min_by(|(_, a), (_, b)| a.estimate.total_cmp(&b.estimate));
        let Some((index, _)) = faster else { break };
        best = index;
    }
    Some(best)
}

/// The indices of candidates shown to be slower than the best by more than δ. Holm's correction
/// keeps the chance of dropping any of them wrongly at 0.01 for each analysis. Dropping all but the
/// best at once takes a lower level.
#[must_use]
pub fn beaten(candidates: &[CandidateTimes]) -> Vec<usize> {
    let Some(best) = best(candidates) else { return Vec::new() };
    let others: Vec<usize> = (0..candidates.len()).filter(|&index| index != best).collect();
    let p_values: Vec<f64> = others
        .iter()
        .map(|&index| candidates[index].against(&candidates[best]).p_not_slower(DELTA))
        .collect();
    let adjusted = holm(&p_values);
    let beaten_at = |level: f64| -> Vec<usize> {
        others.iter().zip(&adjusted).filter(|(_, p)| **p <= level).map(|(&i, _)| i).collect()
    };
    match beaten_at(BEATEN_AT) {
        beaten if beaten.len() == others.len() => beaten_at(LAST_BEATEN_AT),
        beaten => beaten,
    }
}

/// The verdict on `candidates`.
///
/// A winner has to beat every other candidate: the 95 % interval of each one's time over the
/// winner's has to lie above 1 + δ. Since all these tests must pass, none needs to be corrected for
/// the others (an intersection-union test: Berger, Technometrics 24, 1982).
#[must_use]
pub fn decide(candidates: &[CandidateTimes]) -> Verdict {
    if candidates.is_empty() {
        return Verdict::none("no verdict: the time was over before a single run of the final");
    }
    let Some(best) = best(candidates) else {
        return Verdict::none("no verdict: no run reached the state it was to be measured in");
    };
    let winner = &candidates[best];
    let rounds = winner.times_ns.len();
    if candidates.len() == 1 {
        let sentence = format!("no verdict: only {} could run, alone", winner.variant);
        return Verdict { contenders: vec![winner.variant.clone()], ..Verdict::none(&sentence) };
    }
    if rounds < ROUNDS_MIN as usize {
        let counted = if rounds == 1 { "one round" } else { "two rounds" };
        let sentence = format!("no verdict: {counted} cannot tell chance from difference");
        return Verdict::none(&sentence);
    }
    let mut others: Vec<(&CandidateTimes, Option<Ratio>)> = (0..candidates.len())
        .filter(|&index| index != best)
        .map(|index| (&candidates[index], candidates[index].against(winner).ratio()))
        .collect();
    others.sort_by(|(_, a), (_, b)| estimate(*a).total_cmp(&estimate(*b)));
    let close: Vec<_> = others
        .iter()
        .copied()
        .filter(|(_, ratio)| ratio.is_none_or(|ratio| ratio.interval.low <= 1.0 + DELTA))
        .collect();
    let (next, next_ratio) = others[0];
    if close.is_empty()
        && let Some(ratio) = next_ratio
    {
        return won(winner, next, ratio);
    }
    too_close(winner, &close)
}

fn estimate(ratio: Option<Ratio>) -> f64 {
    ratio.map_or(f64::INFINITY, |ratio| ratio.estimate)
}

fn won(winner: &CandidateTimes, next: &CandidateTimes, ratio: Ratio) -> Verdict {
    let Ratio { estimate, interval } = ratio;
    let sentence = format!(
        "{} wins: {} x as fast as the next, {} (95 % interval {} to {})",
        winner.variant,
        words::three_digits(estimate),
        next.variant,
        words::three_digits(interval.low),
        words::three_digits(interval.high),
    );
    Verdict {
        kind: Kind::Winner,
        winner: Some(winner.variant.clone()),
        runner_up: Some(next.variant.clone()),
        ratio: Some(estimate),
        ratio_low: Some(interval.low),
        ratio_high: Some(interval.high),
        contenders: vec![winner.variant.clone()],
        delta: DELTA,
        sentence,
    }
}

fn too_close(best: &CandidateTimes, close: &[(&CandidateTimes, Option<Ratio>)]) -> Verdict {
    let mut contenders = vec![best.variant.clone()];
    contenders.extend(close.iter().map(|(candidate, _)| candidate.variant.clone()));
    let named = words::listed(&shortened(&contenders));
    let equal = close
        .iter()
        .all(|(_, ratio)| ratio.is_some_and(|ratio| ratio.interval.high <= 1.0 + DELTA));
    let apart = close.iter().filter_map(|(_, ratio)| Some(ratio.as_ref()?.estimate));
    let apart = apart.fold(1.0, f64::max);
    let sentence = if equal {
        format!("too close to call between {named}: within {} %", DELTA * 100.0)
    } else if apart < 1.2 {
        let percent = ((apart - 1.0) * 100.0).ceil().max(1.0);
        format!(
            "too close to call between {named}: within {percent} %, and their runs vary too much \
             to say more"
        )
    } else {
        format!(
            "too close to call between {named}: their times are up to {} x apart, but the runs \
             vary too much to be sure of it",
            words::three_digits(apart)
        )
    };
    Verdict { kind: Kind::TooClose, contenders, sentence, ..Verdict::none("") }
}

/// As many names as a sentence can hold, and how many more there are.
fn shortened(names: &[String]) -> Vec<String> {
    if names.len() <= NAMED_MAX {
        return names.to_vec();
    }
    let mut named = names[..NAMED_MAX - 1].to_vec();
    named.push(format!("{} others", names.len() - named.len()));
    named
}

impl Verdict {
    /// The same, unless `unraced`, variants as fast as the winner before the final for which there
    /// was no time in it, may be faster still: then there is a lead and no winner.
    #[must_use]
    pub fn unless_unraced(self, unraced: &[String]) -> Verdict {
        let (Some(leader), false) = (&self.winner, unraced.is_empty()) else { return self };
        let sentence = format!(
            "{leader} leads, but {} did as well in the elimination rounds and had no time to race: allow more \
             with --time",
            words::listed(&shortened(unraced))
        );
        let contenders = [std::slice::from_ref(leader), unraced].concat();
        Verdict { kind: Kind::TooClose, contenders, sentence, ..Verdict::none("") }
    }

    /// No verdict, for the reason that the sentence gives.
    #[must_use]
    pub fn none(sentence: &str) -> Verdict {
        Verdict {
            kind: Kind::NoVerdict,
            winner: None,
            runner_up: None,
            ratio: None,
            ratio_low: None,
            ratio_high: None,
            contenders: Vec::new(),
            delta: DELTA,
            sentence: sentence.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::normal;

    fn candidate(variant: &str, times: &[f64]) -> CandidateTimes {
        let times_ns = (1..).zip(times.iter().copied()).collect();
        CandidateTimes { variant: variant.to_owned(), times_ns }
    }

    #[test]
    fn a_clear_winner_is_named_with_the_next() {
        let candidates = [
            candidate("slow", &[200.0, 205.0, 198.0, 201.0]),
            candidate("fast", &[100.0, 101.0, 99.0, 100.0]),
            candidate("next", &[110.0, 111.0, 109.5, 110.0]),
        ];
        let verdict = decide(&candidates);
        assert_eq!(verdict.kind, Kind::Winner);
        assert_eq!(verdict.winner.as_deref(), Some("fast"));
        assert_eq!(verdict.runner_up.as_deref(), Some("next"));
        assert!(verdict.sentence.starts_with("fast wins: 1.10 x as fast as the next, next ("));
        assert_eq!(beaten(&candidates), [0, 2]);
    }

    #[test]
    fn a_lead_within_delta_wins_nothing() {
        let candidates = [
            candidate("a", &[100.0, 101.0, 99.0, 100.0]),
            candidate("b", &[101.0, 102.0, 100.0, 101.0]),
            candidate("c", &[150.0, 151.0, 149.0, 150.0]),
        ];
        let verdict = decide(&candidates);
        assert_eq!(verdict.kind, Kind::TooClose);
        assert_eq!(verdict.contenders, ["a", "b"]);
        assert_eq!(verdict.sentence, "too close to call between a and b: within 2 %");
        assert_eq!(beaten(&candidates), [2]);
    }

    #[test]
    fn the_best_is_the_fastest_round_by_round() {
        // The medians say a, the rounds say b.
        let candidates = [
            candidate("a", &[100.0, 104.0, 300.0, 101.0, 400.0]),
            candidate("b", &[105.0, 106.0, 110.0, 107.0, 120.0]),
        ];
        assert_eq!(best(&candidates), Some(1));
        assert_eq!(best(&[]), None);
    }

    #[test]
    fn noise_is_no_winner() {
        let candidates = [
            candidate("a", &[100.0, 140.0, 90.0, 105.0]),
            candidate("b", &[120.0, 110.0, 130.0, 115.0]),
        ];
        let verdict = decide(&candidates);
        assert_eq!(verdict.kind, Kind::TooClose);
        assert!(verdict.sentence.contains("vary too much"), "{}", verdict.sentence);
        assert!(beaten(&candidates).is_empty());
    }

    #[test]
    fn too_little_is_no_verdict() {
        for (candidates, expected) in [
            (vec![], "before a single run of the final"),
            (vec![candidate("a", &[])], "no run reached the state"),
            (vec![candidate("a", &[1.0, 1.0, 1.0])], "only a could run"),
            (vec![candidate("a", &[1.0, 1.0]), candidate("b", &[2.0, 2.0])], "two rounds cannot"),
        ] {
            let verdict = decide(&candidates);
            assert_eq!(verdict.kind, Kind::NoVerdict);
            assert!(verdict.sentence.contains(expected), "{}", verdict.sentence);
        }
    }

    #[test]
    fn many_names_are_counted() {
        let candidates: Vec<CandidateTimes> =
            "abcdefg".chars().map(|name| candidate(&name.to_string(), &[1.0; 4])).collect();
        let verdict = decide(&candidates);
        assert_eq!(verdict.contenders.len(), 7);
        assert!(verdict.sentence.contains("between a, b, c and 4 others: within 2 %"));
    }

    #[test]
    fn who_had_no_time_to_race_may_be_faster() {
        let candidates = [candidate("a", &[100.0; 5]), candidate("b", &[150.0; 5])];
        let won = decide(&candidates);
        assert_eq!(won.clone().unless_unraced(&[]), won);
        let open = won.unless_unraced(&["c".to_owned()]);
        assert_eq!((open.kind, open.winner.as_deref()), (Kind::TooClose, None));
        assert_eq!(open.contenders, ["a", "c"]);
        assert!(open.sentence.starts_with("a leads, but c did as well in the elimination rounds"));
        let none = decide(&[]);
        assert_eq!(none.clone().unless_unraced(&["c".to_owned()]), none);
    }

    /// In how many of 1000 simulated races of six variants, all as fast as one another but for the
    /// first with `lead`, a winner is named, and in how many it is the first.
    fn winners(rounds: u32, lead: f64) -> (u32, u32) {
        let mut rng = fastrand::Rng::with_seed(3);
        let (mut any, mut first) = (0, 0);
        for _ in 0..1000 {
            let drift: Vec<f64> = (0..rounds).map(|_| 0.1 * normal(&mut rng)).collect();
            let candidates: Vec<CandidateTimes> = (0..6)
                .map(|index| {
                    let own = if index == 0 { -lead.ln_1p() } else { 0.0 };
                    let times: Vec<f64> = drift
                        .iter()
                        .map(|drift| (own + drift + 0.03 * normal(&mut rng)).exp())
                        .collect();
                    candidate(if index == 0 { "first" } else { "other" }, &times)
                })
                .collect();
            let verdict = decide(&candidates);
            any += u32::from(verdict.kind == Kind::Winner);
            first += u32::from(verdict.winner.as_deref() == Some("first"));
        }
        (any, first)
    }

    #[test]
    fn equals_have_no_winner_and_a_true_lead_has_one() {
        let (false_winners, _) = winners(8, 0.0);
        assert!(false_winners <= 10, "{false_winners} of 1000");
        let (_, found) = winners(12, 0.10);
        assert!(found >= 900, "{found} of 1000");
        let (_, barely) = winners(12, DELTA);
        assert!(barely <= 50, "{barely} of 1000");
    }

    /// In how many of 500 simulated races of two, which end as soon as one is beaten, a winner is
    /// named. The first is faster by `lead`; their runs vary by `noise`.
    fn winners_of_two(noise: f64, lead: f64) -> (u32, f64) {
        let mut rng = fastrand::Rng::with_seed(11);
        let (mut won, mut rounds_run) = (0, 0);
        for _ in 0..500 {
            let mut candidates = [candidate("a", &[]), candidate("b", &[])];
            for round in 1..=40 {
                for (candidate, own) in candidates.iter_mut().zip([-lead.ln_1p(), 0.0]) {
                    candidate.times_ns.insert(round, (own + noise * normal(&mut rng)).exp());
                }
                rounds_run += 1;
                if round >= 5 && beaten(&candidates).len() == 1 {
                    break;
                }
            }
            won += u32::from(decide(&candidates).kind == Kind::Winner);
        }
        (won, f64::from(rounds_run) / 500.0)
    }

    #[test]
    fn a_race_that_may_end_after_each_round_finds_no_more_false_winners() {
        let (false_winners, _) = winners_of_two(0.3, 0.0);
        assert!(false_winners <= 30, "{false_winners} of 500");
        let (found, rounds) = winners_of_two(0.03, 0.10);
        assert!(found >= 495 && rounds < 12.0, "{found} of 500 after {rounds} rounds");
    }
}
