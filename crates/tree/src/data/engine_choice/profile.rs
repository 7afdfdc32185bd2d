//! The measured profile of a run.
//!
//! Reading a profile takes half a millisecond for each pair of file systems in it, as long as
//! copying some small files. So it is read only when there is more to copy, or when the user has
//! named one (docs/design/engine-selection.md).

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use engines::Variant;
use engines::profile::{
    FileSystems, InFlight, Line, Location, Machine, PairChoices, Problem, Profile, Residency,
    SizeClass, Table,
};

use super::rule::{Between, RowChoice, WorkerLoad, is_allowed, may_offload};
use crate::fs::Endpoints;
use crate::report::{Diagnostic, Reporter};
use crate::request::Options;

/// A longer file takes many times as long as reading a profile and making the threads, buffers or
/// pipes that a measured variant needs.
const READ_FILE_BYTES: u64 = 16 << 20;

/// After this time reading a profile is a small part of the run.
const READ_AFTER: Duration = Duration::from_millis(10);

/// The state of a run that is needed to choose an engine.
pub(crate) struct EngineContext<'r> {
    pub(super) options: &'r Options,
    report: &'r Reporter<'r>,
    start: Instant,
    processors: OnceLock<usize>,
    /// The lines of the user's profile for this machine, once they were read.
    user: OnceLock<Vec<PairChoices>>,
    stale_reported: AtomicBool,
}

impl<'r> EngineContext<'r> {
    /// For a run that starts now.
    pub(crate) fn new(options: &'r Options, report: &'r Reporter<'r>) -> EngineContext<'r> {
        EngineContext {
            options,
            report,
            start: Instant::now(),
            processors: OnceLock::new(),
            user: OnceLock::new(),
            stale_reported: AtomicBool::new(false),
        }
    }

    /// The time since the start of the run.
    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// How many workers may share a file. Counting processors takes as long as copying some small
    /// files, so they are counted when several workers may have work.
    pub(crate) fn jobs(&self) -> usize {
        self.options.jobs.map_or_else(|| self.processors(), NonZeroUsize::get)
    }

    /// How many processors this process may use.
    pub(crate) fn processors(&self) -> usize {
        *self.processors.get_or_init(|| processors().get())
    }

    /// Whether the profile is worth reading for a file of `bytes`, which may be on a file system that
    /// blocks.
    pub(crate) fn is_worth_reading(&self, bytes: u64, may_block: bool) -> bool {
        let is_named = matches!(self.options.profile, Location::Named(_));
        let is_long = || bytes > READ_FILE_BYTES || may_block || self.elapsed() >= READ_AFTER;
        self.options.engine.is_none() && (is_named || is_long())
    }

    /// The lines for two open files.
    pub(super) fn lines_between(&self, ends: Endpoints<'_>) -> ProfileLines {
        let user = self.user.get_or_init(|| self.read_user().unwrap_or_default());
        if user.is_empty() {
            return ProfileLines::default();
        }
        let found = FileSystems::of(ends.src.fd, ends.dst.fd);
        let kernel = sys::Uname::or_unknown().release;
        let fitting = user.iter().filter(|pair| pair.fits(&found));
        let fitting: Vec<_> = fitting.map(|pair| (pair, pair.changes(&found, &kernel))).collect();
        ProfileLines::new(self.options, &fitting, &found)
    }

    /// Reports, the first time only, what has changed since `line` was measured.
    pub(super) fn report_stale(&self, line: &UsableLine) {
        if !line.changes.is_empty() && !self.stale_reported.swap(true, Ordering::Relaxed) {
            self.report.report(Diagnostic::ProfileStale { changes: line.changes.clone() });
        }
    }

    /// The lines of the user's profile for this machine; `None` if it is missing or unusable.
    fn read_user(&self) -> Option<Vec<PairChoices>> {
        let location = &self.options.profile;
        let path = location.path()?.to_owned();
        let parsed = match Profile::read(&path) {
            Ok(Some(parsed)) => parsed,
            Ok(None) if !matches!(location, Location::Named(_)) => return None,
            read => {
                let problem = read.err().unwrap_or(Problem::Errno(engines::Errno::NOENT));
                self.report.report(Diagnostic::ProfileUnusable { path, problem });
                return None;
            }
        };
        for mistake in parsed.unusable {
            self.report.report(Diagnostic::ProfileLine { path: path.clone(), mistake });
        }
        let pairs: Vec<_> = parsed.profile.pairs_of(&Machine::this()).cloned().collect();
        if pairs.is_empty() && !parsed.profile.machines.is_empty() {
            self.report.report(Diagnostic::ProfileForeign { path });
        }
        Some(pairs)
    }
}

/// How many processors this process may use.
pub(crate) fn processors() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// The lines for two file systems.
#[derive(Debug, Default)]
pub(crate) struct ProfileLines {
    table: Table,
    usable: Vec<UsableLine>,
}

/// A line that this build can use and the options allow.
#[derive(Debug)]
pub(crate) struct UsableLine {
    variant: Variant,
    /// The file systems and what it is for, in words.
    pub(crate) words: Arc<str>,
    /// The line applies to sources of which nothing is in the page cache.
    is_for_absent: bool,
    /// What has changed since it was measured, in words.
    pub(crate) changes: Vec<String>,
}

/// The line that applies to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineChoice {
    index: usize,
    /// Workers that share the file.
    workers: usize,
    /// The row of the rule whose variants follow if the line's is refused.
    row: RowChoice,
}

/// The pairs of a profile that fit two file systems, each with what has changed since.
pub(crate) type Fitting<'p> = [(&'p PairChoices, Vec<String>)];

impl ProfileLines {
    /// `pairs` are those of the user's profile for the file systems `found`.
    pub(crate) fn new(options: &Options, pairs: &Fitting<'_>, found: &FileSystems) -> ProfileLines {
        let mut lines: Vec<&Line> = Vec::new();
        let mut usable = Vec::new();
        for (pair, changes) in pairs {
            for line in &pair.lines {
                let Some(variant) = usable_variant(options, line) else { continue };
                let words = [found.in_words(), line.in_words()].join(", ");
                let words = words.trim_end_matches(", ").into();
                let is_for_absent = line.residency == Some(Residency::Absent);
                usable.push(UsableLine { variant, words, is_for_absent, changes: changes.clone() });
                lines.push(line);
            }
        }
        ProfileLines { table: Table::new(&lines, options.no_cache), usable }
    }

    /// The line for a file of `bytes`. `look` finds out how much of it is in the page cache; it is
    /// called if that matters and the file is long enough.
    pub(crate) fn choose(
        &self,
        bytes: u64,
        load: WorkerLoad<'_>,
        between: &Between,
        look: impl FnOnce() -> Option<Residency>,
    ) -> Option<LineChoice> {
        // One worker alone is never idle.
        let several = load.others_busy && (load.jobs)() > 1;
        let in_flight = if several { InFlight::Several } else { InFlight::One };
        let size = SizeClass::of(bytes);
        let asks = size.asks_for_residency() && self.table.asks(size, in_flight);
        let residency = if asks { look() } else { None };
        let index = self.table.get(size, in_flight, residency)?;
        let line = &self.usable[index];
        // A file that is in memory, or in part, must not be read from the medium.
        let is_absent = residency == Some(Residency::Absent);
        if line.is_for_absent && line.variant.reads_past_cache() && !is_absent {
            return None;
        }
        let workers = match line.variant.workers {
            1 => 1,
            _ if load.others_busy => 1,
            workers => workers.min((load.jobs)()),
        };
        // What was measured is not to be read past the page cache by the rule.
        let row = between.row(bytes, load, &|| false);
        Some(LineChoice { index, workers, row })
    }

    /// The line of `choice`.
    pub(crate) fn line(&self, choice: LineChoice) -> &UsableLine {
        &self.usable[choice.index]
    }

    /// The variants to try, in order: that of the line, then those of the rule.
    pub(crate) fn variants(&self, choice: LineChoice, between: &Between) -> Vec<Variant> {
        let first = self.line(choice).variant.shared_by(choice.workers);
        std::iter::once(first).chain(between.variants(choice.row)).collect()
    }
}

/// The variant of a line, if this build has it and the options allow it. A profile does not decide
/// about clones, nor about copy_file_range(2) where the user has forbidden it.
fn usable_variant(options: &Options, line: &Line) -> Option<Variant> {
    let variant = line.choice.variant()?;
    let fits = match variant.engine.name {
        "reflink" => false,
        "copy_file_range" => may_offload(options),
        _ => true,
    };
    // With `--verify` the source would be read from the medium twice.
    let fits = fits && !(options.verify && !options.no_cache && variant.reads_past_cache());
    (fits && is_allowed(options, &variant)).then_some(variant)
}
