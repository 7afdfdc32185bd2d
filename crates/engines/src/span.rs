//! Where bytes come from, where they go, and how many.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// A place in a file, or the descriptor's own cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pos {
    /// An offset in bytes from the start of the file. The descriptor's cursor is left alone by
    /// engines whose [`Facts`](crate::Facts) say `positions`; the others move it. A destination
    /// with O_APPEND fails: the kernel writes at its end, whatever the offset.
    At(u64),
    /// The descriptor's own cursor, which moves on by what was copied: the only choice for pipes,
    /// sockets and terminals.
    Here,
}

impl Pos {
    /// The position `bytes` further on; a cursor moves by itself.
    #[must_use]
    pub fn advanced(self, bytes: u64) -> Pos {
        match self {
            Pos::At(offset) => Pos::At(offset + bytes),
            Pos::Here => Pos::Here,
        }
    }
}

/// One stretch of bytes to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Where to read.
    pub src: Pos,
    /// Where to write.
    pub dst: Pos,
    /// How many bytes to move at most; [`Span::TO_EOF`] for all there are.
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

    /// What remains to be moved after the first `bytes` of this span.
    ///
    /// # Panics
    /// When `bytes` exceeds the span: an engine claimed more than it was asked for.
    #[must_use]
    pub fn after(self, bytes: u64) -> Span {
        assert!(bytes <= self.len, "{bytes} bytes moved of a span of {}", self.len);
        Span { src: self.src.advanced(bytes), dst: self.dst.advanced(bytes), len: self.len - bytes }
    }
}

/// The two open descriptors of a copy, borrowed: an engine never opens or closes files. Both may be
/// of one file as long as the span's ranges do not overlap; where they do, what comes is undefined,
/// and with [`Span::TO_EOF`] the copy may chase its own end until the disk is full.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'fd> {
    /// Open for reading.
    pub src: BorrowedFd<'fd>,
    /// Open for writing, and for reading too where
    /// [`Facts::dst_readable`](crate::Facts::dst_readable) asks for it.
    pub dst: BorrowedFd<'fd>,
    /// Counts bytes as they move, for whoever wants to see that before the span is done.
    pub meter: Option<&'fd Meter>,
}

impl<'fd> Pair<'fd> {
    /// A pair whose bytes nobody counts on their way.
    #[must_use]
    pub fn new(src: BorrowedFd<'fd>, dst: BorrowedFd<'fd>) -> Pair<'fd> {
        Pair { src, dst, meter: None }
    }

    /// The same with a meter.
    #[must_use]
    pub fn with_meter(self, meter: Option<&'fd Meter>) -> Pair<'fd> {
        Pair { meter, ..self }
    }

    /// Tells the meter of `bytes` that one call has moved.
    pub(crate) fn count(&self, bytes: usize) {
        if let Some(meter) = self.meter {
            meter.add(bytes as u64);
        }
    }
}

/// A running count of bytes and calls that others may read at any moment. It is a hint: what was
/// moved and then moved again by another engine counts twice, until the owner, who knows [`Moved`],
/// puts it right.
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

    /// Sets the count of bytes right.
    pub fn set(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// The count of bytes.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How often bytes were added: calls that handed bytes to the destination.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}
