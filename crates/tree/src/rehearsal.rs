//! `--dry-run`: all is looked at and decided as ever, and nothing is made.
//!
//! A directory that would be made has to be entered, since it is told what would be put into it. The
//! place of its descriptor is taken by one in which no name can be looked up, let alone be made. What
//! would be there is known only as far as it is kept here.

use std::collections::HashSet;
use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, accessat, fstat, openat, readlinkat, statat};
use rustix::io::{self, Errno};

use crate::diagnostic::{Action, Diagnostic};
use crate::dir::open_for_search;
use crate::directory::MadeDirectory;
use crate::entry::Job;
use crate::existing::split;
use crate::filter;
use crate::identity::FileId;
use crate::lock::lock;
use crate::options::{BackupKind, Existing, Follow};
use crate::place::{Place, Trust};
use crate::run::{Run, failed};
use crate::xattr::Handle;

/// What would have been made so far.
#[derive(Default)]
pub(crate) struct Rehearsal {
    directories: Mutex<HashSet<PathBuf>>,
    /// Names of operands in the target directory that are no directories.
    files: Mutex<HashSet<CString>>,
    /// With `-L`, the directories above what would be made, and the way from each down to that.
    above: Mutex<Vec<(FileId, PathBuf)>>,
    ids: AtomicU64,
}

impl Rehearsal {
    /// Whether the directory at `path` would be made now, rather than have been made before.
    pub(crate) fn makes_directory(&self, path: PathBuf) -> bool {
        let mut made = lock(&self.directories);
        let path = without_detours(&path, &made);
        made.insert(path)
    }

    /// What would stand at `name` is none of the directories.
    pub(crate) fn makes_file(&self, name: &CStr) {
        lock(&self.files).insert(name.into());
    }

    /// Something would be made at the destination of `job`.
    fn notes_above(&self, job: &Job<'_>) {
        let Some(dir) = path_of(job.dst.dir) else { return };
        let path = dir.join(OsStr::from_bytes(split(job.dst.name).1));
        let above = path.ancestors().skip(1).filter_map(|above| {
            let stat = statat(CWD, above, AtFlags::empty()).ok()?;
            Some((FileId::of(&stat), path.strip_prefix(above).ok()?.to_owned()))
        });
        lock(&self.above).extend(above);
    }

    /// A number that no inode has.
    pub(crate) fn new_id(&self) -> FileId {
        FileId { dev: u64::MAX, ino: self.ids.fetch_add(1, Ordering::Relaxed) }
    }
}

/// The path of a directory without what leads into one of `made` and out of it again.
fn without_detours(path: &Path, made: &HashSet<PathBuf>) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, component| {
        if component == Component::ParentDir && made.contains(&plain) {
            plain.pop();
        } else {
            plain.push(component);
        }
        plain
    })
}

/// What takes the place of a directory that is not there: every lookup in it fails.
///
/// # Errors
/// Those of open(2).
pub(crate) fn stand_in() -> io::Result<OwnedFd> {
    openat(CWD, c"/dev/null", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// The directory that would be made at `dst`.
///
/// # Errors
/// Why it could not be made, as far as can be known.
pub(crate) fn directory(dst: &Place<'_>, action: Action) -> Result<MadeDirectory, Diagnostic> {
    may_create(dst, action)?;
    made(dst, action)
}

/// The directory that would stand at `dst`, whose last component came with the one above it.
///
/// # Errors
/// Those of open(2) and fstat(2).
pub(crate) fn made(dst: &Place<'_>, action: Action) -> Result<MadeDirectory, Diagnostic> {
    let fd = stand_in().map_err(failed(action, dst))?;
    let stat = fstat(&fd).map_err(failed(Action::Fstat, dst))?;
    Ok(MadeDirectory { fd, stat, mode: None })
}

/// Whether something could be made at `dst`, where nothing stands.
///
/// # Errors
/// Why not, as far as can be known.
pub(crate) fn may_create(dst: &Place<'_>, action: Action) -> Result<(), Diagnostic> {
    may_stand(dst).map_err(failed(action, dst))?;
    if dst.trust != Trust::Made
        && dst.name.to_bytes().ends_with(b"/")
        && action == Action::CreateRegular
    {
        return Err(failed(action, dst)(Errno::NOTDIR));
    }
    Ok(())
}

/// Whether a link, or a node, could be made at `dst`, where nothing stands.
///
/// # Errors
/// Why not, as far as can be known.
pub(crate) fn may_link(dst: &Place<'_>) -> io::Result<()> {
    may_stand(dst)?;
    // Only a directory has a name that ends so.
    if dst.trust != Trust::Made && dst.name.to_bytes().ends_with(b"/") {
        return Err(Errno::NOENT);
    }
    Ok(())
}

fn may_stand(dst: &Place<'_>) -> io::Result<()> {
    let (parent, name) = split(dst.name);
    if matches!(name, b"." | b"..") {
        // With the directory that it is in comes this name.
        return Err(Errno::EXIST);
    }
    if dst.trust == Trust::Made {
        return Ok(());
    }
    let writable = Access::WRITE_OK | Access::EXEC_OK;
    accessat(dst.dir, OsStr::from_bytes(parent), writable, AtFlags::EACCESS)
}

/// What a second operand that goes to a name would meet there.
pub(crate) enum Met {
    /// Nothing of this run's.
    Nothing,
    /// It would be left alone.
    Left,
}

/// Finds out what the copies of this run that are not there would do to this one.
///
/// # Errors
/// What a real run would say.
pub(crate) fn meets_own(run: &Run<'_>, job: &Job<'_>) -> Result<Met, Diagnostic> {
    let Some(rehearsal) = &run.rehearsal else { return Ok(Met::Nothing) };
    let several = job.is_top && job.operand.several && !run.options.parents;
    if !several || !lock(&rehearsal.files).contains(job.dst.name) {
        return Ok(Met::Nothing);
    }
    match run.options.existing {
        Existing::Skip => return Ok(Met::Left),
        Existing::Fail => return Err(Diagnostic::NotReplacing { dst: job.dst.path() }),
        Existing::Replace | Existing::ReplaceOlder => {}
    }
    let numbered = run.options.backup.as_ref().is_some_and(|b| b.kind == BackupKind::Numbered);
    if numbered {
        return Ok(Met::Nothing);
    }
    Err(Diagnostic::JustCreated { src: job.src.path(), dst: job.dst.path() })
}

/// Whether a copy of the directory `job.src` would meet its own beginning, which lies within it.
pub(crate) fn meets_itself(
    run: &Run<'_>,
    rehearsal: &Rehearsal,
    job: &Job<'_>,
    src: FileId,
) -> bool {
    if job.dst.trust == Trust::Made {
        if job.device.is_some_and(|device| device != src.dev) {
            return false;
        }
        // Without following links nothing below an operand is above what is made of it.
        let above = lock(&rehearsal.above);
        let ways = above.iter().filter(|(id, _)| *id == src).map(|(_, way)| way);
        return ways.into_iter().any(|way| !filter::leaves_out_way(run, job, way));
    }
    if run.options.follow == Follow::Always {
        rehearsal.notes_above(job);
    }
    if !is_within(job.dst.dir, src) {
        return false;
    }
    // Where the way there cannot be told, nothing on it is left out as far as anybody knows.
    way_below(job).is_none_or(|way| !filter::leaves_out_way(run, job, &way))
}

/// The path of the destination below the source.
fn way_below(job: &Job<'_>) -> Option<PathBuf> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let src = openat(job.src.dir, job.src.name, flags, Mode::empty()).ok()?;
    let above = path_of(job.dst.dir)?;
    let dst = above.join(OsStr::from_bytes(split(job.dst.name).1));
    Some(dst.strip_prefix(path_of(src.as_fd())?).ok()?.to_owned())
}

fn path_of(dir: BorrowedFd<'_>) -> Option<PathBuf> {
    let path = readlinkat(CWD, Handle::proc_path(dir), Vec::new()).ok()?;
    Some(PathBuf::from(OsStr::from_bytes(path.to_bytes())))
}

/// Whether the directory `inner` is `outer` or lies below it.
fn is_within(inner: BorrowedFd<'_>, outer: FileId) -> bool {
    let Ok(mut at) = open_for_search(inner, c".") else { return false };
    loop {
        let Ok(id) = fstat(&at).map(|stat| FileId::of(&stat)) else { return false };
        if id == outer {
            return true;
        }
        let above = statat(&at, c"..", AtFlags::empty()).map(|stat| FileId::of(&stat));
        if above.is_err() || above == Ok(id) {
            return false;
        }
        let Ok(next) = open_for_search(at.as_fd(), c"..") else { return false };
        at = next;
    }
}
