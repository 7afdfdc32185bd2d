//! The contract of every engine, and the table row that describes one.

use std::io;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::moved::{Moved, Side, Stop};
use crate::span::{Pair, Span};
use crate::tuning::{Param, Tuning};

/// Moves spans. Owns its ring, pipe or buffers, and keeps them from one span to the next.
///
/// The contract: a copier never opens a file, stats a name, retries with another engine, punches
/// holes or prints. It borrows descriptors, takes a span, and returns the exact number of bytes and
/// why it stopped. After `Stop::Refused` the next engine can continue at exactly that byte.
pub trait Copier: Send {
    /// Moves `span` from `pair.src` to `pair.dst`.
    fn copy(&mut self, pair: Pair<'_>, span: Span) -> Moved;

    /// Touches the memory that it will use, so that no page fault occurs while a clock runs. The
    /// copy of a single small file does not call this.
    fn touch(&mut self) {}

    /// File status flags, such as O_DIRECT, that the descriptors need during the copy.
    /// [`Variant::start`](crate::Variant::start) sets them once for each span, for all workers.
    fn status_flags(&self) -> StatusFlags {
        StatusFlags::default()
    }
}

/// File status flags of the two descriptors of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusFlags {
    /// Of the source.
    pub src: OFlags,
    /// Of the destination.
    pub dst: OFlags,
}

impl Default for StatusFlags {
    fn default() -> StatusFlags {
        StatusFlags::both(OFlags::empty())
    }
}

impl StatusFlags {
    /// The status flags `flags` for source and destination alike.
    #[must_use]
    pub fn both(flags: OFlags) -> StatusFlags {
        StatusFlags { src: flags, dst: flags }
    }
}

/// A lower bound for all copiers: work that moves bytes without descriptors. The lab measures it.
/// It is no [`Copier`], so a copy can never choose it.
pub trait Floor: Send {
    /// Moves `len` bytes within memory.
    ///
    /// # Errors
    /// If the memory cannot be allocated.
    fn run(&mut self, len: u64) -> io::Result<()>;
}

/// One technique: a row of the table [`ENGINES`](crate::ENGINES).
#[derive(Debug)]
pub struct Engine {
    /// One word, the same in file name, flags, CSV and documents.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// What it shares or bypasses: page cache, user memory, extents.
    pub shares: &'static str,
    /// What it supports.
    pub facts: Facts,
    /// The parameters of the engine.
    pub params: &'static [Param],
    /// The variants worth measuring on any machine, in the text form of
    /// [`Variant`](crate::Variant).
    pub lab_variants: &'static [&'static str],
    /// How it is started.
    pub kind: Kind,
}

/// A copier between descriptors, or a floor to compare copiers with.
pub enum Kind {
    /// Moves bytes between descriptors.
    Copier {
        /// Checks whether it works between these two files. The source contains some bytes. The
        /// destination is an empty scratch file that may be written.
        probe: fn(Pair<'_>) -> Verdict,
        /// Starts one with this tuning.
        start: fn(&Tuning) -> io::Result<Box<dyn Copier>>,
    },
    /// Moves bytes within memory only.
    Floor {
        /// Starts one with this tuning.
        start: fn(&Tuning) -> io::Result<Box<dyn Floor>>,
    },
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Kind::Copier { .. } => "Copier",
            Kind::Floor { .. } => "Floor",
        })
    }
}

/// What an engine supports. Conformance tests and the copier read it instead of guessing.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Takes `Pos::At` on both sides without moving the descriptors' cursors. Several spans of one
    /// file may then be moved at once.
    pub positions: bool,
    /// Sources it reads besides regular files.
    pub src: Ends,
    /// Destinations it writes besides regular files.
    pub dst: Ends,
    /// The destination must also be open for reading, because it is mapped.
    pub dst_readable: bool,
    /// The kernel reads the source into the page cache. False if the engine shares extents or
    /// bypasses the page cache.
    pub reads_ahead: bool,
    /// Kernel threads or a device may do part of its work asynchronously. It may then wait for a
    /// processor that kernel threads occupy.
    pub delegates: bool,
    /// Errors that network and stacked file systems return to the first call although plain reads
    /// and writes work. They count as refusals until a byte of the file has moved.
    pub first_call_excuses: &'static [Errno],
}

impl Facts {
    /// Regular files on both sides, by position, and nothing else. Most engines differ from it in a
    /// field or two.
    pub const REGULAR: Facts = Facts {
        positions: true,
        src: Ends::REGULAR_ONLY,
        dst: Ends::REGULAR_ONLY,
        dst_readable: false,
        reads_ahead: true,
        delegates: false,
        first_call_excuses: &[],
    };

    /// The error for which another engine continues after `stop`; `None` if the copy ends there.
    /// `has_moved`: a byte of the file has moved, so that an error is no longer that of a first call.
    pub(crate) fn refusal(&self, stop: Stop, has_moved: bool) -> Option<Errno> {
        match stop {
            Stop::Refused(errno) => Some(errno),
            Stop::Failed { side: Side::Pair, errno } => {
                (!has_moved && self.first_call_excuses.contains(&errno)).then_some(errno)
            }
            Stop::Done | Stop::Eof | Stop::Failed { .. } => None,
        }
    }
}

/// Kinds of descriptors without positions that an engine accepts with `Pos::Here`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Pipes and FIFOs.
    pub pipe: bool,
    /// Stream sockets.
    pub socket: bool,
}

impl Ends {
    /// Neither pipes nor sockets.
    pub const REGULAR_ONLY: Ends = Ends { pipe: false, socket: false };
    /// Pipes and sockets.
    pub const STREAMS: Ends = Ends { pipe: true, socket: true };
}

/// Whether an engine works on a pair of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The engine copied a sample correctly.
    Yes,
    /// The engine works with a limitation, or could not be tried. The text says which.
    Maybe(String),
    /// The engine does not work on these files. The text says why.
    No(String),
}
