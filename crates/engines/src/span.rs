//! The source position, the destination position and the length of a copy.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// A position in a file, or the descriptor's own cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pos {
    /// An offset in bytes from the start of the file. Engines whose [`Facts`](crate::Facts) have
    /// `positions` do not move the descriptor's cursor; the others do. A destination with O_APPEND
    /// fails: the kernel writes at its end, whatever the offset.
    At(u64),
    /// The descriptor's own cursor, which advances by the bytes copied. The only choice for pipes,
    /// sockets and terminals.
    Here,
}

impl Pos {
    /// The position `bytes` later. A cursor advances by itself.
    #[must_use]
    pub fn advanced(self, bytes: u64) -> Pos {
        match self {
            Pos::At(offset) => Pos::At(offset + bytes),
            Pos::Here => Pos::Here,
        }
    }

    /// The offset for a call that uses the cursor where there is none.
    pub(crate) fn offset(self) -> Option<u64> {
        match self {
            Pos::At(offset) => Some(offset),
            Pos::Here => None,
        }
    }
}

/// A range of bytes to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Where to read.
    pub src: Pos,
    /// Where to write.
    pub dst: Pos,
    /// The maximum number of bytes to move; [`Span::TO_EOF`] for all bytes up to the end.
    pub len: u64,
}

impl Span {
    /// A length that no file reaches: move until the source ends.
    pub const TO_EOF: u64 = i64::MAX as u64;

    /// `len` bytes from offset 0 to offset 0.
    #[must_use]
    pub fn whole(len: u64) -> Span {
        Span { src: Pos::At(0), dst: Pos::At(0), len }
    }

    /// `len` bytes at the same offset on both sides.
    #[must_use]
    pub fn at(offset: u64, len: u64) -> Span {
        Span { src: Pos::At(offset), dst: Pos::At(offset), len }
    }

    /// The rest of the span after its first `bytes`.
    ///
    /// # Panics
    /// If `bytes` exceeds the span: an engine claimed more than was requested.
    #[must_use]
    pub fn after(self, bytes: u64) -> Span {
        assert!(bytes <= self.len, "{bytes} bytes moved of a span of {}", self.len);
        Span { src: self.src.advanced(bytes), dst: self.dst.advanced(bytes), len: self.len - bytes }
    }
}

/// The two open descriptors of a copy, borrowed: an engine never opens or closes files. Both may
/// refer to one file if the span's ranges do not overlap. If they overlap, the result is undefined,
/// and with [`Span::TO_EOF`] the copy may follow its own end until the disk is full.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'fd> {
    /// Open for reading.
    pub src: BorrowedFd<'fd>,
    /// Open for writing, and also for reading if
    /// [`Facts::dst_readable`](crate::Facts::dst_readable) requires it.
    pub dst: BorrowedFd<'fd>,
    /// Counts bytes as they move, for readers that need a count before the span is done.
    pub meter: Option<&'fd Meter>,
    /// The destination is known to have no O_APPEND.
    pub(crate) honours_positions: bool,
}

impl<'fd> Pair<'fd> {
    /// A pair without a meter.
    #[must_use]
    pub fn new(src: BorrowedFd<'fd>, dst: BorrowedFd<'fd>) -> Pair<'fd> {
        Pair { src, dst, meter: None, honours_positions: false }
    }

    /// Adds a meter to the pair, or removes the meter if `meter` is `None`.
    #[must_use]
    pub fn with_meter(self, meter: Option<&'fd Meter>) -> Pair<'fd> {
        Pair { meter, ..self }
    }

    /// Records that the destination has no O_APPEND, because the caller has opened it so. Otherwise
    /// a call finds that out for each span.
    #[must_use]
    pub fn without_append(self) -> Pair<'fd> {
        Pair { honours_positions: true, ..self }
    }

    /// Adds the `bytes` of one call to the meter.
    pub(crate) fn count(&self, bytes: usize) {
        if let Some(meter) = self.meter {
            meter.add(bytes as u64);
        }
    }
}

/// A running count of bytes and calls that other threads may read at any moment. It is a hint:
/// bytes that another engine moves again count twice, until the owner, who knows [`Moved`],
/// corrects it.
///
/// [`Moved`]: crate::Moved
#[derive(Debug, Default)]
pub struct Meter {
    bytes: AtomicU64,
    calls: AtomicU64,
}

impl Meter {
    /// Adds the bytes of one call to the count.
    pub fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Corrects the count of bytes.
    pub fn set(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// The count of bytes.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The number of calls that passed bytes to the destination.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}
