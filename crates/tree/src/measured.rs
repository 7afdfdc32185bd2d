//! What was measured between two file systems, from the user's profile and the one that is built in.
//!
//! A copy of one small file is over before a profile would be read, which takes half a millisecond for
//! each pair of file systems that it knows. So that is left until there is more to do, unless the user
//! has named one.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use engines::Variant;
use engines::profile::{
    Candidate, FileSystems, InFlight, Line, Location, Machine, PairChoices, Problem, Profile,
    Residency, SizeClass, Table,
};

use crate::choice::may_offload;
use crate::diagnostic::Diagnostic;
use crate::identity::FileId;
use crate::options::Options;
use crate::receipt::ChosenBy;
use crate::run::Run;

/// What a run knows by measurement.
#[derive(Default)]
pub(crate) struct Measured {
    profiles: OnceLock<Profiles>,
    /// By the device numbers of source and destination. There are never more than a handful.
    pairs: Mutex<Vec<(FileId, Arc<MeasuredPair>)>>,
    noticed: AtomicBool,
}

struct Profiles {
    /// What the user's profile says of this machine.
    own: Vec<PairChoices>,
}

/// The ways between two file systems that were measured to be the fastest.
pub(crate) struct MeasuredPair {
    table: Table,
    pub(crate) ways: Vec<MeasuredWay>,
}

/// One of them.
pub(crate) struct MeasuredWay {
    pub(crate) variant: Variant,
    pub(crate) by: ChosenBy,
    /// What is no longer as it was then, in words.
    changes: Vec<String>,
}

/// A file that takes several times as long as reading a profile.
const READ_BYTES_MIN: u64 = 4 << 20;

/// A run that has lasted so long will not notice that a profile is read.
const READ_AFTER: Duration = Duration::from_millis(10);

/// The user's lines come before those that are built in.
const OWN: u8 = 0;
const BUILT_IN: u8 = 1;

/// One end of a copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End<'f> {
    pub(crate) fd: BorrowedFd<'f>,
    /// Its device number.
    pub(crate) dev: u64,
    /// The number that statfs(2) gives its file system.
    pub(crate) kind: Option<u64>,
}

impl Measured {
    /// Whether it is worth its time to ask for the way of a file of `bytes`, which may be on a file
    /// system that keeps the copy waiting.
    pub(crate) fn is_worth_asking(run: &Run<'_>, bytes: u64, may_wait: bool) -> bool {
        let is_named = matches!(run.options.profile, Location::Named(_));
        let is_large = bytes >= READ_BYTES_MIN;
        run.options.engine.is_none()
            && (is_named || is_large || may_wait || run.elapsed() >= READ_AFTER)
    }

    /// What is known of the way between two files.
    pub(crate) fn between(&self, run: &Run<'_>, src: End<'_>, dst: End<'_>) -> Arc<MeasuredPair> {
        let key = FileId { dev: src.dev, ino: dst.dev };
        let mut pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, pair)) = pairs.iter().find(|(known, _)| *known == key) {
            return pair.clone();
        }
        let profiles = self.profiles.get_or_init(|| Profiles::read(run));
        let pair = Arc::new(profiles.between(run.options, src, dst));
        pairs.push((key, pair.clone()));
        pair
    }

    /// Tells, the first time only, of what has changed since `way` was measured.
    pub(crate) fn notice(&self, run: &Run<'_>, way: &MeasuredWay) {
        if !way.changes.is_empty() && !self.noticed.swap(true, Ordering::Relaxed) {
            run.report(Diagnostic::ProfileStale { changes: way.changes.clone() });
        }
    }
}

impl Profiles {
    fn read(run: &Run<'_>) -> Profiles {
        Profiles { own: own(run).unwrap_or_default() }
    }

    fn between(&self, options: &Options, src: End<'_>, dst: End<'_>) -> MeasuredPair {
        let by_type = FileSystems::by_number(src.kind, dst.kind, src.dev == dst.dev);
        let mut candidates = Vec::new();
        let mut ways = Vec::new();
        let mut add = |rank: u8, pair: &PairChoices, found: &FileSystems, changes: &[String]| {
            for line in &pair.lines {
                let Some(variant) = usable(options, line) else { continue };
                let words = [found.in_words(), line.in_words()].join(", ");
                let words: Arc<str> = words.trim_end_matches(", ").into();
                let by = match rank {
                    OWN => ChosenBy::Profile(words),
                    _ => ChosenBy::BuiltIn(words),
                };
                ways.push(MeasuredWay { variant, by, changes: changes.to_vec() });
                candidates.push((rank, line.clone()));
            }
        };
        if !self.own.is_empty() {
            let found = FileSystems::of(src.fd, dst.fd);
            let uname = rustix::system::uname();
            let kernel = uname.release().to_string_lossy();
            for pair in self.own.iter().filter(|pair| pair.fits(&found)) {
                add(OWN, pair, &found, &pair.changes(&found, &kernel));
            }
        }
        for pair in &Profile::built_in_between(&by_type) {
            add(BUILT_IN, pair, &by_type, &[]);
        }
        let candidates: Vec<Candidate<'_>> =
            candidates.iter().map(|(rank, line)| Candidate { line, rank: *rank }).collect();
        MeasuredPair { table: Table::new(&candidates, options.no_cache), ways }
    }
}

/// What the user's profile says of this machine; `None` where it is missing or cannot be used.
fn own(run: &Run<'_>) -> Option<Vec<PairChoices>> {
    let location = &run.options.profile;
    let path = location.path()?;
    let warn = |problem: Problem| {
        run.report(Diagnostic::ProfileUnusable { path: path.to_owned(), problem });
    };
    let parsed = match (Profile::read(path), location) {
        (Ok(Some(parsed)), _) => parsed,
        (Ok(None), Location::Named(_)) => {
            warn(Problem::Errno(engines::Errno::NOENT));
            return None;
        }
        (Ok(None), _) => return None,
        (Err(problem), _) => {
            warn(problem);
            return None;
        }
    };
    for mistake in parsed.unusable {
        run.report(Diagnostic::ProfileLine { path: path.to_owned(), mistake });
    }
    let pairs: Vec<_> = parsed.profile.pairs_of(&Machine::this()).cloned().collect();
    if pairs.is_empty() && !parsed.profile.machines.is_empty() {
        run.report(Diagnostic::ProfileForeign { path: path.to_owned() });
    }
    Some(pairs)
}

/// The variant of a line, if this build has it and the options leave it to be chosen: whether blocks
/// are shared is not up to a profile, nor is the kernel to copy where the user has said that it is not.
fn usable(options: &Options, line: &Line) -> Option<Variant> {
    let variant = line.choice.variant()?;
    let fits = match variant.engine.name {
        "reflink" => false,
        "copy_file_range" => may_offload(options),
        _ => true,
    };
    fits.then_some(variant)
}

impl MeasuredPair {
    /// The index of the way for a file of `bytes`; `look` finds out how much of it is in the page cache,
    /// where that matters and the file is long enough for the question.
    pub(crate) fn way(
        &self,
        bytes: u64,
        in_flight: InFlight,
        look: impl FnOnce() -> Option<Residency>,
    ) -> Option<usize> {
        let size = SizeClass::of(bytes);
        let asks = bytes >= ASKED_BYTES_MIN && self.table.asks(size, in_flight);
        let residency = if asks { look() } else { None };
        self.table.get(size, in_flight, residency)
    }
}

/// Files of which it is asked whether they are in the page cache. To copy one takes a hundred times as
/// long as the question.
const ASKED_BYTES_MIN: u64 = 1 << 20;
