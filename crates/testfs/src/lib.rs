//! Real file systems for tests, FUSE file systems that inject faults, trees made of a line of text, and their
//! comparison.
//!
//! `cargo xtask test` mounts the file systems and names them in the environment variable
//! `HAULAGE_TEST_FS`, as `ext4=/dir:xfs=/dir:btrfs=/dir:tmpfs=/dir`. If one is missing, a test is
//! skipped. The skip is reported on standard error, past the test harness's capture, and in the
//! file that `HAULAGE_SKIPS` names. `HAULAGE_TEST_SMALL_FS` has the same form and names small file
//! systems for tests of ENOSPC.

pub mod fixture;

mod disk;
mod fuse_fs;
mod offset;
mod program;
mod scratch;
mod served;
mod session;
mod skip;
mod terminal;
mod tree;

pub use disk::{BLOCK_BYTES, Content, Event, LoggedDisk};
pub use fuse_fs::{Costs, FuseFs, LengthChange, Lies, WrongSize};
pub use offset::offset_in_page;
pub use program::{
    assert_refused, command, copy_program, documented_fields, ends_within, fields_of, handles,
    json, json_lines, measuring, names_in, only, set_time_of, stderr, stdout, wait_until,
};
pub use scratch::{FsKind, Scratch, SmallFs, each_fs, each_pair, fs, small_fs, small_fs_at};
pub use served::ServedFs;
pub use skip::{is_root, skip, test_name};
pub use terminal::{
    Screen, on_terminal, open_terminal, resize_terminal, without_control_sequences,
};
pub use tree::{Aspects, Entry, Tree, assert_equal_trees, tree_differences};

/// `len` pseudo-random bytes, the same for the same `seed`. No file system stores them as a hole or
/// shares their pages.
#[must_use]
pub fn random_bytes(len: usize, seed: u64) -> Vec<u8> {
    const PAGE_BYTES: usize = 4096;
    const FIRST_BYTES: usize = 64 << 10;
    let mut stream = blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof();
    let mut bytes = vec![0; len];
    let (first, rest) = bytes.split_at_mut(len.min(FIRST_BYTES));
    stream.fill(first);
    // A copy is faster than the stream: a later page is a part of the first bytes, from anywhere in them.
    for page in rest.chunks_mut(PAGE_BYTES) {
        let mut at = [0; 2];
        stream.fill(&mut at);
        let at = usize::from(u16::from_le_bytes(at)) % (FIRST_BYTES - PAGE_BYTES);
        page.copy_from_slice(&first[at..at + page.len()]);
    }
    bytes
}
