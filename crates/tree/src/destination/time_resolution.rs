//! Times of modification on a file system that keeps them less finely than that of the source: the copy then
//! seems older than its source.
//!
//! The resolution is not known beforehand: ext4 has one for each size of its inodes, a server that of its own
//! file system. It is seen when the time of an existing copy is set back by a nanosecond.

use std::os::fd::AsFd;
use std::sync::Mutex;

use rustix::fs::{Stat, fstat};

use crate::entry::Entry;
use crate::fs::fs_type::is_on_reliable_fs;
use crate::fs::stat::{
    Nanoseconds, RESOLUTION_MAX, coarsest_resolution, elapsed_since, since_1970,
};
use crate::fs::{
    FileId, Handle, OpenFile, ctime, file_bytes, hold_found, is_regular, is_symlink, kind, mtime,
};
use crate::lock::lock;
use crate::metadata::set_mtime;
use crate::report::Result;

/// How long after a change of the source its copy may have the time of that change without its data, where no
/// time of the copy is known: a run of the same commands by a script.
const DOUBT: Nanoseconds = 10_000_000_000;

/// By how much the time of a change may be behind that of an earlier one on another file system: the kernel takes the
/// first from a clock that advances with its timer, at most every hundredth of a second.
const TICK: Nanoseconds = 10_000_000;

/// The resolutions that were seen, by device.
#[derive(Default)]
pub(crate) struct TimeResolutions(Mutex<Vec<(u64, Nanoseconds)>>);

/// A destination that seems older than its source.
pub(super) struct Older<'o> {
    pub(super) entry: &'o Entry<'o>,
    pub(super) dst: &'o Stat,
    /// The file is the target of the symbolic link at the destination.
    pub(super) through_link: bool,
}

/// Whether the destination has the time of its source as far as the file system keeps it, and was made from
/// the source as it is now. `differs` compares the data of regular files. Without `known`, in a dry run, no
/// time is set.
pub(super) fn has_source_time(
    known: Option<&TimeResolutions>,
    older: &Older<'_>,
    differs: impl FnOnce() -> Result<bool>,
) -> Result<bool> {
    let &Older { entry, dst, .. } = older;
    let src = &entry.src_stat;
    let lag = since_1970(mtime(src)) - since_1970(mtime(dst));
    let may_be_cut = 0 < lag && lag < coarsest_resolution(mtime(dst));
    if !may_be_cut
        || kind(src) != kind(dst)
        || is_regular(src) && file_bytes(src) != file_bytes(dst)
    {
        return Ok(false);
    }
    // The digits of both times tell what a run would probably see.
    let Some(known) = known else { return Ok(lag < coarsest_resolution(ctime(dst))) };
    // First, because setting a time changes what is known of the time of the copy.
    if older.may_have_changed() {
        let has_changed = match is_symlink(src) {
            true => entry.src.read_link().ok() != entry.dst.read_link().ok(),
            false => is_regular(src) && differs()?,
        };
        if has_changed {
            return Ok(false);
        }
    }
    Ok(known.of(older).is_some_and(|resolution| lag < resolution))
}

impl TimeResolutions {
    /// The resolution of the file system of the destination; `None` if it cannot be seen.
    fn of(&self, older: &Older<'_>) -> Option<Nanoseconds> {
        let (dev, time) = (FileId::of(older.dst).dev, since_1970(mtime(older.dst)));
        // One worker at a time sets a time back.
        let mut known = lock(&self.0);
        // Devices that are one mount may have more than one resolution.
        let fits = |&&(of, resolution): &&(u64, Nanoseconds)| of == dev && time % resolution == 0;
        if let Some(&(_, resolution)) = known.iter().find(fits) {
            return Some(resolution);
        }
        let resolution = older.measure()?;
        known.push((dev, resolution));
        Some(resolution)
    }
}

impl Older<'_> {
    /// Whether the source may have changed after it was copied, without another time there.
    fn may_have_changed(&self) -> bool {
        let (changed, dst) = (mtime(&self.entry.src_stat), self.dst);
        // The inode of the copy was changed last when it got its times. Some file systems report the time of
        // modification instead. Then nothing tells when the copy was made.
        let is_known = ctime(dst) != mtime(dst)
            || self.hold().is_some_and(|held| is_on_reliable_fs(held.fd.as_fd()));
        match is_known {
            true => since_1970(changed) + TICK >= since_1970(ctime(dst)),
            false => elapsed_since(changed) < DOUBT,
        }
    }

    /// Sets the time of the destination back by a nanosecond, and then to what it was. If the process is killed
    /// between, the file seems older and is copied again.
    fn measure(&self) -> Option<Nanoseconds> {
        let OpenFile { fd: held, stat: before } = self.hold()?;
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
    fn hold(&self) -> Option<OpenFile> {
        hold_found(&self.entry.dst, self.through_link, self.dst)
    }
}
