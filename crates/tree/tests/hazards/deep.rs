//! Trees deeper than any path.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use tree::Options;

use crate::recorder::Recorder;

const LEVELS: usize = 3000;
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
    let recorder = Recorder::without_receipts(|| {
        let open = std::fs::read_dir("/proc/self/fd").expect("a list of descriptors").count();
        most.fetch_max(open, Ordering::Relaxed);
    });
    // With receipts a path for each level would take gigabytes.
    recorder.expect_copy(&src, &dst, &Options::archive(), LEVELS);
    drop(recorder);
    assert_eq!(levels_and_files(&dst), (LEVELS, 2));
    // Other tests of this process have descriptors open too.
    assert!(most.into_inner() < 400, "descriptors are bounded");
    // `remove_dir_all` keeps a directory open for each level.
    let removed = std::process::Command::new("rm").arg("-r").args([&src, &dst]).status();
    assert!(removed.is_ok_and(|status| status.success()));
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
