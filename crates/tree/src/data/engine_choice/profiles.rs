//! What was measured between two file systems, from the user's profile and from the built-in one.
//!
//! Reading a profile takes half a millisecond for each pair of file systems that it holds, as long
//! as copying some small files. So profiles are read only when there is more to copy, or when the
//! user has named one.

use std::cell::OnceCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use engines::profile::{FileSystems, Location, Machine, PairChoices, Problem, Profile};

use super::endpoint::Endpoint;
use super::profile_lines::{Fitting, ProfileLines, UsableLine};
use crate::fs::FileId;
use crate::lock::lock;
use crate::report::{Diagnostic, Reporter};
use crate::request::Options;

/// A file of more bytes takes many times as long as reading a profile and making the threads,
/// buffers or pipes that a measured variant needs. A shorter one, which is a process's first, is
/// copied faster without them ([`EARLY_VARIANTS`](super::rule::EARLY_VARIANTS)).
const READ_BYTES_OVER: u64 = 16 << 20;

/// After this time reading a profile is a small part of the run.
const READ_AFTER: Duration = Duration::from_millis(10);

/// The profiles of one run.
#[derive(Default)]
pub(crate) struct Profiles {
    /// What the user's profile holds for this machine, once it was read.
    user: OnceLock<Vec<PairChoices>>,
    /// By the device numbers of source and destination. There are never more than a handful.
    pairs: Mutex<Vec<(FileId, Arc<ProfileLines>)>>,
    stale_reported: AtomicBool,
}

impl Profiles {
    /// Whether profiles are worth reading for a file of `bytes`, which may be on a file system that
    /// blocks, after a run of `elapsed`.
    pub(crate) fn are_worth_reading(
        options: &Options,
        bytes: u64,
        may_block: bool,
        elapsed: impl FnOnce() -> Duration,
    ) -> bool {
        let is_named = matches!(options.profile, Location::Named(_));
        let is_large = bytes > READ_BYTES_OVER;
        options.engine.is_none() && (is_named || is_large || may_block || elapsed() >= READ_AFTER)
    }

    /// The lines that hold between two files.
    pub(crate) fn between(
        &self,
        options: &Options,
        report: &Reporter<'_>,
        src: Endpoint<'_>,
        dst: Endpoint<'_>,
    ) -> Arc<ProfileLines> {
        let key = FileId { dev: src.dev, ino: dst.dev };
        let mut pairs = lock(&self.pairs);
        if let Some((_, lines)) = pairs.iter().find(|(known, _)| *known == key) {
            return lines.clone();
        }
        let user = self.user.get_or_init(|| read_user(options, report).unwrap_or_default());
        let lines = Arc::new(lines_between(user, options, src, dst));
        pairs.push((key, lines.clone()));
        lines
    }

    /// Reports, the first time only, what has changed since `line` was measured.
    pub(crate) fn report_stale(&self, report: &Reporter<'_>, line: &UsableLine) {
        if !line.changes.is_empty() && !self.stale_reported.swap(true, Ordering::Relaxed) {
            report.report(Diagnostic::ProfileStale { changes: line.changes.clone() });
        }
    }
}

fn lines_between(
    user: &[PairChoices],
    options: &Options,
    src: Endpoint<'_>,
    dst: Endpoint<'_>,
) -> ProfileLines {
    // Equal device numbers are one file system. Different ones may be too: each subvolume has its
    // own.
    let found = OnceCell::new();
    let found = || found.get_or_init(|| FileSystems::of(src.fd, dst.fd));
    let same_type = src.fs_type.is_some() && src.fs_type == dst.fs_type;
    let same = src.dev == dst.dev || same_type && found().same;
    let by_type = FileSystems::by_number(src.fs_type, dst.fs_type, same);
    let built_in = Profile::built_in_between(&by_type);
    if user.is_empty() {
        return ProfileLines::new(options, (&[], &by_type), (&built_in, &by_type));
    }
    let uname = rustix::system::uname();
    let kernel = uname.release().to_string_lossy();
    let fitting = user.iter().filter(|pair| pair.fits(found()));
    let user: Vec<_> = fitting.map(|pair| (pair, pair.changes(found(), &kernel))).collect();
    let user: &Fitting<'_> = &user;
    ProfileLines::new(options, (user, found()), (&built_in, &by_type))
}

/// What the user's profile holds for this machine; `None` where it is missing or cannot be used.
fn read_user(options: &Options, report: &Reporter<'_>) -> Option<Vec<PairChoices>> {
    let location = &options.profile;
    let path = location.path()?;
    let warn = |problem: Problem| {
        report.report(Diagnostic::ProfileUnusable { path: path.to_owned(), problem });
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
        report.report(Diagnostic::ProfileLine { path: path.to_owned(), mistake });
    }
    let pairs: Vec<_> = parsed.profile.pairs_of(&Machine::this()).cloned().collect();
    if pairs.is_empty() && !parsed.profile.machines.is_empty() {
        report.report(Diagnostic::ProfileForeign { path: path.to_owned() });
    }
    Some(pairs)
}
