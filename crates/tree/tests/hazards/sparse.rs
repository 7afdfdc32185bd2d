//! Holes are kept where the source has them, created where asked for, and never created in place of
//! data.

use std::fs::{File, metadata, read, write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use testfs::{each_fs, each_pair, random_bytes};
use tree::{Options, Reflink, Sparse};

use crate::recorder::copy_ok;

fn allocated_bytes(path: &Path) -> u64 {
    metadata(path).expect("looked at").blocks() * 512
}

/// A file of `len` bytes that is a hole except for 64 KiB of random data at each offset in `data`.
fn make_sparse(path: &Path, len: u64, data: &[u64]) {
    let file = File::create(path).expect("created");
    file.set_len(len).expect("length set");
    for &at in data {
        file.write_all_at(&random_bytes(64 << 10, at), at).expect("written");
    }
    file.sync_all().expect("allocated");
}

fn same(one: &Path, other: &Path) -> bool {
    read(one).expect("read") == read(other).expect("read")
}

#[test]
fn a_sparse_file_stays_sparse() {
    each_pair(|from, to| {
        let (src, dst) = (from.join("s"), to.join("t"));
        for data in [&[][..], &[0], &[1 << 20], &[(16 << 20) - (64 << 10)], &[0, 3 << 20, 9 << 20]]
        {
            make_sparse(&src, 16 << 20, data);
            let receipts = copy_ok(&src, &dst, &Options::default());
            assert!(same(&src, &dst), "{} to {}: {data:?}", from.kind, to.kind);
            let (was, is) = (allocated_bytes(&src), allocated_bytes(&dst));
            assert!(is <= was + (256 << 10), "{} to {}: {was}, {is}", from.kind, to.kind);
            assert_eq!(receipts[0].data_bytes + receipts[0].hole_bytes, 16 << 20);
        }
    });
}

#[test]
fn a_file_longer_than_one_call_moves_is_copied_whole() {
    // One call moves at most 0x7ffff000 bytes.
    let len = (3 << 30) + 5;
    each_fs(|kind, dir| {
        let (src, dst) = (dir.join("s"), dir.join("t"));
        make_sparse(&src, len, &[0, 0x7fff_f000 - 100, len - (64 << 10)]);
        let options = Options { reflink: Reflink::Auto, ..Options::default() };
        copy_ok(&src, &dst, &options);
        assert_eq!(metadata(&dst).expect("looked at").len(), len, "{kind}");
        let (one, other) = (File::open(&src).expect("opened"), File::open(&dst).expect("opened"));
        for at in [0, 0x7fff_f000 - 100, len - (64 << 10), 1 << 30] {
            let (mut here, mut there) = (vec![0; 64 << 10], vec![1; 64 << 10]);
            one.read_exact_at(&mut here, at).expect("read");
            other.read_exact_at(&mut there, at).expect("read");
            assert!(here == there, "{kind} at {at}");
        }
    });
}

#[test]
fn sparse_always_creates_every_hole_and_sparse_never_none() {
    each_fs(|kind, dir| {
        let (src, dst) = (dir.join("s"), dir.join("t"));
        let mut bytes = vec![0; 4 << 20];
        bytes[1 << 20..(1 << 20) + 10].fill(7);
        bytes[3 << 20] = 1;
        write(&src, &bytes).expect("written");
        let always = Options { sparse: Sparse::Always, ..Options::default() };
        copy_ok(&src, &dst, &always);
        assert!(same(&src, &dst), "{kind}");
        assert!(allocated_bytes(&dst) <= 256 << 10, "{kind}: {}", allocated_bytes(&dst));

        make_sparse(&src, 4 << 20, &[1 << 20]);
        let never = Options { sparse: Sparse::Never, ..Options::default() };
        copy_ok(&src, &dst, &never);
        File::open(&dst).and_then(|file| file.sync_all()).expect("allocated");
        assert!(same(&src, &dst), "{kind}");
        assert!(allocated_bytes(&dst) >= 4 << 20, "{kind}: {}", allocated_bytes(&dst));
    });
}

#[test]
fn old_data_is_replaced_by_holes_and_removed_behind_the_end() {
    each_fs(|kind, dir| {
        let (src, dst) = (dir.join("s"), dir.join("t"));
        for sparse in [Sparse::Auto, Sparse::Always, Sparse::Never] {
            for (data, old_len) in [(&[128 << 10][..], 3 << 20), (&[], 800 << 10)] {
                make_sparse(&src, 1 << 20, data);
                write(&dst, random_bytes(old_len, 1)).expect("written");
                copy_ok(&src, &dst, &Options { sparse, ..Options::default() });
                assert!(same(&src, &dst), "{kind} {sparse:?}: {data:?} over {old_len}");
            }
        }
    });
}

#[test]
fn a_clone_succeeds_or_is_refused_without_loss() {
    each_fs(|kind, dir| {
        let (src, dst) = (dir.join("s"), dir.join("t"));
        let options = Options { reflink: Reflink::Always, ..Options::default() };
        for len in [1, 4096, 100_000] {
            write(&src, random_bytes(len, 1)).expect("written");
            for before in [None, Some(10), Some(200_001)] {
                let _ = std::fs::remove_file(&dst);
                let old = before.map(|len| random_bytes(len, 2));
                if let Some(old) = &old {
                    write(&dst, old).expect("written");
                }
                let recorder = crate::recorder::Recorder::default();
                let outcome = crate::recorder::copy_exactly(&src, &dst, &options, &recorder);
                if kind.reflinks() {
                    assert_eq!(recorder.reported(), [], "{kind} {len} {before:?}");
                    assert!(same(&src, &dst), "{kind} {len} {before:?}");
                } else {
                    assert_eq!(outcome.failures, 1, "{kind}");
                    assert_eq!(read(&dst).ok(), old, "{kind}");
                }
            }
        }
    });
}
