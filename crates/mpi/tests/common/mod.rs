//! A tree with everything that `cp -a` keeps.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use fastrand::Rng;
use rustix::fs::{XattrFlags, setxattr};
use testfs::{Aspects, assert_equal_trees, fixture};

/// Names in one directory.
pub(crate) const FLAT_FILES: usize = 1000;

const CHAIN_LEVELS: usize = 150;

const SPECIAL: &str = "special/dangling->nowhere; special/to\\sa\\sdirectory->../flat; \
    special/fifo| mode=640; special/not\\s\\xff\\sUTF-8\\n=x; special/sparse~24M@12M; \
    special/ t=1500000000";

pub(crate) fn make_tree(root: &Path, seed: u64) {
    let mut tree = vec![format!("large#10M:{seed}"), SPECIAL.to_owned()];
    tree.push(match testfs::is_root() {
        true => "special/tagged=x acl own=4321:1234; special/null%1:3".to_owned(),
        false => "special/tagged=x acl".to_owned(),
    });
    for number in 0..FLAT_FILES {
        tree.push(format!("flat/file\\s{number}=content\\s{number} t={}", 1_110_000_000 + number));
    }
    tree.push("flat/ t=1100000000".to_owned());
    add_bushes(&mut tree, "bushes", 3, &mut Rng::with_seed(seed));
    for level in 1..=CHAIN_LEVELS {
        let dir = format!("chain{}", "/d".repeat(level));
        tree.push(format!("{dir}/f=level\\s{level}; {dir}/ t={}", 1_400_000_000 + level));
    }
    // Names of the same files in different directories.
    for number in 0..200 {
        let first = format!("links\\sa/{number}");
        tree.push(format!("{first}#300:{number}; links\\sb/x{number}=={first}"));
        if number % 3 == 0 {
            tree.push(format!("flat/linked\\s{number}=={first}"));
        }
    }
    std::fs::create_dir(root).expect("created");
    fixture::build(&tree.join("; "), root, None);
    // Not every file system has attributes; then there is nothing to keep.
    for (name, attribute) in [("special/tagged", "user.colour"), ("special", "user.shape")] {
        let _ = setxattr(root.join(name), attribute, b"value", XattrFlags::empty());
    }
}

/// Adds directories of random sizes below each other.
fn add_bushes(tree: &mut Vec<String>, dir: &str, levels: u32, random: &mut Rng) {
    for number in 0..random.usize(0..12) {
        let (bytes, mode) = (random.usize(0..20_000), random.u32(0o400..0o1000));
        let second = 1_200_000_000 + number;
        tree.push(format!("{dir}/f{number}#{bytes}:{number} mode={mode:o} t={second}"));
    }
    if levels > 0 {
        for number in 0..random.usize(1..6) {
            add_bushes(tree, &format!("{dir}/d{number}"), levels - 1, random);
        }
    }
    let mode = random.u32(0o500..0o1000) | 0o500;
    tree.push(format!("{dir}/ mode={mode:o} t={}", 1_300_000_000 + levels));
}

pub(crate) fn assert_equal(src: &Path, dst: &Path, shown: &str) {
    assert_equal_trees(src, dst, Aspects::ALL, shown);
}

/// What a comparison of two trees does not see.
pub(crate) fn assert_holes_are_kept(root: &Path) {
    let sparse = root.join("special/sparse").metadata().expect("looked at");
    assert!(sparse.blocks() * 512 < 8 << 20, "{} blocks", sparse.blocks());
}

/// A directory in memory, where creating thousands of files takes no time, or an ordinary one.
pub(crate) fn scratch() -> tempfile::TempDir {
    let memory = tempfile::tempdir_in("/dev/shm");
    memory.or_else(|_| tempfile::tempdir()).expect("a directory")
}
