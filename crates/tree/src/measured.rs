//! What was measured between two file systems, from the user's profile and the one that is built in.
//!
//! A copy of one small file is over before a profile would be read, which takes half a millisecond for
//! each pair of file systems that it knows. So that is left until there is more to do, unless the user
//! has named one.

use std::cell::OnceCell;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use engines::profile::{FileSystems, Location, Machine, PairChoices, Problem, Profile};

use crate::diagnostic::Diagnostic;
use crate::identity::FileId;
use crate::lines::{Fitting, Lines, UsableLine};
use crate::options::Options;
use crate::run::Run;

/// What a run knows by measurement.
#[derive(Default)]
pub(crate) struct Measured {
    profiles: OnceLock<Profiles>,
    /// By the device numbers of source and destination. There are never more than a handful.
    pairs: Mutex<Vec<(FileId, Arc<Lines>)>>,
    noticed: AtomicBool,
}

struct Profiles {
    /// What the user's profile says of this machine.
    own: Vec<PairChoices>,
}

/// A file over this takes many times as long as reading a profile and making the threads, buffers or pipes
/// that a measured way needs. For one up to it, which is a process's first, it is faster to do without them
/// (`choice.rs`).
const READ_BYTES_OVER: u64 = 16 << 20;

/// A run that has lasted so long will not notice that a profile is read.
const READ_AFTER: Duration = Duration::from_millis(10);

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
        let is_large = bytes > READ_BYTES_OVER;
        run.options.engine.is_none()
            && (is_named || is_large || may_wait || run.elapsed() >= READ_AFTER)
    }

    /// What is known of the way between two files.
    pub(crate) fn between(&self, run: &Run<'_>, src: End<'_>, dst: End<'_>) -> Arc<Lines> {
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

    /// Tells, the first time only, of what has changed since `line` was measured.
    pub(crate) fn notice(&self, run: &Run<'_>, line: &UsableLine) {
        if !line.changes.is_empty() && !self.noticed.swap(true, Ordering::Relaxed) {
            run.report(Diagnostic::ProfileStale { changes: line.changes.clone() });
        }
    }
}

impl Profiles {
    fn read(run: &Run<'_>) -> Profiles {
        Profiles { own: own(run).unwrap_or_default() }
    }

    fn between(&self, options: &Options, src: End<'_>, dst: End<'_>) -> Lines {
        // The same number twice is one file system. Two may be one as well: subvolumes have numbers of
        // their own.
        let found = OnceCell::new();
        let found = || found.get_or_init(|| FileSystems::of(src.fd, dst.fd));
        let same = src.dev == dst.dev || src.kind.is_some() && src.kind == dst.kind && found().same;
        let by_type = FileSystems::by_number(src.kind, dst.kind, same);
        let built_in = Profile::built_in_between(&by_type);
        if self.own.is_empty() {
            return Lines::new(options, (&[], &by_type), (&built_in, &by_type));
        }
        let uname = rustix::system::uname();
        let kernel = uname.release().to_string_lossy();
        let fitting = self.own.iter().filter(|pair| pair.fits(found()));
        let own: Vec<_> = fitting.map(|pair| (pair, pair.changes(found(), &kernel))).collect();
        let own: &Fitting<'_> = &own;
        Lines::new(options, (own, found()), (&built_in, &by_type))
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
