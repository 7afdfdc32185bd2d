use super::*;
use crate::analysis::observations::Observations;
use crate::definition::Measure;
use crate::sample::measurement::Measurement;
use crate::sample::record::Sample;
use crate::stats::normal;

fn candidate(variant: &str, times: &[f64]) -> CandidateTimes {
    CandidateTimes::new(variant.to_owned(), (1..).zip(times.iter().copied()))
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
    assert_eq!(verdict.sentence, "a and b are as fast as each other: within 2 %");
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

/// A race like that of `haulage race`: rounds of all, of which the beaten ones leave and come back,
/// until one is left or the time is over. Returns the variant with the least expected time.
fn race(
    rng: &mut fastrand::Rng,
    rounds: u32,
    draws: &[&dyn Fn(&mut fastrand::Rng) -> f64],
) -> usize {
    let mut candidates: Vec<CandidateTimes> =
        draws.iter().map(|_| candidate("a variant", &[])).collect();
    let mut dropped: Vec<usize> = Vec::new();
    for round in 1..=rounds {
        let mut running: Vec<usize> =
            (0..draws.len()).filter(|index| !dropped.contains(index)).collect();
        for &index in &running {
            candidates[index].times_ns.insert((round, 1), draws[index](rng));
        }
        let back = no_longer_beaten(&candidates, &dropped);
        dropped.retain(|index| !back.contains(index));
        running.retain(|index| !dropped.contains(index));
        let beaten = if round < ROUNDS_MIN {
            Vec::new()
        } else {
            let of: Vec<CandidateTimes> =
                running.iter().map(|&index| candidates[index].clone()).collect();
            beaten(&of).into_iter().map(|place| running[place]).collect()
        };
        let ends = beaten.len() + 1 == running.len();
        if ends && round >= ROUNDS_TO_MEET_A_SLOW_MODE {
            break;
        }
        if !ends {
            dropped.extend(beaten);
        }
    }
    best(&candidates).expect("they ran")
}

/// The steady variant loses every round but those of the other's slow mode, and is dropped in the
/// third. It has to come back.
#[test]
fn a_dropped_variant_comes_back_when_the_best_turns_slow() {
    let mut rng = fastrand::Rng::with_seed(77);
    let noise = |rng: &mut fastrand::Rng| (0.03 * normal(rng)).exp();
    let slow_mode = |rng: &mut fastrand::Rng| noise(rng) * if rng.u8(..5) == 0 { 6.0 } else { 1.0 };
    let steady = |rng: &mut fastrand::Rng| 1.5 * noise(rng);
    let slower = |rng: &mut fastrand::Rng| 1.7 * noise(rng);
    // Without a way back, 46 of the 60.
    for (rounds, races, least) in [(11, 400, 240), (40, 60, 52)] {
        let chosen =
            (0..races).filter(|_| race(&mut rng, rounds, &[&slow_mode, &steady, &slower]) == 1);
        let chosen = chosen.count();
        assert!(chosen >= least, "{chosen} of {races} with {rounds} rounds");
    }
    // And where it is rare, the variant that has it is the best: 1.2 times on average.
    let rare = |rng: &mut fastrand::Rng| noise(rng) * if rng.u8(..25) == 0 { 6.0 } else { 1.0 };
    let chosen = (0..40).filter(|_| race(&mut rng, 40, &[&rare, &steady, &slower]) == 0);
    assert!(chosen.count() >= 30);
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
    assert!(
        verdict.sentence.contains("a, b, c and 4 others are as fast as each other: within 2 %")
    );
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

/// In how many of 500 simulated races of six variants, all as fast as one another but for the
/// first with `lead`, a winner is named, and in how many it is the first.
fn winners(rounds: u32, lead: f64) -> (u32, u32) {
    let mut rng = fastrand::Rng::with_seed(3);
    let (mut any, mut first) = (0, 0);
    for _ in 0..500 {
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
    assert!(false_winners <= 5, "{false_winners} of 500");
    let (_, found) = winners(12, 0.10);
    assert!(found >= 450, "{found} of 500");
    let (_, barely) = winners(12, DELTA);
    assert!(barely <= 25, "{barely} of 500");
}

/// In how many of 200 simulated races of two, which end as soon as one is beaten, a winner is
/// named. The first is faster by `lead`; their runs vary by `noise`.
fn winners_of_two(noise: f64, lead: f64) -> (u32, f64) {
    let mut rng = fastrand::Rng::with_seed(11);
    let (mut won, mut rounds_run) = (0, 0);
    for _ in 0..200 {
        let mut candidates = [candidate("a", &[]), candidate("b", &[])];
        for round in 1..=40 {
            for (candidate, own) in candidates.iter_mut().zip([-lead.ln_1p(), 0.0]) {
                candidate.times_ns.insert((round, 1), (own + noise * normal(&mut rng)).exp());
            }
            rounds_run += 1;
            if round >= 5 && beaten(&candidates).len() == 1 {
                break;
            }
        }
        won += u32::from(decide(&candidates).kind == Kind::Winner);
    }
    (won, f64::from(rounds_run) / 200.0)
}

#[test]
fn a_race_that_may_end_after_each_round_finds_no_more_false_winners() {
    let (false_winners, _) = winners_of_two(0.3, 0.0);
    assert!(false_winners <= 12, "{false_winners} of 200");
    let (found, rounds) = winners_of_two(0.03, 0.10);
    assert!(found >= 198 && rounds < 12.0, "{found} of 200 after {rounds} rounds");
}

/// Samples of two variants: as a race takes them, and as a bench of as many sessions does.
fn samples(rng: &mut fastrand::Rng, rounds: u32, ratio: f64, slow: f64) -> [Vec<Sample>; 2] {
    let mut of = |times: f64, slow: f64| {
        let of_round = |session| {
            let times = times * if rng.f64() < slow { 6.0 } else { 1.0 };
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Positive.
            let elapsed_ns = (1e6 * times * (0.02 * normal(rng)).exp()) as u64;
            let measured = Measurement { elapsed_ns, counted: true, ..Measurement::default() };
            Sample { session, round: 1, measured, ..Sample::default() }
        };
        (1..=rounds).map(of_round).collect()
    };
    [of(ratio, slow), of(1.0, 0.0)]
}

/// The verdict of a race on them.
fn verdict(samples: &[Vec<Sample>; 2]) -> Verdict {
    let of = |name: &str, records: &[Sample]| {
        let times = records.iter().map(|it| it.measured.elapsed_ns as f64);
        candidate(name, &times.collect::<Vec<_>>())
    };
    decide(&[of("one", &samples[0]), of("other", &samples[1])])
}

/// One run in five, six times slower, is a third longer on average than 1.5 times the fast mode. A
/// race names that variant where it met no slow run: of 12 rounds, in one of 14.
#[test]
fn a_variant_that_met_its_slow_mode_wins_nothing() {
    let mut rng = fastrand::Rng::with_seed(5);
    for (rounds, most) in [(12, 45), (40, 5)] {
        let wins = |_: &u32| {
            let verdict = verdict(&samples(&mut rng, rounds, 1.0 / 1.5, 0.2));
            verdict.winner.as_deref() == Some("one")
        };
        let won = (0..500).filter(wins).count();
        assert!(won <= most, "{won} of 500 with {rounds} rounds");
    }
}

/// What a bench answers of the same samples, a race says: a winner where one is slower, the two as
/// fast as each other where they are equivalent, and too close to call otherwise.
#[test]
fn a_bench_says_the_same_of_the_samples_of_a_race() {
    let mut rng = fastrand::Rng::with_seed(13);
    let mut seen = [0; 4];
    for (case, rounds) in (0..400).zip((4..64).cycle()) {
        let ratio = [1.0, 1.02, 1.05, 1.3][case % 4];
        let slow = if case % 3 == 0 { 0.2 } else { 0.0 };
        let samples = samples(&mut rng, rounds, ratio, slow);
        let mut observations = Observations::default();
        for (index, records) in samples.iter().enumerate() {
            records.iter().for_each(|record| observations.add(record, index, Measure::Elapsed));
        }
        let answer = Answer::of(&observations.compare(0, 1), DELTA, 0.05);
        let verdict = verdict(&samples);
        let expected = match (verdict.kind, verdict.winner.as_deref()) {
            (Kind::Winner, Some("other")) => Answer::Slower,
            (Kind::Winner, _) => Answer::Faster,
            _ if verdict.sentence.contains("as fast as") => Answer::Equivalent,
            _ => Answer::Unresolved,
        };
        assert_eq!(answer, expected, "{case}: {}", verdict.sentence);
        seen[answer as usize] += 1;
    }
    assert!(seen[1..].iter().all(|&count| count > 20), "{seen:?}");
}
