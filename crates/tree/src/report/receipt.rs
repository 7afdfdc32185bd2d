//! The receipt of one entry: what was done.

use std::path::PathBuf;
use std::sync::Arc;

use engines::{Moved, Span, Stop, Variant};
use rustix::fs::FileType;

use super::attribute::{Attribute, Loss};
use super::diagnostic::Diagnostic;

/// What was done with one entry.
#[derive(Clone, Debug)]
pub struct Receipt {
    /// The source.
    pub src: PathBuf,
    /// The destination.
    pub dst: PathBuf,
    /// What the source is.
    pub kind: FileType,
    /// What was created for it.
    pub method: Method,
    /// Bytes of data moved or shared.
    pub data_bytes: u64,
    /// Bytes of the file's length that are holes in the copy.
    pub hole_bytes: u64,
    /// The variant that was chosen for the data, if any was moved.
    pub chosen: Option<Chosen>,
    /// Each engine's attempt at the data, in order.
    pub attempts: Vec<Attempt>,
    /// Attributes that were asked for and copied.
    pub kept: Vec<Attribute>,
    /// Attributes that were asked for and could not be kept.
    pub lost: Vec<Loss>,
    /// The source changed while it was read.
    pub changed: bool,
    /// Why the method is [`Method::Failed`], in the order of the messages.
    pub failures: Vec<Diagnostic>,
    /// Duration in nanoseconds. That of a directory includes its entries.
    pub elapsed_ns: u64,
    /// The result of `--verify`.
    pub verified: Option<Verified>,
    /// Offload, reflink and hole detection, for regular files.
    pub offload: Option<Offload>,
}

impl Receipt {
    pub(crate) fn new(src: PathBuf, dst: PathBuf, kind: FileType, method: Method) -> Receipt {
        Receipt {
            src,
            dst,
            kind,
            method,
            data_bytes: 0,
            hole_bytes: 0,
            chosen: None,
            attempts: Vec::new(),
            kept: Vec::new(),
            lost: Vec::new(),
            changed: false,
            failures: Vec::new(),
            elapsed_ns: 0,
            verified: None,
            offload: None,
        }
    }

    /// Adds `failures`, which make the entry a failed one.
    pub(crate) fn failed_by(mut self, failures: Vec<Diagnostic>) -> Receipt {
        if !failures.is_empty() {
            self.method = Method::Failed;
        }
        self.failures.extend(failures);
        self
    }

    /// Adds the result of copying the data.
    pub(crate) fn add_data(&mut self, data: DataReport) {
        self.data_bytes = data.data_bytes;
        self.hole_bytes = data.hole_bytes;
        self.changed = data.changed;
        self.offload = Some(data.offload);
        self.chosen = data.chosen;
        self.attempts = data.attempts;
        self.verified = data.verified;
        if !data.failures.is_empty() {
            self.method = Method::Failed;
            self.failures.extend(data.failures);
        }
    }
}

/// What was done with the data of one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct DataReport {
    pub(crate) data_bytes: u64,
    pub(crate) hole_bytes: u64,
    /// The source changed while it was read.
    pub(crate) changed: bool,
    /// Failures that did not end the copy, if receipts are kept.
    pub(crate) failures: Vec<Diagnostic>,
    pub(crate) offload: Offload,
    /// Kept with receipts and with [`Options::debug`](crate::Options::debug).
    pub(crate) chosen: Option<Chosen>,
    /// Kept with it.
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) verified: Option<Verified>,
}

/// What was created for a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A new file, directory, link or node, or new data in an old one.
    Copied,
    /// A hard link to another copy of the same source, or to the source itself.
    Linked,
    /// A symbolic link to the source.
    SymbolicLink,
    /// The destination was left as it was.
    Skipped,
    /// The copy failed.
    Failed,
}

impl Method {
    /// The method as a word for programs, as in receipts.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Method::Copied => "copied",
            Method::Linked => "linked",
            Method::SymbolicLink => "symlinked",
            Method::Skipped => "skipped",
            Method::Failed => "failed",
        }
    }
}

/// A copy that was read back and found to be the same as its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Of all its bytes, by xxh3-128 with the seed 0.
    pub digest: u128,
    /// No page of it was in the page cache before it was read.
    pub past_cache: bool,
}

/// The variant that was chosen for a file, and why. The attempts tell which one moved the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The variant that is tried first.
    pub variant: Variant,
    /// Why it was chosen.
    pub by: ChosenBy,
}

/// Why a variant was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChosenBy {
    /// The options.
    Forced,
    /// A line of the user's profile: the file systems and what the line is for, in words.
    Profile(Arc<str>),
    /// A row of the rule: its condition.
    Rule(&'static str),
}

impl ChosenBy {
    /// All words that [`word`](ChosenBy::word) returns.
    pub const WORDS: [&'static str; 3] = ["forced", "profile", "rule"];

    /// What chose the variant, as a word for programs.
    #[must_use]
    pub fn word(&self) -> &'static str {
        let index = match self {
            ChosenBy::Forced => 0,
            ChosenBy::Profile(_) => 1,
            ChosenBy::Rule(_) => 2,
        };
        ChosenBy::WORDS[index]
    }

    /// The line of the profile or the condition of the row of the rule, in words.
    #[must_use]
    pub fn line(&self) -> Option<&str> {
        match self {
            ChosenBy::Forced => None,
            ChosenBy::Profile(line) => Some(line),
            ChosenBy::Rule(condition) => Some(condition),
        }
    }
}

/// The attempt of one engine at one span of a file's data. Consecutive spans without an event are
/// one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The engine with its tuning.
    pub variant: Variant,
    /// What it was asked for.
    pub span: Span,
    /// What came of it.
    pub moved: Moved,
}

impl Attempt {
    /// Appends to `attempts`, or extends the last of them if this one continues it.
    pub(crate) fn keep(attempts: &mut Vec<Attempt>, variant: &Variant, span: Span, moved: Moved) {
        if let Some(last) = attempts.last_mut()
            && last.moved.stop == Stop::Done
            && last.variant == *variant
            && last.span.src.advanced(last.span.len) == span.src
        {
            last.span.len += span.len;
            last.moved = Moved { bytes: last.moved.bytes + moved.bytes, stop: moved.stop };
            return;
        }
        attempts.push(Attempt { variant: variant.clone(), span, moved });
    }
}

/// How a regular file's data was copied, in the terms of `cp --debug`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offload {
    /// Whether copy_file_range(2) copied data: `yes`, `no`; `avoided`, the options do not allow it;
    /// `unsupported`, it was refused; `unknown`, there was no data, or the blocks were shared.
    pub offload: &'static str,
    /// Whether blocks were shared.
    pub reflink: &'static str,
    /// How holes were found.
    pub sparse: SparseDetection,
}

/// No data is copied yet.
impl Default for Offload {
    fn default() -> Offload {
        Offload { offload: "unknown", reflink: "no", sparse: SparseDetection::No }
    }
}

/// How holes were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SparseDetection {
    /// Not at all.
    No,
    /// Not known.
    Unknown,
    /// By zeros in the data.
    Zeros,
    /// By SEEK_HOLE.
    SeekHole,
    /// Both.
    SeekHoleAndZeros,
}
