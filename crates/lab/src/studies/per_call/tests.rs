use super::*;
use crate::analysis::tests::Synthetic;
use crate::sample::call_times::OpTimes;
use crate::sample::record::SequenceRecord;

const CLOCK_NS: u64 = 25;

/// The lines of one run's calls of one kind, in nanoseconds with the reading of the clock.
fn add_calls(
    made: &mut Synthetic,
    cell: &str,
    variant: &str,
    place: (u32, u32),
    op: &str,
    ns: &[u32],
) {
    let times = OpTimes::of(ns);
    made.calls.extend(times.buckets.iter().map(|&bucket| CallRecord {
        cell: cell.to_owned(),
        variant: variant.to_owned(),
        session: place.0,
        round: place.1,
        repeat: 0,
        op: op.to_owned(),
        clock_ns: CLOCK_NS,
        bucket,
    }));
}

/// Reads cost 200 + 0.1 n ns and writes 300 + 0.3 n ns.
fn made(variants: &[&str]) -> Synthetic {
    let mut made = Synthetic::new("calls", variants, &["10M"]);
    made.measure(6, 2, |_, _| 1e6);
    let mut rng = fastrand::Rng::with_seed(11);
    for session in 1..=6 {
        for variant in variants {
            let Bytes(bytes) = variant.parse().expect("a buffer");
            for round in 1..=2 {
                for (op, call_ns, byte_ns) in [("read", 200.0, 0.1), ("write", 300.0, 0.3)] {
                    let mean = call_ns + byte_ns * bytes as f64;
                    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                    let ns: Vec<u32> = (0..400)
                        .map(|_| (mean * (0.97 + 0.06 * rng.f64())).round() as u32 + 25)
                        .collect();
                    add_calls(&mut made, "part/10M", variant, (session, round), op, &ns);
                }
            }
        }
    }
    made
}

#[test]
fn costs_of_call_and_byte_and_the_buffer_that_follows() {
    let made = made(&["1K", "4K", "16K", "64K", "256K"]);
    let found = of(&made.view()).expect("calls");
    let cell = &found.cells[0];
    assert_eq!(cell.calls.len(), 10);
    assert_eq!((cell.calls[0].op.as_str(), cell.calls[0].calls), ("read", 4800));
    let near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 0.05;
    let (read, write) = (cell.read.expect("a line"), cell.write.expect("a line"));
    assert!(near(read.call_ns.value, 200.0) && near(read.byte_ns.value, 0.1), "{read:?}");
    assert!(near(write.call_ns.value, 300.0) && near(write.byte_ns.value, 0.3), "{write:?}");
    let buffer = cell.recommended_bytes.expect("a buffer");
    assert!(near(buffer.value, 500.0 / 0.4 / 0.01), "{buffer:?}");
    assert_eq!(cell.calls[3].modes.len(), 1, "{:?}", cell.calls[3]);
    let said = found.sheet().sentences.join(" ");
    assert!(said.contains("the calls add no more than 1 %"), "{said}");
    let short = found.headline().expect("a buffer");
    assert!(short.starts_with("calls cost 1 % with a buffer of 12"), "{short}");
}

#[test]
fn modes_and_the_steps_of_readahead() {
    let mut made = Synthetic::new("calls", &["16K"], &["10M"]);
    made.part().states = vec![State::Cold];
    made.measure(2, 1, |_, _| 1e6);
    // Every eighth read waits: 128 KiB.
    let ns: Vec<u32> =
        (0..640).map(|call| if call % 8 == 0 { 300_000 + call } else { 2_000 + call }).collect();
    for session in [1, 2] {
        add_calls(&mut made, "part/10M/cold", "16K", (session, 1), "read", &ns);
        made.sequences.extend((0..).zip(&ns).map(|(call, &ns)| SequenceRecord {
            cell: "part/10M/cold".to_owned(),
            variant: "16K".to_owned(),
            session,
            op: "read".to_owned(),
            call,
            elapsed_ns: u64::from(ns),
        }));
    }
    let found = of(&made.view()).expect("calls");
    let read = &found.cells[0].calls[0];
    let waits = read.waits.expect("reads that waited");
    assert_eq!((waits.every_bytes, waits.share), (128 << 10, 0.125));
    assert_eq!(read.modes.len(), 2, "{read:?}");
    assert!((read.modes[1].share - 0.125).abs() < 1e-9, "{read:?}");
    assert!((250_000.0..350_000.0).contains(&read.modes[1].at_ns), "{read:?}");
    assert_eq!(found.cells[0].read, None, "one buffer makes no line");
}
