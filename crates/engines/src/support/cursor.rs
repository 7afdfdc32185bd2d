//! Converts cursors to positions, for engines that need an offset.

use rustix::fs::{SeekFrom, seek, tell};
use rustix::io::Errno;

use crate::span::Pos;
use crate::support::checked::appends;
use crate::{Moved, Pair, Span};

/// Runs `copy` with an offset as the source position. Advances the source's cursor if the span
/// started there. Refused if the source has no positions.
pub(crate) fn with_src_at(
    pair: Pair<'_>,
    span: Span,
    copy: impl FnOnce(Span, u64) -> Moved,
) -> Moved {
    match span.src {
        Pos::At(src_at) => copy(span, src_at),
        Pos::Here => match tell(pair.src) {
            Err(errno) => Moved::refused(errno),
            Ok(src_at) => {
                let moved = copy(Span { src: Pos::At(src_at), ..span }, src_at);
                // A cursor that can be read can be set.
                let _ = seek(pair.src, SeekFrom::Start(src_at + moved.bytes));
                moved
            }
        },
    }
}

/// Runs `copy` with offsets on both sides. Advances the cursors that the span named. Refused if a
/// side has no positions or the destination appends.
pub(crate) fn with_both_at(
    pair: Pair<'_>,
    span: Span,
    copy: impl FnOnce(Span, u64, u64) -> Moved,
) -> Moved {
    with_src_at(pair, span, |span, src_at| match span.dst {
        Pos::At(dst_at) => copy(span, src_at, dst_at),
        // With O_APPEND other writers may move the end of the file, so no offset can be computed.
        Pos::Here if appends(pair.dst) => Moved::refused(Errno::BADF),
        Pos::Here => match tell(pair.dst) {
            Err(errno) => Moved::refused(errno),
            Ok(dst_at) => {
                let moved = copy(Span { dst: Pos::At(dst_at), ..span }, src_at, dst_at);
                let _ = seek(pair.dst, SeekFrom::Start(dst_at + moved.bytes));
                moved
            }
        },
    })
}
