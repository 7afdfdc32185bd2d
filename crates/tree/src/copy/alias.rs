//! A destination that is the source, reached by another mount.

use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, Stat, StatxFlags, statx};

use crate::fs::fs_type::is_on_reliable_fs;
use crate::fs::{FileId, Handle, are_one_file, mtime};
use crate::metadata::{set_mtime, set_times};

/// Whether the open destination `dst` is the open file `src`, as far as can be told before `dst` is changed.
pub(super) fn is_source(src: (BorrowedFd<'_>, &Stat), dst: (BorrowedFd<'_>, &Stat)) -> bool {
    are_one_file(src, dst) || is_alias(src, (Handle::Open(dst.0), dst.1))
}

/// Whether `dst` is the file `src` on a mount with device and inode numbers of its own: a FUSE, NFS or SMB file system
/// that serves the directory of `src`, or an overlay of it. To truncate `dst` would empty `src`, and
/// to remove its name that of `src`.
///
/// One file has one length and one time, in whole seconds where a protocol knows no others. If both have the same, the
/// time of `dst` is set to another one for a moment, and that of `src` follows if they are one file. Only the owner and
/// root may set a time: for another user `false`. A client of SMB does not ask its server again while it has a lease on
/// `src`: `false` too.
pub(super) fn is_alias(src: (BorrowedFd<'_>, &Stat), dst: (Handle<'_>, &Stat)) -> bool {
    let (Handle::Open(fd) | Handle::Path(fd) | Handle::Link(fd, _)) = dst.0;
    if !may_be_alias(src.1, dst.1) || [src.0, fd].into_iter().all(is_on_reliable_fs) {
        return false;
    }
    let (seconds, nanoseconds) = mtime(dst.1);
    // FAT keeps even seconds.
    let other = seconds ^ 2;
    if set_mtime(dst.0, (other, 0)).is_err() {
        return false;
    }
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC;
    let followed =
        statx(src.0, c"", flags, StatxFlags::MTIME).is_ok_and(|now| now.stx_mtime.tv_sec == other);
    // What cannot be set back is overwritten, or reported as the same file with its contents.
    let _ = set_mtime(dst.0, (seconds, nanoseconds));
    if followed {
        // The other mount may keep whole seconds only.
        let _ = set_times(Handle::Open(src.0), src.1);
    }
    followed
}

/// Whether two files may be one by what stat(2) tells of them.
pub(super) fn may_be_alias(src: &Stat, dst: &Stat) -> bool {
    let alike = |stat: &Stat| (stat.st_size, mtime(stat).0);
    FileId::of(src).dev != FileId::of(dst).dev && alike(src) == alike(dst) && src.st_size > 0
}
