//! Sources that shrink: no crash, no hang, and no count of bytes that the source did not have.

use std::fs::File;
use std::os::fd::AsFd;
use std::time::Duration;

use engines::{Copier, Moved, Pair, Span, Stop, Variant};
use testfs::{each_fs, random_bytes};

use crate::trial::{chained, empty_dst};
use crate::variants;
use crate::watchdog::watched;

/// Delays between the start of a copy and the truncation of the source. Some of them must fall
/// within the copy.
const DELAYS_US: &[u64] = &[0, 200, 700];

#[test]
fn truncation_before_the_copy() {
    let random = random_bytes(500_000, 4);
    each_fs(|kind, dir| {
        for variant in variants::on(kind) {
            let Some(mut copier) = variants::start(&variant) else { continue };
            let len = 500_000.min(variants::bytes_max(&variant));
            let bytes = &random[..usize::try_from(len).unwrap()];
            for left in [0, 1, 4096, len / 2 + 1, len - 1] {
                std::fs::write(dir.join("src"), bytes).unwrap();
                let src = File::options().read(true).write(true).open(dir.join("src")).unwrap();
                let context = format!("{variant} on {kind}, {len} bytes cut to {left}");
                src.set_len(left).unwrap();
                let moved = copy(copier.as_mut(), &src, dir, len, &context);
                let finished = finish(&variant, moved, &src, dir, len);
                assert_eq!(finished, Moved { bytes: left, stop: Stop::Eof }, "{context}");
                let found = std::fs::read(dir.join("dst")).unwrap();
                assert!(found == bytes[..usize::try_from(left).unwrap()], "{context}: bytes");
            }
        }
    });
}

#[test]
fn truncation_during_the_copy() {
    let random = random_bytes(16 << 20, 5);
    each_fs(|kind, dir| {
        for variant in variants::on(kind) {
            let Some(mut copier) = variants::start(&variant) else { continue };
            let shared = if variant.workers > 1 { 16 << 20 } else { 2 << 20 };
            let len = u64::min(shared, variants::bytes_max(&variant));
            let left = len / 3 + 1;
            let bytes = &random[..usize::try_from(len).unwrap()];
            for &delay_us in DELAYS_US {
                std::fs::write(dir.join("src"), bytes).unwrap();
                let src = File::options().read(true).write(true).open(dir.join("src")).unwrap();
                let context = format!("{variant} on {kind}, cut after {delay_us} us");
                let moved = std::thread::scope(|scope| {
                    scope.spawn(|| {
                        std::thread::sleep(Duration::from_micros(delay_us));
                        src.set_len(left).unwrap();
                    });
                    copy(copier.as_mut(), &src, dir, len, &context)
                });
                let found = std::fs::read(dir.join("dst")).unwrap();
                check_cut(moved, bytes, left, &found, &context);
            }
        }
    });
}

/// Holds whenever the truncation occurs: the counted bytes are in the destination, and they are the
/// source's or, if the truncation zeroed the page during a read, zeros beyond its new end.
fn check_cut(moved: Moved, bytes: &[u8], left: u64, found: &[u8], context: &str) {
    let (len, count) = (bytes.len() as u64, usize::try_from(moved.bytes).unwrap());
    match moved.stop {
        Stop::Done => assert_eq!(moved.bytes, len, "{context}: done"),
        Stop::Eof => assert!((left..len).contains(&moved.bytes), "{context}: {moved:?} of {len}"),
        Stop::Refused(_) | Stop::Failed { .. } => assert!(moved.bytes <= len, "{context}"),
    }
    assert!(found.len() >= count, "{context}: {} bytes there after {moved:?}", found.len());
    if found[..count] == bytes[..count] {
        return;
    }
    let sure = count.min(usize::try_from(left).unwrap());
    assert!(found[..sure] == bytes[..sure], "{context}: wrong bytes after {moved:?}");
    let source = bytes[sure..count].iter();
    let strange =
        found[sure..count].iter().zip(source).any(|(&byte, &src)| byte != src && byte != 0);
    assert!(!strange, "{context}: strange bytes after {moved:?}");
}

fn copy(
    copier: &mut dyn Copier,
    src: &File,
    dir: &std::path::Path,
    len: u64,
    context: &str,
) -> Moved {
    let dst = empty_dst(dir.join("dst"));
    let pair = Pair::new(src.as_fd(), dst.as_fd());
    watched(context, || copier.copy(pair, Span::whole(len)))
}

/// The outcome after a chain has copied the part that was refused.
fn finish(variant: &Variant, moved: Moved, src: &File, dir: &std::path::Path, len: u64) -> Moved {
    let Stop::Refused(_) = moved.stop else { return moved };
    let dst = File::options().read(true).write(true).open(dir.join("dst")).unwrap();
    let rest = chained(variant, src, &dst, Span::whole(len).after(moved.bytes));
    Moved { bytes: moved.bytes + rest.bytes, stop: rest.stop }
}
