//! `--verify`: a copy is read back and compared with its source (docs/design/verify.md).
//!
//! The destination is synced and its pages are dropped first, so that it is read from the medium.
//! cachestat(2) tells whether all pages are gone. If not, as on tmpfs, or if that is not known, as
//! before Linux 6.5, the cached copy is compared and the receipt says so.

use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use engines::pread_full;
use engines::sys::cachestat;
use rustix::fs::{Advice, CWD, Mode, OFlags, fadvise, fcntl_getfl, fdatasync, fstat, openat};
use rustix::io::{self, Errno, fcntl_dupfd_cloexec, retry_on_intr};

use super::comparison::{Compared, compare, compare_range};
use super::context::Files;
use crate::fs::{Handle, Place, TMPFS, file_bytes, fs_type_of, is_regular};
use crate::report::{Action, Diagnostic, Reporter, Result, Verified, WorkerCounters, failed};
use crate::shared::messages::ByteRange;

/// Reads both files again and compares them. `None` if no receipt shows what was compared.
///
/// # Errors
/// The first difference, and failures to read.
pub(crate) fn verify(
    report: &Reporter<'_>,
    files: &Files<'_>,
    counters: Option<&WorkerCounters>,
) -> Result<Option<Verified>> {
    for (place, stat) in [(files.src_place, files.src_stat), (files.dst_place, files.dst_stat)] {
        if !is_regular(stat) {
            return Err(Diagnostic::Unverifiable { path: place.path() });
        }
    }
    let past_cache = drop_cache(files.dst).map_err(failed(Action::Sync, files.dst_place))?;
    let dst = reopen(files.dst).map_err(failed(Action::OpenForReading, files.dst_place))?;
    let interrupted = || files.interrupted_unverified();
    let (src, dst) = ((files.src, files.src_place), (dst.as_fd(), files.dst_place));
    match compare(report, (src, dst), counters, interrupted)? {
        Compared::Equal(digest) => Ok(digest.map(|digest| Verified { digest, past_cache })),
        Compared::Differ(at) => {
            let (src, dst) = (files.src_place.path(), files.dst_place.path());
            Err(Diagnostic::Differs { src, dst, at })
        }
    }
}

/// Reads a range of both files again and compares it. The range was written and synced, maybe by a
/// partner. Returns the offset of the first difference.
///
/// # Errors
/// Failures to read.
pub(crate) fn verify_range(
    report: &Reporter<'_>,
    files: &Files<'_>,
    range: ByteRange,
) -> Result<Option<u64>> {
    // Hints. What another host has written is not cached here, or is old once the file is opened anew.
    let _ =
        fadvise(files.dst, range.start, NonZeroU64::new(range.end - range.start), Advice::DontNeed);
    let dst = reopen(files.dst).map_err(failed(Action::OpenForReading, files.dst_place))?;
    let (src, dst) = ((files.src, files.src_place), (dst.as_fd(), files.dst_place));
    let is_last = range.end == file_bytes(files.src_stat);
    let end = if is_last { u64::MAX } else { range.end };
    compare_range(report, (src, dst), range.start..end, || files.interrupted_unverified())
}

/// Compares the source `src` with the existing destination `dst`, which this run has not written.
/// `None` when they differ, or when `dst` cannot be synced. Within it `None` if no receipt shows
/// what was compared.
///
/// # Errors
/// Failures to read.
pub(crate) fn compare_existing(
    report: &Reporter<'_>,
    src: (BorrowedFd<'_>, &Place<'_>),
    dst: (BorrowedFd<'_>, &Place<'_>),
) -> Result<Option<Option<Verified>>> {
    let Ok(past_cache) = drop_cache(dst.0) else { return Ok(None) };
    let interrupted = || Diagnostic::InterruptedBefore { dst: dst.1.path() };
    Ok(match compare(report, (src, dst), None, interrupted)? {
        Compared::Equal(digest) => Some(digest.map(|digest| Verified { digest, past_cache })),
        Compared::Differ(_) => None,
    })
}

/// Syncs the file and drops its pages. Returns whether no page is left in the cache.
fn drop_cache(fd: BorrowedFd<'_>) -> io::Result<bool> {
    retry_on_intr(|| fdatasync(fd))?;
    if fstat(fd)?.st_size == 0 {
        return Ok(true);
    }
    // A hint. cachestat(2) tells whether it worked.
    let _ = fadvise(fd, 0, None, Advice::DontNeed);
    // tmpfs has no medium.
    let in_memory = fs_type_of(fd) == Some(TMPFS);
    Ok(!in_memory && cachestat(fd, 0, 0).is_ok_and(|counted| counted.cached_pages == 0))
}

/// Opens the file `fd` for reading, through /proc: it may have no name yet. Where locks are mandatory, as on
/// SMB, only the descriptor that has locked a temporary or a partial file may read it.
fn reopen(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let opened = openat(CWD, Handle::proc_path(fd), flags, Mode::empty());
    let read = match &opened {
        Ok(opened) => pread_full(opened.as_fd(), &mut [0], 0).map(drop),
        Err(errno) => Err(*errno),
    };
    let is_readable = || fcntl_getfl(fd).is_ok_and(|flags| flags & OFlags::RWMODE == OFlags::RDWR);
    match read {
        Err(Errno::ACCESS) if is_readable() => fcntl_dupfd_cloexec(fd, 0),
        _ => opened,
    }
}
