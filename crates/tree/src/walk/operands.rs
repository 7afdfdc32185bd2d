//! Copies what a request names: finds out what the destination operand is, and gives each source
//! operand its name there.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Scope};
use std::time::Instant;

use rustix::fs::{Access, AtFlags, CWD, FileType, accessat, statat};
use rustix::io::Errno;

use super::contexts::with_context;
use super::partner_shares::place_of_operand;
use super::resource_limits::{ResourceLimits, worker_limits};
use super::single_worker::{alone_within, first_bounds};
use super::tree::walk;
use super::tree_walk::LARGE_FILE_BYTES;
use crate::concurrency::ConcurrencyController;
use crate::copy::context::CopyWorker;
use crate::copy::directory::Next;
use crate::copy::entry::copy_entry;
use crate::copy::parents::{self, Parents, TargetDir};
use crate::destination::backup;
use crate::destination::context::CopyContext;
use crate::destination::own_names::is_own_name;
use crate::entry::{ListedEntry, Operand, source_name};
use crate::fs::{
    Anchor, DirPath, DisplayPath, FileId, Place, Trust, c_name, data_bytes, has_alias, is_regular,
    join, keeps_spellings, last_component, last_component_verbatim, lstat, open_for_search, split,
    trim_slashes, without_end,
};
use crate::hash::HashSet;
use crate::lock::{OnDrop, lock};
use crate::metadata::has_default_acl;
use crate::report::{Action, Diagnostic, failed_at};
use crate::request::{Options, Request};

/// Copies the sources into `last` if it is a directory, and otherwise the only one to that name, unless the user
/// `named` a directory.
pub(super) fn copy_into(cx: &CopyContext<'_>, request: &Request, last: &OsStr, named: bool) {
    // These tell nothing about the name that was to be opened.
    let unknown = [Errno::IO, Errno::MFILE, Errno::NFILE, Errno::NOMEM];
    match open_directory(last) {
        Ok(dir) => copy_into_directory(cx, request, dir, last),
        Err(errno) if named || request.sources.len() > 1 || unknown.contains(&errno) => {
            cx.report.report(Diagnostic::Target { path: last.into(), errno, named });
        }
        Err(_) => copy_to_name(cx, request, last),
    }
}

pub(super) fn open_directory(name: &OsStr) -> rustix::io::Result<OwnedFd> {
    open_for_search(CWD, &c_name(name.as_bytes())?)
}

/// A directory that operands are copied into, which the user called `path`.
struct Target<'t> {
    cx: &'t CopyContext<'t>,
    dir: Arc<OwnedFd>,
    path: &'t Path,
    dir_path: DirPath,
    /// See [`Operand::merged`].
    merged: Arc<[PathBuf]>,
    inherits_acl: AtomicBool,
    /// With `--parents`, the directories of the last operand.
    previous: Mutex<Parents>,
}

/// Copies every source into the directory `dir`, which the user called `dir_name`.
fn copy_into_directory(cx: &CopyContext<'_>, request: &Request, dir: OwnedFd, dir_name: &OsStr) {
    let (dir, path) = (Arc::new(dir), Path::new(dir_name));
    let anchor = Some(Anchor::Held(dir.clone()));
    let dir_path = DirPath::top(path, anchor, FileId::of_open(&dir).ok());
    let inherits_acl = AtomicBool::new(has_default_acl(cx.options, dir.as_fd()));
    record_preexisting_symlinks(cx, request, dir.as_fd());
    let mut worker = CopyWorker::new(cx);
    let merged = merged_sources(cx.options, &request.sources);
    let previous = Mutex::default();
    let target = Target { cx, dir, path, dir_path, merged, inherits_acl, previous };
    target.copy_each(&mut worker, &request.sources);
    worker.data.release(cx.data);
    cx.data.syncer.sync_directory(target.dir.as_fd(), || path.to_owned());
    cx.data.syncer.sync_file_systems();
}

/// `sources`, if the copies of two may be in one directory below the target: those of an operand such as `d/.`, of
/// operands of one name, and of a file whose name is that of a temporary.
fn merged_sources(options: &Options, sources: &[OsString]) -> Arc<[PathBuf]> {
    let sources = sources.iter().map(|source| source_name(options, source));
    let mut names = HashSet::default();
    let is_merged = |source| {
        let name = last_component(source);
        name == b"." || is_own_name(name) || !names.insert(name)
    };
    // With `--parents` the copies of different directories are in different ones.
    if sources.len() < 2 || options.parents || !sources.clone().any(is_merged) {
        return Arc::default();
    }
    sources.map(|source| PathBuf::from(OsStr::from_bytes(source))).collect()
}

/// Records the symbolic links in the target directory before anything is created there.
fn record_preexisting_symlinks(cx: &CopyContext<'_>, request: &Request, target: BorrowedFd<'_>) {
    let source = |source| source_name(cx.options, source);
    let names = request.sources.iter().map(|name| c_name(last_component(source(name))));
    let Ok(names) = names.collect::<Result<Vec<_>, _>>() else { return };
    // An operand such as `d/.` is copied into the target itself, to any names.
    if cx.options.parents || names.iter().any(|name| name.to_bytes() == b".") {
        cx.security.record_directory(target, None);
    } else if cx.options.may_write_through() {
        let names: Vec<_> = names.iter().map(CString::as_c_str).collect();
        cx.security.record_names(target, &names);
    }
}

impl Target<'_> {
    /// Copies one source with one worker.
    fn copy(&self, worker: &mut CopyWorker, source: &OsStr) {
        let (cx, dir, source) = (self.cx, self.dir.as_fd(), source_name(self.cx.options, source));
        if cx.options.parents {
            return self.copy_with_parents(worker, source);
        }
        let name = last_component(source);
        let operand = OperandEntry {
            source,
            dir,
            name,
            path: join(self.path, OsStr::from_bytes(name)),
            dst_dir: Some(&self.dir_path),
            merged: self.merged.clone(),
            trust: Trust::PreExisting,
            inherits_acl: self.inherits_acl.load(Ordering::Relaxed),
        };
        operand.copy(cx, worker);
        if name == b"." {
            // The copy may have set attributes of the target itself.
            self.inherits_acl.store(has_default_acl(cx.options, dir), Ordering::Relaxed);
        }
    }

    /// Copies one source to its whole name below the target directory.
    fn copy_with_parents(&self, worker: &mut CopyWorker, source: &[u8]) {
        let cx = self.cx;
        let target = TargetDir { fd: self.dir.as_fd(), dir_path: &self.dir_path };
        let last = std::mem::take(&mut *lock(&self.previous));
        let parents = match parents::descend(cx, target, self.path, source, last) {
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
            path: join(self.path, OsStr::from_bytes(trim_slashes(&source[start..]))),
            dst_dir: Some(dir_path),
            merged: self.merged.clone(),
            trust: if parents.is_last_new() { Trust::Created } else { Trust::PreExisting },
            inherits_acl: has_default_acl(cx.options, dir),
        };
        operand.copy(cx, worker);
        parents::finish(cx, &parents);
        if !cx.options.dry_run {
            *lock(&self.previous) = parents;
        }
    }
}

/// Copies the only source to the name `dst`.
pub(super) fn copy_to_name(cx: &CopyContext<'_>, request: &Request, dst: &OsStr) {
    let source = request.sources[0].as_bytes();
    if cx.options.parents {
        return cx.report.report(Diagnostic::ParentsNeedDirectory);
    }
    let mut worker = CopyWorker::new(cx);
    if source == dst.as_bytes()
        && let Some((path, options)) = backup_of_itself(cx, dst)
    {
        let outcome = with_context(&options, cx.report.observer, &cx.partners, |nested| {
            copy_exactly(nested, &mut worker, source, path.as_os_str());
            worker.data.drop_pages(nested.data);
        });
        return cx.report.add_failures(outcome.failures);
    }
    copy_exactly(cx, &mut worker, source, dst);
    worker.data.drop_pages(cx.data);
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
    let path = backup::next_path(cx, &place, backup).ok()?;
    Some((path, Options { backup: None, ..cx.options.clone() }))
}

fn copy_exactly(cx: &CopyContext<'_>, worker: &mut CopyWorker, source: &[u8], dst: &OsStr) {
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
        merged: Arc::default(),
        trust: Trust::Operand,
        // A directory that could not be opened may have a default access control list.
        inherits_acl: opened.is_none() || has_default_acl(cx.options, dir),
    };
    operand.copy(cx, worker);
    worker.data.sync(cx.data);
    let syncer = &cx.data.syncer;
    match opened {
        Some(dir) => {
            syncer.sync_directory(dir.as_fd(), || PathBuf::from(OsStr::from_bytes(parent)));
        }
        // Nothing was created, unless the name is that of a directory, such as `..`. The walk has
        // synced what is in it. If it ends in a slash, its own name may be new.
        None => {
            let name = c_name(dst.as_bytes()).unwrap_or_default();
            for dir in [dst, OsStr::from_bytes(split(&name).0)] {
                if let Ok(opened) = open_directory(dir) {
                    syncer.sync_directory(opened.as_fd(), || dir.into());
                }
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
    /// `None` for the only operand, whose copy has a name of its own.
    dst_dir: Option<&'a DirPath>,
    merged: Arc<[PathBuf]>,
    trust: Trust,
    inherits_acl: bool,
}

impl OperandEntry<'_> {
    fn copy(self, cx: &CopyContext<'_>, worker: &mut CopyWorker) {
        let operand = Arc::new(Operand {
            src: PathBuf::from(OsStr::from_bytes(self.source)),
            dst: self.path,
            merged: self.merged,
            into_directory: self.dst_dir.is_some(),
            into_itself: AtomicBool::new(false),
            shareable: AtomicBool::new(false),
        });
        // Arguments of a process hold no zero bytes, but those of a library call may.
        let (Ok(src_name), Ok(dst_name)) = (c_name(self.source), c_name(self.name)) else {
            let failure = failed_at(Action::Stat, &operand.src)(Errno::INVAL);
            return cx.report.report(failure);
        };
        let src_shown = DisplayPath::Operand(&operand.src);
        let dst_shown = DisplayPath::Operand(&operand.dst);
        let place = || place_of_operand(cx, &operand, self.dir);
        let entry = ListedEntry {
            give_from_bytes: u64::MAX,
            range_place: Some(&place),
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
        if let Next::Enter(pair, listing) = copy_entry(cx, worker, &entry, None) {
            walk(cx, worker, (pair, listing));
        }
    }
}

// Several operands that are copied into one directory.
//
// Their order matters: a second operand of one name is refused, a symbolic link may lead to what a
// later operand replaces, and an operand may be the copy of an earlier one. It does not matter
// among regular files whose destination names do not exist. Workers share such operands if many
// follow each other. Every other operand waits for those before it, and those after it wait for it
// (docs/design/work-sharing.md).

/// Independent operands in a row that are worth starting threads (docs/design/work-sharing.md).
const PARALLEL_MIN: usize = 32;

/// Independent operands in a row that are worth starting threads if the first of them is a large
/// file.
const PARALLEL_LARGE_MIN: usize = 2;

impl Target<'_> {
    /// Copies each of `sources`.
    fn copy_each(&self, worker: &mut CopyWorker, sources: &[OsString]) {
        let cx = self.cx;
        let is_short = alone_within(first_bounds(cx.options), worker);
        let mut rest = sources;
        let mut may_share = !cx.options.copies_in_order() && !cx.options.parents;
        while !rest.is_empty() && !cx.report.interrupted() {
            let is_long = !is_short(worker);
            if is_long {
                cx.report.deferred_init();
            }
            let parallel_min = match may_share && rest.len() >= PARALLEL_LARGE_MIN {
                true if is_large(cx, &rest[0]) => PARALLEL_LARGE_MIN,
                true if is_long => PARALLEL_MIN,
                _ => usize::MAX,
            };
            let mut parallel = 0;
            if rest.len() >= parallel_min {
                // If no files can be created there, errors are reported in the order of operands.
                let may_create = Access::WRITE_OK | Access::EXEC_OK;
                may_share = accessat(&self.dir, c".", may_create, AtFlags::EACCESS).is_ok();
                parallel = if may_share { self.count_independent(rest) } else { 0 };
            }
            let (now, later) = rest.split_at(parallel.max(1));
            if parallel < parallel_min {
                for source in now.iter().take_while(|_| !cx.report.interrupted()) {
                    worker.entries += 1;
                    self.copy(worker, source);
                }
            } else {
                self.copy_in_parallel(worker, now);
            }
            rest = later;
        }
    }

    fn copy_in_parallel(&self, worker: &mut CopyWorker, sources: &[OsString]) {
        let cx = self.cx;
        cx.report.deferred_init();
        // Messages about earlier operands come before those about these.
        worker.data.sync(cx.data);
        let limits = worker_limits(cx.options);
        let workers = ResourceLimits::of_process(cx.options, limits.most).workers;
        let limits = limits.within(workers.min(sources.len()));
        let controller = Arc::new(ConcurrencyController::new(limits));
        let shared = Shared { target: self, sources, next: AtomicUsize::new(0), controller };
        thread::scope(|scope| {
            // None waits for a worker that panics.
            let _open_guard = OnDrop(|| shared.controller.open());
            shared.work(worker, scope);
        });
        // And messages about these before those about later ones.
        worker.data.sync(cx.data);
        cx.report.order.flush(cx.report.observer);
    }

    /// How many of the first `sources` can be copied in any order.
    fn count_independent(&self, sources: &[OsString]) -> usize {
        let mut names = HashSet::default();
        let keeps_spellings = keeps_spellings(self.dir.as_fd());
        let is_independent = |source: &&OsString| {
            let source = source_name(self.cx.options, source);
            let name = last_component(source);
            if has_alias(name) && !keeps_spellings {
                return false;
            }
            // Some directories ignore the case of names.
            let folded = String::from_utf8_lossy(without_end(name)).to_lowercase();
            let (Ok(source), Ok(name)) = (c_name(source), c_name(name)) else { return false };
            let is_absent = || matches!(lstat(&self.dir, &*name), Err(Errno::NOENT));
            names.insert(folded) && can_be_read(self.cx, &source) && is_absent()
        };
        sources.iter().take_while(is_independent).count()
    }
}

/// Operands that several workers copy.
struct Shared<'s> {
    target: &'s Target<'s>,
    sources: &'s [OsString],
    /// Index of the next operand that no worker has taken.
    next: AtomicUsize,
    controller: Arc<ConcurrencyController>,
}

impl Shared<'_> {
    /// Copies one operand after the other, and starts other workers where the controller wants
    /// them.
    fn work<'scope>(&'scope self, worker: &mut CopyWorker, scope: &'scope Scope<'scope, '_>) {
        let cx = self.target.cx;
        let _busy = self.controller.processors.busy();
        worker.data.start_sharing(&self.controller);
        loop {
            self.controller.spawn_workers(scope, || {
                let mut worker = CopyWorker::new(cx);
                self.work(&mut worker, scope);
                worker.data.release(cx.data);
            });
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(source) = self.sources.get(index) else { break };
            if cx.report.interrupted() {
                break;
            }
            worker.entries += 1;
            worker.data.permit.acquire();
            let moved_before = worker.data.moved_bytes;
            let copy = || self.target.copy(worker, source);
            cx.report.order.for_operand(cx.report.observer, index, copy);
            let bytes = worker.data.moved_bytes - moved_before;
            let starved = self.next.load(Ordering::Relaxed) >= self.sources.len();
            worker.data.permit.record(bytes, starved);
        }
        worker.data.end_sharing();
    }
}

/// Whether a source is a large file.
fn is_large(cx: &CopyContext<'_>, source: &OsStr) -> bool {
    let Ok(source) = c_name(source_name(cx.options, source)) else { return false };
    let found = lstat(CWD, &*source);
    found.is_ok_and(|stat| is_regular(&stat) && data_bytes(&stat) >= LARGE_FILE_BYTES)
}

/// Errors about sources that cannot be read are reported in order.
fn can_be_read(cx: &CopyContext<'_>, source: &CStr) -> bool {
    let found = lstat(CWD, source);
    let readable = || {
        cx.security.caller.is_root()
            || accessat(CWD, source, Access::READ_OK, AtFlags::EACCESS).is_ok()
    };
    found.is_ok_and(|stat| is_regular(&stat)) && readable()
}
