//! Files beyond 2 GiB, where one call ends and 32 bits do not suffice.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use engines::{ParamKind, Pos, Span, Stop, Variant};
use testfs::{FsKind, each_fs, random_bytes, skip, test_name};

use crate::trial::chained;
use crate::variants;

/// Length of the source. It is sparse, with data at the offsets where a count could overflow.
const LEN: u64 = (2 << 30) + (64 << 20);

/// Offsets of the data: both ends, the limit of one kernel call, and 2 GiB.
const DATA_AT: &[u64] = &[0, engines::CALL_BYTES_MAX - 5000, (2 << 30) + 1, LEN - 10_000];

const DATA_BYTES: usize = 10_000;

#[test]
fn more_than_one_call_moves_is_copied_completely() {
    let mut tried = Vec::new();
    // The test covers the engine's own loop, so one file system suffices for each engine: a copy of 2 GiB takes long, and
    // least on tmpfs.
    for kind in [FsKind::Tmpfs, FsKind::Ext4, FsKind::Xfs, FsKind::Btrfs] {
        let Some(scratch) = testfs::fs(kind) else { continue };
        let dir = scratch.path();
        // Most engines write the holes as zeros. Engines that map a tmpfs source also fill its
        // holes.
        let needed = if kind == FsKind::Tmpfs { 2 * LEN } else { LEN };
        if let Some(why) = lacks_room(dir, needed + (64 << 20)) {
            skip(&test_name(), &format!("{kind}: {why}"));
            continue;
        }
        for variant in variants::plain().into_iter().filter(is_unbuffered) {
            if tried.contains(&variant.engine.name) || !variants::works_in(variant.engine, dir) {
                continue;
            }
            tried.push(variant.engine.name);
            let context = format!("{variant} on {kind}");
            let src = sparse(dir);
            let dst = tempfile::tempfile_in(dir).unwrap();
            let moved = chained(&variant, &src, &dst, Span::whole(LEN));
            assert_eq!((moved.stop, moved.bytes), (Stop::Done, LEN), "{context}");
            assert_eq!(dst.metadata().unwrap().len(), LEN, "{context}");
            check_data(&src, &dst, &context);
        }
    }
}

/// Whether one call may be asked for the whole of a long file. Calls of other engines end with their buffer.
fn is_unbuffered(variant: &Variant) -> bool {
    let mut params = variant.engine.params.iter();
    params.all(|param| match param.kind {
        ParamKind::Bytes { default, .. } => default >= engines::CALL_BYTES_MAX,
        _ => true,
    })
}

#[test]
fn offsets_need_more_than_32_bits() {
    const SRC_AT: u64 = LEN - 1_000_000;
    const DST_AT: u64 = (4 << 30) + 4097;
    each_fs(|kind, dir| {
        let src = sparse(dir);
        for variant in variants::on(kind) {
            let context = format!("{variant} on {kind}");
            let len = 1_000_000.min(variants::bytes_max(&variant));
            let dst = tempfile::tempfile_in(dir).unwrap();
            let src_at = if len < 1_000_000 { LEN - len } else { SRC_AT };
            let span = Span { src: Pos::At(src_at), dst: Pos::At(DST_AT), len };
            let moved = chained(&variant, &src, &dst, span);
            assert_eq!((moved.stop, moved.bytes), (Stop::Done, len), "{context}");
            assert_eq!(dst.metadata().unwrap().len(), DST_AT + len, "{context}");
            let (mut right, mut found) = (vec![0; 4000], vec![1; 4000]);
            src.read_exact_at(&mut right, LEN - 4000).unwrap();
            dst.read_exact_at(&mut found, DST_AT + len - 4000).unwrap();
            assert!(found == right, "{context}: wrong bytes");
        }
    });
}

fn sparse(dir: &Path) -> File {
    let file = tempfile::tempfile_in(dir).unwrap();
    file.set_len(LEN).unwrap();
    for &at in DATA_AT {
        file.write_all_at(&random_bytes(DATA_BYTES, at), at).unwrap();
    }
    file
}

/// Compares the ranges of data in the source, and a page of the holes on both sides of each.
fn check_data(src: &File, dst: &File, context: &str) {
    const MARGIN: u64 = 4096;
    for &at in DATA_AT {
        let from = at.saturating_sub(MARGIN);
        let to = (at + DATA_BYTES as u64 + MARGIN).min(LEN);
        let len = usize::try_from(to - from).unwrap();
        let (mut right, mut found) = (vec![0; len], vec![1; len]);
        src.read_exact_at(&mut right, from).unwrap();
        dst.read_exact_at(&mut found, from).unwrap();
        assert!(found == right, "{context}: wrong bytes at {from}");
    }
}

/// Describes what is missing for `bytes` more on the file system of `dir`, which may be in memory.
fn lacks_room(dir: &Path, bytes: u64) -> Option<String> {
    let stat = rustix::fs::statvfs(dir).unwrap();
    let free = stat.f_bavail * stat.f_frsize;
    if free < bytes {
        return Some(format!("{} MiB free, {} needed", free >> 20, bytes >> 20));
    }
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available_kib: u64 = meminfo
        .lines()
        .find_map(|line| {
            line.strip_prefix("MemAvailable:")?.split_whitespace().next()?.parse().ok()
        })
        .unwrap_or(0);
    // The file system's image and its page cache may both use memory.
    let needed_kib = (2 * bytes) >> 10;
    (available_kib < needed_kib)
        .then(|| format!("{} MiB of memory, {} needed", available_kib >> 10, needed_kib >> 10))
}
