//! The totals of a run: the sum of its receipts.

use std::borrow::Cow;
use std::collections::BTreeMap;

use engines::Variant;
use rustix::fs::FileType;
use serde::{Deserialize, Serialize};
use tree::{Method, Receipt};

/// What was copied of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Bytes of data that were moved or shared. Holes do not count.
    pub data_bytes: u64,
    /// The name of the engine that moved or shared the most of them, such as `reflink` or `read_write`;
    /// `None` if there was no data.
    pub engine: Option<&'static str>,
}

impl Copied {
    /// What engines have moved, by their names.
    pub(crate) fn by(engines: &BTreeMap<&'static str, u64>) -> Copied {
        let most = engines.iter().max_by_key(|(_, bytes)| **bytes);
        Copied { data_bytes: engines.values().sum(), engine: most.map(|(name, _)| *name) }
    }
}

/// Sums over all entries.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunTotals {
    /// Entries by type and outcome.
    pub entries: BTreeMap<(Kind, Outcome), u64>,
    /// Bytes of data moved or shared.
    pub data_bytes: u64,
    /// Bytes of data that are shared with the source.
    pub shared_bytes: u64,
    /// Bytes of holes in the copies.
    pub hole_bytes: u64,
    /// By variant, in its text form.
    pub variants: BTreeMap<String, EngineTotals>,
    /// Files with data, by what chose the variant.
    pub chosen: BTreeMap<Cow<'static, str>, u64>,
    /// Entries that changed while they were read.
    pub changed: u64,
    /// Entries of which an attribute could not be preserved.
    pub with_losses: u64,
    /// Files that the copy made beside destinations and could not remove: temporaries and journals.
    pub left_over: u64,
}

/// What one variant copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineTotals {
    /// Files with bytes that it moved.
    pub files: u64,
    /// Bytes that it moved or shared.
    pub bytes: u64,
}

/// The type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A fifo.
    Fifo,
    /// A socket.
    Socket,
    /// A character or block device.
    Device,
    /// An entry whose type could not be found out.
    Unknown,
}

/// What was done with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Outcome {
    /// The entry was copied.
    Copied,
    /// The entry was made a link.
    Linked,
    /// The destination of the entry was left as it was.
    Skipped,
    /// The copy of the entry failed.
    Failed,
}

impl Kind {
    /// The type as a system call returns it.
    #[must_use]
    pub fn of(kind: FileType) -> Kind {
        match kind {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Symlink,
            FileType::Fifo => Kind::Fifo,
            FileType::Socket => Kind::Socket,
            FileType::CharacterDevice | FileType::BlockDevice => Kind::Device,
            FileType::Unknown => Kind::Unknown,
        }
    }

    /// The type as a word for programs, as in receipts.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Kind::File => "file",
            Kind::Directory => "directory",
            Kind::Symlink => "symlink",
            Kind::Fifo => "fifo",
            Kind::Socket => "socket",
            Kind::Device => "device",
            Kind::Unknown => "unknown",
        }
    }
}

impl Outcome {
    /// All of them.
    pub const ALL: [Outcome; 4] =
        [Outcome::Copied, Outcome::Linked, Outcome::Skipped, Outcome::Failed];

    /// The outcome of a method.
    #[must_use]
    pub fn of(method: Method) -> Outcome {
        match method {
            Method::Copied => Outcome::Copied,
            Method::Linked | Method::SymbolicLink => Outcome::Linked,
            Method::Skipped => Outcome::Skipped,
            Method::Failed => Outcome::Failed,
        }
    }
}

impl RunTotals {
    /// Adds one entry.
    pub fn add(&mut self, receipt: &Receipt) {
        let key = (Kind::of(receipt.kind), Outcome::of(receipt.method));
        *self.entries.entry(key).or_default() += 1;
        self.data_bytes += receipt.data_bytes;
        self.hole_bytes += receipt.hole_bytes;
        self.changed += u64::from(receipt.changed);
        self.with_losses += u64::from(!receipt.lost.is_empty());
        if let Some(chosen) = &receipt.chosen {
            *self.chosen.entry(chosen.by.word().into()).or_default() += 1;
        }
        // A file with holes has many attempts, and those of two variants may alternate.
        let mut counted = Vec::new();
        for attempt in receipt.attempts.iter().filter(|attempt| attempt.moved.bytes > 0) {
            let bytes = attempt.moved.bytes;
            if attempt.variant.engine.name == "reflink" {
                self.shared_bytes += bytes;
            }
            let share = self.variants.entry(attempt.variant.to_string()).or_default();
            share.bytes += bytes;
            if !counted.contains(&&attempt.variant) {
                counted.push(&attempt.variant);
                share.files += 1;
            }
        }
    }

    /// The name of the engine that moved or shared the most bytes, by all its variants; `None` if there was no
    /// data.
    #[must_use]
    pub fn engine(&self) -> Option<&'static str> {
        let mut engines = BTreeMap::new();
        for (variant, totals) in &self.variants {
            if let Ok(variant) = variant.parse::<Variant>() {
                *engines.entry(variant.engine.name).or_default() += totals.bytes;
            }
        }
        Copied::by(&engines).engine
    }

    /// Entries of this type with this outcome.
    #[must_use]
    pub fn count(&self, kind: Kind, outcome: Outcome) -> u64 {
        self.entries.get(&(kind, outcome)).copied().unwrap_or(0)
    }
}
