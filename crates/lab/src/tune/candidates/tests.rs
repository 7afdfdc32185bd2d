use engines::profile::{InFlight, Residency, Situation, SizeClass};

use super::*;
use crate::search::candidate::raced;

fn variant(text: &str) -> Variant {
    text.parse().expect(text)
}

fn elimination_done(text: &str, role: Role, elimination_median_ns: f64) -> Candidate {
    Candidate { elimination_ns: vec![elimination_median_ns], ..Candidate::new(variant(text), role) }
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

/// Fast four times in five and six times slower otherwise: twice the fast time on average.
#[test]
fn a_slow_mode_is_not_chosen() {
    let quick = (0..15).map(|run| if run % 5 == 4 { 600.0 } else { 100.0 + f64::from(run % 3) });
    let quick: Vec<f64> = quick.collect();
    let steady: Vec<f64> = (0..15).map(|run| 150.0 + f64::from(run % 2)).collect();
    let candidates =
        [raced("splice", Role::Contender, &quick), raced("sendfile", Role::Contender, &steady)];
    assert_eq!(choose(&candidates, &variant("read_write:256K")), Some(1));
}
