use super::*;
use crate::analysis::tests::Synthetic;
use crate::page_cache::state::Proof;

fn said(made: &Synthetic) -> String {
    let views = View::all(&made.definition, made.samples(), made.rules);
    of(&views, MachineFacts::default()).join("\n")
}

fn quiet(variants: &[&str]) -> Synthetic {
    Synthetic::new("copy", variants, &["1M"])
}

#[test]
fn quiet_samples_give_no_sign() {
    let mut made = quiet(&["sendfile", "mmap:8M"]);
    made.measure_with(10, 4, |_, variant, record| {
        // A mapping has page faults, and so they are expected.
        record.measured.minor_faults = if variant == "mmap:8M" { 256 } else { 2 };
        record.measured.state_proved = Proof::Warm;
        1e6
    });
    assert_eq!(said(&made), "");
}

/// What is different in the samples.
type Change = fn(&mut Sample);

#[test]
fn each_sign_is_told() {
    let cases: [(Change, &str); 8] = [
        (
            |it| it.measured.minor_faults = 63,
            "sendfile had page faults in the timed part where none are expected, 63 a run at part/1M: \
             their cost is included",
        ),
        (|it| it.measured.elapsed_ns = 800, "reading the clock, 25 ns, is more than 2 % of them"),
        (|it| it.measured.shares_extents = true, "sendfile moved no bytes in part/1M:"),
        (|it| it.measured.last_resort_bytes = 77, "sendfile refused some bytes in part/1M;"),
        (
            |it| {
                it.measured.counted = it.round != 2;
                it.measured.state_note = "1 MiB is there".to_owned();
            },
            "10 of 40 runs at part/1M do not count, since their page cache state was not as asked \
             for (the last: 1 MiB is there)",
        ),
        (
            |it| it.measured.pages_scanned = Some(5),
            "during 40 of 40 runs the kernel looked for memory",
        ),
        (
            |it| it.measured.elapsed_ns += 30_000 * u64::from(it.session),
            "in 1 of 1 series of runs the times drift over the run order, by up to",
        ),
        (
            |it| {
                it.measured.elapsed_ns +=
                    u64::from((it.session * 7 + it.round * 3) % 5 / 2 > 0) * 400_000;
            },
            "in 1 of 1 series of runs runs are of more than one kind, at most 1.4",
        ),
    ];
    for (spoil, expected) in cases {
        let mut made = quiet(&["sendfile"]);
        made.measure_with(10, 4, |_, _, record| {
            record.measured.state_proved = Proof::Warm;
            record.measured.elapsed_ns = 1_000_000;
            spoil(record);
            record.measured.elapsed_ns as f64
        });
        let said = said(&made);
        assert!(said.contains(expected), "{said}\nfor {expected}");
    }
}

#[test]
fn a_cold_source_of_which_little_is_read_is_told() {
    let mut made = quiet(&["sendfile"]);
    made.part().states = vec![State::Cold];
    made.measure_with(3, 2, |_, _, record| {
        record.measured.state_proved = Proof::Cold;
        record.measured.device_read_bytes = Some(1 << 18);
        1e6
    });
    let said = said(&made);
    assert!(said.contains("cold runs at part/1M/cold had devices read less"), "{said}");
}

#[test]
fn cells_are_named_as_far_as_they_fit() {
    let cells: Vec<String> = (1..=5).map(|n| format!("a/{n}K")).collect();
    assert_eq!(named(&cells[..3]), "a/1K, a/2K and a/3K");
    assert_eq!(named(&cells), "a/1K, a/2K and 3 more cells");
}
