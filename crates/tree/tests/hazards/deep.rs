//! Trees deeper than any path.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, mkdirat, openat, renameat, unlinkat};
use tree::Options;

use crate::recorder::{Recorder, copy_exactly};

const LEVELS: usize = 20_000;
const NAME: &CStr = c"level";

fn open(dir: impl AsFd, name: &CStr) -> rustix::io::Result<OwnedFd> {
    openat(dir, name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
}

#[test]
fn a_tree_deeper_than_any_path_is_copied_with_few_descriptors() {
    // Creating and removing as many directories on a disk takes long.
    let in_memory = tempfile::tempdir_in("/dev/shm");
    let dir = in_memory.or_else(|_| tempfile::tempdir()).expect("a directory");
    let (src, dst) = (dir.path().join("s"), dir.path().join("t"));
    std::fs::create_dir(&src).expect("created");
    let mut at = openat(CWD, &src, OFlags::DIRECTORY, Mode::empty()).expect("it was just made");
    for level in 1..LEVELS {
        mkdirat(&at, NAME, Mode::RWXU).expect("a level");
        at = open(&at, NAME).expect("it was just made");
        if level == LEVELS / 2 {
            openat(&at, c"half", OFlags::CREATE | OFlags::WRONLY, Mode::RWXU).expect("opened");
        }
    }
    openat(&at, c"bottom", OFlags::CREATE | OFlags::WRONLY, Mode::RWXU).expect("opened");

    let most = AtomicUsize::new(0);
    let mut recorder = Recorder::with_meanwhile(|| {
        let open = std::fs::read_dir("/proc/self/fd").expect("a list of descriptors").count();
        most.fetch_max(open, Ordering::Relaxed);
    });
    // A path for each level would take gigabytes.
    recorder.without_receipts = true;
    let outcome = copy_exactly(&src, &dst, &Options::archive(), &recorder);
    assert_eq!(recorder.reported(), []);
    assert_eq!(outcome.failures, 0);
    drop(recorder);
    assert_eq!(levels_and_files(&dst), (LEVELS, 2));
    // Other tests of this process have descriptors open too.
    assert!(most.into_inner() < 400, "descriptors are bounded");
    remove(&src);
    remove(&dst);
}

/// The number of levels from `root` down, and of files met on the way.
fn levels_and_files(root: &Path) -> (usize, usize) {
    let mut at = openat(CWD, root, OFlags::DIRECTORY, Mode::empty()).expect("the root");
    let (mut levels, mut files) = (1, 0);
    loop {
        for name in [c"half", c"bottom"] {
            files += usize::from(openat(&at, name, OFlags::RDONLY, Mode::empty()).is_ok());
        }
        match open(&at, NAME) {
            Ok(below) => at = below,
            Err(_) => return (levels, files),
        }
        levels += 1;
    }
}

/// Removes a chain of directories. `remove_dir_all` cannot: it keeps one open for each level.
/// Removing a directory takes longer the deeper it is, so parts of the chain are moved up first.
fn remove(root: &Path) {
    let top = openat(CWD, root, OFlags::DIRECTORY, Mode::empty()).expect("the root");
    loop {
        let (mut at, mut depth) = (open(&top, c".").expect("the root"), 0);
        while depth < 200
            && let Ok(below) = open(&at, NAME)
        {
            (at, depth) = (below, depth + 1);
        }
        let more = renameat(&at, NAME, &top, c"rest").is_ok();
        for level in (0..=depth).rev() {
            for name in [c"half", c"bottom"] {
                let _ = unlinkat(&at, name, AtFlags::empty());
            }
            if level > 0 {
                at = open(&at, c"..").expect("the level above");
                unlinkat(&at, NAME, AtFlags::REMOVEDIR).expect("an empty level");
            }
        }
        if !more {
            return;
        }
        renameat(&top, c"rest", &top, NAME).expect("the rest takes the place of what is gone");
    }
}

#[test]
fn a_deep_tree_that_branches_is_listed_to_its_end() {
    // Deep enough that directories are closed before all their names are read.
    let dir = tempfile::tempdir().expect("created");
    let (src, dst) = (dir.path().join("s"), dir.path().join("t"));
    let mut at = src.clone();
    for _ in 0..60 {
        std::fs::create_dir_all(&at).expect("a level");
        for number in 0..7 {
            std::fs::create_dir(at.join(format!("d{number}"))).expect("created");
            std::fs::write(at.join(format!("f{number}")), "x").expect("written");
        }
        at = at.join("d3");
    }
    let recorder = Recorder::default();
    assert_eq!(copy_exactly(&src, &dst, &Options::archive(), &recorder).failures, 0);
    testfs::assert_equal_trees(&src, &dst, testfs::Aspects::ALL, "");
}
