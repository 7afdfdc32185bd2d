//! A directory itself: [`enter_directory`] creates or opens it on both sides, and [`finish`] sets
//! its attributes and times after the last entry in it is copied.

use std::ffi::{CString, OsStr};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_setfl, openat};
use rustix::io::{Errno, fcntl_dupfd_cloexec};

use super::context::{CopyWorker, note_made, skipped};
use super::directory_pair::{DirectoryPair, OTHERS_WRITE, OpenDirectory, create_and_open};
use crate::destination::context::{CopyContext, Job};
use crate::destination::dry_run::DryRun;
use crate::destination::found::{Found, stat_found};
use crate::entry::{Entry, check_source, elapsed_ns};
use crate::fs::{
    Anchor, DIRECTORY, Dir, DirPath, DisplayPath, FileId, Handle, Listing, OpenFile, Place, Trust,
    dir, enter, enter_destination, fs_type, is_symlink, join, kind, lstat, open_destination,
    open_operand, split, trim_slashes,
};
use crate::lock::lock;
use crate::metadata::{Source, Target, apply, inherited_acl_matters, kept, may_have_default_acl};
use crate::report::{Action, Diagnostic, DirectoryStage, Loss, Method, Receipt, Result, failed};
use crate::request::{Follow, Keep};
use crate::security::{open_through_symlink, unless_untrusted};
use crate::shared::messages::Facts;

/// What the walk has to do after an entry.
#[must_use]
pub(crate) enum Next {
    Done,
    Enter(Arc<DirectoryPair>, Listing),
    /// The entry is a large file, of which nothing was done yet. Another worker may copy it.
    Give(CString, FileType),
}

/// Creates or opens the destination of a directory, and opens the source. A repeated operand is
/// skipped.
pub(crate) fn enter_directory(job: Job<'_>, found: Option<&Found>) -> Result<Next> {
    let Job { cx, entry } = job;
    refuse_repetition(job)?;
    if is_repeated_operand(job)? {
        skipped(job);
        return Ok(Next::Done);
    }
    let dst = match found {
        Some(_) if cx.options.new_directory && entry.is_operand => {
            Err(Diagnostic::NotReplacing { dst: entry.dst.path() })
        }
        Some(found) => open_found(job, found),
        None => create(job),
    };
    let dst = dst.inspect_err(|_| {
        // The next operand of its name is not a repetition.
        if entry.is_operand && entry.operand.into_directory {
            let src = FileId::of(&entry.src_stat);
            cx.operands.forget_directory(src, &entry.dst.path());
        }
    })?;
    // No other source is merged into it by another spelling of its name.
    note_made(job, FileId::of(&dst.stat));
    let through_link = found.is_some_and(|found| found.through_link);
    let dst_path = destination_path(entry, &dst, through_link)?;
    let is_other_fs = entry.device.is_some_and(|device| device != FileId::of(&entry.src_stat).dev);
    let failures = Mutex::default();
    let src = open_source(entry);
    let src = src.map_err(|diagnostic| report_failure(cx, &failures, diagnostic)).ok();
    // Its number may be another one by now, and the open directory keeps that.
    let src_stat = src.as_ref().map_or(entry.src_stat, |src| src.stat);
    let entry = &Entry { src_stat, ..*entry };
    let src = src.map(|src| src.fd);
    if let Some(src) = src.as_ref().filter(|_| cx.options.dry_run) {
        // Listing sets the access time; only the owner may avoid that.
        let _ = fcntl_setfl(src, OFlags::NOATIME);
    }
    let is_listed = src.is_some() && !is_other_fs;
    // A new directory has a default list only if its parent has one.
    let children_inherit_acl = inherited_acl_matters(cx.options)
        && (found.is_some() || entry.inherits_acl)
        && may_have_default_acl(dir::handle(dst.fd.as_fd()));
    let src_through_link =
        entry.src_through_link && entry.src.stat(false).is_ok_and(|stat| is_symlink(&stat));
    let private = found.is_none() && is_private(job, &dst);
    let creation_lock = cx.creation_locks.of(dst.fd.as_fd(), FileId::of(&dst.stat), private);
    let mut dst_dir = Dir::new(Some(dst.fd), &dst.stat, dst_path, through_link);
    dst_dir.is_placeholder = cx.options.dry_run && found.is_none();
    let pair = DirectoryPair {
        facts: Facts { new: found.is_none(), private, children_inherit_acl },
        src: Dir::new(src, &entry.src_stat, source_path(entry), src_through_link),
        dst: dst_dir,
        mode: dst.mode,
        inherits_acl: entry.inherits_acl,
        started: entry.started,
        failures,
        creation_lock,
        operand: entry.operand.clone(),
        received: None,
        returned: AtomicBool::new(false),
    };
    let is_listed = is_listed && is_at(cx, &pair, DirectoryStage::Entered);
    let listing = if is_listed { Listing::default() } else { Listing::ended() };
    Ok(Next::Enter(Arc::new(pair), listing))
}

/// Tells the observer the stage of a directory, and returns its answer.
fn is_at(cx: &CopyContext<'_>, pair: &DirectoryPair, stage: DirectoryStage) -> bool {
    let observer = cx.report.observer;
    if cx.options.dry_run || !observer.follows_directories() {
        return true;
    }
    observer.directory(&pair.src.dir_path.path(), &pair.dst.dir_path.path(), stage)
}

fn source_path(entry: &Entry<'_>) -> DirPath {
    let id = FileId::of(&entry.src_stat);
    match entry.src.shown {
        DisplayPath::Operand(path) => DirPath::top(path, None, Some(id)),
        DisplayPath::In(dir) | DisplayPath::Directory(dir) => dir.child(entry.src.name, Some(id)),
    }
}

/// Refuses a source directory that this run created, or that the walk is in already: the copy would
/// not end.
fn refuse_repetition(job: Job<'_>) -> Result<()> {
    let Job { cx, entry } = job;
    let id = FileId::of(&entry.src_stat);
    // A partner may have created the directory. Then the destination is below it by another mount.
    let is_above_copy = || {
        let is_shared = entry.operand.shareable.load(Ordering::Relaxed);
        is_shared && entry.dst_dir.is_some_and(|dst_dir| dst_dir.contains(id))
    };
    if cx.operands.is_created_root(id) || is_above_copy() {
        return Err(into_itself(job, &entry.src.path(), entry.dst.path()));
    }
    // Without symbolic links a tree has no cycles.
    let may_cycle = cx.options.follow == Follow::Always;
    if may_cycle && entry.src.shown.dir().is_some_and(|above| above.contains(id)) {
        return Err(Diagnostic::CyclicSymlink { src: entry.src.path() });
    }
    Ok(())
}

/// The error of a copy of an operand that has reached its own destination, as `met`, which would be
/// copied to `dst`. GNU cp recognises the destination by its directory. If the last component of
/// that is a symbolic link, it reports a directory that was copied twice; with -L it does not end.
fn into_itself(Job { cx, entry }: Job<'_>, met: &Path, dst: PathBuf) -> Diagnostic {
    let (src, first) = (entry.operand.src.clone(), entry.operand.dst.clone());
    let is_behind_link =
        || is_in_link(met) || (!entry.operand.into_directory && is_in_link(&first));
    if cx.options.follow != Follow::Always && *met != src && is_behind_link() {
        return Diagnostic::DirectoryTwice { dst, first };
    }
    Diagnostic::IntoItself { src, dst: first }
}

/// Whether the directory part of `path` is a symbolic link.
fn is_in_link(path: &Path) -> bool {
    let path = trim_slashes(path.as_os_str().as_bytes());
    let Some(last) = path.iter().rposition(|&byte| byte == b'/') else { return false };
    let above = OsStr::from_bytes(trim_slashes(&path[..=last]));
    lstat(CWD, above).is_ok_and(|stat| is_symlink(&stat))
}

/// Whether a directory operand is given twice with the same destination, which is a warning.
fn is_repeated_operand(Job { cx, entry }: Job<'_>) -> Result<bool> {
    if !entry.is_operand || !entry.operand.into_directory {
        return Ok(false);
    }
    let dst = entry.dst.path();
    let Some(first) = cx.operands.directory_before(FileId::of(&entry.src_stat), &dst) else {
        return Ok(false);
    };
    if first == dst {
        cx.report.report(Diagnostic::SourceTwice { src: entry.src.path(), directory: true });
        return Ok(true);
    }
    if cx.options.follow == Follow::Never {
        return Err(Diagnostic::DirectoryTwice { dst, first });
    }
    Ok(false)
}

/// Opens the existing destination directory.
fn open_found(job: Job<'_>, found: &Found) -> Result<OpenDirectory> {
    let Job { cx, entry } = job;
    let (dir, name) = (entry.dst.dir, entry.dst.name);
    let fd = if found.through_link {
        match entry.dst.trust {
            Trust::Operand => open_destination(dir, name, OFlags::empty()),
            Trust::Created => return Err(Diagnostic::ForeignSymlink { dst: entry.dst.path() }),
            Trust::PreExisting => {
                let opened = open_through_symlink(&cx.security, dir, name, DIRECTORY, None);
                unless_untrusted(opened, &entry.dst)?
            }
        }
    } else if entry.is_operand {
        // An operand may have several components, and end in a slash.
        open_destination(dir, name, OFlags::NOFOLLOW)
    } else {
        enter_destination(dir, name)
    };
    let fd = fd.map_err(failed(Action::EnterDestination, &entry.dst))?;
    let stat = stat_found(job, &fd, found)?;
    if cx.options.resume && !cx.options.dry_run {
        cx.stale.scan(fd.as_fd());
    }
    if cx.options.may_write_through() {
        let named = found.through_link || entry.dst.trust == Trust::Operand;
        cx.security.record_directory(fd.as_fd(), (!named).then_some(dir));
    }
    Ok(OpenDirectory { fd, stat, mode: None })
}

/// Whether only the caller and root may create or remove names in a new directory. Owners and
/// permissions are not reliable on network file systems and some others.
fn is_private(Job { cx, entry }: Job<'_>, made: &OpenDirectory) -> bool {
    cx.security.caller.owns(&made.stat)
        && !Mode::from_raw_mode(made.stat.st_mode).intersects(OTHERS_WRITE)
        // The file system of a private parent is reliable, and the directory is on the same one.
        && (entry.private || fs_type::is_on_reliable_fs(made.fd.as_fd()))
}

fn create(job: Job<'_>) -> Result<OpenDirectory> {
    let Job { cx, entry } = job;
    if let Some(dry_run) = &cx.dry_run {
        return dry_run_create(job, dry_run);
    }
    let action = Action::CreateDirectory;
    let create = || create_and_open(cx, &entry.dst, &entry.src_stat, action, entry.inherits_acl);
    let created = match entry.dst.trust {
        Trust::Created => create()?,
        Trust::Operand | Trust::PreExisting => {
            cx.operands.create_root(create, |created| FileId::of(&created.stat))?
        }
    };
    entry.announce_copy(cx.report, None);
    Ok(created)
}

/// Records the directory that a dry run would create. A copy into itself is reported here, since the walk
/// will not reach it.
fn dry_run_create(job: Job<'_>, dry_run: &DryRun) -> Result<OpenDirectory> {
    let Job { cx, entry } = job;
    let OpenFile { fd, stat } = dry_run.create_placeholder(&entry.dst, Action::CreateDirectory)?;
    if dry_run.record_directory(entry.dst.path()) {
        entry.announce_copy(cx.report, None);
    }
    if entry.is_operand {
        dry_run.record_copy(entry, FileId::of(&stat));
    }
    if let Some(below) = dry_run.path_to_itself(cx.options, entry)
        && !entry.operand.into_itself.swap(true, Ordering::Relaxed)
    {
        let below = below.as_os_str();
        let (met, dst) = (join(&entry.src.path(), below), join(&entry.dst.path(), below));
        cx.report.report(into_itself(job, &met, dst));
    }
    Ok(OpenDirectory { fd, stat, mode: None })
}

/// Opens the source directory, which must be the one that `src_stat` describes.
fn open_source(entry: &Entry<'_>) -> Result<OpenFile> {
    let (dir, name) = (entry.src.dir, entry.src.name);
    let opened = if entry.src_through_link {
        open_operand(dir, name)
    } else if entry.is_operand {
        openat(dir, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
    } else {
        enter(dir, name)
    };
    check_source(entry, opened.map_err(failed(Action::EnterDirectory, &entry.src))?)
}

/// The path by which the destination is opened again, for hard links to a file in it.
fn destination_path(entry: &Entry<'_>, dst: &OpenDirectory, through_link: bool) -> Result<DirPath> {
    let id = FileId::of(&dst.stat);
    let Some(parent) = entry.dst_dir else {
        // The only operand.
        return Ok(DirPath::top(&entry.dst.path(), Some(hold(entry, dst)?), Some(id)));
    };
    let (parent, name) = (parent.clone(), entry.dst.name.into());
    Ok(match entry.dst.shown {
        // Not held open: there may be more of these than descriptors.
        _ if through_link => {
            DirPath::top(&entry.dst.path(), Some(Anchor::ThroughLink(parent, name, id)), Some(id))
        }
        DisplayPath::In(_) | DisplayPath::Directory(_) => parent.child(entry.dst.name, Some(id)),
        // `..` is not opened by name again.
        DisplayPath::Operand(path) if split(entry.dst.name).1 == b".." => {
            DirPath::top(path, Some(hold(entry, dst)?), Some(id))
        }
        DisplayPath::Operand(path) => DirPath::top(path, Some(Anchor::In(parent, name)), Some(id)),
    })
}

/// Keeps the directory open for the whole run.
fn hold(entry: &Entry<'_>, dst: &OpenDirectory) -> Result<Anchor> {
    let held = fcntl_dupfd_cloexec(&dst.fd, 0);
    Ok(Anchor::Held(held.map_err(failed(Action::EnterDestination, &entry.dst))?.into()))
}

/// Sets the attributes of a directory, after the last entry in it was copied.
pub(crate) fn finish(cx: &CopyContext<'_>, worker: &mut CopyWorker, pair: &DirectoryPair) {
    if cx.options.dry_run {
        return;
    }
    // The last entry is copied, whatever the answer is.
    let _ = is_at(cx, pair, DirectoryStage::Filled);
    let shown = DisplayPath::Directory(&pair.dst.dir_path);
    let place = Place::new(pair.dst.fd(), c".", shown, Trust::Created);
    let source = Source {
        handle: pair.src.is_open().then(|| Handle::Open(pair.src.fd())),
        stat: &pair.src.stat,
    };
    let target = Target {
        handle: dir::handle(pair.dst.fd()),
        place: &place,
        stat: &pair.dst.stat,
        new: pair.facts.new,
        inherits_acl: pair.inherits_acl,
        mode: pair.mode,
    };
    let mut lost = apply(cx.metadata(), source, target);
    if !pair.src.is_open() && cx.options.preserve.xattr != Keep::No {
        lost.push(Loss::Xattr(Vec::new(), Errno::ACCESS));
    }
    let receipt = cx.report.keeps_receipts().then(|| {
        let kept = kept(cx.options, kind(&pair.src.stat), &lost);
        Receipt { kept, lost, ..receipt(pair) }
    });
    let dir = (pair.dst.fd(), pair.dst.id().dev);
    worker.data.finish_directory(cx.data, dir, || pair.dst.dir_path.path(), receipt);
}

/// Ends a directory that could not be opened again, without its attributes.
pub(crate) fn give_up(cx: &CopyContext<'_>, pair: &DirectoryPair) {
    if cx.report.keeps_receipts() {
        cx.report.observer.finished(receipt(pair));
    }
}

fn receipt(pair: &DirectoryPair) -> Receipt {
    let failures = std::mem::take(&mut *lock(&pair.failures));
    let method = if failures.is_empty() { Method::Copied } else { Method::Failed };
    let (src, dst) = (pair.src.dir_path.path(), pair.dst.dir_path.path());
    let elapsed_ns = elapsed_ns(pair.started);
    let receipt = Receipt::new(src, dst, kind(&pair.src.stat), method);
    Receipt { failures, elapsed_ns, ..receipt }
}

/// Reports a failure of a directory itself, and keeps it for the directory's receipt.
pub(crate) fn report_failure(
    cx: &CopyContext<'_>,
    failures: &Mutex<Vec<Diagnostic>>,
    diagnostic: Diagnostic,
) {
    if cx.report.keeps_receipts() {
        lock(failures).push(diagnostic.clone());
    }
    cx.report.report(diagnostic);
}
