//! The attacker: puts symbolic links in the place of entries and takes them away again.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::renameat_with;
use rustix::fs::{CWD, Mode, OFlags, RenameFlags, ResolveFlags, openat, openat2, renameat};
use rustix::io;

use super::modes::Tactic;

/// An entry, and the name in the directory of traps of the link that takes its place.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) entry: PathBuf,
    pub(crate) trap: OsString,
}

/// Does it over and over until `stop`, and returns how many times a link got into its place.
/// Entries are below `top`, traps in the directory `traps` there.
pub(crate) fn swap(
    top: &Path,
    pairs: &[Pair],
    tactic: Tactic,
    seed: u64,
    stop: &AtomicBool,
) -> u64 {
    let mut random = fastrand::Rng::with_seed(seed);
    let open = |name: &Path| openat(CWD, name, DIRECTORY, Mode::empty());
    let top_fd = open(top).expect("the directory of one copy");
    let traps = open(&top.join("traps")).expect("opened");
    let mut swaps = 0;
    while !stop.load(Ordering::Relaxed) {
        let pair = &pairs[random.usize(..pairs.len())];
        let Ok(parent) = open_parent(top_fd.as_fd(), &pair.entry) else { continue };
        if change(parent.as_fd(), traps.as_fd(), pair, (tactic, false)).is_ok() {
            swaps += 1;
            pause(&mut random);
            // Where it cannot be undone, the copier has put something else there meanwhile.
            let _ = change(parent.as_fd(), traps.as_fd(), pair, (tactic, true));
        }
    }
    swaps
}

/// Waits until `name` is there; returns at once if `stop` comes first.
pub(crate) fn wait_for(name: &Path, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) && name.symlink_metadata().is_err() {
        std::thread::sleep(Duration::from_micros(20));
    }
}

const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens the directory that `entry` is in, but not through a trap: the attacker must not touch what
/// lies outside himself.
fn open_parent(top: BorrowedFd<'_>, entry: &Path) -> io::Result<OwnedFd> {
    let parent = entry.parent().expect("an entry is in a directory");
    openat2(top, parent, DIRECTORY, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// Puts the link into the place of the entry, or takes it away again.
fn change(
    parent: BorrowedFd<'_>,
    traps: BorrowedFd<'_>,
    pair: &Pair,
    (tactic, undoes): (Tactic, bool),
) -> io::Result<()> {
    let name = pair.entry.file_name().expect("an entry has a name");
    match (tactic, undoes) {
        (Tactic::Exchange, _) => {
            renameat_with(parent, name, traps, &pair.trap, RenameFlags::EXCHANGE)
        }
        (Tactic::Replace, false) => {
            renameat(parent, name, traps, aside(pair))?;
            renameat(traps, &pair.trap, parent, name)
        }
        (Tactic::Replace, true) => {
            renameat(parent, name, traps, &pair.trap)?;
            renameat(traps, aside(pair), parent, name)
        }
    }
}

fn aside(pair: &Pair) -> OsString {
    let mut name = pair.trap.clone();
    name.push("-aside");
    name
}

/// Long enough for a copier to look, to open or to set attributes, or not at all.
fn pause(random: &mut fastrand::Rng) {
    match random.u8(..4) {
        0 => {}
        1 => (0..random.u32(..2000)).for_each(|_| std::hint::spin_loop()),
        2 => std::thread::sleep(Duration::from_micros(random.u64(..30))),
        _ => std::thread::sleep(Duration::from_micros(random.u64(..400))),
    }
}
