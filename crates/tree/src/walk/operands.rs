//! Copies what a request names: finds out what the destination operand is, and gives each source
//! operand its name there.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustix::fs::{AtFlags, CWD, FileType, Stat, fstat, statat};
use rustix::io::Errno;

use super::parallel_operands::copy_each;
use super::tree::{walk, walk_as_rank};
use super::worker::Worker;
use crate::copy::context::CopyContext;
use crate::copy::descriptors::copy_open_files;
use crate::copy::directory::Next;
use crate::copy::entry::copy_entry;
use crate::copy::parents::{self, Parents, TargetDir};
use crate::copy::plain::{copy_plain, is_plain};
use crate::data::context::DataContext;
use crate::data::worker::DataWorker;
use crate::destination::context::DestinationContext;
use crate::destination::partial::DirectoryMarker;
use crate::destination::{backup, stale_files};
use crate::entry::{ListedEntry, Operand, source_name};
use crate::fs::{
    Anchor, DirPath, DisplayPath, FileId, Place, Trust, c_name, is_directory, is_regular, join,
    last_component, last_component_verbatim, open_for_search, trim_slashes,
};
use crate::lock::lock;
use crate::metadata::has_default_acl;
use crate::report::{Action, Diagnostic, Observer, Reporter};
use crate::request::{Destination, Options, Request};
use crate::shared::RankContext;
use crate::shared::ranks::Rank;

/// How a run ended.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Failures that the observer was told of, and questions that it answered with no. Every entry
    /// was copied if there are none.
    pub failures: u64,
}

/// Copies what `request` names. A failed entry does not stop the others.
pub fn copy(request: &Request, options: &Options, observer: &dyn Observer) -> Outcome {
    copy_plain_file(request, options, observer)
        .unwrap_or_else(|| copy_in_general(request, options, observer))
}

fn copy_in_general(request: &Request, options: &Options, observer: &dyn Observer) -> Outcome {
    with_context(options, observer, None, |cx| copy_request(cx, request))
}

/// The same on one rank of a job. Rank 0 copies what `request` names; the others, for which there is
/// none, copy what ranks give to each other, until [`Event::End`](crate::Event::End).
pub fn copy_as_rank(
    request: Option<&Request>,
    options: &Options,
    observer: &dyn Observer,
    rank: Rank,
) -> Outcome {
    let rank = Arc::new(RankContext::new(rank));
    with_context(options, observer, Some(rank.clone()), |cx| match request {
        _ if !rank.ranks.ready() => cx.report.add_failures(1),
        Some(request) => {
            copy_request(cx, request);
            finish_ranks(cx);
        }
        None => {
            let mut worker = Worker::new(cx);
            walk_as_rank(cx, &mut worker, &rank, None);
            worker.copy.data.release(cx.data);
            cx.data.syncer.sync_file_systems();
        }
    })
}

/// Waits until the other ranks have ended, and adds their failures, unless that was done.
fn finish_ranks(cx: &CopyContext<'_>) {
    if let Some(rank) = cx.rank()
        && let Some(failures) = rank.finish()
    {
        cx.report.add_failures(failures);
    }
}

/// Copies one file without attributes to its name. `None` if the request is another one; nothing is
/// changed then.
fn copy_plain_file(
    request: &Request,
    options: &Options,
    observer: &dyn Observer,
) -> Option<Outcome> {
    let Destination::Exact(dst) = &request.destination else { return None };
    let [src] = &request.sources[..] else { return None };
    if !is_plain(options, observer) {
        return None;
    }
    let (src_name, dst_name) = (c_name(src.as_bytes()).ok()?, c_name(dst.as_bytes()).ok()?);
    let place =
        |name, shown| Place::new(CWD, name, DisplayPath::Operand(Path::new(shown)), Trust::Operand);
    with_data_context(options, observer, |cx| {
        let copied = copy_plain(cx, (&place(&src_name, src), &place(&dst_name, dst)))?;
        copied.unwrap_or_else(|diagnostic| cx.report.report(diagnostic));
        Some(Outcome { failures: cx.report.failures() })
    })
}

/// Copies what is open as `src` to what is open as `dst`, without looking up a name. Between regular
/// files the whole file is copied, whatever the offsets of the descriptors are, and replaces the
/// contents of `dst`. Anything else is a stream, from where it is to its end. Both descriptors stay
/// open. Messages name them `/dev/fd/N`. Of the options, those about names have no effect.
pub fn copy_descriptors(
    src: BorrowedFd<'_>,
    dst: BorrowedFd<'_>,
    options: &Options,
    observer: &dyn Observer,
) -> Outcome {
    with_data_context(options, observer, |cx| {
        copy_open_files(cx, &mut DataWorker::of_one_file(cx), src, dst);
        Outcome { failures: cx.report.failures() }
    })
}

/// Makes the context of a run that looks up no name.
fn with_data_context<T>(
    options: &Options,
    observer: &dyn Observer,
    run: impl FnOnce(&DataContext<'_>) -> T,
) -> T {
    let report = Reporter::new(observer, options.verbose, options.debug);
    run(&DataContext::new(options, &report))
}

/// Makes the contexts of all layers for one run.
fn with_context(
    options: &Options,
    observer: &dyn Observer,
    rank: Option<Arc<RankContext>>,
    run: impl FnOnce(&CopyContext<'_>),
) -> Outcome {
    with_data_context(options, observer, |data| {
        let destination = DestinationContext::new(options, data.report, &data.syncer, rank);
        run(&CopyContext::new(data, &destination));
        Outcome { failures: data.report.failures() }
    })
}

fn copy_request(cx: &CopyContext<'_>, request: &Request) {
    match &request.destination {
        Destination::Directory(dir) => match open_directory(dir) {
            Ok(opened) => copy_into_directory(cx, request, opened, dir),
            Err(errno) => {
                cx.report.report(Diagnostic::Target { path: dir.into(), errno, named: true });
            }
        },
        Destination::Exact(name) => {
            copy_to_name(cx, request, name);
            remove_finished_marker(cx, request, name);
        }
        Destination::Last(last) if cx.options.resume && request.sources.len() == 1 => {
            resume_to_last(cx, request, last);
        }
        Destination::Last(last) => copy_to_last(cx, request, last),
    }
}

fn copy_to_last(cx: &CopyContext<'_>, request: &Request, last: &OsStr) {
    match open_directory(last) {
        Ok(dir) => copy_into_directory(cx, request, dir, last),
        Err(errno) if request.sources.len() > 1 => {
            cx.report.report(Diagnostic::Target { path: last.into(), errno, named: false });
        }
        Err(_) => copy_to_name(cx, request, last),
    }
}

/// Copies the only source to `last` with `--resume`. A marker tells whether a directory `last` is
/// the unfinished copy of an earlier run, or a directory to copy into.
fn resume_to_last(cx: &CopyContext<'_>, request: &Request, last: &OsStr) {
    let Some((src, parent, base)) = look_up_operands(cx, request, last) else {
        return copy_to_last(cx, request, last);
    };
    let exists = open_directory(last).is_ok();
    let euid = cx.security().caller.euid;
    let marker = if !is_directory(&src) || !cx.options.recursive {
        Ok(None)
    } else if exists || cx.options.dry_run {
        Ok(DirectoryMarker::find(parent.as_fd(), &base, &src, euid))
    } else {
        // The marker takes the name of a journal, without which a partial file is not recognised.
        remove_stale_partial(cx, request, last, (parent.as_fd(), &base));
        DirectoryMarker::create(parent.as_fd(), &base, &src, euid)
    };
    match marker {
        Err(errno) => {
            let action = Action::CreateDirectory;
            cx.report.report(Diagnostic::Failed { action, path: last.into(), errno });
        }
        Ok(None) => {
            copy_to_last(cx, request, last);
            if exists && is_complete(cx) {
                remove_stale_partial(cx, request, last, (parent.as_fd(), &base));
            }
        }
        Ok(Some(marker)) => {
            copy_to_name(cx, request, last);
            if is_complete(cx) {
                remove_marker(cx, marker, last);
            }
        }
    }
}

/// Removes the partial file that an earlier run left for `name`, which is or becomes a directory. The
/// user called it `last`.
fn remove_stale_partial(
    cx: &CopyContext<'_>,
    request: &Request,
    last: &OsStr,
    (dir, name): (BorrowedFd<'_>, &CStr),
) {
    let Ok(source) = c_name(source_name(cx.options, &request.sources[0])) else { return };
    let path = Path::new(&request.sources[0]);
    if !cx.options.dry_run {
        let src = Place::new(CWD, &source, DisplayPath::Operand(path), Trust::Operand);
        if let Err(left_over) = stale_files::remove_partial(cx.security(), &src, (dir, name)) {
            left_over.report(cx.report, Path::new(last));
        }
    }
}

/// Removes the marker of the directory `name`, whose copy may be complete by now.
fn remove_finished_marker(cx: &CopyContext<'_>, request: &Request, name: &OsStr) {
    if cx.options.resume
        && is_complete(cx)
        && let Some((src, parent, base)) = look_up_operands(cx, request, name)
        && let Some(marker) =
            DirectoryMarker::find(parent.as_fd(), &base, &src, cx.security().caller.euid)
    {
        remove_marker(cx, marker, name);
    }
}

/// Removes the marker of the complete directory that the user called `name`.
fn remove_marker(cx: &CopyContext<'_>, marker: DirectoryMarker<'_>, name: &OsStr) {
    if let Err(left_over) = marker.remove() {
        left_over.report(cx.report, Path::new(name));
    }
}

fn is_complete(cx: &CopyContext<'_>) -> bool {
    finish_ranks(cx);
    cx.report.failures() == 0 && !cx.report.interrupted() && !cx.options.dry_run
}

/// The attributes of the only source, the directory that the destination `last` is in, and its name
/// there.
fn look_up_operands(
    cx: &CopyContext<'_>,
    request: &Request,
    last: &OsStr,
) -> Option<(Stat, OwnedFd, CString)> {
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

/// Copies every source into the directory `dir`, which the user called `dir_name`.
fn copy_into_directory(cx: &CopyContext<'_>, request: &Request, dir: OwnedFd, dir_name: &OsStr) {
    let target = Arc::new(dir);
    let target_path = Path::new(dir_name);
    let id = fstat(&target).ok().map(|stat| FileId::of(&stat));
    let dir_path = DirPath::top(target_path, Some(Anchor::Held(target.clone())), id);
    let inherits_acl = AtomicBool::new(has_default_acl(cx.options, target.as_fd()));
    record_preexisting_symlinks(cx, request, target.as_fd());
    let mut worker = Worker::new(cx);
    let previous = Mutex::new(Parents::default());
    let copy = |worker: &mut Worker, source: &OsStr| {
        let source = source_name(cx.options, source);
        if cx.options.parents {
            let target = TargetDir { fd: target.as_fd(), dir_path: &dir_path };
            return copy_with_parents(cx, worker, source, (target, target_path), &previous);
        }
        let name = last_component(source);
        let operand = OperandEntry {
            source,
            dir: target.as_fd(),
            name,
            path: join(target_path, OsStr::from_bytes(name)),
            dst_dir: Some(&dir_path),
            trust: Trust::PreExisting,
            inherits_acl: inherits_acl.load(Ordering::Relaxed),
            into_directory: true,
        };
        operand.copy(cx, worker);
        if name == b"." {
            // The copy may have set attributes of the target itself.
            inherits_acl.store(has_default_acl(cx.options, target.as_fd()), Ordering::Relaxed);
        }
    };
    copy_each(cx, &mut worker, target.as_fd(), &request.sources, &copy);
    worker.copy.data.release(cx.data);
    cx.data.syncer.sync_directory(target.as_fd(), || target_path.to_owned());
    cx.data.syncer.sync_file_systems();
}

/// Records the symbolic links in the target directory before anything is created there.
fn record_preexisting_symlinks(cx: &CopyContext<'_>, request: &Request, target: BorrowedFd<'_>) {
    let source = |source| source_name(cx.options, source);
    let names = request.sources.iter().map(|name| c_name(last_component(source(name))));
    let Ok(names) = names.collect::<Result<Vec<_>, _>>() else { return };
    // An operand such as `d/.` is copied into the target itself, to any names.
    if cx.options.parents || names.iter().any(|name| name.to_bytes() == b".") {
        cx.security().preexisting.record_directory(target, None);
    } else if cx.options.may_write_through() {
        let names: Vec<_> = names.iter().map(CString::as_c_str).collect();
        cx.security().preexisting.record_names(target, &names);
    }
}

/// Copies one source to its whole name below the target directory.
fn copy_with_parents(
    cx: &CopyContext<'_>,
    worker: &mut Worker,
    source: &[u8],
    (target, target_path): (TargetDir<'_>, &Path),
    previous: &Mutex<Parents>,
) {
    let last = std::mem::take(&mut *lock(previous));
    let parents = match parents::descend(cx, target, target_path, source, last) {
        Ok(parents) => parents,
        Err(diagnostic) => return cx.report.report(diagnostic),
    };
    let TargetDir { fd: dir, dir_path } = parents.last().unwrap_or(target);
    // Leading slashes are the root directory; trailing ones add nothing.
    let start = source.iter().position(|&byte| byte != b'/').unwrap_or(source.len());
    let operand = OperandEntry {
        source,
        dir,
        name: last_component_verbatim(source),
        path: join(target_path, OsStr::from_bytes(trim_slashes(&source[start..]))),
        dst_dir: Some(dir_path),
        trust: if parents.is_last_new() { Trust::Created } else { Trust::PreExisting },
        inherits_acl: has_default_acl(cx.options, dir),
        into_directory: true,
    };
    operand.copy(cx, worker);
    parents::finish(cx, &parents);
    if !cx.options.dry_run {
        *lock(previous) = parents;
    }
}

/// Copies the only source to the name `dst`.
fn copy_to_name(cx: &CopyContext<'_>, request: &Request, dst: &OsStr) {
    let source = request.sources[0].as_bytes();
    if cx.options.parents {
        return cx.report.report(Diagnostic::ParentsNeedDirectory);
    }
    let mut worker = Worker::new(cx);
    if source == dst.as_bytes()
        && let Some((path, options)) = backup_of_itself(cx, dst)
    {
        let outcome = with_context(&options, cx.report.observer, None, |nested| {
            copy_exactly(nested, &mut worker, source, path.as_os_str());
            worker.copy.data.drop_pages(nested.data);
        });
        return cx.report.add_failures(outcome.failures);
    }
    copy_exactly(cx, &mut worker, source, dst);
    worker.copy.data.drop_pages(cx.data);
}

/// `cp -bf x x` copies `x` to the name of its backup, and does nothing else.
fn backup_of_itself(cx: &CopyContext<'_>, dst: &OsStr) -> Option<(PathBuf, Options)> {
    let backup = cx.options.backup.as_ref().filter(|_| cx.options.force)?;
    let name = c_name(dst.as_bytes()).ok()?;
    let stat = statat(CWD, &*name, AtFlags::empty()).ok()?;
    if !is_regular(&stat) {
        return None;
    }
    let place = Place::new(CWD, &name, DisplayPath::Operand(Path::new(dst)), Trust::Operand);
    let path = backup::next_path(cx.destination, &place, backup, cx.options.dry_run).ok()?;
    Some((path, Options { backup: None, ..cx.options.clone() }))
}

fn copy_exactly(cx: &CopyContext<'_>, worker: &mut Worker, source: &[u8], dst: &OsStr) {
    // The directory is looked up once. If it cannot be opened, or the name has no component of its
    // own, the whole name is used, and the kernel's error says what is wrong with it.
    let (parent, base) = match dst.as_bytes().iter().rposition(|&byte| byte == b'/') {
        None => (&b"."[..], dst.as_bytes()),
        Some(0) => (&b"/"[..], &dst.as_bytes()[1..]),
        Some(at) => (&dst.as_bytes()[..at], &dst.as_bytes()[at + 1..]),
    };
    let single = !matches!(base, b"" | b"." | b"..");
    let opened = single.then(|| open_directory(OsStr::from_bytes(parent)).ok()).flatten();
    let (dir, name) = match &opened {
        Some(opened) => (opened.as_fd(), base),
        None => (CWD, dst.as_bytes()),
    };
    let operand = OperandEntry {
        source,
        dir,
        name,
        path: dst.into(),
        dst_dir: None,
        trust: Trust::Operand,
        // A directory that could not be opened may have a default access control list.
        inherits_acl: opened.is_none() || has_default_acl(cx.options, dir),
        into_directory: false,
    };
    operand.copy(cx, worker);
    worker.copy.data.sync(cx.data);
    let syncer = &cx.data.syncer;
    match opened {
        Some(dir) => {
            syncer.sync_directory(dir.as_fd(), || PathBuf::from(OsStr::from_bytes(parent)));
        }
        // Nothing was created, unless the name is that of a directory, such as `..`. The walk has
        // synced what is in it, and its own name existed before.
        None => {
            if let Ok(dir) = open_directory(dst) {
                syncer.sync_directory(dir.as_fd(), || dst.into());
            }
        }
    }
    syncer.sync_file_systems();
}

/// A source operand and the name of its copy.
struct OperandEntry<'a> {
    source: &'a [u8],
    dir: BorrowedFd<'a>,
    name: &'a [u8],
    path: PathBuf,
    dst_dir: Option<&'a DirPath>,
    trust: Trust,
    inherits_acl: bool,
    into_directory: bool,
}

impl OperandEntry<'_> {
    fn copy(self, cx: &CopyContext<'_>, worker: &mut Worker) {
        let operand = Arc::new(Operand {
            src: PathBuf::from(OsStr::from_bytes(self.source)),
            dst: self.path,
            into_directory: self.into_directory,
            into_itself: AtomicBool::new(false),
            shareable: AtomicBool::new(false),
        });
        // Arguments of a process hold no zero bytes, but those of a library call may.
        let (Ok(src_name), Ok(dst_name)) = (c_name(self.source), c_name(self.name)) else {
            let (action, errno) = (Action::Stat, Errno::INVAL);
            return cx.report.report(Diagnostic::Failed {
                action,
                path: operand.src.clone(),
                errno,
            });
        };
        let src_shown = DisplayPath::Operand(&operand.src);
        let dst_shown = DisplayPath::Operand(&operand.dst);
        let entry = ListedEntry {
            give_from_bytes: u64::MAX,
            src: Place::new(CWD, &src_name, src_shown, Trust::Operand),
            dst: Place::new(self.dir, &dst_name, dst_shown, self.trust),
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
        if let Next::Enter(pair, listing) = copy_entry(cx, &mut worker.copy, &entry, None) {
            walk(cx, worker, (pair, listing));
        }
    }
}
