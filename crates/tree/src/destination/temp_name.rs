//! Names of our own beside a destination, for what is to take its place in one step.
//!
//! Each is made of the destination's name, so that whoever goes on with the copy after it was killed
//! comes by what was left under it, and clears it away. Where somebody else may be at it, another name
//! is taken, which only a look at the directory would find.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{
    AtFlags, FlockOperation, Mode, OFlags, Stat, flock, fstat, openat, statat, unlinkat,
};
use rustix::io::{self, Errno};

use crate::fs::{FileId, Place, c_name, is_directory, is_regular, split};
use crate::security::Security;

/// What the name ends in of what is about to take another's place.
const NEW: &[u8] = b".haulage-new";

/// Makes something in `dir`, beside `name`, which is to be a copy of `src`, under a name that nobody
/// has, and returns that and what was made.
///
/// # Errors
/// Those of `make`.
pub(crate) fn create_temporary<T>(
    security: &Security,
    src: &Place<'_>,
    (dir, name): (BorrowedFd<'_>, &CStr),
    make: impl Fn(&CStr) -> io::Result<T>,
) -> io::Result<(CString, T)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let own = temp_name(name, NEW).filter(|own| !is_source_name(src, dir, own));
    if let Some(own) = own {
        let made = match make(&own) {
            Err(Errno::EXIST) if remove_if_stale(security, dir, &own) => make(&own),
            made => made,
        };
        if !matches!(made, Err(Errno::EXIST)) {
            return made.map(|made| (own, made));
        }
    }
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!(".haulage-{}-{count}", std::process::id());
        let name = CString::new(name).expect("a number holds no zero byte");
        match make(&name) {
            Err(Errno::EXIST) => {}
            result => return result.map(|made| (name, made)),
        }
    }
}

/// Removes what a killed run has left beside `dst`, which needs nothing in its stead.
pub(crate) fn remove_stale(security: &Security, src: &Place<'_>, dst: &Place<'_>) {
    if let Some(own) = temp_name(dst.name, NEW).filter(|own| !is_source_name(src, dst.dir, own)) {
        remove_if_stale(security, dst.dir, &own);
    }
}

/// Whether the directory of `src` has an entry `own` that is not the one in `dir`. Who copies a tree
/// that a killed copy left copies what bears names of ours too, and such a copy must not be taken for a
/// thing of ours.
pub(crate) fn is_source_name(src: &Place<'_>, dir: BorrowedFd<'_>, own: &CStr) -> bool {
    let (parent, _) = split(src.name);
    let path = match parent {
        b"." => own.into(),
        parent => c_name(&[parent, own.to_bytes()].concat()).unwrap_or_default(),
    };
    let at = |dir, name: &CStr| statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    at(src.dir, &path)
        .is_ok_and(|there| !at(dir, own).is_ok_and(|here| FileId::of(&here) == FileId::of(&there)))
}

/// The name beside `name` that ends in `suffix`; `None` where it would be too long.
pub(crate) fn temp_name(name: &CStr, suffix: &[u8]) -> Option<CString> {
    const NAME_BYTES_MAX: usize = 255;
    let bytes = [b".", name.to_bytes(), suffix].concat();
    let single = !name.to_bytes().contains(&b'/');
    (single && bytes.len() <= NAME_BYTES_MAX).then(|| CString::new(bytes).ok()).flatten()
}

/// Keeps others from taking a file that is to stand beside its destination for one that was left. Some
/// file systems have no locks; there a file counts as left once it is older than their run.
///
/// # Errors
/// `EXIST` when somebody else has it, and is about to remove it.
pub(crate) fn lock_temporary(fd: impl AsFd) -> io::Result<()> {
    match flock(fd, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(Errno::EXIST),
        _ => Ok(()),
    }
}

/// The same for one that was made at `name` in `dir` just now, before it could be kept.
///
/// # Errors
/// `EXIST` also when somebody was quicker to remove it, and may have put another there.
pub(crate) fn lock_created(fd: impl AsFd, dir: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    lock_temporary(&fd)?;
    let there = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    match there
        .is_ok_and(|there| fstat(&fd).is_ok_and(|own| FileId::of(&own) == FileId::of(&there)))
    {
        true => Ok(()),
        false => Err(Errno::EXIST),
    }
}

/// Removes what a killed run has left at `name`. Returns whether that is gone.
fn remove_if_stale(security: &Security, dir: BorrowedFd<'_>, name: &CStr) -> bool {
    let Ok(stat) = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) else { return false };
    let own = security.caller.is_root() || security.caller.owns(&stat);
    own && !is_directory(&stat)
        && !may_be_in_use(security, dir, name, &stat)
        && unlinkat(dir, name, AtFlags::empty()).is_ok()
}

/// Whether another run may be about to rename what `stat` describes.
fn may_be_in_use(security: &Security, dir: BorrowedFd<'_>, name: &CStr, stat: &Stat) -> bool {
    // What has no lock, such as a second name of a copy, stands there for an instant only.
    if !is_regular(stat) {
        return security.changed_during_run(stat);
    }
    if stat.st_nlink > 1 {
        // A link that was left gets a new time with every other name of its file.
        return security.changed_during_run(stat) && !persists(dir, name, stat);
    }
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let Ok(fd) = openat(dir, name, flags, Mode::empty()) else { return true };
    if !fstat(&fd).is_ok_and(|now| FileId::of(&now) == FileId::of(stat)) {
        return true;
    }
    is_locked_elsewhere(security, &fd, stat)
}

/// Whether another run has locked `file`, which `stat` describes. If not, it is kept from others for as
/// long as it is open.
pub(crate) fn is_locked_elsewhere(security: &Security, file: &OwnedFd, stat: &Stat) -> bool {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => false,
        Err(Errno::WOULDBLOCK) => true,
        // Some file systems have no locks.
        Err(_) => security.changed_during_run(stat),
    }
}

/// Whether the file still stands there after longer than anybody takes who gives a link its name.
fn persists(dir: BorrowedFd<'_>, name: &CStr, stat: &Stat) -> bool {
    const INSTANT: Duration = Duration::from_millis(20);
    std::thread::sleep(INSTANT);
    let now = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    now.is_ok_and(|now| FileId::of(&now) == FileId::of(stat))
}
