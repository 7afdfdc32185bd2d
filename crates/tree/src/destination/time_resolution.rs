//! Times of modification on a file system that keeps them less finely than that of the source: the copy then
//! seems older than its source.
//!
//! The resolution is not known beforehand: ext4 has one for each size of its inodes, a server that of its own
//! file system. It is seen when the time of an existing copy is set back by a nanosecond.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags, Stat, fstat, openat, readlinkat};

use super::context::DestinationContext;
use super::state::Found;
use crate::entry::Entry;
use crate::fs::fs_type::is_on_reliable_fs;
use crate::fs::time::{
    Nanoseconds, RESOLUTION_MAX, coarsest_resolution, elapsed_since, since_1970,
};
use crate::fs::{FileId, Handle, Place, ctime, file_bytes, is_regular, is_symlink, kind, mtime};
use crate::metadata::set_mtime;
use crate::report::Result;

/// How long after a change of the source its copy may have the time of that change without its data, where no
/// time of the copy is known: a run of the same commands by a script.
const DOUBT: Nanoseconds = 10_000_000_000;

/// The resolutions that were seen, by device.
#[derive(Default)]
pub(crate) struct TimeResolutions(Mutex<Vec<(u64, Nanoseconds)>>);

/// Whether the destination `found`, which seems older than the source, has its time as far as the file system
/// keeps it, and was made from the source as it is now. `differs` compares the data of regular files.
pub(super) fn has_source_time(
    cx: &DestinationContext<'_>,
    entry: &Entry<'_>,
    found: &Found,
    differs: impl FnOnce() -> Result<bool>,
) -> Result<bool> {
    let (src, dst) = (&entry.src_stat, found.effective());
    let lag = since_1970(mtime(src)) - since_1970(mtime(dst));
    let may_be_cut = 0 < lag && lag < coarsest_resolution(mtime(dst));
    if !may_be_cut
        || kind(src) != kind(dst)
        || is_regular(src) && file_bytes(src) != file_bytes(dst)
    {
        return Ok(false);
    }
    if cx.dry_run.is_some() {
        // Nothing may be set. The digits tell what a run would probably see.
        return Ok(true);
    }
    // First, because setting a time changes what is known of the time of the copy.
    if may_have_changed(entry, found) {
        let has_changed = match is_symlink(src) {
            true => link_text(&entry.src) != link_text(&entry.dst),
            false => is_regular(src) && differs()?,
        };
        if has_changed {
            return Ok(false);
        }
    }
    Ok(cx.resolutions.of(entry, found).is_some_and(|resolution| lag < resolution))
}

/// Whether the source may have changed after it was copied to `found`, without another time there.
fn may_have_changed(entry: &Entry<'_>, found: &Found) -> bool {
    let (changed, dst) = (mtime(&entry.src_stat), found.effective());
    // The inode of the copy was changed last when it got its times. Some file systems report the time of
    // modification instead. Then nothing tells when the copy was made.
    let is_known = ctime(dst) != mtime(dst)
        || hold(entry, found).is_some_and(|(held, _)| is_on_reliable_fs(held.as_fd()));
    match is_known {
        true => changed >= ctime(dst),
        false => elapsed_since(changed) < DOUBT,
    }
}

/// The target of a symbolic link; `None` if it cannot be read.
fn link_text(place: &Place<'_>) -> Option<CString> {
    readlinkat(place.dir, place.name, Vec::new()).ok()
}

impl TimeResolutions {
    /// The resolution of the file system of `found`; `None` if it cannot be seen.
    fn of(&self, entry: &Entry<'_>, found: &Found) -> Option<Nanoseconds> {
        let dst = found.effective();
        let (dev, time) = (FileId::of(dst).dev, since_1970(mtime(dst)));
        // One worker at a time sets a time back.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Devices that are one mount may have more than one resolution.
        let fits = |&&(of, resolution): &&(u64, Nanoseconds)| of == dev && time % resolution == 0;
        if let Some(&(_, resolution)) = known.iter().find(fits) {
            return Some(resolution);
        }
        let resolution = measure(entry, found)?;
        known.push((dev, resolution));
        Some(resolution)
    }
}

/// Sets the time of the destination back by a nanosecond, and then to what it was. If the process is killed
/// between, the file seems older and is copied again.
fn measure(entry: &Entry<'_>, found: &Found) -> Option<Nanoseconds> {
    let (held, before) = hold(entry, found)?;
    let (seconds, nanoseconds) = mtime(&before);
    let back = match nanoseconds {
        0 => (seconds.checked_sub(1)?, 999_999_999),
        _ => (seconds, nanoseconds - 1),
    };
    let handle = Handle::Path(held.as_fd());
    set_mtime(handle, back).ok()?;
    let seen = fstat(&held);
    set_mtime(handle, (seconds, nanoseconds)).ok()?;
    let resolution = since_1970(mtime(&before)) - since_1970(mtime(&seen.ok()?));
    (1..=RESOLUTION_MAX).contains(&resolution).then_some(resolution)
}

/// The destination, open with O_PATH, with its attributes. `None` if it is not the file that was found.
fn hold(entry: &Entry<'_>, found: &Found) -> Option<(OwnedFd, Stat)> {
    let mut flags = OFlags::PATH | OFlags::CLOEXEC;
    flags.set(OFlags::NOFOLLOW, !found.through_link);
    let held = openat(entry.dst.dir, entry.dst.name, flags, Mode::empty()).ok()?;
    let stat = fstat(&held).ok()?;
    (FileId::of(&stat) == FileId::of(found.effective())).then_some((held, stat))
}
