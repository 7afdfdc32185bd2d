//! From operands to entries: which source goes to which name.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustix::fs::{AtFlags, CWD, FileType, Stat, statat};
use rustix::io::Errno;

use crate::backup;
use crate::diagnostic::{Action, Diagnostic};
use crate::dir::open_for_search;
use crate::durable::sync_directory;
use crate::entry::{Job, Next, copy_entry, follows};
use crate::identity::{is_directory, is_regular};
use crate::journal::Begun;
use crate::lock::lock;
use crate::observer::Observer;
use crate::options::Options;
use crate::parents::{self, Parents, TargetDir, gives_acl};
use crate::place::{Place, Shown, Trust};
use crate::remains;
use crate::run::{Run, Worker};
use crate::together::copy_each;
use crate::trail::{Anchor, Trail, join};
use crate::walk::walk;

/// What to copy, and where to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Names of sources, as the user wrote them.
    pub sources: Vec<OsString>,
    /// Where they go.
    pub destination: Destination,
}

/// Where copies go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Into this directory.
    Directory(OsString),
    /// Into it when it is a directory; otherwise the only source goes to this very name.
    Last(OsString),
    /// The only source goes to this very name.
    Exact(OsString),
}

/// How a run ended.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Things that went wrong, each of which was told to the observer, and questions that were
    /// answered with no. The copy is whole when there are none.
    pub failures: u64,
}

/// What the user named, for messages about the whole.
#[derive(Debug)]
pub(crate) struct Operand {
    pub(crate) src: PathBuf,
    pub(crate) dst: PathBuf,
    /// It is one of those that go into a directory.
    pub(crate) several: bool,
    /// It was said that this is a copy into itself, of which there is nothing more to say.
    pub(crate) into_itself: AtomicBool,
}

/// Copies what `request` names. One entry's failure stops no other.
pub fn copy(request: &Request, options: &Options, observer: &dyn Observer) -> Outcome {
    let run = Run::new(options, observer);
    match &request.destination {
        Destination::Directory(dir) => into_named_directory(&run, request, dir),
        Destination::Exact(name) => {
            to_exactly(&run, request, name);
            forget_beginning(&run, request, name);
        }
        Destination::Last(last) if options.resume && request.sources.len() == 1 => {
            to_resumed(&run, request, last);
        }
        Destination::Last(last) => to_last(&run, request, last),
    }
    Outcome { failures: run.failures() }
}

fn to_last(run: &Run<'_>, request: &Request, last: &OsStr) {
    match open_directory(last) {
        Ok(dir) => into(run, request, dir, last),
        Err(errno) if request.sources.len() > 1 => {
            run.report(Diagnostic::Target { path: last.into(), errno, named: false });
        }
        Err(_) => to_exactly(run, request, last),
    }
}

/// Copies a directory to the name `last`, where an earlier run may have begun with that.
fn to_resumed(run: &Run<'_>, request: &Request, last: &OsStr) {
    let Some((src, held, base)) = ends(run, request, last) else {
        return to_last(run, request, last);
    };
    let stands = open_directory(last).is_ok();
    let begun = if !is_directory(&src) || !run.options.recursive {
        Ok(None)
    } else if stands || run.rehearsal.is_some() {
        Ok(Begun::find(held.as_fd(), &base, &src, run.euid))
    } else {
        // The note takes the name of a journal, without which nobody would know a part for one.
        clear_beside(run, request, (held.as_fd(), &base));
        Begun::leave(held.as_fd(), &base, &src, run.euid)
    };
    let begun = match begun {
        Ok(begun) => begun,
        Err(errno) => {
            let action = Action::CreateDirectory;
            return run.report(Diagnostic::Failed { action, path: last.into(), errno });
        }
    };
    match begun {
        None => {
            to_last(run, request, last);
            if stands && is_whole(run) {
                clear_beside(run, request, (held.as_fd(), &base));
            }
        }
        Some(begun) => {
            to_exactly(run, request, last);
            if is_whole(run) {
                begun.end();
            }
        }
    }
}

/// Removes what an earlier run has left of a file beside `name`, which is a directory by now, or about
/// to be one.
fn clear_beside(run: &Run<'_>, request: &Request, (dir, name): (BorrowedFd<'_>, &CStr)) {
    let Ok(source) = c_name(source_name(run.options, &request.sources[0])) else { return };
    let path = Path::new(&request.sources[0]);
    let (shown, trust) = (Shown::Operand(path), Trust::Operand);
    remains::clear(run, &Place { dir: CWD, name: &source, shown, trust }, dir, name);
}

/// What an earlier run has noted of the directory `name` holds no longer when that is complete.
fn forget_beginning(run: &Run<'_>, request: &Request, name: &OsStr) {
    if run.options.resume
        && is_whole(run)
        && let Some((src, held, base)) = ends(run, request, name)
        && let Some(begun) = Begun::find(held.as_fd(), &base, &src, run.euid)
    {
        begun.end();
    }
}

fn is_whole(run: &Run<'_>) -> bool {
    run.failures() == 0 && !run.observer.interrupted() && run.rehearsal.is_none()
}

/// What the only source is, the directory in which the destination `last` is, and its name there.
fn ends(run: &Run<'_>, request: &Request, last: &OsStr) -> Option<(Stat, OwnedFd, CString)> {
    let name = trim_slashes(last.as_bytes());
    let (parent, base) = match name.iter().rposition(|&byte| byte == b'/') {
        None => (&b"."[..], name),
        Some(at) => (&name[..=at], &name[at + 1..]),
    };
    let src = c_name(source_name(run.options, &request.sources[0])).ok()?;
    let src = statat(CWD, &*src, AtFlags::empty()).ok()?;
    Some((src, open_directory(OsStr::from_bytes(parent)).ok()?, c_name(base).ok()?))
}

fn open_directory(name: &OsStr) -> rustix::io::Result<OwnedFd> {
    open_for_search(CWD, &c_name(name.as_bytes())?)
}

fn into_named_directory(run: &Run<'_>, request: &Request, dir: &OsStr) {
    match open_directory(dir) {
        Ok(opened) => into(run, request, opened, dir),
        Err(errno) => run.report(Diagnostic::Target { path: dir.into(), errno, named: true }),
    }
}

/// Copies every source into the directory `dir`, which the user called `dir_name`.
fn into(run: &Run<'_>, request: &Request, dir: OwnedFd, dir_name: &OsStr) {
    let target = Arc::new(dir);
    let dir_path = Path::new(dir_name);
    let home = Trail::top(dir_path, Some(Anchor::Held(target.clone())));
    let inherits_acl = AtomicBool::new(gives_acl(run, target.as_fd()));
    note_standing(run, request, target.as_fd());
    let mut worker = Worker::new(run);
    let before = Mutex::new(Parents::default());
    let copy = |worker: &mut Worker, source: &OsStr| {
        let source = source_name(run.options, source);
        if run.options.parents {
            let target = TargetDir { dir: target.as_fd(), home: &home };
            return with_parents(run, worker, source, (target, dir_path), &before);
        }
        let name = last_component(source);
        let entry = TopEntry {
            source,
            dir: target.as_fd(),
            name,
            path: join(dir_path, OsStr::from_bytes(name)),
            home: Some(&home),
            trust: Trust::Entered,
            inherits_acl: inherits_acl.load(Ordering::Relaxed),
            several: true,
        };
        entry.copy(run, worker);
        if name == b"." {
            // The target itself has got attributes.
            inherits_acl.store(gives_acl(run, target.as_fd()), Ordering::Relaxed);
        }
    };
    copy_each(run, &mut worker, target.as_fd(), &request.sources, &copy);
    worker.release(run);
    sync_directory(run, target.as_fd(), || dir_path.to_owned());
    run.remainder.sync(run);
}

/// Notes which links stand in the target directory before anything is put there.
fn note_standing(run: &Run<'_>, request: &Request, target: BorrowedFd<'_>) {
    let source = |source| source_name(run.options, source);
    let names = request.sources.iter().map(|name| c_name(last_component(source(name))));
    let Ok(names) = names.collect::<Result<Vec<_>, _>>() else { return };
    // What is copied into the target itself may have any name there.
    if run.options.parents || names.iter().any(|name| name.to_bytes() == b".") {
        run.standing.enter(target, None);
    } else if run.options.may_write_through() {
        let names: Vec<_> = names.iter().map(CString::as_c_str).collect();
        run.standing.enter_for(target, &names);
    }
}

/// Copies one source to its whole name below the target directory.
fn with_parents(
    run: &Run<'_>,
    worker: &mut Worker,
    source: &[u8],
    (target, dir_path): (TargetDir<'_>, &Path),
    before: &Mutex<Parents>,
) {
    let last = std::mem::take(&mut *lock(before));
    let parents = match parents::descend(run, target, dir_path, source, last) {
        Ok(parents) => parents,
        Err(diagnostic) => return run.report(diagnostic),
    };
    let TargetDir { dir, home } = parents.last().unwrap_or(target);
    // Slashes at the front are the root, slashes at the end are decoration.
    let start = source.iter().position(|&byte| byte != b'/').unwrap_or(source.len());
    let whole = &source[start..];
    let entry = TopEntry {
        source,
        dir,
        name: last_component_verbatim(source),
        path: join(dir_path, OsStr::from_bytes(trim_slashes(whole))),
        home: Some(home),
        trust: if parents.last_is_new() { Trust::Made } else { Trust::Entered },
        inherits_acl: gives_acl(run, dir),
        several: true,
    };
    entry.copy(run, worker);
    parents::finish(run, &parents);
    if run.rehearsal.is_none() {
        *lock(before) = parents;
    }
}

/// Copies the only source to the name `dst`.
fn to_exactly(run: &Run<'_>, request: &Request, dst: &OsStr) {
    let source = request.sources[0].as_bytes();
    if run.options.parents {
        return run.report(Diagnostic::ParentsNeedDirectory);
    }
    let mut worker = Worker::new(run);
    if source == dst.as_bytes()
        && let Some((path, options)) = backup_of_itself(run, dst)
    {
        let once = Run::new(&options, run.observer);
        copy_exactly(&once, &mut worker, source, path.as_os_str());
        worker.held.drop_all(&once);
        return run.add_failures(once.failures());
    }
    copy_exactly(run, &mut worker, source, dst);
    worker.held.drop_all(run);
}

/// `cp -bf x x` makes a backup of `x` and nothing else: the copy goes to the backup's name.
fn backup_of_itself(run: &Run<'_>, dst: &OsStr) -> Option<(PathBuf, Options)> {
    let backup = run.options.backup.as_ref().filter(|_| run.options.force)?;
    let name = c_name(dst.as_bytes()).ok()?;
    let stat = statat(CWD, &*name, AtFlags::empty()).ok()?;
    if !is_regular(&stat) {
        return None;
    }
    let place = Place {
        dir: CWD,
        name: &name,
        shown: Shown::Operand(Path::new(dst)),
        trust: Trust::Operand,
    };
    let path = backup::next_path(run, &place, backup, run.options.dry_run).ok()?;
    Some((path, Options { backup: None, ..run.options.clone() }))
}

fn copy_exactly(run: &Run<'_>, worker: &mut Worker, source: &[u8], dst: &OsStr) {
    // The directory is looked up once. Where it cannot be, or the name has no component of its own,
    // the whole name is used, and the kernel says what is wrong with it.
    let (parent, base) = match dst.as_bytes().iter().rposition(|&byte| byte == b'/') {
        None => (&b"."[..], dst.as_bytes()),
        Some(0) => (&b"/"[..], &dst.as_bytes()[1..]),
        Some(at) => (&dst.as_bytes()[..at], &dst.as_bytes()[at + 1..]),
    };
    let single = !matches!(base, b"" | b"." | b"..");
    let held = single.then(|| open_directory(OsStr::from_bytes(parent)).ok()).flatten();
    let (dir, name) = match &held {
        Some(held) => (held.as_fd(), base),
        None => (CWD, dst.as_bytes()),
    };
    let entry = TopEntry {
        source,
        dir,
        name,
        path: dst.into(),
        home: None,
        trust: Trust::Operand,
        // Where the directory is not known it may give one.
        inherits_acl: held.is_none() || gives_acl(run, dir),
        several: false,
    };
    entry.copy(run, worker);
    worker.sync(run);
    let shown = || PathBuf::from(OsStr::from_bytes(parent));
    match held {
        Some(held) => sync_directory(run, held.as_fd(), shown),
        // Nothing was made there, unless the name is that of a directory.
        None => sync_named(run, dst),
    }
    run.remainder.sync(run);
}

/// Syncs a directory that was named by itself, `..` for one, if there is any: what is in it is synced
/// with the walk, and its own name stood there before.
fn sync_named(run: &Run<'_>, name: &OsStr) {
    if let Ok(dir) = open_directory(name) {
        sync_directory(run, dir.as_fd(), || name.into());
    }
}

/// An operand and where it goes.
struct TopEntry<'a> {
    source: &'a [u8],
    dir: BorrowedFd<'a>,
    name: &'a [u8],
    path: PathBuf,
    home: Option<&'a Trail>,
    trust: Trust,
    inherits_acl: bool,
    several: bool,
}

impl TopEntry<'_> {
    fn copy(self, run: &Run<'_>, worker: &mut Worker) {
        let src_path = PathBuf::from(OsStr::from_bytes(self.source));
        let operand = Operand {
            src: src_path,
            dst: self.path,
            several: self.several,
            into_itself: AtomicBool::new(false),
        };
        // Arguments of a process hold no zeros, but those of a library call may.
        let (Ok(src_name), Ok(dst_name)) = (c_name(self.source), c_name(self.name)) else {
            let (action, errno) = (Action::Stat, Errno::INVAL);
            return run.report(Diagnostic::Failed { action, path: operand.src, errno });
        };
        let job = Job {
            src: Place {
                dir: CWD,
                name: &src_name,
                shown: Shown::Operand(&operand.src),
                trust: Trust::Operand,
            },
            dst: Place {
                dir: self.dir,
                name: &dst_name,
                shown: Shown::Operand(&operand.dst),
                trust: self.trust,
            },
            home: self.home,
            operand: &operand,
            is_top: true,
            listed_as: FileType::Unknown,
            src_through_link: follows(run.options.follow, true),
            device: None,
            inherits_acl: self.inherits_acl,
            private: false,
            begun: run.observer.keeps_receipts().then(Instant::now),
        };
        if let Next::Enter(task, listing) = copy_entry(run, worker, &job, None) {
            walk(run, worker, &operand, (task, listing));
        }
    }
}

/// A source's name as it is used when it goes into a directory.
pub(crate) fn source_name<'s>(options: &Options, source: &'s OsStr) -> &'s [u8] {
    let bytes = source.as_bytes();
    if options.strip_trailing_slashes { trim_slashes(bytes) } else { bytes }
}

/// `name` without the slashes at its end; the root keeps one.
pub(crate) fn trim_slashes(name: &[u8]) -> &[u8] {
    match name.iter().rposition(|&byte| byte != b'/') {
        Some(last) => &name[..=last],
        None => &name[..name.len().min(1)],
    }
}

/// The last component of a source's name, which is its name in the target directory. For the root
/// and for a parent directory that is the target itself.
pub(crate) fn last_component(source: &[u8]) -> &[u8] {
    match last_component_verbatim(source) {
        b".." | b"/" => b".",
        name => name,
    }
}

fn last_component_verbatim(source: &[u8]) -> &[u8] {
    let trimmed = trim_slashes(source);
    if trimmed == b"/" {
        return trimmed;
    }
    &trimmed[trimmed.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1)..]
}

pub(crate) fn c_name(bytes: &[u8]) -> rustix::io::Result<CString> {
    CString::new(bytes).map_err(|_| Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_go_to_their_last_component() {
        for (source, name) in [
            ("a", "a"),
            ("a/", "a"),
            ("d//a//", "a"),
            ("d/.", "."),
            ("d/..", "."),
            ("/", "."),
            ("//", "."),
            ("/a", "a"),
        ] {
            assert_eq!(last_component(source.as_bytes()), name.as_bytes(), "{source}");
        }
    }
}
