use std::collections::BTreeMap;

use engines::profile::{InFlight, Residency, Situation, SizeClass};

use super::*;

fn variant(text: &str) -> Variant {
    text.parse().expect(text)
}

fn elimination_done(text: &str, role: Role, elimination_median_ns: f64) -> Candidate {
    Candidate { elimination_ns: vec![elimination_median_ns], ..Candidate::new(variant(text), role) }
}

fn raced(text: &str, role: Role, times: &[f64]) -> Candidate {
    let finals_ns = (1..).zip(times.iter().copied()).collect();
    Candidate { finals_ns, ..Candidate::new(variant(text), role) }
}

fn names(candidates: &[Candidate]) -> Vec<&str> {
    candidates
        .iter()
        .filter(|candidate| candidate.runs())
        .map(|candidate| candidate.name.as_str())
        .collect()
}

#[test]
fn what_does_the_same_to_a_short_file_is_tried_once() {
    let variants = ["read_write:4K", "read_write:64K", "mmap:8M", "mmap:8M,populate"];
    let variants = variants.map(variant);
    let of = |file_bytes| {
        let baselines = vec![variant("read_write:256K")];
        candidates(baselines, &variants, file_bytes).len()
    };
    assert_eq!(of(4 << 10), 3, "all buffers hold the whole file");
    assert_eq!(of(64 << 10), 4);
    assert_eq!(of(64 << 20), 5);
}

#[test]
fn the_slow_leave_and_baselines_stay() {
    let mut candidates = vec![
        elimination_done("read_write:256K", Role::Baseline, 900.0),
        elimination_done("sendfile", Role::Contender, 100.0),
        elimination_done("splice", Role::Contender, 290.0),
        elimination_done("stdio:4K", Role::Contender, 310.0),
    ];
    drop_slow(&mut candidates, 1);
    assert_eq!(names(&candidates), ["read_write:256K", "sendfile", "splice"]);
    drop_slow(&mut candidates, 2);
    assert_eq!(names(&candidates), ["read_write:256K", "sendfile"]);
    // One that shares extents has no place among those that move bytes, and makes none slow.
    candidates.push(Candidate {
        shares_extents: true,
        ..elimination_done("reflink", Role::Contender, 1.0)
    });
    drop_slow(&mut candidates, 3);
    assert_eq!(names(&candidates), ["read_write:256K", "sendfile", "reflink"]);
}

#[test]
fn who_was_not_tried_waits_and_comes_to_a_new_final() {
    let untried = Candidate::new(variant("copy_file_range"), Role::Contender);
    let beaten = |role| Candidate { status: Status::Beaten, ..raced("splice", role, &[9.0, 9.0]) };
    let mut candidates = vec![
        raced("direct", Role::Baseline, &[5.0; 6]),
        Candidate {
            elimination_ns: vec![5.0],
            ..Candidate::new(variant("sendfile"), Role::Contender)
        },
        untried,
        beaten(Role::Baseline),
        beaten(Role::Contender),
    ];
    drop_slow(&mut candidates, 1);
    assert_eq!(candidates[2].status, Status::Waiting, "its speed is unknown");
    assert_eq!(names(&candidates), ["direct", "sendfile"]);
    candidates[1].status = Status::Slow(String::new());
    assert!(!is_settled(&candidates), "one was not tried");
    assert_eq!(admit_waiting(&mut candidates), [2]);
    candidates[2].elimination_ns.push(1.0);
    restart_final(&mut candidates);
    assert_eq!(names(&candidates), ["direct", "copy_file_range", "splice"]);
    assert!(candidates.iter().all(|candidate| candidate.finals_ns.is_empty()));
    assert_eq!(candidates[0].elimination_ns, [5.0; 6], "no run is lost");
    assert_eq!(candidates[4].status, Status::Beaten);
}

#[test]
fn one_quick_run_makes_no_winner() {
    let candidate = |times: &[f64]| Candidate {
        elimination_ns: times.to_vec(),
        ..Candidate::new(variant("splice"), Role::Contender)
    };
    for (times, expected) in [
        (&[][..], None),
        (&[5.0], Some(5.0)),
        (&[7.0, 5.0], Some(5.0)),
        (&[7.0, 2.0, 5.0], Some(5.0)),
        (&[7.0, 2.0, 6.0, 5.0], Some(5.0)),
    ] {
        assert_eq!(candidate(times).elimination_median_ns(), expected, "{times:?}");
    }
}

#[test]
fn only_so_many_go_on() {
    let mut candidates: Vec<Candidate> = (1..40)
        .map(|n| {
            elimination_done(&format!("read_write:{n}K"), Role::Contender, 100.0 + f64::from(n))
        })
        .collect();
    drop_slow(&mut candidates, 1);
    assert_eq!(names(&candidates).len(), 16);
    drop_slow(&mut candidates, 2);
    assert_eq!(names(&candidates).len(), 8);
    admit_to_final(&mut candidates);
    assert_eq!(
        names(&candidates),
        ["read_write:1K", "read_write:2K", "read_write:3K", "read_write:4K"]
    );
}

#[test]
fn the_search_goes_on_around_the_best() {
    let candidates = [
        elimination_done("read_write:256K@2", Role::Contender, 100.0),
        elimination_done("read_write:512K@2", Role::Contender, 110.0),
    ];
    let case = |in_flight| {
        let size = SizeClass::of(64 << 20);
        let residency = Residency::Resident;
        Case::of(Situation { size, residency, in_flight, no_cache: false })
    };
    let found = |in_flight, workers_max| {
        let found = neighbours(&candidates, &case(in_flight), workers_max, false);
        found.iter().map(|candidate| candidate.name.clone()).collect::<Vec<_>>()
    };
    let (half, one, four) = ("read_write:128K@2", "read_write:256K", "read_write:256K@4");
    assert_eq!(found(InFlight::One, 4), [half, one, four]);
    assert_eq!(found(InFlight::One, 2), [half, one], "no more workers than there are");
    assert_eq!(found(InFlight::Several, 4), [one], "each has a file of its own");
    // At first around another engine too, if it is near.
    let around = |ns: f64, first: bool| {
        let other = elimination_done("splice:1M,pipe=1M", Role::Contender, ns);
        let candidates = [candidates[0].clone(), candidates[1].clone(), other];
        let found = neighbours(&candidates, &case(InFlight::One), 2, first);
        found.iter().any(|candidate| candidate.name == "splice:1M,pipe=1M@2")
    };
    assert!(around(120.0, true) && !around(120.0, false) && !around(140.0, true));
}

#[test]
fn a_choice_has_to_gain_something() {
    let preferred = variant("read_write:256K");
    let chosen = |candidates: &[Candidate]| {
        choose(candidates, &preferred)
            .map(|index| candidates[index].name.clone())
            .expect("a choice")
    };
    let noise = [0.0, 1.0, -1.0, 0.5, -0.5, 0.2];
    let around = |middle: f64| noise.map(|n| middle + n);
    let default = |middle| raced("read_write:256K", Role::Baseline, &around(middle));
    // A gain of a fifth, and one of a hundredth.
    let faster = raced("sendfile", Role::Contender, &around(100.0));
    assert_eq!(chosen(&[default(120.0), faster.clone()]), "sendfile");
    assert_eq!(chosen(&[default(101.0), faster.clone()]), "read_write:256K");
    // Noise that could be a gain.
    let wild = raced("splice", Role::Contender, &[50.0, 200.0, 90.0, 120.0, 60.0, 150.0]);
    assert_eq!(chosen(&[default(103.0), wild.clone()]), "read_write:256K");
    // A loss that is likelier than not.
    assert_eq!(chosen(&[default(130.0), wild]), "splice");
    // Of equals that are both better, the simpler.
    let shared = raced("splice@2", Role::Contender, &around(99.9));
    assert_eq!(chosen(&[default(150.0), shared, faster]), "sendfile");
    // Another copier, and a variant that shares extents, cannot be chosen.
    let other_copier = Candidate {
        role: Role::OtherCopier,
        ..raced("sendfile", Role::OtherCopier, &around(10.0))
    };
    let clone =
        Candidate { shares_extents: true, ..raced("reflink", Role::Contender, &around(1.0)) };
    assert_eq!(chosen(&[default(150.0), other_copier, clone]), "read_write:256K");
}

/// Fast four times in five and six times slower otherwise: twice the fast time on average. A steady
/// variant at 1.5 times the fast one reaches the final beside it, and is chosen.
#[test]
fn a_slow_mode_is_not_chosen() {
    let slow_in = |slow: &[usize], runs: usize| -> Vec<f64> {
        (0..runs)
            .map(|run| if slow.contains(&run) { 600.0 } else { 100.0 + (run % 3) as f64 })
            .collect()
    };
    let steady =
        |runs: usize| -> Vec<f64> { (0..runs).map(|run| 150.0 + (run % 2) as f64).collect() };
    let tried = |text: &str, times: Vec<f64>| Candidate {
        elimination_ns: times,
        ..Candidate::new(variant(text), Role::Contender)
    };
    // As fast as each other, and more of them than the final takes.
    let mut candidates: Vec<Candidate> = (1..=6)
        .map(|n| tried(&format!("splice:{n}M"), slow_in(&[n % 4, 7], 9)))
        .chain([tried("sendfile", steady(9)), tried("mmap:8M", steady(9).repeat(2))])
        .collect();
    candidates[7].elimination_ns.iter_mut().for_each(|ns| *ns *= 2.0);
    for round in 1..=3 {
        drop_slow(&mut candidates, round);
    }
    admit_to_final(&mut candidates);
    let names = names(&candidates);
    assert!(names.contains(&"sendfile") && !names.contains(&"mmap:8M"), "{names:?}");
    assert!(names.contains(&"splice:1M"), "one disturbed run drops nobody: {names:?}");

    let finals = |times: Vec<f64>| (1..).zip(times).collect::<BTreeMap<u32, f64>>();
    let race = |text: &str, times: Vec<f64>| Candidate {
        finals_ns: finals(times),
        ..Candidate::new(variant(text), Role::Contender)
    };
    let mut final_of =
        [race("splice", slow_in(&[], 4)), race("sendfile", steady(4)), race("stdio:4K", steady(4))];
    final_of[2].finals_ns.values_mut().for_each(|ns| *ns *= 2.0);
    drop_beaten(&mut final_of, 0.0);
    assert_eq!(final_of[1].status, Status::Beaten, "nothing speaks for it so far");
    final_of[0].finals_ns = finals(slow_in(&[4, 9], 11));
    drop_beaten(&mut final_of, 0.0);
    assert_eq!(final_of[1].status, Status::Running, "it comes back");
    assert_eq!(final_of[2].status, Status::Beaten);
    final_of[1].finals_ns.extend((12..=15).map(|round| (round, 150.0)));
    final_of[0].finals_ns.extend((12..=15).map(|round| (round, 100.0)));
    let preferred = variant("read_write:256K");
    let chosen = choose(&final_of, &preferred).expect("a choice");
    assert_eq!(final_of[chosen].name, "sendfile");
}

#[test]
fn it_is_settled_when_nothing_is_left_to_tell() {
    let noise = [0.0, 1.0, -1.0, 0.5, -0.5, 0.2, 0.4, -0.1, 0.3, -0.8, 0.6];
    let times = |middle: f64, spread: f64| noise.map(|n| middle + spread * n);
    let one = raced("sendfile", Role::Contender, &times(100.0, 0.1));
    let slower = raced("splice", Role::Contender, &times(120.0, 0.1));
    let equal = raced("read_write:256K", Role::Baseline, &times(100.2, 0.1));
    let open = [90.0, 130.0, 95.0, 99.0, 140.0, 80.0, 90.0, 130.0, 95.0, 99.0, 140.0];
    let open = raced("copy_file_range", Role::Baseline, &open);
    assert!(is_settled(&[one.clone(), slower.clone(), equal.clone()]));
    assert!(!is_settled(&[one.clone(), open]));
    let few = raced("read_write:256K", Role::Baseline, &[120.0, 121.0]);
    assert!(!is_settled(&[one.clone(), few]));
    // A slow mode may show itself yet.
    let early = |candidate: &Candidate| Candidate {
        finals_ns: candidate.finals_ns.range(..=10).map(|(&round, &ns)| (round, ns)).collect(),
        ..candidate.clone()
    };
    assert!(!is_settled(&[early(&one), early(&slower), early(&equal)]));
    assert!(!is_settled(&[]));
    let mut candidates = [one, slower, equal];
    drop_beaten(&mut candidates, 0.25);
    assert_eq!(names(&candidates).len(), 3, "it is slower, and not by so much");
    drop_beaten(&mut candidates, 0.0);
    assert_eq!(names(&candidates), ["sendfile", "read_write:256K"]);
}
