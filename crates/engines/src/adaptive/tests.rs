//! Copies by several candidates and workers: which bytes arrive, and what is counted.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;

use super::Adaptive;
use crate::engine::{Copier, Engine, Facts, Kind, Verdict};
use crate::{Moved, Pair, Side, Span, Stop, Tuning, Variant};

const MIB: u64 = 1 << 20;

fn variant(text: &str) -> Variant {
    text.parse().expect("a variant")
}

fn adaptive(texts: &[&str], seed: u64) -> Adaptive {
    Adaptive::new(texts.iter().map(|text| variant(text)).collect(), false, seed)
}

/// A source of random bytes, and an empty destination.
fn files(bytes: u64) -> (File, File) {
    let (src, dst) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
    src.write_all_at(&testfs::random_bytes(usize::try_from(bytes).unwrap(), 1), 0).unwrap();
    (src, dst)
}

fn contents(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(file.metadata().unwrap().len()).unwrap()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// Copies a whole file in calls of at most `call_bytes`, and checks that the pieces that were observed
/// follow each other.
fn copy(adaptive: &mut Adaptive, (src, dst): (&File, &File), bytes: u64, call_bytes: u64) -> Moved {
    let mut copied = 0;
    let mut observed = 0;
    adaptive.start_file();
    while copied < bytes {
        let span = Span::at(copied, call_bytes.min(bytes - copied));
        let pair = Pair::new(src.as_fd(), dst.as_fd());
        let moved = Adaptive::copy(adaptive, pair, span, &mut |_, piece, moved| {
            assert_eq!(piece.src, crate::Pos::At(observed));
            observed += moved.bytes;
        });
        copied += moved.bytes;
        if moved.stop != Stop::Done {
            return Moved { bytes: copied, stop: moved.stop };
        }
        assert_eq!(moved.bytes, span.len);
    }
    assert_eq!(observed, copied);
    Moved { bytes: copied, stop: Stop::Done }
}

const CANDIDATES: &[&str] =
    &["copy_file_range", "read_write:256K@2", "splice:1M,pipe=1M@3", "read_write:64K"];

#[test]
fn all_bytes_arrive_whatever_is_chosen() {
    for seed in 0..4 {
        let mut adaptive = adaptive(CANDIDATES, seed);
        for bytes in [1, 4095, MIB - 1, MIB, MIB + 1, 5 * MIB + 3, 40 * MIB + 17] {
            for call_bytes in [u64::MAX, 8 * MIB + 5] {
                let (src, dst) = files(bytes);
                let moved = copy(&mut adaptive, (&src, &dst), bytes, call_bytes);
                assert_eq!(moved, Moved { bytes, stop: Stop::Done });
                assert!(contents(&src) == contents(&dst), "{bytes} bytes, seed {seed}");
            }
        }
    }
}

/// Takes 200 ms for a call.
struct Slow;

impl Copier for Slow {
    fn copy(&mut self, pair: Pair<'_>, span: Span) -> Moved {
        std::thread::sleep(std::time::Duration::from_millis(200));
        UpTo { limit: u64::MAX, stop: Stop::Done }.copy(pair, span)
    }
}

/// The trial starts after the first piece of the slow candidate, which is not used again.
#[test]
fn all_bytes_arrive_where_readahead_is_counted() {
    static SLOW: Engine = Engine {
        name: "slow",
        about: "takes long for a call",
        shares: "nothing",
        facts: Facts::REGULAR,
        params: &[],
        lab_variants: &[],
        kind: Kind::Copier { probe: |_| Verdict::Yes, start: |_| Ok(Box::new(Slow)) },
    };
    for call_bytes in [u64::MAX, 64 * MIB] {
        let slow = Variant::plain(&SLOW);
        let mut adaptive = Adaptive::new(vec![slow, variant("read_write:1M@2")], true, 1);
        let bytes = 130 * MIB + 17;
        let (src, dst) = files(bytes);
        let moved = copy(&mut adaptive, (&src, &dst), bytes, call_bytes);
        assert_eq!(moved, Moved { bytes, stop: Stop::Done });
        assert!(contents(&src) == contents(&dst), "calls of {call_bytes} bytes");
        assert_eq!(adaptive.best().to_string(), "read_write:1M@2");
        let rates: Vec<_> = adaptive.rates().map(|(_, rate)| rate).collect();
        assert!(rates[1] > rates[0] && rates[0].is_some(), "{rates:?}");
    }
}

#[test]
fn what_is_ahead_is_what_is_in_the_page_cache() {
    let (src, dst) = files(3 * MIB);
    let pair = Pair::new(src.as_fd(), dst.as_fd());
    let ahead = |at| super::ahead_bytes(pair, crate::Pos::At(at));
    let mib = MIB.cast_signed();
    assert_eq!([0, MIB, 3 * MIB].map(ahead), [Some(3 * mib), Some(2 * mib), Some(0)]);
    assert_eq!(ahead(MIB + 1), Some(2 * mib), "from the start of the page");
    assert_eq!(super::ahead_bytes(pair, crate::Pos::Here), None);
}

#[test]
fn a_short_rest_belongs_to_the_piece_before() {
    let lengths = [(10, 100), (10, 15), (10, 14), (10, 10), (10, 3), (u64::MAX, 7)]
        .map(|(wanted, left)| super::piece_length(wanted, left));
    assert_eq!(lengths, [10, 10, 14, 10, 3, 7]);
}

#[test]
fn a_source_that_ends_early_ends_the_copy() {
    for at in [0, 3 * MIB + 7] {
        let mut adaptive = adaptive(CANDIDATES, 1);
        let (src, dst) = files(at);
        let moved = copy(&mut adaptive, (&src, &dst), 10 * MIB, u64::MAX);
        assert_eq!(moved, Moved { bytes: at, stop: Stop::Eof });
        assert!(contents(&src) == contents(&dst), "{at} bytes");
    }
}

#[test]
fn a_source_that_grew_is_copied_up_to_the_span() {
    // The candidates see a source of 2 MiB, and are asked for what was there when it was opened.
    let (src, dst) = files(6 * MIB);
    let mut adaptive = adaptive(CANDIDATES, 2);
    let pair = Pair::new(src.as_fd(), dst.as_fd());
    let moved = Adaptive::copy(&mut adaptive, pair, Span::whole(4 * MIB), &mut |_, _, _| {});
    assert_eq!(moved, Moved { bytes: 4 * MIB, stop: Stop::Done });
    assert!(contents(&dst) == contents(&src)[..4 << 20]);
}

/// Copies rightly up to `limit` bytes of the file, and then stops as told.
struct UpTo {
    limit: u64,
    stop: Stop,
}

impl Copier for UpTo {
    fn copy(&mut self, pair: Pair<'_>, span: Span) -> Moved {
        let crate::Pos::At(start) = span.src else { panic!("the tests give offsets") };
        let left = self.limit.saturating_sub(start).min(span.len);
        let mut buffer = vec![0; usize::try_from(left).unwrap()];
        let read = crate::pread_full(pair.src, &mut buffer, start).unwrap();
        let (bytes, result) = crate::pwrite_all(pair.dst, &buffer[..read], start);
        result.unwrap();
        let stop = if left < span.len { self.stop } else { Stop::Done };
        Moved { bytes: bytes as u64, stop }
    }
}

const LIMIT: u64 = 3 * MIB + 100;

/// An engine that stops at [`LIMIT`].
macro_rules! stopping {
    ($stop:expr) => {{
        fn start(_: &Tuning) -> io::Result<Box<dyn Copier>> {
            Ok(Box::new(UpTo { limit: LIMIT, stop: $stop }))
        }
        static ENGINE: Engine = Engine {
            name: "stopping",
            about: "stops at an offset",
            shares: "nothing",
            facts: Facts::REGULAR,
            params: &[],
            lab_variants: &[],
            kind: Kind::Copier { probe: |_| Verdict::Yes, start },
        };
        Variant::plain(&ENGINE)
    }};
}

#[test]
fn another_candidate_continues_where_one_is_refused() {
    for workers in [1, 2] {
        for seed in 0..4 {
            let refuses = stopping!(Stop::Refused(Errno::INVAL)).shared_by(workers);
            let mut adaptive =
                Adaptive::new(vec![refuses, variant("read_write:256K")], false, seed);
            let bytes = 20 * MIB;
            // The second file admits it again: EINVAL may hold for one file only.
            for _ in 0..2 {
                let (src, dst) = files(bytes);
                let moved = copy(&mut adaptive, (&src, &dst), bytes, u64::MAX);
                assert_eq!(moved, Moved { bytes, stop: Stop::Done });
                assert!(contents(&src) == contents(&dst), "{workers} workers, seed {seed}");
                assert_eq!(adaptive.best().engine.name, "read_write");
            }
        }
    }
}

#[test]
fn a_failure_ends_the_copy_at_an_exact_count() {
    for workers in [1, 2, 3] {
        let stop = Stop::Failed { side: Side::Dst, errno: Errno::NOSPC };
        let fails =
            stopping!(Stop::Failed { side: Side::Dst, errno: Errno::NOSPC }).shared_by(workers);
        let mut adaptive = Adaptive::new(vec![fails], false, 0);
        let (src, dst) = files(10 * MIB);
        let moved = copy(&mut adaptive, (&src, &dst), 10 * MIB, u64::MAX);
        assert_eq!(moved, Moved { bytes: LIMIT, stop });
        let prefix = usize::try_from(LIMIT).unwrap();
        assert!(contents(&dst) == contents(&src)[..prefix], "{workers} workers");
    }
}

#[test]
fn all_refused_is_refused() {
    let refuses = stopping!(Stop::Refused(Errno::XDEV));
    let mut adaptive = Adaptive::new(vec![refuses], false, 0);
    let (src, dst) = files(10 * MIB);
    let moved = copy(&mut adaptive, (&src, &dst), 10 * MIB, u64::MAX);
    assert_eq!(moved, Moved { bytes: LIMIT, stop: Stop::Refused(Errno::XDEV) });
    // EXDEV holds for every file of these file systems.
    assert_eq!(copy(&mut adaptive, (&src, &dst), MIB, u64::MAX), Moved::refused(Errno::XDEV));
}

#[test]
fn a_copier_that_cannot_be_started_is_left_out() {
    static STARTS: AtomicU64 = AtomicU64::new(0);
    fn start(_: &Tuning) -> io::Result<Box<dyn Copier>> {
        STARTS.fetch_add(1, Ordering::Relaxed);
        Err(Errno::MFILE.into())
    }
    static ENGINE: Engine = Engine {
        name: "unstartable",
        about: "has no descriptors",
        shares: "nothing",
        facts: Facts::REGULAR,
        params: &[],
        lab_variants: &[],
        kind: Kind::Copier { probe: |_| Verdict::Yes, start },
    };
    let unstartable = Variant::plain(&ENGINE).shared_by(2);
    let mut adaptive = Adaptive::new(vec![unstartable, variant("read_write:256K@2")], false, 3);
    let (src, dst) = files(20 * MIB);
    let moved = copy(&mut adaptive, (&src, &dst), 20 * MIB, u64::MAX);
    assert_eq!(moved, Moved { bytes: 20 * MIB, stop: Stop::Done });
    assert!(contents(&src) == contents(&dst));
    assert_eq!(STARTS.load(Ordering::Relaxed), 1, "once for the file");
}
