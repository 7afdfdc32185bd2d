//! A directory itself: made or found, entered on both sides, and given its attributes after the
//! last of what is in it.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, fcntl_setfl, fstat, mkdirat, openat, statat};

use crate::diagnostic::{Action, Diagnostic};
use crate::dir::{self, Dir, enter, enter_destination, open_destination, open_operand};
use crate::durable::try_sync_directory;
use crate::entry::{Job, Next, elapsed_ns, skipped};
use crate::existing::{Found, split};
use crate::extents;
use crate::follow::{Astray, open_followed};
use crate::identity::{FileId, is_directory, is_symlink, kind};
use crate::listing::Listing;
use crate::lock::lock;
use crate::metadata::{self, Source, Target, loses_acl, sets_later, withheld_by};
use crate::observer::Announcement;
use crate::options::{Follow, ModeRule, Options};
use crate::parents::minds_acls;
use crate::place::{Place, Shown, Trust};
use crate::plan::trim_slashes;
use crate::receipt::{Method, Receipt};
use crate::region::Region;
use crate::rehearsal::{self, Rehearsal};
use crate::run::{Run, failed};
use crate::trail::{Anchor, Trail, join};
use crate::walk::DirTask;
use crate::xattr::{ACL_DEFAULT, Handle};

/// Makes the destination of a directory, or goes into the one that is there, and enters both.
pub(crate) fn make_directory(
    run: &Run<'_>,
    job: &Job<'_>,
    src_stat: &Stat,
    found: Option<&Found>,
) -> Result<Next, Diagnostic> {
    refuse_repetition(run, job, src_stat)?;
    if stands_twice(run, job, src_stat)? {
        return Ok(skipped(run, job, src_stat));
    }
    let dst = match found {
        Some(found) => open_found(run, job, found),
        None => make_new(run, job, src_stat),
    };
    let dst = dst.inspect_err(|_| forget_operand(run, job, src_stat))?;
    let through_link = found.is_some_and(|found| found.through_link);
    let dst_trail = trail_of(job, &dst, through_link)?;
    let leaves_file_system = job.device.is_some_and(|device| device != FileId::of(src_stat).dev);
    let failures = Mutex::default();
    let src = match open_source(job, src_stat) {
        Ok(src) => {
            if run.rehearsal.is_some() {
                // Only the owner may list it without a trace.
                let _ = fcntl_setfl(&src, OFlags::NOATIME);
            }
            Some(src)
        }
        Err(diagnostic) => {
            tell(run, &failures, diagnostic);
            None
        }
    };
    let listing = if leaves_file_system { Listing::ended() } else { Listing::default() };
    // One that was made has none unless it is from the directory above.
    let may_inherit = found.is_some() || job.inherits_acl;
    let inherits_acl = minds_acls(run.options)
        && may_inherit
        && dir::handle(dst.fd.as_fd()).get(ACL_DEFAULT).is_ok();
    let src_linked = job.src_through_link && job.src.stat(false).is_ok_and(|s| is_symlink(&s));
    let id = FileId::of(src_stat);
    let src_trail = match job.src.shown {
        Shown::Operand(path) => Trail::source(path, id),
        Shown::In(trail) | Shown::Directory(trail) => trail.child_source(job.src.name, id),
    };
    let listing = if src.is_some() { listing } else { Listing::ended() };
    let private = found.is_none() && is_private(run, job, &dst);
    let (mut src_region, mut dst_region) = (Region::default(), Region::default());
    if private {
        dst_region = run.regions.of(dst.fd.as_fd(), FileId::of(&dst.stat));
        if id.dev == FileId::of(&dst.stat).dev {
            src_region = run.regions.of(dst.fd.as_fd(), id);
        }
    }
    let mut dst_dir = Dir::new(Some(dst.fd), &dst.stat, dst_trail, through_link);
    dst_dir.stands_in = run.rehearsal.is_some() && found.is_none();
    let task = DirTask {
        private,
        src: Dir::new(src, src_stat, src_trail, src_linked),
        dst: dst_dir,
        src_stat: *src_stat,
        dst_stat: dst.stat,
        new: found.is_none(),
        mode: dst.mode,
        inherits_acl: job.inherits_acl,
        children_inherit_acl: inherits_acl,
        begun: job.begun,
        failures,
        src_region,
        dst_region,
    };
    Ok(Next::Enter(Arc::new(task), listing))
}

/// A source directory that this run has made, or that it is in already, would be copied for ever.
fn refuse_repetition(run: &Run<'_>, job: &Job<'_>, src_stat: &Stat) -> Result<(), Diagnostic> {
    let id = FileId::of(src_stat);
    if run.tops.is_root_made(id) {
        return Err(met_itself(run, job, &job.src.path(), job.dst.path()));
    }
    // Without following links a tree has no cycles.
    let may_cycle = run.options.follow == Follow::Always;
    let above = match job.src.shown {
        Shown::In(trail) => Some(trail),
        Shown::Operand(_) | Shown::Directory(_) => None,
    };
    if may_cycle && above.is_some_and(|trail| trail.passes(id)) {
        return Err(Diagnostic::CyclicSymlink { src: job.src.path() });
    }
    Ok(())
}

/// What is said when the copy of an operand has come upon its own beginning, as `met`, which would go
/// to `dst`. GNU recognises that by its directory, and not where the last name of that is a link's:
/// then only that it has been there. With -L it would go on for ever.
fn met_itself(run: &Run<'_>, job: &Job<'_>, met: &Path, dst: PathBuf) -> Diagnostic {
    let (src, first) = (job.operand.src.clone(), job.operand.dst.clone());
    // The directory that several operands go into is known for what it is.
    let is_behind_link = || is_in_link(met) || (!job.operand.several && is_in_link(&first));
    if run.options.follow != Follow::Always && *met != src && is_behind_link() {
        return Diagnostic::DirectoryTwice { dst, first };
    }
    Diagnostic::IntoItself { src, dst: first }
}

/// Whether a symbolic link stands for the directory that `path` is in.
fn is_in_link(path: &Path) -> bool {
    let path = trim_slashes(path.as_os_str().as_bytes());
    let Some(last) = path.iter().rposition(|&byte| byte == b'/') else { return false };
    let above = OsStr::from_bytes(trim_slashes(&path[..=last]));
    statat(CWD, above, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| is_symlink(&stat))
}

/// The same directory operand again: to the same place it is skipped with a warning.
fn stands_twice(run: &Run<'_>, job: &Job<'_>, src_stat: &Stat) -> Result<bool, Diagnostic> {
    if !job.is_top || !job.operand.several {
        return Ok(false);
    }
    let dst = job.dst.path();
    let Some(first) = run.tops.directory_before(FileId::of(src_stat), &dst) else {
        return Ok(false);
    };
    if first == dst {
        run.report(Diagnostic::SourceTwice { src: job.src.path(), directory: true });
        return Ok(true);
    }
    if run.options.follow == Follow::Never {
        return Err(Diagnostic::DirectoryTwice { dst, first });
    }
    Ok(false)
}

/// Nothing has come of the operand, so the next of its name is not the second.
fn forget_operand(run: &Run<'_>, job: &Job<'_>, src_stat: &Stat) {
    if job.is_top && job.operand.several {
        run.tops.forget_directory(FileId::of(src_stat), &job.dst.path());
    }
}

/// Opens the destination directory that is there already.
fn open_found(run: &Run<'_>, job: &Job<'_>, found: &Found) -> Result<MadeDirectory, Diagnostic> {
    let (dir, name) = (job.dst.dir, job.dst.name);
    let fd = if found.through_link {
        match job.dst.trust {
            Trust::Operand => open_destination(dir, name, OFlags::empty()),
            Trust::Made => return Err(Diagnostic::ForeignSymlink { dst: job.dst.path() }),
            Trust::Entered => match open_followed(run, dir, name, DIRECTORY, None) {
                Err(Astray::Foreign) => {
                    return Err(Diagnostic::ForeignSymlink { dst: job.dst.path() });
                }
                Err(Astray::Errno(errno)) => Err(errno),
                Ok(fd) => Ok(fd),
            },
        }
    } else if job.is_top {
        // An operand may be several components long, and end in a slash.
        open_destination(dir, name, OFlags::NOFOLLOW)
    } else {
        enter_destination(dir, name)
    };
    let fd = fd.map_err(failed(Action::EnterDestination, &job.dst))?;
    let stat = fstat(&fd).map_err(failed(Action::Fstat, &job.dst))?;
    if FileId::of(&stat) != FileId::of(found.effective()) {
        return Err(Diagnostic::DestinationReplaced { dst: job.dst.path() });
    }
    if run.options.resume && run.rehearsal.is_none() {
        run.remains.enter(fd.as_fd());
    }
    if run.options.may_write_through() {
        let named = found.through_link || job.dst.trust == Trust::Operand;
        run.standing.enter(fd.as_fd(), (!named).then_some(dir));
    }
    Ok(MadeDirectory { fd, stat, mode: None })
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Permissions that would let others into a directory while it is being filled.
const OTHERS_WRITE: Mode = Mode::WGRP.union(Mode::WOTH);
const OTHERS: Mode = Mode::RWXG.union(Mode::RWXO);

/// The permissions that a directory is made with and should end up with.
fn new_mode(options: &Options, src: &Stat, umask: Mode, inherits_acl: bool) -> metadata::NewMode {
    let asked = match options.preserve.mode {
        // The sticky bit is no permission, and stays.
        ModeRule::Fresh => Mode::from_raw_mode(0o777 | (src.st_mode & 0o1000)),
        ModeRule::Umask | ModeRule::Preserve => Mode::from_raw_mode(src.st_mode & 0o1777),
    };
    let is_private = metadata::is_made_private(options, inherits_acl);
    let withheld = if is_private { OTHERS } else { OTHERS_WRITE };
    metadata::NewMode { at_first: (asked & !withheld) | Mode::RWXU, at_last: asked & !umask }
}

/// A directory that was just made.
pub(crate) struct MadeDirectory {
    pub(crate) fd: OwnedFd,
    pub(crate) stat: Stat,
    /// The mode that it should have in the end, if that is not the one it has.
    pub(crate) mode: Option<Mode>,
}

/// Makes a directory and opens what was made. `action` is what to call it when it cannot be made, and
/// `inherits_acl` tells whether it gets a list that it may lose again.
pub(crate) fn make_and_open(
    run: &Run<'_>,
    dst: &Place<'_>,
    src_stat: &Stat,
    action: Action,
    inherits_acl: bool,
) -> Result<MadeDirectory, Diagnostic> {
    let mut mode = new_mode(run.options, src_stat, run.umask, inherits_acl);
    if action == Action::CreateParent && run.options.preserve.mode == ModeRule::Fresh {
        // Nobody has named this directory, so that nothing of it is taken over.
        mode.at_first.remove(Mode::SVTX);
        mode.at_last.remove(Mode::SVTX);
    }
    mkdirat(dst.dir, dst.name, mode.at_first).map_err(failed(action, dst))?;
    let mut fd = open_destination(dst.dir, dst.name, OFlags::NOFOLLOW)
        .map_err(failed(Action::EnterDestination, dst))?;
    let mut stat = fstat(&fd).map_err(failed(Action::Fstat, dst))?;
    let parent = fstat(dst.dir).ok();
    if !is_ours(run, &fd, &stat, parent.as_ref()) {
        return Err(Diagnostic::DestinationReplaced { dst: dst.path() });
    }
    let made_with = Mode::from_raw_mode(stat.st_mode & 0o7777);
    if !made_with.contains(Mode::RWXU) {
        // The umask took away what is needed to fill it.
        let usable = made_with | Mode::RWXU;
        metadata::set_permissions(dir::handle(fd.as_fd()), usable)
            .map_err(failed(Action::Permissions, dst))?;
        fd = open_operand(fd.as_fd(), c".").map_err(failed(Action::EnterDestination, dst))?;
        stat.st_mode |= Mode::RWXU.as_raw_mode();
    }
    // It keeps what it has from the one above it: set-group-ID, and what an access control list grants, and
    // no more, unless it loses that list. What was asked for and held back comes to that as far as the
    // list grants it, and what was only needed to fill it goes.
    let at_last = if loses_acl(run.options, inherits_acl) {
        mode.at_last | (made_with & Mode::SGID)
    } else {
        let needed = Mode::RWXU & !mode.at_last;
        let mut held_back = mode.at_last & !mode.at_first;
        // Where attributes are set later the list is asked then.
        if !held_back.is_empty() && !sets_later(run.options) {
            held_back &= !withheld_by(dir::handle(fd.as_fd()));
        }
        (made_with & !needed) | held_back
    };
    let mode = (at_last.as_raw_mode() != stat.st_mode & 0o7777).then_some(at_last);
    Ok(MadeDirectory { fd, stat, mode })
}

/// Whether a directory is the one that was just made, as far as can be told: on the file system of
/// the directory it is in, and of our own. Network file systems may give it to somebody else.
fn is_ours(run: &Run<'_>, fd: &OwnedFd, stat: &Stat, parent: Option<&Stat>) -> bool {
    let same_device = parent.is_none_or(|parent| FileId::of(parent).dev == FileId::of(stat).dev);
    same_device && (run.is_mine(stat) || !extents::are_honest(fd.as_fd()))
}

/// Whether only the user and root may give or take names in a directory that was just made. What
/// network file systems, and some others, say of owners and permissions need not be true.
fn is_private(run: &Run<'_>, job: &Job<'_>, made: &MadeDirectory) -> bool {
    run.is_mine(&made.stat)
        && !Mode::from_raw_mode(made.stat.st_mode).intersects(OTHERS_WRITE)
        // It is on the file system of the one above it.
        && (job.private || extents::are_honest(made.fd.as_fd()))
}

fn make_new(run: &Run<'_>, job: &Job<'_>, src_stat: &Stat) -> Result<MadeDirectory, Diagnostic> {
    if let Some(rehearsal) = &run.rehearsal {
        return rehearse_new(run, rehearsal, job, src_stat);
    }
    let make = || make_and_open(run, &job.dst, src_stat, Action::CreateDirectory, job.inherits_acl);
    let made = match job.dst.trust {
        Trust::Made => make()?,
        Trust::Operand | Trust::Entered => {
            run.tops.make_root(make, |made| FileId::of(&made.stat))?
        }
    };
    run.announce(|| Announcement::Copied {
        src: job.src.path(),
        dst: job.dst.path(),
        backup: None,
    });
    Ok(made)
}

/// The same where nothing is made. A copy into itself is told at once, since it will not be met.
fn rehearse_new(
    run: &Run<'_>,
    rehearsal: &Rehearsal,
    job: &Job<'_>,
    src_stat: &Stat,
) -> Result<MadeDirectory, Diagnostic> {
    let made = rehearsal::directory(rehearsal, &job.dst, Action::CreateDirectory)?;
    let (src, dst) = (job.src.path(), job.dst.path());
    if rehearsal.makes_directory(dst.clone()) {
        run.announce(|| Announcement::Copied { src, dst, backup: None });
    }
    if let Some(way) = rehearsal::meets_itself(run, rehearsal, job, FileId::of(src_stat))
        && !job.operand.into_itself.swap(true, Ordering::Relaxed)
    {
        let way = way.as_os_str();
        let (met, dst) = (join(&job.src.path(), way), join(&job.dst.path(), way));
        run.report(met_itself(run, job, &met, dst));
    }
    Ok(made)
}

/// Opens the source directory and makes sure that it is the one that was looked at.
fn open_source(job: &Job<'_>, src_stat: &Stat) -> Result<OwnedFd, Diagnostic> {
    let (dir, name) = (job.src.dir, job.src.name);
    let opened = if job.src_through_link {
        open_operand(dir, name)
    } else if job.is_top {
        openat(dir, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
    } else {
        enter(dir, name)
    };
    let fd = opened.map_err(failed(Action::EnterDirectory, &job.src))?;
    let stat = fstat(&fd).map_err(failed(Action::Fstat, &job.src))?;
    if FileId::of(&stat) != FileId::of(src_stat) || !is_directory(&stat) {
        return Err(Diagnostic::SourceReplaced { src: job.src.path() });
    }
    Ok(fd)
}

/// Where the destination is found again when a second name of a file in it is met.
fn trail_of(job: &Job<'_>, dst: &MadeDirectory, through_link: bool) -> Result<Trail, Diagnostic> {
    let Some(home) = job.home else {
        // The only operand.
        return Ok(Trail::top(&job.dst.path(), Some(held(job, dst)?)));
    };
    let (home, name) = (home.clone(), job.dst.name.into());
    Ok(match job.dst.shown {
        // There may be more of these than descriptors.
        _ if through_link => {
            let id = FileId::of(&dst.stat);
            Trail::top(&job.dst.path(), Some(Anchor::Behind(home, name, id)))
        }
        Shown::In(_) | Shown::Directory(_) => home.child(job.dst.name),
        // Nobody is led up again.
        Shown::Operand(path) if ends_in_parent(job.dst.name) => {
            Trail::top(path, Some(held(job, dst)?))
        }
        Shown::Operand(path) => Trail::top(path, Some(Anchor::In(home, name))),
    })
}

/// Whether the last component of `name` is the directory above.
fn ends_in_parent(name: &CStr) -> bool {
    split(name).1 == b".."
}

/// The directory itself, which stays open for the run.
fn held(job: &Job<'_>, dst: &MadeDirectory) -> Result<Anchor, Diagnostic> {
    let held = dst.fd.try_clone().map_err(|error| {
        let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::MFILE);
        failed(Action::EnterDestination, &job.dst)(errno)
    })?;
    Ok(Anchor::Held(held.into()))
}

/// Gives a directory its attributes, now that nothing more is put into it.
pub(crate) fn finish(run: &Run<'_>, task: &DirTask) {
    if run.rehearsal.is_some() {
        return;
    }
    let place = Place {
        dir: task.dst.fd(),
        name: c".",
        shown: Shown::Directory(&task.dst.trail),
        trust: Trust::Made,
    };
    let source = Source {
        handle: task.src.is_open().then(|| Handle::Open(task.src.fd())),
        stat: &task.src_stat,
    };
    let target = Target {
        handle: dir::handle(task.dst.fd()),
        place: &place,
        stat: &task.dst_stat,
        new: task.new,
        inherits_acl: task.inherits_acl,
        mode: task.mode,
    };
    let lost = metadata::apply(run, source, target);
    let synced = try_sync_directory(run, task.dst.fd(), || task.dst.trail.path());
    if let Err(diagnostic) = synced {
        tell(run, &task.failures, diagnostic);
    }
    if run.observer.keeps_receipts() {
        let kept = metadata::kept(run.options, kind(&task.src_stat), &lost);
        run.observer.finished(Receipt { kept, lost, ..receipt(task) });
    }
}

/// Does without the attributes of a directory that could not be found again.
pub(crate) fn give_up(run: &Run<'_>, task: &DirTask) {
    if run.observer.keeps_receipts() {
        run.observer.finished(receipt(task));
    }
}

fn receipt(task: &DirTask) -> Receipt {
    let failures = std::mem::take(&mut *lock(&task.failures));
    let method = if failures.is_empty() { Method::Copied } else { Method::Failed };
    let (src, dst) = (task.src.trail.path(), task.dst.trail.path());
    let elapsed_ns = elapsed_ns(task.begun);
    let receipt = Receipt::new(src, dst, kind(&task.src_stat), method);
    Receipt { failures, elapsed_ns, ..receipt }
}

/// Tells of a failure of a directory itself, and keeps it for the directory's receipt.
pub(crate) fn tell(run: &Run<'_>, failures: &Mutex<Vec<Diagnostic>>, diagnostic: Diagnostic) {
    if run.observer.keeps_receipts() {
        lock(failures).push(diagnostic.clone());
    }
    run.report(diagnostic);
}
