use super::*;
use crate::analysis::tests::Synthetic;
use crate::definition::deltas::LEAST;
use crate::sample::record::RoundRecord;

/// An experiment of two variants that was interrupted after `sessions` sessions of four rounds.
fn interrupted(made: &mut Synthetic, sessions: u32) -> Run {
    // One that is twice as slow is answered at the first interim analysis.
    made.measure(sessions, 4, |_, variant| if variant == "splice" { 2e6 } else { 1e6 });
    let rounds = (1..=sessions).flat_map(|session| {
        (1..=4).map(move |round| RoundRecord {
            cell: "part/1M".to_owned(),
            session,
            round,
            ..RoundRecord::default()
        })
    });
    Run { rounds: rounds.collect(), ..made.run() }
}

fn taken_up(run: &Run, check: impl FnOnce(&mut Conductor<'_>)) {
    with_time(run, Some(60), Some(run), check);
}

/// An experiment as that of `run`, with so many seconds or with 9 rounds, which goes on from `before`.
fn with_time<T>(
    run: &Run,
    seconds: Option<u64>,
    before: Option<&Run>,
    check: impl FnOnce(&mut Conductor<'_>) -> T,
) -> T {
    let home = tempfile::tempdir().expect("created");
    let dir = RunDir::create(home.path(), &run.definition, &run.how, &"here").expect("made");
    let time = seconds.map(Duration::from_secs);
    let limits = Limits { time, rounds: time.is_none().then_some(9), deltas: LEAST };
    let places = Places { src: home.path(), dst: home.path() };
    check(&mut Conductor::new(&run.definition, dir, places, limits, 1, before))
}

#[test]
fn what_was_answered_before_an_interruption_is_not_asked_again() {
    let mut made = Synthetic::new("copy", &["sendfile", "splice"], &["1M"]);
    taken_up(&interrupted(&mut made, SESSIONS_MIN), |conduct| {
        let cell = &conduct.cells()[0];
        assert_eq!((cell.sessions, cell.ended), (SESSIONS_MIN, Some(Ended::Answered)));
    });
    // Between two interim analyses nothing is decided, but a variant that has left stays out.
    let mut made = Synthetic::new("copy", &["sendfile", "splice", "mmap"], &["1M"]);
    let mut run = interrupted(&mut made, SESSIONS_MIN + 2);
    run.samples.retain(|it| it.variant != "splice" || it.session <= SESSIONS_MIN);
    taken_up(&run, |conduct| {
        let cell = &conduct.cells()[0];
        assert_eq!(cell.ended, None);
        assert_eq!(cell.answered, [false, true, false]);
        let order = conduct.order(0, 2, 1);
        assert!(order.rounds.iter().flatten().all(|&variant| variant != 1), "{order:?}");
    });
}

/// In an experiment of two parts that begins with `time`, the part of the next cell after the cells
/// have had the seconds in `spent`.
fn next_part(main: &str, time: Option<u64>, spent: [u64; 2]) -> String {
    let mut made = Synthetic::new("copy", &["sendfile", "splice"], &["1M"]);
    let mut other = made.definition.parts[0].clone();
    other.name = "other".to_owned();
    made.definition.parts.push(other);
    made.definition.main = main.to_owned();
    with_time(&interrupted(&mut made, 1), time, None, |conduct| {
        for (cell, seconds) in conduct.cells.iter_mut().zip(spent) {
            cell.spent = Duration::from_secs(seconds);
        }
        let next = conduct.next_cell(&mut fastrand::Rng::with_seed(1)).expect("a cell is open");
        conduct.cells[next].cell.part.clone()
    })
}

#[test]
fn the_main_part_has_half_of_the_time_first() {
    for (main, time, spent, expected) in [
        ("part", Some(100), [0, 0], "part"),
        ("part", Some(100), [40, 0], "part"),
        // 60 of the 160 seconds that it will be in all; then 90 of 150.
        ("other", Some(100), [0, 60], "other"),
        ("part", Some(60), [90, 0], "other"),
        ("part", Some(100), [60, 20], "part"),
        ("part", Some(100), [120, 20], "other"),
        // With a number of rounds nothing is cut short by the time.
        ("part", None, [1000, 0], "part"),
        // No part is more important.
        ("", Some(100), [40, 0], "other"),
        ("", Some(100), [0, 40], "part"),
    ] {
        assert_eq!(next_part(main, time, spent), expected, "{main:?} {time:?} {spent:?}");
    }
}

#[test]
fn no_session_outlasts_the_time() {
    let mut made = Synthetic::new("copy", &["sendfile", "splice"], &["1M"]);
    taken_up(&interrupted(&mut made, 2), |conduct| {
        let order = conduct.order(0, 2, 1);
        let second = Some(1_000_000_000);
        assert!(order.rounds_ns <= second, "the first session of a process is short");
        assert!(order.repeats_ns > second && order.repeats_ns <= Some(60_000_000_000));
    });
}
