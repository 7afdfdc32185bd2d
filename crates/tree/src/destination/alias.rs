//! A destination that is the source, reached by another mount.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, Stat, StatxFlags, statx};

use super::context::Job;
use super::found::Found;
use crate::fs::fs_type::is_on_reliable_fs;
use crate::fs::{FileId, Handle, are_one_file, hold_found, is_regular, mtime};
use crate::metadata::{set_mtime, set_times};
use crate::report::{Diagnostic, Result};

/// Whether the open destination `dst` is the open file `src`, as far as can be told before `dst` is changed.
pub(crate) fn is_source(src: (BorrowedFd<'_>, &Stat), dst: (BorrowedFd<'_>, &Stat)) -> bool {
    are_one_file(src, dst) || is_alias((Handle::Open(src.0), src.1), (Handle::Open(dst.0), dst.1))
}

/// Refuses to remove the name of the destination `found` if that file is the source, which would lose it.
pub(crate) fn refuse_to_remove_source(Job { cx, entry }: Job<'_>, found: &Found) -> Result<()> {
    let (src, dst) = (&entry.src_stat, &found.link);
    if cx.options.dry_run || !is_regular(src) || !may_be_alias(src, dst) {
        return Ok(());
    }
    let held =
        hold_found(&entry.src, entry.src_through_link, src).zip(hold_found(&entry.dst, false, dst));
    let is_source = held.is_some_and(|(src_held, dst_held)| {
        is_alias((Handle::Path(src_held.fd.as_fd()), src), (Handle::Path(dst_held.fd.as_fd()), dst))
    });
    match is_source {
        true => Err(Diagnostic::SameFile { src: entry.src.path(), dst: entry.dst.path() }),
        false => Ok(()),
    }
}

/// Whether `dst` is the file `src` on a mount with device and inode numbers of its own: a FUSE, NFS or SMB file system
/// that serves the directory of `src`, or an overlay of it. To truncate `dst` would empty `src`, and
/// to remove its name that of `src`.
///
/// One file has one length and one time, in whole seconds where a protocol knows no others. If both have the same, the
/// time of `dst` is set to another one for a moment, and that of `src` follows if they are one file. A client of SMB
/// does not ask its server again while it has a lease on `src`; but it tells the number of the inode, so where that is
/// the same, the time of `src` is set and that of `dst` follows. Only the owner and root may set a time: for another
/// user `false`.
pub(crate) fn is_alias(src: (Handle<'_>, &Stat), dst: (Handle<'_>, &Stat)) -> bool {
    may_be_alias(src.1, dst.1)
        && ![src.0, dst.0].into_iter().all(|handle| is_on_reliable_fs(descriptor(handle)))
        && (follows(src, dst)
            || FileId::of(src.1).ino == FileId::of(dst.1).ino && follows(dst, src))
}

/// Whether the time of `file` becomes that of `changed`, which is set for a moment.
fn follows(file: (Handle<'_>, &Stat), changed: (Handle<'_>, &Stat)) -> bool {
    // FAT keeps even seconds.
    let other = mtime(changed.1).0 ^ 2;
    if set_mtime(changed.0, (other, 0)).is_err() {
        return false;
    }
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC;
    let looked = statx(descriptor(file.0), c"", flags, StatxFlags::MTIME);
    let followed = looked.is_ok_and(|now| now.stx_mtime.tv_sec == other);
    // What cannot be set back is overwritten, or reported as the same file with its contents.
    let _ = set_mtime(changed.0, mtime(changed.1));
    if followed {
        // The other mount may keep whole seconds only.
        let _ = set_times(file.0, file.1);
    }
    followed
}

fn descriptor(handle: Handle<'_>) -> BorrowedFd<'_> {
    let (Handle::Open(fd) | Handle::Path(fd) | Handle::Link(fd, _)) = handle;
    fd
}

/// Whether two files may be one by what stat(2) tells of them.
fn may_be_alias(src: &Stat, dst: &Stat) -> bool {
    let alike = |stat: &Stat| (stat.st_size, mtime(stat).0);
    FileId::of(src).dev != FileId::of(dst).dev && alike(src) == alike(dst) && src.st_size > 0
}
