//! What `cp` does where its address space is limited: it goes on with fewer workers, and never
//! aborts.

use std::fs::{create_dir, write};
use std::path::Path;

use testfs::{FsKind, stderr};

use crate::{fixture, within};

/// Names in each of three directories. The copy of every file is recorded, since it has more names.
const NAMES: usize = 3_000;

/// The address space in KiB without which not even one file is linked, to 128 KiB.
fn needed_kib(dir: &Path) -> Option<u64> {
    let (mut too_few, mut enough) = (1_u64 << 10, 1_u64 << 20);
    while enough - too_few > 128 {
        let middle = too_few.midpoint(enough);
        let _ = std::fs::remove_file(dir.join("g"));
        match within(dir, &format!("--as={}", middle << 10), "-al f g")?.status.success() {
            true => enough = middle,
            false => too_few = middle,
        }
    }
    Some(enough)
}

#[test]
fn little_memory_is_enough_and_none_is_no_abort() {
    // A disk would take a minute to make and remove all that.
    let Some(scratch) = testfs::fs(FsKind::Tmpfs) else { return };
    let dir = scratch.path();
    fixture::add("f=; s/files/; s/directories/; s/again/", dir);
    for number in 0..NAMES {
        let name = format!("a name of 31 characters {number:07}");
        write(dir.join("s/files").join(&name), "").expect("written");
        create_dir(dir.join("s/directories").join(&name)).expect("created");
        std::fs::hard_link(dir.join("s/files").join(&name), dir.join("s/again").join(&name))
            .expect("linked");
    }
    let Some(needed) = needed_kib(dir) else { return };
    for (more_kib, enough) in [(0, false), (512, false), (4 << 10, true), (20 << 10, true)] {
        for line in ["-al s t", "-a --jobs=4 s t"] {
            let limit = format!("--as={}", (needed + more_kib) << 10);
            let output = within(dir, &limit, line).expect("prlimit ran before");
            let what = format!("{needed} + {more_kib} KiB {line}: {}", stderr(&output));
            match output.status.code() {
                Some(0) => assert_eq!(stderr(&output), "", "{what}"),
                Some(1) if !enough => {
                    assert!(stderr(&output).starts_with("cp: memory exhausted\n"), "{what}");
                }
                _ => panic!("{what}"),
            }
            let _ = std::fs::remove_dir_all(dir.join("t"));
        }
    }
}
