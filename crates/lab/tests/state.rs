//! The page cache is set and proved on real file systems.

use haulage_lab::page_cache::prover::{Prover, Reached};
use haulage_lab::page_cache::state::{Proof, State};
use haulage_lab::sample::measurement::Measurement;
use haulage_lab::source::Source;
use testfs::FsKind;

const BYTES: usize = (5 << 20) + 123;

#[test]
fn warm_and_cold_are_reached_and_told_apart() {
    testfs::each_fs(|kind, dir| {
        let path = dir.join("source");
        std::fs::write(&path, testfs::random_bytes(BYTES, 1)).expect("written");
        let source = Source::open(&path).expect("opened");
        let load = source.whole();
        let prover = Prover::try_on(&source, State::Warm).expect("tried");
        assert!(prover.counts_pages, "{kind}: {}", prover.counts_pages_note);
        assert_eq!(prover.drops_pages, kind != FsKind::Tmpfs, "{kind}");

        let reach = |state| prover.reach(state, &source, &load).expect("reached");
        let warm = reach(State::Warm);
        assert_eq!((warm.proof, warm.resident_bytes), (Proof::Warm, Some(BYTES as u64)), "{kind}");
        let cold = reach(State::Cold);
        if kind == FsKind::Tmpfs {
            assert_eq!(cold.proof, Proof::NotReached, "{kind}");
            assert!(cold.note.contains("5,243,003 of 5,243,003 bytes"), "{kind}: {}", cold.note);
        } else {
            assert_eq!((cold.proof, cold.resident_bytes), (Proof::Cold, Some(0)), "{kind}");
        }
        assert_eq!(reach(State::Warm).proof, Proof::Warm, "{kind}");
    });
}

#[test]
fn holes_of_a_file_in_memory_are_warm() {
    let Some(scratch) = testfs::fs(FsKind::Tmpfs) else { return };
    let path = scratch.join("sparse");
    std::fs::write(&path, [7; 4096]).expect("written");
    let file = std::fs::File::options().write(true).open(&path).expect("opened");
    file.set_len(1 << 20).expect("extended");
    let source = Source::open(&path).expect("opened");
    let prover = Prover::try_on(&source, State::Warm).expect("tried");
    let reached = prover.reach(State::Warm, &source, &source.whole()).expect("reached");
    assert_eq!(reached.proof, Proof::Warm, "{}", reached.note);
}

#[test]
fn device_reads_have_to_fit_the_state() {
    let Some(scratch) = testfs::fs(FsKind::Ext4) else { return };
    let path = scratch.join("source");
    std::fs::write(&path, testfs::random_bytes(BYTES, 1)).expect("written");
    let prover = Prover::try_on(&Source::open(&path).expect("opened"), State::Cold).expect("tried");
    assert!(prover.counts_device_reads, "ext4 reads through a device");
    let size = 100 << 20;
    for (proof, device_read_bytes, bypasses_cache, shares_extents, fits) in [
        (Proof::Warm, Some(0), false, false, true),
        (Proof::Warm, Some(4096), false, false, true),
        (Proof::Warm, Some(size), false, false, false),
        (Proof::Warm, Some(size), true, false, true),
        (Proof::Warm, None, false, false, true),
        (Proof::Cold, Some(size), false, false, true),
        (Proof::Cold, Some(size / 2), false, false, false),
        (Proof::Cold, Some(0), false, true, true),
    ] {
        let mut run = Measurement { device_read_bytes, shares_extents, ..Measurement::default() };
        let reached = Reached { proof, note: String::new(), resident_bytes: None };
        prover.judge(&mut run, reached, size, bypasses_cache);
        let expected = if fits { proof } else { Proof::NotReached };
        let found = (run.state_proved, run.counted, run.state_note.is_empty());
        assert_eq!(found, (expected, fits, fits), "{proof:?} {device_read_bytes:?}");
    }
}
