//! Checks that descriptors can use the positions of a span, before an engine is called.

use std::os::fd::BorrowedFd;

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::Errno;

use crate::contract::{Copier, StatusFlags};
use crate::span::Pos;
use crate::{Moved, Pair, Side, Span};

/// A copier that gets only positions that its descriptors can use. Other positions fail, because no
/// other engine could use them either.
pub(crate) struct WithHonouredPositions {
    pub(crate) copier: Box<dyn Copier>,
}

impl Copier for WithHonouredPositions {
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
        self.copier.copy(pair, span)
    }

    fn touch(&mut self) {
        self.copier.touch();
    }

    fn status_flags(&self) -> StatusFlags {
        self.copier.status_flags()
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
