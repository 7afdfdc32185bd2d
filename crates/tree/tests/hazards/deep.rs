//! Trees deeper than any path.

use std::ffi::CStr;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use tree::Options;

use crate::recorder::Recorder;

const LEVELS: usize = 3000;
const NAME: &CStr = c"level";

#[test]
fn a_tree_deeper_than_any_path_is_copied_with_few_descriptors() {
    // Creating and removing as many directories on a disk takes long.
    let in_memory = tempfile::tempdir_in("/dev/shm");
    let dir = in_memory.or_else(|_| tempfile::tempdir()).expect("a directory");
    let (src, dst) = (dir.path().join("s"), dir.path().join("t"));
    std::fs::create_dir(&src).expect("created");
    let mut at = openat(CWD, &src, OFlags::DIRECTORY, Mode::empty()).expect("opened");
    for level in 1..LEVELS {
        mkdirat(&at, NAME, Mode::RWXU).expect("created");
        at = openat(&at, NAME, OFlags::DIRECTORY, Mode::empty()).expect("opened");
        if level == LEVELS / 2 {
            openat(&at, c"half", OFlags::CREATE | OFlags::WRONLY, Mode::RWXU).expect("opened");
        }
    }
    openat(&at, c"bottom", OFlags::CREATE | OFlags::WRONLY, Mode::RWXU).expect("opened");

    let most = AtomicUsize::new(0);
    let recorder = Recorder::without_receipts(|| {
        let open = std::fs::read_dir("/proc/self/fd").expect("listed").count();
        most.fetch_max(open, Ordering::Relaxed);
    });
    // With receipts a path for each level would take gigabytes.
    recorder.expect_copy(&src, &dst, &Options::archive(), LEVELS);
    drop(recorder);
    // A letter for each entry, by its type.
    let found = Command::new("find").arg(&dst).args(["-printf", "%y"]).output().expect("find ran");
    let types = testfs::stdout(&found);
    assert_eq!(["d", "f"].map(|letter| types.matches(letter).count()), [LEVELS, 2]);
    // Other tests of this process have descriptors open too.
    assert!(most.into_inner() < 400, "descriptors are bounded");
    // `remove_dir_all` keeps a directory open for each level.
    let removed = Command::new("rm").arg("-r").args([&src, &dst]).status();
    assert!(removed.is_ok_and(|status| status.success()));
}
