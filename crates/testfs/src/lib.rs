//! Real file systems for tests, and tools to look at what a copy left on them.
//!
//! `cargo xtask test` mounts the file systems and names them in the environment variable
//! `HAULAGE_TEST_FS`, as `ext4=/dir:xfs=/dir:btrfs=/dir:tmpfs=/dir`. Where one is missing, a test
//! is skipped aloud: on standard error, past the test harness's capture, and in the file that
//! `HAULAGE_SKIPS` names. `HAULAGE_TEST_SMALL_FS` has the same form and names small ones, to be
//! filled up.

mod fuse;
mod nodes;
mod program;
mod scratch;
mod skip;
mod slow;
mod tree;

pub use fuse::{Lies, LyingFs};
pub use program::{command, json, measuring, names_in, only, stderr, stdout};
pub use scratch::{FsKind, Scratch, SmallFs, each_fs, each_pair, fs, small_fs};
pub use skip::{is_root, skip, test_name};
pub use slow::{Costs, SlowFs};
pub use tree::{Aspects, Tree, tree_differences};

/// `len` bytes that are the same for the same `seed`, and look like noise: no two pages are equal
/// and no file system stores them as a hole.
#[must_use]
pub fn random_bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    bytes
}
