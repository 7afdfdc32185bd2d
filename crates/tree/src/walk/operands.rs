//! From operands to entries: which source goes to which name.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustix::fs::{AtFlags, CWD, FileType, Stat, statat};
use rustix::io::Errno;

use super::parallel_operands::copy_each;
use super::tree::walk;
use super::worker::Worker;
use crate::copy::context::CopyContext;
use crate::copy::entry::{Next, copy_entry};
use crate::copy::parents::{self, Parents, TargetDir};
use crate::data::context::DataContext;
use crate::destination::context::DestinationContext;
use crate::destination::partial::DirectoryMarker;
use crate::destination::{backup, stale_temporaries};
use crate::entry::{Entry, Operand, source_name};
use crate::fs::{
    Anchor, DirPath, DisplayPath, Place, Trust, c_name, is_directory, is_regular, join,
    last_component, last_component_verbatim, open_for_search, trim_slashes,
};
use crate::lock::lock;
use crate::metadata::has_default_acl;
use crate::report::{Action, Diagnostic, Observer, Reporter};
use crate::request::{Destination, Options, Request};

/// How a run ended.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Things that went wrong, each of which was told to the observer, and questions that were
    /// answered with no. The copy is whole when there are none.
    pub failures: u64,
}

/// Copies what `request` names. One entry's failure stops no other.
pub fn copy(request: &Request, options: &Options, observer: &dyn Observer) -> Outcome {
    with_context(options, observer, |cx| copy_request(cx, request))
}

/// Makes the contexts of all layers for one run.
fn with_context(
    options: &Options,
    observer: &dyn Observer,
    run: impl FnOnce(&CopyContext<'_>),
) -> Outcome {
    let report = Reporter::new(observer, options.verbose, options.debug);
    let data = DataContext::now(options, &report);
    let destination = DestinationContext::now(options, &report, &data.sync);
    run(&CopyContext::new(&data, &destination));
    Outcome { failures: report.failures() }
}

fn copy_request(cx: &CopyContext<'_>, request: &Request) {
    match &request.destination {
        Destination::Directory(dir) => into_named_directory(cx, request, dir),
        Destination::Exact(name) => {
            to_exactly(cx, request, name);
            forget_beginning(cx, request, name);
        }
        Destination::Last(last) if cx.options.resume && request.sources.len() == 1 => {
            to_resumed(cx, request, last);
        }
        Destination::Last(last) => to_last(cx, request, last),
    }
}

fn to_last(cx: &CopyContext<'_>, request: &Request, last: &OsStr) {
    match open_directory(last) {
        Ok(dir) => into(cx, request, dir, last),
        Err(errno) if request.sources.len() > 1 => {
            cx.report.report(Diagnostic::Target { path: last.into(), errno, named: false });
        }
        Err(_) => to_exactly(cx, request, last),
    }
}

/// Copies a directory to the name `last`, where an earlier run may have begun with that.
fn to_resumed(cx: &CopyContext<'_>, request: &Request, last: &OsStr) {
    let Some((src, held, base)) = ends(cx, request, last) else {
        return to_last(cx, request, last);
    };
    let exists = open_directory(last).is_ok();
    let started = if !is_directory(&src) || !cx.options.recursive {
        Ok(None)
    } else if exists || cx.options.dry_run {
        Ok(DirectoryMarker::find(held.as_fd(), &base, &src, cx.security().caller.euid))
    } else {
        // The note takes the name of a journal, without which nobody would know a part for one.
        clear_beside(cx, request, (held.as_fd(), &base));
        DirectoryMarker::leave(held.as_fd(), &base, &src, cx.security().caller.euid)
    };
    let started = match started {
        Ok(started) => started,
        Err(errno) => {
            let action = Action::CreateDirectory;
            return cx.report.report(Diagnostic::Failed { action, path: last.into(), errno });
        }
    };
    match started {
        None => {
            to_last(cx, request, last);
            if exists && is_whole(cx) {
                clear_beside(cx, request, (held.as_fd(), &base));
            }
        }
        Some(started) => {
            to_exactly(cx, request, last);
            if is_whole(cx) {
                started.end();
            }
        }
    }
}

/// Removes what an earlier run has left of a file beside `name`, which is a directory by now, or about
/// to be one.
fn clear_beside(cx: &CopyContext<'_>, request: &Request, (dir, name): (BorrowedFd<'_>, &CStr)) {
    let Ok(source) = c_name(source_name(cx.options, &request.sources[0])) else { return };
    let path = Path::new(&request.sources[0]);
    let (shown, trust) = (DisplayPath::Operand(path), Trust::Operand);
    if !cx.options.dry_run {
        let src = Place { dir: CWD, name: &source, shown, trust };
        stale_temporaries::remove_beside(cx.security(), &src, dir, name);
    }
}

/// What an earlier run has noted of the directory `name` holds no longer when that is complete.
fn forget_beginning(cx: &CopyContext<'_>, request: &Request, name: &OsStr) {
    if cx.options.resume
        && is_whole(cx)
        && let Some((src, held, base)) = ends(cx, request, name)
        && let Some(started) =
            DirectoryMarker::find(held.as_fd(), &base, &src, cx.security().caller.euid)
    {
        started.end();
    }
}

fn is_whole(cx: &CopyContext<'_>) -> bool {
    cx.report.failures() == 0 && !cx.report.interrupted() && !cx.options.dry_run
}

/// What the only source is, the directory in which the destination `last` is, and its name there.
fn ends(cx: &CopyContext<'_>, request: &Request, last: &OsStr) -> Option<(Stat, OwnedFd, CString)> {
    let name = trim_slashes(last.as_bytes());
    let (parent, base) = match name.iter().rposition(|&byte| byte == b'/') {
        None => (&b"."[..], name),
        Some(at) => (&name[..=at], &name[at + 1..]),
    };
    let src = c_name(source_name(cx.options, &request.sources[0])).ok()?;
    let src = statat(CWD, &*src, AtFlags::empty()).ok()?;
    Some((src, open_directory(OsStr::from_bytes(parent)).ok()?, c_name(base).ok()?))
}

fn open_directory(name: &OsStr) -> rustix::io::Result<OwnedFd> {
    open_for_search(CWD, &c_name(name.as_bytes())?)
}

fn into_named_directory(cx: &CopyContext<'_>, request: &Request, dir: &OsStr) {
    match open_directory(dir) {
        Ok(opened) => into(cx, request, opened, dir),
        Err(errno) => cx.report.report(Diagnostic::Target { path: dir.into(), errno, named: true }),
    }
}

/// Copies every source into the directory `dir`, which the user called `dir_name`.
fn into(cx: &CopyContext<'_>, request: &Request, dir: OwnedFd, dir_name: &OsStr) {
    let target = Arc::new(dir);
    let dir_path = Path::new(dir_name);
    let home = DirPath::top(dir_path, Some(Anchor::Held(target.clone())));
    let inherits_acl = AtomicBool::new(has_default_acl(cx.options, target.as_fd()));
    note_standing(cx, request, target.as_fd());
    let mut worker = Worker::new(cx);
    let before = Mutex::new(Parents::default());
    let copy = |worker: &mut Worker, source: &OsStr| {
        let source = source_name(cx.options, source);
        if cx.options.parents {
            let target = TargetDir { dir: target.as_fd(), home: &home };
            return with_parents(cx, worker, source, (target, dir_path), &before);
        }
        let name = last_component(source);
        let entry = TopEntry {
            source,
            dir: target.as_fd(),
            name,
            path: join(dir_path, OsStr::from_bytes(name)),
            dst_dir: Some(&home),
            trust: Trust::PreExisting,
            inherits_acl: inherits_acl.load(Ordering::Relaxed),
            into_directory: true,
        };
        entry.copy(cx, worker);
        if name == b"." {
            // The target itself has got attributes.
            inherits_acl.store(has_default_acl(cx.options, target.as_fd()), Ordering::Relaxed);
        }
    };
    copy_each(cx, &mut worker, target.as_fd(), &request.sources, &copy);
    worker.copy.data.release(cx.data);
    cx.data.sync.sync_directory(target.as_fd(), || dir_path.to_owned());
    cx.data.sync.sync_file_systems();
}

/// Notes which links stand in the target directory before anything is put there.
fn note_standing(cx: &CopyContext<'_>, request: &Request, target: BorrowedFd<'_>) {
    let source = |source| source_name(cx.options, source);
    let names = request.sources.iter().map(|name| c_name(last_component(source(name))));
    let Ok(names) = names.collect::<Result<Vec<_>, _>>() else { return };
    // What is copied into the target itself may have any name there.
    if cx.options.parents || names.iter().any(|name| name.to_bytes() == b".") {
        cx.security().preexisting.enter(target, None);
    } else if cx.options.may_write_through() {
        let names: Vec<_> = names.iter().map(CString::as_c_str).collect();
        cx.security().preexisting.enter_for(target, &names);
    }
}

/// Copies one source to its whole name below the target directory.
fn with_parents(
    cx: &CopyContext<'_>,
    worker: &mut Worker,
    source: &[u8],
    (target, dir_path): (TargetDir<'_>, &Path),
    before: &Mutex<Parents>,
) {
    let last = std::mem::take(&mut *lock(before));
    let parents = match parents::descend(cx, target, dir_path, source, last) {
        Ok(parents) => parents,
        Err(diagnostic) => return cx.report.report(diagnostic),
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
        dst_dir: Some(home),
        trust: if parents.last_is_new() { Trust::Created } else { Trust::PreExisting },
        inherits_acl: has_default_acl(cx.options, dir),
        into_directory: true,
    };
    entry.copy(cx, worker);
    parents::finish(cx, &parents);
    if !cx.options.dry_run {
        *lock(before) = parents;
    }
}

/// Copies the only source to the name `dst`.
fn to_exactly(cx: &CopyContext<'_>, request: &Request, dst: &OsStr) {
    let source = request.sources[0].as_bytes();
    if cx.options.parents {
        return cx.report.report(Diagnostic::ParentsNeedDirectory);
    }
    let mut worker = Worker::new(cx);
    if source == dst.as_bytes()
        && let Some((path, options)) = backup_of_itself(cx, dst)
    {
        let outcome = with_context(&options, cx.report.observer, |once| {
            copy_exactly(once, &mut worker, source, path.as_os_str());
            worker.copy.data.drop_pages(once.data);
        });
        return cx.report.add_failures(outcome.failures);
    }
    copy_exactly(cx, &mut worker, source, dst);
    worker.copy.data.drop_pages(cx.data);
}

/// `cp -bf x x` makes a backup of `x` and nothing else: the copy goes to the backup's name.
fn backup_of_itself(cx: &CopyContext<'_>, dst: &OsStr) -> Option<(PathBuf, Options)> {
    let backup = cx.options.backup.as_ref().filter(|_| cx.options.force)?;
    let name = c_name(dst.as_bytes()).ok()?;
    let stat = statat(CWD, &*name, AtFlags::empty()).ok()?;
    if !is_regular(&stat) {
        return None;
    }
    let place = Place {
        dir: CWD,
        name: &name,
        shown: DisplayPath::Operand(Path::new(dst)),
        trust: Trust::Operand,
    };
    let path = backup::next_path(cx.destination, &place, backup, cx.options.dry_run).ok()?;
    Some((path, Options { backup: None, ..cx.options.clone() }))
}

fn copy_exactly(cx: &CopyContext<'_>, worker: &mut Worker, source: &[u8], dst: &OsStr) {
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
        dst_dir: None,
        trust: Trust::Operand,
        // Where the directory is not known it may give one.
        inherits_acl: held.is_none() || has_default_acl(cx.options, dir),
        into_directory: false,
    };
    entry.copy(cx, worker);
    worker.copy.data.sync(cx.data);
    let shown = || PathBuf::from(OsStr::from_bytes(parent));
    match held {
        Some(held) => cx.data.sync.sync_directory(held.as_fd(), shown),
        // Nothing was made there, unless the name is that of a directory.
        None => sync_named(cx, dst),
    }
    cx.data.sync.sync_file_systems();
}

/// Syncs a directory that was named by itself, `..` for one, if there is any: what is in it is synced
/// with the walk, and its own name stood there before.
fn sync_named(cx: &CopyContext<'_>, name: &OsStr) {
    if let Ok(dir) = open_directory(name) {
        cx.data.sync.sync_directory(dir.as_fd(), || name.into());
    }
}

/// An operand and where it goes.
struct TopEntry<'a> {
    source: &'a [u8],
    dir: BorrowedFd<'a>,
    name: &'a [u8],
    path: PathBuf,
    dst_dir: Option<&'a DirPath>,
    trust: Trust,
    inherits_acl: bool,
    into_directory: bool,
}

impl TopEntry<'_> {
    fn copy(self, cx: &CopyContext<'_>, worker: &mut Worker) {
        let src_path = PathBuf::from(OsStr::from_bytes(self.source));
        let operand = Operand {
            src: src_path,
            dst: self.path,
            into_directory: self.into_directory,
            into_itself: AtomicBool::new(false),
        };
        // Arguments of a process hold no zeros, but those of a library call may.
        let (Ok(src_name), Ok(dst_name)) = (c_name(self.source), c_name(self.name)) else {
            let (action, errno) = (Action::Stat, Errno::INVAL);
            return cx.report.report(Diagnostic::Failed { action, path: operand.src, errno });
        };
        let entry = Entry {
            src: Place {
                dir: CWD,
                name: &src_name,
                shown: DisplayPath::Operand(&operand.src),
                trust: Trust::Operand,
            },
            dst: Place {
                dir: self.dir,
                name: &dst_name,
                shown: DisplayPath::Operand(&operand.dst),
                trust: self.trust,
            },
            dst_dir: self.dst_dir,
            operand: &operand,
            is_operand: true,
            listed_as: FileType::Unknown,
            src_through_link: cx.options.follow.follows(true),
            device: None,
            inherits_acl: self.inherits_acl,
            private: false,
            started: cx.report.keeps_receipts().then(Instant::now),
        };
        if let Next::Enter(task, listing) = copy_entry(cx, &mut worker.copy, &entry, None) {
            walk(cx, worker, &operand, (task, listing));
        }
    }
}
