use super::*;
use crate::stats::{Estimated, Runs, normal};

/// Fifteen sizes from 64 B to 1 GiB.
fn sizes() -> Vec<f64> {
    (0..15).map(|step| 64.0 * 2.0_f64.powf(f64::from(step) * 24.0 / 14.0)).collect()
}

/// `rounds` runs a size of `sessions` sessions that differ by 5 %; runs vary by 3 %, and a tenth of
/// them takes 20 to 100 % longer.
fn measure(
    rng: &mut fastrand::Rng,
    sessions: u32,
    rounds: usize,
    time: impl Fn(f64) -> f64,
) -> Vec<Point> {
    let mut points = Vec::new();
    for session in 0..sessions {
        let shift = 0.05 * normal(rng);
        for bytes in sizes() {
            for _ in 0..rounds {
                let slow = if rng.u8(..10) == 0 { (1.2 + 0.8 * rng.f64()).ln() } else { 0.0 };
                let elapsed_ns = time(bytes) * (shift + 0.03 * normal(rng) + slow).exp();
                points.push(Point { bytes, elapsed_ns, session });
            }
        }
    }
    points
}

fn holds(estimate: Estimated, truth: f64) -> bool {
    estimate.low.zip(estimate.high).is_some_and(|(low, high)| low <= truth && truth <= high)
}

fn line(bytes: f64) -> f64 {
    300.0 + 0.25 * bytes
}

const BREAK_BYTES: f64 = 200_000.0;

fn broken(bytes: f64) -> f64 {
    300.0 + 0.15 * bytes.min(BREAK_BYTES) + 0.25 * (bytes - BREAK_BYTES).max(0.0)
}

/// How often intervals of (c, f, the buffer for 1 %) contain the true values, and how often the
/// test at 5 % rejects the true line.
fn coverage(trials: u32, sessions: u32, rounds: usize) -> [f64; 4] {
    let mut rng = fastrand::Rng::with_seed(3);
    let mut sums = [0.0; 4];
    for _ in 0..trials {
        let reads = measure(&mut rng, sessions, rounds, line);
        let writes = measure(&mut rng, sessions, rounds, |bytes| 500.0 + 0.5 * bytes);
        let fitted = cost_line(&reads).expect("a line");
        let buffer = buffer_for_overhead(&reads, &writes, 0.01).expect("a buffer");
        let happened = [
            holds(fitted.call_ns, 300.0),
            holds(fitted.byte_ns, 0.25),
            holds(buffer, (300.0 + 500.0) / (0.25 + 0.5) / 0.01),
            fitted.misfit.p.expect("sessions") < 0.05,
        ];
        sums.iter_mut().zip(happened).for_each(|(sum, it)| *sum += f64::from(u8::from(it)));
    }
    sums.map(|sum| sum / f64::from(trials))
}

#[test]
fn the_coverage_of_intervals_of_costs_is_nominal() {
    let [call, byte, buffer, misfit] = coverage(60, 6, 2);
    assert!(call >= 0.88 && byte >= 0.88 && buffer >= 0.88, "{call} {byte} {buffer}");
    assert!(misfit <= 0.1, "{misfit}");
}

#[test]
fn a_break_is_found_where_there_is_one() {
    let mut rng = fastrand::Rng::with_seed(5);
    let straight = segments(&measure(&mut rng, 5, 3, line)).expect("segments");
    assert!(!straight.is_broken(), "{straight:?}");
    let points = measure(&mut rng, 5, 3, broken);
    let bent = segments(&points).expect("segments");
    assert!(bent.is_broken() && holds(bent.break_bytes, BREAK_BYTES), "{bent:?}");
    assert!((bent.below.byte_ns.value / 0.15 - 1.0).abs() < 0.1, "{bent:?}");
    assert!((bent.above_byte_ns.value / 0.25 - 1.0).abs() < 0.1, "{bent:?}");
    let one = cost_line(&points).expect("a line").misfit;
    assert!(one.p.expect("sessions") < 0.01, "{one:?}");
    assert!(one.largest.abs() > bent.below.misfit.largest.abs(), "{bent:?}");
}

/// The figures of the documentation, in minutes:
/// `cargo test --release -p haulage-lab the_models_at_length -- --ignored --nocapture`
#[test]
#[ignore = "takes minutes"]
fn the_models_at_length() {
    for (sessions, rounds) in [(5, 1), (5, 5), (12, 1), (12, 5)] {
        let [call, byte, buffer, misfit] = coverage(400, sessions, rounds);
        println!("{sessions} x {rounds}: c {call:.3} f {byte:.3} B {buffer:.3} misfit {misfit:.3}");
        assert!(call.min(byte).min(buffer) >= 0.93 && misfit <= 0.07);
        let mut rng = fastrand::Rng::with_seed(7);
        let (mut wrong, mut found, mut held) = (0, 0, 0);
        for _ in 0..100 {
            let straight = measure(&mut rng, sessions, rounds, line);
            wrong += u32::from(segments(&straight).expect("segments").is_broken());
            let bent = segments(&measure(&mut rng, sessions, rounds, broken));
            let bent = bent.expect("segments");
            found += u32::from(bent.is_broken());
            held += u32::from(holds(bent.break_bytes, BREAK_BYTES));
        }
        println!("  of 100 breaks {found} found, {held} held; of 100 lines {wrong} broken");
        assert!(wrong <= 5 && held >= 93);
    }
}

#[test]
fn few_points_have_no_model_or_no_interval() {
    assert_eq!(cost_line(&[]), None);
    assert_eq!(segments(&[]), None);
    assert_eq!(buffer_for_overhead(&[], &[], 0.01), None);
    let one_session: Vec<Point> = [64.0, 512.0, 4096.0, 32768.0]
        .map(|bytes| Point { bytes, elapsed_ns: line(bytes), session: 0 })
        .to_vec();
    let fitted = cost_line(&one_session).expect("a line");
    assert!((fitted.call_ns.value - 300.0).abs() < 1e-3, "{fitted:?}");
    assert_eq!((fitted.call_ns.low, fitted.misfit.p), (None, None));
    assert_eq!(segments(&one_session), None);
    let buffer = buffer_for_overhead(&one_session, &one_session, 0.01).expect("a buffer");
    assert!((buffer.value / 120_000.0 - 1.0).abs() < 1e-3, "{buffer:?}");
    // Calls without cost need no buffer.
    let free: Vec<Point> = one_session
        .iter()
        .map(|point| Point { elapsed_ns: 0.25 * point.bytes - 1.0, ..*point })
        .collect();
    let buffer = buffer_for_overhead(&free, &free, 0.01).expect("a buffer");
    assert_eq!(buffer, Estimated::new(0.0, None));
}

/// A sweep over buffers from 4 KiB to 1 MiB in which each is so much slower than the best.
fn sweep(slower: &[f64], noise: f64) -> Vec<Setting> {
    let mut rng = fastrand::Rng::with_seed(9);
    let mut settings: Vec<Setting> = (0..slower.len())
        .map(|index| Setting { buffer_bytes: 4096 << (2 * index), runs: Runs::new() })
        .collect();
    for session in 0..8 {
        for round in 0..4 {
            let shared = 0.2 * normal(&mut rng);
            for (setting, slower) in settings.iter_mut().zip(slower) {
                let time = (1.0 + slower) * (shared + noise * normal(&mut rng)).exp();
                setting.runs.insert((session, round), 1e6 * time);
            }
        }
    }
    settings
}

#[test]
fn the_plateau_begins_where_a_smaller_buffer_costs_more() {
    let slower = [0.8, 0.3, 0.005, 0.0, 0.03];
    let clear = plateau(&sweep(&slower, 0.002), 0.02).expect("a plateau");
    assert_eq!((clear.shown_from_bytes, clear.possible_from_bytes), (65_536, 65_536));
    assert_eq!(clear.best_bytes, 262_144);
    let blurred = plateau(&sweep(&slower, 0.2), 0.02).expect("a plateau");
    assert!(blurred.possible_from_bytes <= 65_536, "{blurred:?}");
    assert!(blurred.shown_from_bytes > 65_536, "{blurred:?}");
    assert_eq!(plateau(&[], 0.02), None);
}
