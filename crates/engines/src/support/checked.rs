//! Checks that descriptors can use the positions of a span before an engine is called, and sets the status flags that
//! the engine needs on them.

use std::os::fd::BorrowedFd;

use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use crate::contract::{Copier, StatusFlags};
use crate::span::Pos;
use crate::{Moved, Pair, Side, Span};

/// A copier that gets only positions that its descriptors can use. Other positions fail, because no
/// other engine could use them either.
///
/// The descriptors have `flags` for the length of each span. The flags belong to the open file description, which all
/// workers share. They are therefore set around the workers, not by them.
pub(crate) struct Checked {
    pub(crate) copier: Box<dyn Copier>,
    pub(crate) flags: StatusFlags,
}

impl Copier for Checked {
    fn copy(&mut self, pair: Pair<'_>, span: Span) -> Moved {
        if beyond_any_file(span.src) {
            return Moved::failed(Side::Src, Errno::INVAL);
        }
        if beyond_any_file(span.dst) {
            return Moved::failed(Side::Dst, Errno::FBIG);
        }
        // The kernel ignores the offset of pwrite(2) and appends. The bytes would be written
        // elsewhere, and those of several workers in any order.
        if let Pos::At(_) = span.dst
            && !pair.honours_positions
            && appends(pair.dst)
        {
            return Moved::failed(Side::Dst, Errno::BADF);
        }
        if self.flags == StatusFlags::default() {
            return self.copier.copy(pair, span);
        }
        // On a pipe O_DIRECT means packet mode, and a reader with a small buffer would lose the
        // rest of each packet.
        if !is_file(pair.src) || !is_file(pair.dst) {
            return Moved::refused(Errno::INVAL);
        }
        let guards = Guard::set(pair.src, self.flags.src)
            .and_then(|src| Ok((src, Guard::set(pair.dst, self.flags.dst)?)));
        match guards {
            Ok(_guards) => self.copier.copy(pair, span),
            Err(errno) => Moved::refused(errno),
        }
    }

    fn touch(&mut self) {
        self.copier.touch();
    }

    fn status_flags(&self) -> StatusFlags {
        self.flags
    }
}

/// Whether writes through `fd` are appended to the file, wherever its cursor is (O_APPEND).
pub(crate) fn appends(fd: BorrowedFd<'_>) -> bool {
    fcntl_getfl(fd).is_ok_and(|flags| flags.contains(OFlags::APPEND))
}

/// Offsets are signed in the kernel. -1 means the cursor to preadv2(2) and io_uring.
fn beyond_any_file(pos: Pos) -> bool {
    matches!(pos, Pos::At(offset) if i64::try_from(offset).is_err())
}

/// Whether the flags have the meaning that they have for files.
fn is_file(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fstat(fd).is_ok_and(|stat| {
        let kind = FileType::from_raw_mode(stat.st_mode);
        matches!(kind, FileType::RegularFile | FileType::BlockDevice)
    })
}

/// Restores a descriptor's status flags when dropped.
struct Guard<'fd> {
    fd: BorrowedFd<'fd>,
    before: OFlags,
    changed: bool,
}

impl<'fd> Guard<'fd> {
    fn set(fd: BorrowedFd<'fd>, flags: OFlags) -> rustix::io::Result<Guard<'fd>> {
        let before = fcntl_getfl(fd)?;
        let changed = !before.contains(flags);
        if changed {
            // A regular file never blocks, but io_uring before Linux 5.18 returns EAGAIN if the
            // flag is set.
            fcntl_setfl(fd, (before | flags) - OFlags::NONBLOCK)?;
        }
        Ok(Guard { fd, before, changed })
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if self.changed {
            // Clearing a flag that could be set does not fail. If it did, the descriptor would
            // refuse unaligned calls with an error and lose no bytes.
            let _ = fcntl_setfl(self.fd, self.before);
        }
    }
}
