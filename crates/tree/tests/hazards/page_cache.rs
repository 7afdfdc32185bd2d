//! `--no-cache` does not change what is in the page cache.

use std::fs::{File, create_dir_all, read, write};
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{Advice, fadvise};
use sys::cachestat;
use testfs::{Aspects, FsKind, assert_equal_trees, each_fs, random_bytes, skip, test_name};
use tree::{Options, Reflink, Sparse};

use crate::recorder::copy_ok;

const PAGE_BYTES: usize = 4096;

/// Which pages of a file are in the cache.
fn resident(path: &Path) -> Vec<bool> {
    let file = File::open(path).expect("opened");
    let len = file.metadata().expect("looked at").len();
    let mut resident = vec![false; usize::try_from(len).expect("it is small").div_ceil(PAGE_BYTES)];
    let mut ranges = vec![(0, resident.len())];
    while let Some((start, end)) = ranges.pop() {
        let [offset, len] = [start, end - start].map(|pages| (pages * PAGE_BYTES) as u64);
        let counted = cachestat(file.as_fd(), offset, len).expect("pages can be counted");
        if counted.cached_pages == (end - start) as u64 {
            resident[start..end].fill(true);
        } else if counted.cached_pages > 0 {
            let middle = start.midpoint(end);
            ranges.extend([(start, middle), (middle, end)]);
        }
    }
    resident
}

/// The first pages that are in one state and were in the other before, with how many there are.
fn differences(now: &[bool], before: &[bool]) -> Vec<(usize, usize)> {
    assert_eq!(now.len(), before.len());
    let pages = (0..now.len()).filter(|&page| now[page] != before[page]).collect::<Vec<_>>();
    let runs = pages.chunk_by(|one, other| one + 1 == *other);
    runs.map(|run| (run[0], run.len())).take(10).collect()
}

/// Makes exactly the pages of the file resident for which `wanted` returns true.
fn set_resident(path: &Path, wanted: impl Fn(usize) -> bool) {
    let file = File::open(path).expect("opened");
    file.sync_all().expect("synced");
    fadvise(&file, 0, None, Advice::DontNeed).expect("dropped");
    fadvise(&file, 0, None, Advice::Random).expect("no reading ahead");
    let len = usize::try_from(file.metadata().expect("looked at").len()).expect("it is small");
    for page in (0..len.div_ceil(PAGE_BYTES)).filter(|&page| wanted(page)) {
        file.read_at(&mut [0], (page * PAGE_BYTES) as u64).expect("a byte");
    }
}

/// Whether pages can be counted and dropped.
fn can_be_tried(kind: FsKind, dir: &Path) -> bool {
    let path = dir.join("try");
    write(&path, random_bytes(PAGE_BYTES, 1)).expect("written");
    let counted = cachestat(File::open(&path).expect("opened").as_fd(), 0, 0);
    let counts = counted.is_ok_and(|counted| counted.cached_pages == 1);
    if !counts {
        skip(&test_name(), &format!("{kind}: the kernel does not count pages here"));
    }
    counts
}

fn past_cache(engine: Option<&str>, jobs: usize) -> Options {
    Options {
        no_cache: true,
        reflink: Reflink::Never,
        engine: engine.map(|text| text.parse().expect("parsed")),
        jobs: NonZeroUsize::new(jobs),
        ..Options::archive()
    }
}

/// Some pages of a file, by number.
type Pages = fn(usize) -> bool;

const STATES: &[(&str, Pages)] = &[
    ("cold", |_| false),
    ("warm", |_| true),
    ("the first half warm", |page| page < 1000),
    ("warm in places", |page| page % 7 == 3 || (300..420).contains(&page)),
];

/// Copies the file `src` while those pages of it are resident, and expects no change on either
/// side. The kernel may be using a page that is to be dropped, or reclaim others, so that only a
/// change in three copies is an error.
fn check(kind: FsKind, (src, dst): (&Path, &Path), pages: Pages, options: &Options, what: &str) {
    let mut strays = Vec::new();
    for _ in 0..3 {
        set_resident(src, pages);
        let before = resident(src);
        let _ = copy_ok(src, dst, options);
        let (after, copy) = (resident(src), resident(dst));
        // tmpfs keeps all files in the cache.
        let due = vec![kind == FsKind::Tmpfs; copy.len()];
        assert!(read(src).expect("read") == read(dst).expect("read"), "{what}");
        let stray = (differences(&after, &before), differences(&copy, &due));
        if stray == (vec![], vec![]) {
            return;
        }
        strays.push(stray);
    }
    panic!("{kind}, {what}: pages of source and copy: {strays:?}");
}

#[test]
fn neither_side_of_a_copy_stays_in_the_cache() {
    each_fs(|kind, dir| {
        if !can_be_tried(kind, dir) {
            return;
        }
        let cases = [(None, 1), (None, 2), (Some("read_write:256K"), 1), (Some("read_write"), 3)];
        for (number, bytes) in [1, 4095, 4096, 100_000, (8 << 20) + 17].into_iter().enumerate() {
            let (src, dst) = (dir.join(format!("s{number}")), dir.join("t"));
            write(&src, random_bytes(bytes, number as u64)).expect("written");
            for (engine, jobs) in cases {
                for &(state, pages) in STATES {
                    let what = format!("{bytes} bytes, {state}, {engine:?}, {jobs} jobs");
                    check(kind, (&src, &dst), pages, &past_cache(engine, jobs), &what);
                }
            }
        }
    });
}

/// A file of several pieces, with holes, for each kind of hole detection.
#[test]
fn pages_of_a_large_file_are_dropped_during_the_copy() {
    each_fs(|kind, dir| {
        if kind == FsKind::Tmpfs || !can_be_tried(kind, dir) {
            return;
        }
        let (src, dst) = (dir.join("s"), dir.join("t"));
        let file = File::create(&src).expect("created");
        for part in [0_u64, 5, 60] {
            let bytes = random_bytes(12 << 20, part);
            file.write_all_at(&bytes, (part << 20) + 1000).expect("written");
        }
        for (sparse, engine) in [
            (Sparse::Auto, None),
            (Sparse::Always, None),
            (Sparse::Never, None),
            (Sparse::Auto, Some("read_write:256K")),
        ] {
            let options = Options { sparse, ..past_cache(engine, 2) };
            let what = format!("{sparse:?}, {engine:?}");
            check(kind, (&src, &dst), |page| page % 1024 == 5, &options, &what);
        }
    });
}

#[test]
fn no_file_of_a_tree_stays_in_the_cache() {
    each_fs(|kind, dir| {
        if kind == FsKind::Tmpfs || !can_be_tried(kind, dir) {
            return;
        }
        let (src, dst) = (dir.join("s"), dir.join("t"));
        let files: Vec<_> = (0..150).map(|n| format!("d{}/f{n}", n % 5)).collect();
        for (number, file) in files.iter().enumerate() {
            let path = src.join(file);
            create_dir_all(path.parent().expect("a directory")).expect("created");
            write(&path, random_bytes(number * 300, number as u64)).expect("written");
        }
        let strays = |jobs| {
            for (number, file) in files.iter().enumerate() {
                set_resident(&src.join(file), |_| number % 3 == 0);
            }
            let _ = copy_ok(&src, &dst, &past_cache(None, jobs));
            let warm = |path: &Path| resident(path).contains(&true);
            let mut strays: Vec<_> = files.iter().filter(|file| warm(&dst.join(file))).collect();
            strays.extend(files.iter().enumerate().filter_map(|(number, file)| {
                (warm(&src.join(file)) != (number > 0 && number % 3 == 0)).then_some(file)
            }));
            let aspects = Aspects::ALL;
            assert_equal_trees(&src, &dst, aspects, kind);
            strays.len()
        };
        for jobs in [1, 4] {
            let attempts = std::iter::repeat_with(|| strays(jobs)).take(3);
            assert!(attempts.into_iter().any(|strays| strays == 0), "{kind}, {jobs} jobs");
        }
    });
}
