//! The contract that every engine keeps, and the row of data that describes one.

use std::io;

use rustix::fs::OFlags;

use crate::moved::Moved;
use crate::span::{Pair, Span};
use crate::tuning::{Param, Tuning};

/// Moves spans. It owns its ring, pipe or buffers, and keeps them from span to span.
///
/// The contract: a copier never opens, stats a name, retries elsewhere, punches holes or prints.
/// It takes borrowed descriptors and a span, and returns the exact number of bytes and why it
/// stopped. `Stop::Refused` promises that the next engine can go on exactly there.
pub trait Copier: Send {
    /// Moves `span` from `pair.src` to `pair.dst`.
    fn copy(&mut self, pair: Pair<'_>, span: Span) -> Moved;

    /// Touches the memory that it is going to use, so that no page of it is faulted in while a clock
    /// runs. Whoever copies one small file leaves that.
    fn touch(&mut self) {}

    /// File status flags, such as O_DIRECT, that the descriptors need while it copies.
    /// [`Variant::start`](crate::Variant::start) sees to them once a span, for all workers.
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
    /// The same `flags` on both.
    #[must_use]
    pub fn both(flags: OFlags) -> StatusFlags {
        StatusFlags { src: flags, dst: flags }
    }
}

/// A floor under all copiers: work that moves bytes without descriptors. The lab measures it;
/// since it is no [`Copier`], a copy can never choose it.
pub trait Floor: Send {
    /// Moves `len` bytes within memory.
    ///
    /// # Errors
    /// When the memory cannot be had.
    fn run(&mut self, len: u64) -> io::Result<()>;
}

/// One technique: a row of the table [`ENGINES`](crate::ENGINES).
#[derive(Debug)]
pub struct Engine {
    /// One word, the same in file name, flags, CSV and documents.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// What it shares or bypasses: page cache, user memory, extents.
    pub shares: &'static str,
    /// What it can take.
    pub facts: Facts,
    /// The tuning it has.
    pub params: &'static [Param],
    /// The variants worth racing on any machine, in the text form of
    /// [`Variant`](crate::Variant).
    pub lab_variants: &'static [&'static str],
    /// How it is started.
    pub kind: Kind,
}

/// A copier between descriptors, or a floor to compare them with.
pub enum Kind {
    /// Moves bytes between descriptors.
    Copier {
        /// Whether it works between these two files. The source holds some bytes; the destination
        /// is an empty scratch file that may be written to.
        probe: fn(Pair<'_>) -> Verdict,
        /// Starts one with the given tuning.
        start: fn(&Tuning) -> io::Result<Box<dyn Copier>>,
    },
    /// Moves bytes within memory only.
    Floor {
        /// Starts one with the given tuning.
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

/// What an engine can take. Conformance tests and the copier read it; nothing guesses.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Takes `Pos::At` on both sides without touching the descriptors' cursors, so several spans
    /// of one file may be moved at once.
    pub positions: bool,
    /// Sources it reads besides regular files.
    pub src: Ends,
    /// Destinations it writes besides regular files.
    pub dst: Ends,
    /// The destination has to be open for reading as well (it is mapped).
    pub dst_readable: bool,
    /// It has the kernel read the source into the page cache, rather than share its extents or go past the
    /// cache.
    pub reads_ahead: bool,
    /// Kernel threads may do part of its work while it goes on: they carry out its requests, or serve a
    /// device that it does not wait for. Then it may wait for a processor that these have.
    pub delegates: bool,
    /// Errors that network and stacked file systems give to the first call although plain reads
    /// and writes work; the chain forgives them while nothing of the file has moved.
    pub first_call_excuses: &'static [rustix::io::Errno],
}

impl Facts {
    /// Regular files on both sides, by position, nothing else: most engines differ from it in a
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
}

/// Kinds of descriptors without positions that an engine takes through `Pos::Here`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Pipes and fifos.
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
    /// It copied a sample rightly.
    Yes,
    /// It works, but not wholly as its name says, or it could not be tried; in words.
    Maybe(String),
    /// It does not work here; in words.
    No(String),
}
