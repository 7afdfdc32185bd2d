//! The totals of a run: the sum of its receipts, for `--stats` and for the summary of `--receipt`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use engines::sys::{Usage, Whose, usage};
use rustix::fs::FileType;
use tree::{Method, Receipt};

use crate::cp::messages::engine_line;

/// Sums over all entries.
#[derive(Debug, Default)]
pub(crate) struct RunTotals {
    /// Entries by type and outcome.
    pub(crate) entries: BTreeMap<(Kind, Outcome), u64>,
    /// Bytes of data moved or shared.
    pub(crate) data_bytes: u64,
    /// Those of them that are shared with the source.
    pub(crate) shared_bytes: u64,
    pub(crate) hole_bytes: u64,
    /// By variant, in its text form.
    pub(crate) variants: BTreeMap<String, EngineTotals>,
    /// Files with data, by what chose the variant.
    pub(crate) chosen: BTreeMap<&'static str, u64>,
    /// Entries that changed while they were read.
    pub(crate) changed: u64,
    /// Entries of which an attribute could not be preserved.
    pub(crate) with_losses: u64,
}

/// What one variant copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EngineTotals {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

/// The type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    File,
    Directory,
    Symlink,
    Fifo,
    Socket,
    Device,
    Unknown,
}

/// What was done with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Copied,
    Linked,
    Skipped,
    Failed,
}

impl Kind {
    pub(crate) fn of(kind: FileType) -> Kind {
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
}

impl Outcome {
    pub(crate) const ALL: [Outcome; 4] =
        [Outcome::Copied, Outcome::Linked, Outcome::Skipped, Outcome::Failed];

    pub(crate) fn of(method: Method) -> Outcome {
        match method {
            Method::Copied => Outcome::Copied,
            Method::Linked | Method::SymbolicLink => Outcome::Linked,
            Method::Skipped => Outcome::Skipped,
            Method::Failed => Outcome::Failed,
        }
    }
}

impl RunTotals {
    pub(crate) fn add(&mut self, receipt: &Receipt) {
        let key = (Kind::of(receipt.kind), Outcome::of(receipt.method));
        *self.entries.entry(key).or_default() += 1;
        self.data_bytes += receipt.data_bytes;
        self.hole_bytes += receipt.hole_bytes;
        self.changed += u64::from(receipt.changed);
        self.with_losses += u64::from(!receipt.lost.is_empty());
        if let Some(chosen) = &receipt.chosen {
            *self.chosen.entry(engine_line::chosen_by(&chosen.by)).or_default() += 1;
        }
        let mut last = None;
        for attempt in receipt.attempts.iter().filter(|attempt| attempt.moved.bytes > 0) {
            let bytes = attempt.moved.bytes;
            if attempt.variant.engine.name == "reflink" {
                self.shared_bytes += bytes;
            }
            let share = self.variants.entry(attempt.variant.to_string()).or_default();
            share.bytes += bytes;
            // A file with holes has many attempts.
            if last != Some(&attempt.variant) {
                share.files += 1;
            }
            last = Some(&attempt.variant);
        }
    }
}

/// When a run started, and the processor time that the process had used by then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    begun: Instant,
    used_before: Usage,
}

/// The time that a run took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) elapsed: Duration,
    pub(crate) user: Duration,
    pub(crate) system: Duration,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { begun: Instant::now(), used_before: used() }
    }

    pub(crate) fn cost(&self) -> Cost {
        let Usage { user_ns, system_ns, .. } = used().since(self.used_before);
        Cost {
            elapsed: self.begun.elapsed(),
            user: Duration::from_nanos(user_ns),
            system: Duration::from_nanos(system_ns),
        }
    }
}

/// getrusage(2) documents no error for these arguments.
fn used() -> Usage {
    usage(Whose::Process).unwrap_or_default()
}
