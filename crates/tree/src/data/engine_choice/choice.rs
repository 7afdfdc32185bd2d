//! The measured profile of a run.
//!
//! Reading a profile takes half a millisecond for each pair of file systems in it, as long as
//! copying some small files. So it is read only when there is more to copy, or when the user has
//! named one (docs/design/engine-selection.md).

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use engines::profile::{
    FileSystems, InFlight, Line, Location, Machine, PairChoices, Problem, Profile, Residency,
    Situation, SizeClass, Table,
};
use engines::{Chain, Moved, Observer, Pair, Span, Variant};

use super::rule::{
    Between, OTHERS, RULE, RowChoice, WorkerLoad, is_allowed, may_offload, read_write,
};
use crate::fs::{Endpoints, FileId};
use crate::lock::lock;
use crate::report::{Chosen, ChosenBy, Diagnostic, Reporter};
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
    /// By the device numbers of source and destination: a handful at most.
    pairs: Mutex<Vec<(FileId, Arc<ProfileLines>)>>,
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
            pairs: Mutex::default(),
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
    pub(super) fn is_worth_reading(&self, bytes: u64, may_block: bool) -> bool {
        let is_named = matches!(self.options.profile, Location::Named(_));
        let is_long = || bytes > READ_FILE_BYTES || may_block || self.elapsed() >= READ_AFTER;
        self.options.engine.is_none() && (is_named || is_long())
    }

    /// The lines for two open files.
    pub(super) fn lines_between(&self, ends: Endpoints<'_>) -> Arc<ProfileLines> {
        let key = FileId { dev: ends.src.dev, ino: ends.dst.dev };
        let mut pairs = lock(&self.pairs);
        if let Some((_, lines)) = pairs.iter().find(|(known, _)| *known == key) {
            return lines.clone();
        }
        let lines = Arc::new(lines_between(self.own_lines(), self.options, ends));
        pairs.push((key, lines.clone()));
        lines
    }

    fn own_lines(&self) -> &[PairChoices] {
        self.user.get_or_init(|| self.read_user().unwrap_or_default())
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
            Ok(None) if !matches!(location, Location::Named(_)) => return None,
            read => read.and_then(|read| read.ok_or(Problem::Errno(engines::Errno::NOENT))),
        };
        let parsed = match parsed {
            Ok(parsed) => parsed,
            Err(problem) => {
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

fn lines_between(user: &[PairChoices], options: &Options, ends: Endpoints<'_>) -> ProfileLines {
    if user.is_empty() {
        return ProfileLines::default();
    }
    let found = FileSystems::of(ends.src.fd, ends.dst.fd);
    let kernel = engines::sys::Uname::or_unknown().release;
    let fitting = user.iter().filter(|pair| pair.fits(&found));
    let user: Vec<_> = fitting.map(|pair| (pair, pair.changes(&found, &kernel))).collect();
    let user: &Fitting<'_> = &user;
    ProfileLines::new(options, user, &found)
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

// The variants that one worker has started between one pair of file systems.

/// The chains of variants between one pair of file systems. Each skips variants that were refused
/// there.
pub(crate) struct VariantChains {
    /// For clones; `None` if they are not wanted.
    pub(crate) clone: Option<Chain>,
    between: Between,
    /// The lines of the user's profile, once they were read.
    lines: Option<Arc<ProfileLines>>,
    /// Those that were used. The first is [`READ_WRITE`].
    used: Vec<(Choice, VariantChain)>,
}

/// Why a chain was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    ReadWrite,
    Line(LineChoice),
    Row(RowChoice),
}

/// What copies data, and why it was chosen.
pub(crate) struct VariantChain {
    chain: Chain,
    pub(crate) chosen: Chosen,
    /// The chain contains `copy_file_range`.
    pub(crate) offloads: bool,
}

/// One of the chains, by its index among those that were used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChainId(usize);

/// The chain of read(2) and write(2).
pub(crate) const READ_WRITE: ChainId = ChainId(0);

/// The properties of a file by which its variant is chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File<'f> {
    pub(crate) ends: Endpoints<'f>,
    /// The length of the file.
    pub(crate) bytes: u64,
    /// The length of the file without holes.
    pub(crate) bytes_to_move: u64,
    /// One of the file systems may block.
    pub(crate) may_block: bool,
}

impl VariantChains {
    pub(crate) fn new(between: Between) -> VariantChains {
        let read_write = VariantChain::new(vec![read_write()], ChosenBy::Rule(OTHERS));
        VariantChains {
            clone: between.clone.clone().map(|variant| Chain::exactly([variant])),
            between,
            lines: None,
            used: vec![(Choice::ReadWrite, read_write)],
        }
    }

    /// The chain of the profile line for a file; `None` if nothing was measured. `look` finds out
    /// how much of the file is in the page cache.
    pub(crate) fn by_line(
        &mut self,
        cx: &EngineContext<'_>,
        File { ends, bytes, bytes_to_move, may_block }: File<'_>,
        load: WorkerLoad<'_>,
        look: impl FnOnce() -> Option<Residency>,
    ) -> Option<ChainId> {
        if self.lines.is_none() && cx.is_worth_reading(bytes_to_move, may_block) {
            self.lines = Some(cx.lines_between(ends));
        }
        let lines = self.lines.clone()?;
        let choice = lines.choose(bytes, load, &self.between, look)?;
        let line = lines.line(choice);
        cx.report_stale(line);
        Some(self.chain(Choice::Line(choice), |between| {
            (lines.variants(choice, between), ChosenBy::Profile(line.words.clone()))
        }))
    }

    /// Whether `bytes` of data may be shared among workers.
    pub(crate) fn may_share(&self, bytes: u64) -> bool {
        self.between.may_share(bytes)
    }

    /// The chain of the row of the rule for `bytes` of data. `is_absent` finds out whether nothing of the source
    /// is in the page cache; it is called if that matters.
    pub(crate) fn by_rule(
        &mut self,
        bytes: u64,
        load: WorkerLoad<'_>,
        is_absent: &dyn Fn() -> bool,
    ) -> ChainId {
        let choice = self.between.row(bytes, load, is_absent);
        self.chain(Choice::Row(choice), |between| {
            let by = match between.forced {
                Some(_) => ChosenBy::Forced,
                None => ChosenBy::Rule(RULE[choice.index].condition),
            };
            (between.variants(choice), by)
        })
    }

    fn chain(
        &mut self,
        choice: Choice,
        make: impl FnOnce(&Between) -> (Vec<Variant>, ChosenBy),
    ) -> ChainId {
        let known = self.used.iter().position(|(known, _)| *known == choice);
        ChainId(known.unwrap_or_else(|| {
            let (variants, by) = make(&self.between);
            self.used.push((choice, VariantChain::new(variants, by)));
            self.used.len() - 1
        }))
    }

    /// # Panics
    /// When `id` is that of other file systems.
    pub(crate) fn get(&mut self, ChainId(at): ChainId) -> &mut VariantChain {
        &mut self.used[at].1
    }
}

impl VariantChain {
    fn new(variants: Vec<Variant>, by: ChosenBy) -> VariantChain {
        let offloads = variants.iter().any(|variant| variant.engine.name == "copy_file_range");
        let variant = variants.first().expect("there is always a variant").clone();
        let chain = Chain::exactly(variants);
        VariantChain { chain, chosen: Chosen { variant, by }, offloads }
    }

    /// Copies `span` of a file of which `bytes_before` bytes were copied before.
    pub(crate) fn copy(
        &mut self,
        pair: Pair<'_>,
        (bytes_before, span): (u64, Span),
        observe: &mut Observer<'_>,
    ) -> Moved {
        self.chain.file_after(pair, bytes_before).copy(span, observe)
    }
}

// Predicts which variants a copy will use between two file systems. The lab compares its
// candidates with them.

/// Predicts by the same functions that a copy uses: the user's profile and the rule.
#[derive(Debug)]
pub struct Predictor {
    cached: Half,
    no_cache: Half,
}

/// For copies with or without `--no-cache`.
#[derive(Debug)]
struct Half {
    between: Between,
    lines: ProfileLines,
}

/// The properties of a file by which its variant is chosen.
#[derive(Clone, Copy, Debug)]
pub struct PlannedFile {
    /// The situation of the file.
    pub situation: Situation,
    /// The length of the file, in the size class of the situation.
    pub bytes: u64,
    /// Workers of the run.
    pub jobs: usize,
}

impl Predictor {
    /// For the file systems `found`; `own` are the pairs of the user's profile.
    #[must_use]
    pub fn between(found: &FileSystems, own: &[PairChoices]) -> Predictor {
        // A copy reports what has changed since; it decides nothing.
        let fitting = own.iter().filter(|pair| pair.fits(found));
        let own: Vec<_> = fitting.map(|pair| (pair, Vec::new())).collect();
        let half = |no_cache| {
            // As `haulage cp` copies.
            let options = Options { no_cache, sigbus_handler: true, ..Options::default() };
            let between = Between::new(&options, found.src.number(), found.dst.number());
            Half { between, lines: ProfileLines::new(&options, &own, found) }
        };
        Predictor { cached: half(false), no_cache: half(true) }
    }

    /// The variants that are tried with such a file, in order, if blocks are not shared.
    #[must_use]
    pub fn variants(&self, planned: &PlannedFile) -> Vec<Variant> {
        let half = if planned.situation.no_cache { &self.no_cache } else { &self.cached };
        let Half { between, lines } = half;
        let jobs = || planned.jobs;
        let load = load(planned, &jobs);
        let residency = planned.situation.residency;
        match lines.choose(planned.bytes, load, between, || Some(residency)) {
            Some(line) => lines.variants(line, between),
            None => {
                let is_absent = || residency == Residency::Absent;
                between.variants(between.row(planned.bytes, load, &is_absent))
            }
        }
    }
}

fn load<'c>(planned: &PlannedFile, jobs: &'c dyn Fn() -> usize) -> WorkerLoad<'c> {
    WorkerLoad { others_busy: planned.situation.in_flight == InFlight::Several, jobs }
}

#[cfg(test)]
mod tests {
    use engines::profile::{Choice, FileSystem, Line, Residency, SizeClass};

    use super::*;

    fn found(src: &str, dst: &str) -> FileSystems {
        let side =
            |fs_type: &str| FileSystem { fs_type: Some(fs_type.to_owned()), ..<_>::default() };
        FileSystems { src: side(src), dst: side(dst), same: src == dst }
    }

    fn line(size: Option<u64>, residency: Option<Residency>, variant: &str) -> Line {
        let choice = Choice { variant: variant.to_owned(), ..Choice::default() };
        Line { size: size.map(SizeClass::of), residency, choice, ..Line::default() }
    }

    fn pair(found: &FileSystems, lines: Vec<Line>) -> PairChoices {
        let (src, dst) = (found.src.clone(), found.dst.clone());
        PairChoices { src, dst, same: Some(found.same), kernel: None, lines }
    }

    fn planned(
        bytes: u64,
        residency: Residency,
        in_flight: InFlight,
        no_cache: bool,
    ) -> PlannedFile {
        let situation = Situation { size: SizeClass::of(bytes), residency, in_flight, no_cache };
        PlannedFile { situation, bytes, jobs: 2 }
    }

    fn texts(variants: &[Variant]) -> String {
        variants.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_rule_decides_where_nothing_was_measured() {
        use InFlight::{One, Several};
        let rw = "read_write:256K";
        for (src, dst, bytes, in_flight, no_cache, expected) in [
            ("ext4", "vfat", 1 << 20, One, false, format!("copy_file_range {rw}")),
            ("nfs", "nfs", 1 << 30, One, false, format!("copy_file_range {rw}")),
            ("f2fs", "f2fs", 1 << 10, One, false, rw.to_owned()),
            ("f2fs", "f2fs", 1 << 20, One, false, format!("splice:512K,pipe=512K {rw}")),
            ("f2fs", "f2fs", 1 << 30, One, false, format!("read_write:512K@2 {rw}")),
            ("f2fs", "f2fs", 1 << 30, Several, false, format!("splice:512K,pipe=512K {rw}")),
            ("f2fs", "f2fs", 1 << 30, One, true, format!("dontcache@2 direct@2 {rw}@2 {rw}")),
            ("f2fs", "f2fs", 1 << 20, One, true, format!("dontcache direct {rw}")),
        ] {
            let predictor = Predictor::between(&found(src, dst), &[]);
            let planned = planned(bytes, Residency::Resident, in_flight, no_cache);
            assert_eq!(texts(&predictor.variants(&planned)), expected, "{src} {dst} {bytes}");
        }
        let predictor = Predictor::between(&found("f2fs", "f2fs"), &[]);
        let cold = planned(1 << 30, Residency::Absent, One, false);
        assert_eq!(texts(&predictor.variants(&cold)), format!("direct_read:2M,depth=4 {rw}"));
    }

    #[test]
    fn the_users_lines_come_first_then_the_rule() {
        let found = found("ext4", "ext4");
        let own = vec![
            line(Some(100 << 10), None, "splice:1M"),
            line(Some(8 << 20), None, "splice@4"),
            line(Some(1 << 30), None, "mmap:8M@2"),
        ];
        let predictor = Predictor::between(&found, &[pair(&found, own.clone())]);
        let all = |bytes, in_flight, jobs| {
            let planned =
                PlannedFile { jobs, ..planned(bytes, Residency::Resident, in_flight, false) };
            texts(&predictor.variants(&planned))
        };
        use InFlight::{One, Several};
        let rest = "splice:512K,pipe=512K read_write:256K";
        assert_eq!(all(1 << 10, One, 2), "read_write:256K");
        assert_eq!(all(100 << 10, One, 2), format!("splice:1M {rest}"));
        assert_eq!(all(8 << 20, One, 2), format!("splice@2 {rest}"), "as many as there are");
        assert_eq!(all(8 << 20, Several, 8), format!("splice {rest}"));
        // Variants after a refused one are shared if the rule shares them.
        let shared = "mmap:8M@2 read_write:512K@2 read_write:256K";
        assert_eq!(all(1 << 30, One, 2), shared);
        assert_eq!(all(1 << 30, Several, 2), format!("mmap:8M {rest}"));
        let predictor = Predictor::between(&found_elsewhere(), &[pair(&found, own)]);
        let plain = planned(100 << 10, Residency::Resident, InFlight::One, false);
        assert_eq!(texts(&predictor.variants(&plain)), rest);
    }

    fn found_elsewhere() -> FileSystems {
        found("xfs", "xfs")
    }

    #[test]
    fn only_a_file_known_to_be_absent_is_read_past_the_cache() {
        use Residency::{Absent, Mixed, Resident};
        let found = found("ext4", "ext4");
        for (variant, mixed) in [
            ("splice", "splice"),
            ("direct_read", "splice:512K,pipe=512K"),
            ("direct", "splice:512K,pipe=512K"),
            ("io_uring:1M,direct", "splice:512K,pipe=512K"),
            ("io_uring:1M", "io_uring:1M"),
        ] {
            let own = |residency| pair(&found, vec![line(None, residency, variant)]);
            let first = |own, residency| {
                let predictor = Predictor::between(&found, &[own]);
                predictor.variants(&planned(1 << 20, residency, InFlight::One, false))[0]
                    .to_string()
            };
            let [absent, partly, resident] =
                [Absent, Mixed, Resident].map(|residency| first(own(Some(Absent)), residency));
            let rule = "splice:512K,pipe=512K";
            assert_eq!([&absent, &partly, &resident], [variant, mixed, rule]);
            // A line without a residency applies to every file.
            assert_eq!(first(own(None), Mixed), variant);
        }
    }

    #[test]
    fn the_residency_of_short_files_is_not_asked_for() {
        let found = found("ext4", "ext4");
        let lines = vec![
            line(None, Some(Residency::Resident), "sendfile"),
            line(None, Some(Residency::Absent), "direct"),
        ];
        let predictor = Predictor::between(&found, &[pair(&found, lines)]);
        let first = |bytes, residency| {
            predictor.variants(&planned(bytes, residency, InFlight::One, false))[0].to_string()
        };
        for (bytes, absent) in [
            (4 << 10, "sendfile"),
            (64 << 10, "sendfile"),
            (65 << 10, "direct"),
            (1 << 30, "direct"),
        ] {
            assert_eq!(first(bytes, Residency::Absent), absent, "{bytes}");
            assert_eq!(first(bytes, Residency::Resident), "sendfile", "{bytes}");
        }
        let uncached = planned(1 << 20, Residency::Absent, InFlight::One, true);
        assert_eq!(
            predictor.variants(&uncached)[0].to_string(),
            "dontcache",
            "lines for cached copies"
        );
    }
}
