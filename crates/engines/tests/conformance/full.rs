//! Full destinations give an error, never a refusal, and never a count of bytes that were not
//! written.

use std::fs::File;
use std::os::fd::AsFd;

use engines::{Errno, Pair, Pos, Side, Span, Stop, Variant};
use testfs::{FsKind, SmallFs, random_bytes, small_fs};

use crate::trial::{chained, source};
use crate::variants;

/// Length of the source.
const LEN: usize = 8 << 20;

/// Free space of the file system, approximately.
const ROOM_BYTES: u64 = 2 << 20;

#[test]
fn a_full_device_is_an_error() {
    for variant in variants::all() {
        let src = tempfile::tempfile().unwrap();
        std::os::unix::fs::FileExt::write_all_at(&src, &random_bytes(5000, 8), 0).unwrap();
        let dst = File::options().read(true).write(true).open("/dev/full").unwrap();
        let moved = chained(&variant, &src, &dst, Span::whole(5000));
        let Stop::Failed { side, errno } = moved.stop else { panic!("{variant}: {moved:?}") };
        assert_eq!((moved.bytes, errno), (0, Errno::NOSPC), "{variant}");
        assert_ne!(side, Side::Src, "{variant}");
    }
}

#[test]
fn a_file_system_that_fills_up_is_an_error() {
    let bytes = random_bytes(LEN, 9);
    for kind in FsKind::ALL {
        let enough = |variant: &Variant| variants::bytes_max(variant) >= LEN as u64;
        for variant in variants::on(kind).into_iter().filter(enough) {
            // Created again for each variant: a full file system may refuse to truncate or remove
            // files.
            let Some(scratch) = small_fs(kind) else { break };
            fill_up(variant, &scratch, kind, &bytes);
        }
    }
}

#[test]
fn earlier_content_does_not_count() {
    let (old, bytes) = (random_bytes(1 << 20, 12), random_bytes(LEN, 9));
    for variant in variants::all() {
        let Some(scratch) = small_fs(FsKind::Tmpfs) else { break };
        let Some(mut copier) = variants::start(&variant) else { continue };
        let src = tempfile::tempfile().unwrap();
        std::os::unix::fs::FileExt::write_all_at(&src, &bytes, 0).unwrap();
        let path = scratch.join("dst");
        std::fs::write(&path, &old).unwrap();
        scratch.leave_room(ROOM_BYTES);
        let dst = File::options().read(true).append(true).open(&path).unwrap();
        let len = variants::bytes_max(&variant).min(LEN as u64);
        let span = Span { src: Pos::At(0), dst: Pos::Here, len };
        let moved = copier.copy(Pair::new(src.as_fd(), dst.as_fd()), span);
        let found = std::fs::read(&path).unwrap();
        let expected = [&old, &bytes[..usize::try_from(moved.bytes).unwrap()]].concat();
        assert!(found == expected, "{variant}: {} bytes there after {moved:?}", found.len());
    }
}

fn fill_up(variant: Variant, scratch: &SmallFs, kind: FsKind, bytes: &[u8]) {
    let (context, len) = (format!("{variant} on {kind}"), bytes.len() as u64);
    let src = source(&scratch.join(""), bytes);
    let path = scratch.join("dst");
    let dst = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    scratch.leave_room(ROOM_BYTES);

    let moved = chained(&variant, &src, &dst, Span::whole(len));
    match moved.stop {
        // Shared extents need no space.
        Stop::Done if kind.reflinks() => assert_eq!(moved.bytes, len, "{context}"),
        Stop::Failed { side, errno: Errno::NOSPC } => {
            assert_ne!(side, Side::Src, "{context}");
            assert!(moved.bytes < len, "{context}: {moved:?}");
        }
        _ => panic!("{context}: {moved:?}"),
    }
    let count = usize::try_from(moved.bytes).unwrap();
    let found = std::fs::read(&path).unwrap();
    assert!(found.len() >= count, "{context}: {} bytes after {moved:?}", found.len());
    assert!(found[..count] == bytes[..count], "{context}: wrong bytes, {moved:?}");
}
