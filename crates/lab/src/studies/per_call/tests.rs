use super::*;
use crate::analysis::tests::Synthetic;
use crate::sample::call_times::{CallTimes, OpTimes};
use crate::sample::record::{Sample, of_calls};

/// Adds the reads and the writes of one run, in nanoseconds with the reading of the clock.
fn add_calls(made: &mut Synthetic, run: &Sample, [reads, writes]: [&[u32]; 2]) {
    let (read, write) = (OpTimes::of(reads), OpTimes::of(writes));
    let (calls, sequences) = of_calls(run, &CallTimes { clock_ns: 25, read, write });
    made.calls.extend(calls);
    made.sequences.extend(sequences);
}

/// Reads cost 200 + 0.1 n ns and writes 300 + 0.3 n ns.
fn made(variants: &[&str]) -> Synthetic {
    let mut made = Synthetic::new("calls", variants, &["10M"]);
    made.measure(6, 2, |_, _| 1e6);
    let mut rng = fastrand::Rng::with_seed(11);
    for run in made.samples.clone() {
        let Bytes(bytes) = run.variant.parse().expect("parsed");
        let [reads, writes] = [(200.0, 0.1), (300.0, 0.3)].map(|(call_ns, byte_ns)| {
            let mean = call_ns + byte_ns * bytes as f64;
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let ns = |_| (mean * (0.97 + 0.06 * rng.f64())).round() as u32 + 25;
            (0..400).map(ns).collect::<Vec<u32>>()
        });
        add_calls(&mut made, &run, [&reads, &writes]);
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
    for run in made.samples.clone() {
        add_calls(&mut made, &run, [&ns, &[]]);
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
