//! A directory itself: made or found, entered on both sides, and given its attributes after the
//! last of what is in it.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, Stat, fchmod, fstat, mkdirat, openat};

use crate::diagnostic::{Action, Diagnostic};
use crate::dir::{Dir, enter, open_operand};
use crate::entry::{Job, Next};
use crate::existing::Found;
use crate::extents;
use crate::identity::{FileId, is_directory, is_symlink, kind};
use crate::listing::Listing;
use crate::metadata::{self, Source, Target, sets_later};
use crate::observer::Announcement;
use crate::options::{Follow, ModeRule, Options};
use crate::place::{Place, Shown, Trust};
use crate::receipt::{Method, Receipt};
use crate::run::{Run, failed};
use crate::trail::{Anchor, Trail};
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
        return Ok(Next::Done);
    }
    let dst = match found {
        Some(found) => open_found(run, job, found)?,
        None => make_new(run, job, src_stat)?,
    };
    let dst_trail = trail_of(job, &dst)?;
    let leaves_file_system = job.device.is_some_and(|device| device != FileId::of(src_stat).dev);
    let src = match open_source(job, src_stat) {
        Ok(src) => Some(src),
        Err(diagnostic) => {
            run.report(diagnostic);
            None
        }
    };
    let listing = if leaves_file_system { Listing::ended() } else { Listing::default() };
    let inherits_acl = run.options.preserve.mode == ModeRule::Preserve
        && Handle::Open(dst.fd.as_fd()).get(ACL_DEFAULT).is_ok();
    let through_link = found.is_some_and(|found| found.through_link);
    let src_linked = job.src_through_link && job.src.stat(false).is_ok_and(|s| is_symlink(&s));
    let src_trail = match job.src.shown {
        Shown::Operand(path) => Trail::top(path, None),
        Shown::In(trail) => trail.child(job.src.name),
    };
    let task = DirTask {
        listing: if src.is_some() { listing } else { Listing::ended() },
        src: Dir::new(src, src_stat, src_trail, src_linked),
        dst: Dir::new(Some(dst.fd), &dst.stat, dst_trail, through_link),
        src_stat: *src_stat,
        dst_stat: dst.stat,
        new: found.is_none(),
        mode: dst.mode,
        inherits_acl: job.inherits_acl,
        children_inherit_acl: inherits_acl,
        lost: false,
    };
    Ok(Next::Enter(Box::new(task)))
}

/// The destination directory, open.
struct Opened {
    fd: OwnedFd,
    stat: Stat,
    /// The mode that it should have in the end, if that is not the one it has.
    mode: Option<Mode>,
}

/// A source directory that this run has made, or that it is in already, would be copied for ever.
fn refuse_repetition(run: &Run<'_>, job: &Job<'_>, src_stat: &Stat) -> Result<(), Diagnostic> {
    let id = FileId::of(src_stat);
    if run.tops.is_root_made(id) {
        let (src, dst) = (job.operand.src.clone(), job.operand.dst.clone());
        return Err(Diagnostic::IntoItself { src, dst });
    }
    // Without following links a tree has no cycles.
    let may_cycle = run.options.follow == Follow::Always;
    if may_cycle && job.above.iter().any(|task| task.src.id == id) {
        return Err(Diagnostic::CyclicSymlink { src: job.src.path() });
    }
    Ok(())
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
    if run.options.follow == Follow::Never && run.options.preserve.links {
        return Err(Diagnostic::DirectoryTwice { dst, first });
    }
    Ok(false)
}

/// Opens the destination directory that is there already.
fn open_found(run: &Run<'_>, job: &Job<'_>, found: &Found) -> Result<Opened, Diagnostic> {
    let (dir, name) = (job.dst.dir, job.dst.name);
    let fd = if found.through_link {
        let trusted = job.dst.trust == Trust::Operand
            || (job.dst.trust == Trust::Entered
                && !run.is_younger(&found.link)
                && run.trusts_owner(&found.link));
        if !trusted {
            return Err(Diagnostic::ForeignSymlink { dst: job.dst.path() });
        }
        open_operand(dir, name)
    } else if job.is_top {
        // An operand may be several components long, and end in a slash.
        openat(dir, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
    } else {
        enter(dir, name)
    };
    let fd = fd.map_err(failed(Action::EnterDestination, &job.dst))?;
    let stat = fstat(&fd).map_err(failed(Action::Fstat, &job.dst))?;
    if FileId::of(&stat) != FileId::of(found.effective()) {
        return Err(Diagnostic::DestinationReplaced { dst: job.dst.path() });
    }
    Ok(Opened { fd, stat, mode: None })
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Permissions that would let others into a directory while it is being filled.
const OTHERS_WRITE: Mode = Mode::WGRP.union(Mode::WOTH);
const OTHERS: Mode = Mode::RWXG.union(Mode::RWXO);

/// The permissions that a directory is made with and should end up with.
fn new_mode(options: &Options, src: &Stat, umask: Mode) -> metadata::NewMode {
    let asked = match options.preserve.mode {
        ModeRule::Fresh => Mode::from_raw_mode(0o777),
        ModeRule::Umask | ModeRule::Preserve => Mode::from_raw_mode(src.st_mode & 0o1777),
    };
    let withheld = if sets_later(options) { OTHERS } else { OTHERS_WRITE };
    metadata::NewMode { at_first: (asked & !withheld) | Mode::RWXU, at_last: asked & !umask }
}

/// Makes the directory and opens what was made.
pub(crate) fn make_and_open(
    run: &Run<'_>,
    dst: &Place<'_>,
    src_stat: &Stat,
) -> Result<(OwnedFd, Stat, Option<Mode>), Diagnostic> {
    let mode = new_mode(run.options, src_stat, run.umask);
    mkdirat(dst.dir, dst.name, mode.at_first).map_err(failed(Action::CreateDirectory, dst))?;
    let fd = openat(dst.dir, dst.name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
        .map_err(failed(Action::EnterDestination, dst))?;
    let stat = fstat(&fd).map_err(failed(Action::Fstat, dst))?;
    let parent = fstat(dst.dir).ok();
    if !is_ours(run, &fd, &stat, parent.as_ref()) {
        return Err(Diagnostic::DestinationReplaced { dst: dst.path() });
    }
    let current = Mode::from_raw_mode(stat.st_mode & 0o7777);
    if !current.contains(Mode::RWXU) {
        // The umask took away what is needed to fill it.
        fchmod(&fd, current | Mode::RWXU).map_err(failed(Action::Permissions, dst))?;
    }
    // A directory keeps the set-group-ID that it has from the one above it.
    let at_last = mode.at_last | (current & Mode::SGID);
    let later = (at_last != current || !current.contains(Mode::RWXU)).then_some(at_last);
    Ok((fd, stat, later))
}

/// Whether a directory is the one that was just made, as far as can be told: on the file system of
/// the directory it is in, and of our own. Network file systems may give it to somebody else.
fn is_ours(run: &Run<'_>, fd: &OwnedFd, stat: &Stat, parent: Option<&Stat>) -> bool {
    let same_device = parent.is_none_or(|parent| FileId::of(parent).dev == FileId::of(stat).dev);
    same_device && (run.is_mine(stat) || !extents::are_honest(fd.as_fd()))
}

fn make_new(run: &Run<'_>, job: &Job<'_>, src_stat: &Stat) -> Result<Opened, Diagnostic> {
    let (fd, stat, mode) = make_and_open(run, &job.dst, src_stat)?;
    if job.dst.trust != Trust::Made {
        run.tops.root_made(FileId::of(&stat));
    }
    run.announce(|| Announcement::Copied {
        src: job.src.path(),
        dst: job.dst.path(),
        backup: None,
    });
    Ok(Opened { fd, stat, mode })
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
fn trail_of(job: &Job<'_>, dst: &Opened) -> Result<Trail, Diagnostic> {
    if let Some(home) = job.home {
        return Ok(match job.dst.shown {
            Shown::In(_) => home.child(job.dst.name),
            // Its directory is the anchor.
            Shown::Operand(path) => Trail::top(
                path,
                home.anchor().map(|anchor| Anchor {
                    dir: anchor.dir.clone(),
                    name: Some(job.dst.name.into()),
                }),
            ),
        });
    }
    // The only operand: the directory itself is the anchor, and stays open as long as the walk.
    let held = dst.fd.try_clone().map_err(|error| {
        let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::MFILE);
        failed(Action::EnterDestination, &job.dst)(errno)
    })?;
    Ok(Trail::top(&job.dst.path(), Some(Anchor { dir: held.into(), name: None })))
}

/// Gives a directory its attributes, now that nothing more is put into it.
pub(crate) fn finish(run: &Run<'_>, task: &DirTask) {
    let dst_path = task.dst.trail.path();
    let place = Place {
        dir: task.dst.fd(),
        name: c".",
        shown: Shown::Operand(&dst_path),
        trust: Trust::Made,
    };
    let source = Source {
        handle: task.src.is_open().then(|| Handle::Open(task.src.fd())),
        stat: &task.src_stat,
    };
    let target = Target {
        handle: Handle::Open(task.dst.fd()),
        place: &place,
        stat: &task.dst_stat,
        new: task.new,
        inherits_acl: task.inherits_acl,
        mode: task.mode,
    };
    let lost = metadata::apply(run, source, target);
    if run.observer.keeps_receipts() {
        let src = task.src.trail.path();
        let mut receipt = Receipt::new(src, dst_path, kind(&task.src_stat), Method::Copied);
        receipt.lost = lost;
        run.observer.finished(receipt);
    }
}
