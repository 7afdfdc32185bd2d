//! Sources that grow during the copy: the bytes read count, no copy fails, and the destination has
//! no bytes beyond the count.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use engines::{Moved, Span, Stop, Variant};
use testfs::{each_fs, random_bytes};

use crate::trial::{chained, empty_dst};
use crate::variants;
use crate::watchdog::watched;

/// The bytes of each append, a multiple of no power of two, and the number of appends.
const APPENDED_BYTES: usize = 70_001;
const APPENDS: usize = 40;

#[test]
fn concurrent_appends_do_no_harm() {
    let random = random_bytes(20 << 20, 13);
    each_fs(|kind, dir| {
        let all = variants::on(kind).into_iter();
        for variant in all.filter(|variant| variants::bytes_max(variant) == u64::MAX) {
            // Enough for two workers to share. Some of all these copies reach the end while it moves.
            let begun_with = if variant.workers > 1 { 16 << 20 } else { 1 << 20 };
            let context = format!("{variant} on {kind}");
            std::fs::write(dir.join("src"), &random[..begun_with]).unwrap();
            let ended = AtomicBool::new(false);
            let moved = std::thread::scope(|scope| {
                scope.spawn(|| append(&dir.join("src"), &random[begun_with..], &ended));
                let moved = watched(&context, || copy(&variant, dir, Span::TO_EOF));
                ended.store(true, Ordering::Relaxed);
                moved
            });
            assert_eq!(moved.stop, Stop::Eof, "{context}: {moved:?}");
            let found = std::fs::read(dir.join("dst")).unwrap();
            let count = usize::try_from(moved.bytes).unwrap();
            assert_eq!(found.len(), count, "{context}: length after {moved:?}");
            assert!(found == random[..count], "{context}: wrong bytes after {moved:?}");
        }
    });
}

#[test]
fn no_more_than_the_span_is_copied() {
    const ASKED_BYTES: usize = 100_001;
    let random = random_bytes(4 << 20, 15);
    each_fs(|kind, dir| {
        for variant in variants::plain() {
            for _ in 0..10 {
                std::fs::write(dir.join("src"), &random[..ASKED_BYTES]).unwrap();
                let ended = AtomicBool::new(false);
                std::thread::scope(|scope| {
                    scope.spawn(|| append(&dir.join("src"), &random[ASKED_BYTES..], &ended));
                    let context = format!("{variant} on {kind}");
                    let moved = watched(&context, || copy(&variant, dir, ASKED_BYTES as u64));
                    ended.store(true, Ordering::Relaxed);
                    let done = Moved { bytes: ASKED_BYTES as u64, stop: Stop::Done };
                    assert_eq!(moved, done, "{context}");
                    let found = std::fs::read(dir.join("dst")).unwrap();
                    assert!(found == random[..ASKED_BYTES], "{context}: {} bytes", found.len());
                });
            }
        }
    });
}

fn append(path: &Path, bytes: &[u8], ended: &AtomicBool) {
    let mut src = File::options().append(true).open(path).unwrap();
    for piece in bytes.chunks(APPENDED_BYTES).take(APPENDS) {
        if ended.load(Ordering::Relaxed) {
            return;
        }
        src.write_all(piece).unwrap();
        std::thread::sleep(Duration::from_micros(50));
    }
}

fn copy(variant: &Variant, dir: &Path, len: u64) -> Moved {
    let src = File::open(dir.join("src")).unwrap();
    let dst = empty_dst(dir.join("dst"));
    chained(variant, &src, &dst, Span::whole(len))
}
