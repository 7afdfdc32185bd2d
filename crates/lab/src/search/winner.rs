//! Which candidate won, if the rounds can tell: ratios of expected times, slow modes included,
//! corrected for the number of comparisons.

use serde::Serialize;

use super::admission::ROUNDS_MIN;
use crate::definition::deltas::DELTA_LEAST as DELTA;
use crate::stats::{
    Answer, Ratio, Runs, Sessions, SlowMode, has_slow_runs, holm, median, slow_modes,
};
use crate::words;

#[cfg(test)]
mod tests;

/// The level of intervals.
const ALPHA: f64 = 0.05;

/// A candidate is beaten if the chance that it is as good as the best is at most this, for all
/// candidates together.
const BEATEN_AT: f64 = 0.01;

/// The last candidate beside the best is beaten if the chance that it is as good is at most this.
/// Its drop ends the race. It is tested after every round, and so many tests need a lower level: at
/// 0.01, two identical variants whose runs vary by 30 % had a winner in one simulated race of ten.
const LAST_BEATEN_AT: f64 = 0.001;

/// Nothing is decided for good before this many rounds, where there is time: in so many a variant
/// that is slow one time in five is slow at least once with a chance of nine in ten.
pub const ROUNDS_TO_MEET_A_SLOW_MODE: u32 = 11;

/// Names that a sentence can hold.
const NAMED_MAX: usize = 4;

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

/// The times of a variant by round. A race is one session, whose rounds are the replicates: each is a
/// session of one.
pub(crate) fn by_round(rounds: impl IntoIterator<Item = (u32, f64)>) -> Runs {
    rounds.into_iter().map(|(round, ns)| ((round, 1), ns)).collect()
}

/// The ratio of the times of one to those of the other, with its 95 % interval.
pub(crate) fn ratio(one: &Runs, other: &Runs) -> Option<Ratio> {
    Sessions::of_runs(one, other).ratio(ALPHA)
}

/// The ratio of their times on average, to choose by.
pub(crate) fn expected(one: &Runs, other: &Runs) -> Option<f64> {
    Some(Sessions::of_runs(one, other).expected()?.value())
}

fn last_round(times: &Runs) -> Option<u32> {
    times.keys().next_back().map(|(round, _)| *round)
}

/// Where each of `times` stands: its ratio to `best`, unless it is that one, and its slow mode.
pub(crate) fn standings(
    times: &[&Runs],
    best: Option<usize>,
) -> impl Iterator<Item = (Option<Ratio>, Option<SlowMode>)> {
    slow_modes(times).into_iter().enumerate().map(move |(index, slow_mode)| {
        let best = best.filter(|&best| best != index);
        (best.and_then(|best| ratio(times[index], times[best])), slow_mode)
    })
}

/// The index of the candidate with the least expected time among those that stayed to the end: one
/// whose last round is earlier had been beaten. The time may have ended the last round before all of
/// them ran.
///
/// Medians alone do not suffice: they show no slow mode, and with few and noisy rounds, another can
/// be faster round by round.
pub(crate) fn best(times: &[&Runs]) -> Option<usize> {
    let last = times.iter().filter_map(|it| last_round(it)).max()?;
    let is_there = |&index: &usize| last_round(times[index]).is_some_and(|own| own + 1 >= last);
    let stayed = || (0..times.len()).filter(is_there);
    let mut best = stayed()
        .filter_map(|index| Some((index, median(times[index].values())?)))
        .min_by(|(_, a), (_, b)| a.total_cmp(b))
        .map(|(index, _)| index)?;
    // Ratios from different rounds need not agree on an order, hence an end to the search.
    for _ in 0..times.len() {
        let faster = stayed()
            .filter(|&index| index != best)
            .filter_map(|index| Some((index, expected(times[index], times[best])?)))
            .filter(|(_, ratio)| *ratio < 1.0)
            .min_by(|(_, a), (_, b)| a.total_cmp(b));
        let Some((index, _)) = faster else { break };
        best = index;
    }
    Some(best)
}

/// The indices of candidates shown to be slower than the best by more than δ. Holm's correction
/// keeps the chance of dropping any of them wrongly at 0.01 for each analysis. Dropping all but the
/// best at once takes a lower level.
pub(crate) fn beaten(times: &[&Runs]) -> Vec<usize> {
    let Some(best) = best(times) else { return Vec::new() };
    let others: Vec<usize> = (0..times.len()).filter(|&index| index != best).collect();
    let p_not_slower = |&index: &usize| {
        let estimate = Sessions::of_runs(times[index], times[best]).expected();
        estimate.map_or(1.0, |estimate| estimate.p_at_most(1.0 + DELTA))
    };
    let p_values: Vec<f64> = others.iter().map(p_not_slower).collect();
    let adjusted = holm(&p_values);
    let beaten_at = |level: f64| -> Vec<usize> {
        others.iter().zip(&adjusted).filter(|(_, p)| **p <= level).map(|(&i, _)| i).collect()
    };
    match beaten_at(BEATEN_AT) {
        beaten if beaten.len() == others.len() => beaten_at(LAST_BEATEN_AT),
        beaten => beaten,
    }
}

/// The indices of candidates that were dropped and may be the best after all: the best of those that
/// stayed had a slow run since, and its expected time is no longer less than theirs by more than δ.
pub(crate) fn no_longer_beaten(times: &[&Runs], dropped: &[usize]) -> Vec<usize> {
    let Some(best) = best(times) else { return Vec::new() };
    if !has_slow_runs(times, best) {
        return Vec::new();
    }
    let is_near = |&index: &usize| {
        expected(times[index], times[best]).is_some_and(|ratio| ratio <= 1.0 + DELTA)
    };
    dropped.iter().copied().filter(|&index| index != best).filter(is_near).collect()
}

/// The verdict on `candidates`, each a variant and its times.
///
/// A winner has to beat every other candidate: the 95 % interval of each one's time over the
/// winner's has to lie above 1 + δ. Since all these tests must pass, none needs to be corrected for
/// the others (an intersection-union test: Berger, Technometrics 24, 1982).
pub(crate) fn decide(candidates: &[(&str, &Runs)]) -> Verdict {
    if candidates.is_empty() {
        return Verdict::none("no verdict: the time was over before a single run of the final");
    }
    let times: Vec<&Runs> = candidates.iter().map(|(_, times)| *times).collect();
    let Some(best) = best(&times) else {
        return Verdict::none("no verdict: no run reached the state it was to be measured in");
    };
    let (winner, rounds) = (candidates[best].0, times[best].len());
    if candidates.len() == 1 {
        let sentence = format!("no verdict: {winner} is the only one to compare");
        return Verdict { contenders: vec![winner.to_owned()], ..Verdict::none(&sentence) };
    }
    if rounds < ROUNDS_MIN as usize {
        let counted = if rounds == 1 { "one round" } else { "two rounds" };
        let sentence = format!("no verdict: {counted} cannot tell chance from difference");
        return Verdict::none(&sentence);
    }
    let other = |index: usize| {
        let sessions = Sessions::of_runs(times[index], times[best]);
        let answer = Answer::of(&sessions, DELTA, ALPHA);
        Other { variant: candidates[index].0, ratio: sessions.ratio(ALPHA), answer }
    };
    let mut others: Vec<Other<'_>> =
        (0..candidates.len()).filter(|&index| index != best).map(other).collect();
    let estimate = |it: &Other<'_>| it.ratio.map_or(f64::INFINITY, |ratio| ratio.estimate);
    others.sort_by(|a, b| estimate(a).total_cmp(&estimate(b)));
    if let Other { variant: next, ratio: Some(ratio), .. } = others[0]
        && others.iter().all(|it| it.answer == Answer::Slower)
    {
        return won(winner, next, ratio);
    }
    others.retain(|it| it.answer != Answer::Slower);
    too_close(winner, &others)
}

/// A candidate beside the best.
struct Other<'c> {
    variant: &'c str,
    /// Its time over that of the best.
    ratio: Option<Ratio>,
    answer: Answer,
}

fn won(winner: &str, next: &str, ratio: Ratio) -> Verdict {
    let Ratio { estimate, interval } = ratio;
    let sentence = format!(
        "{winner} wins: {} x as fast as the next, {next} (95 % interval {} to {})",
        words::three_digits(estimate),
        words::three_digits(interval.low),
        words::three_digits(interval.high),
    );
    Verdict {
        kind: Kind::Winner,
        winner: Some(winner.to_owned()),
        runner_up: Some(next.to_owned()),
        ratio: Some(estimate),
        ratio_low: Some(interval.low),
        ratio_high: Some(interval.high),
        contenders: vec![winner.to_owned()],
        ..Verdict::none(&sentence)
    }
}

fn too_close(best: &str, close: &[Other<'_>]) -> Verdict {
    let variants = [best].into_iter().chain(close.iter().map(|it| it.variant));
    let contenders: Vec<String> = variants.map(str::to_owned).collect();
    let named = words::listed(&shortened(&contenders));
    let apart = close.iter().filter_map(|it| Some(it.ratio?.estimate)).fold(1.0, f64::max);
    let sentence = if close.iter().all(|it| it.answer == Answer::Equivalent) {
        format!("{named} are as fast as each other: within {} %", DELTA * 100.0)
    } else {
        let apart = match apart {
            few if few < 1.2 => format!("{} %", ((few - 1.0) * 100.0).ceil().max(1.0)),
            apart => format!("{} x", words::three_digits(apart)),
        };
        format!(
            "too close to call between {named}: their estimates are up to {apart} apart, but the runs \
             vary too much to be sure of it"
        )
    };
    Verdict { kind: Kind::TooClose, contenders, ..Verdict::none(&sentence) }
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
    /// The verdict, unless `unraced`, variants as fast as the winner before the final for which
    /// there was no time in it, may be faster still: then there is a lead and no winner.
    #[must_use]
    pub fn unless_unraced(self, unraced: &[String]) -> Verdict {
        let (Some(leader), false) = (&self.winner, unraced.is_empty()) else { return self };
        let sentence = format!(
            "{leader} leads, but {} did as well in the elimination rounds and had no time to race: allow more \
             with --time",
            words::listed(&shortened(unraced))
        );
        let contenders = [std::slice::from_ref(leader), unraced].concat();
        Verdict { kind: Kind::TooClose, contenders, ..Verdict::none(&sentence) }
    }

    /// No verdict, for the reason that the sentence gives.
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
