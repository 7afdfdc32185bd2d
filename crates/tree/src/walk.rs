//! The walk through a tree: one task a directory, on a stack of our own, so that no depth of the
//! tree is a depth of calls.
//!
//! Only so many directories are open at once. One that is too far above is closed, and gained again
//! through `..` of the one below it, where it must prove to be the same by device and inode number.

use std::ffi::CString;

use rustix::fs::{Mode, Stat};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::diagnostic::{Action, Diagnostic};
use crate::dir::Dir;
use crate::directory;
use crate::entry::{Job, Next, copy_entry, follows};
use crate::identity::FileId;
use crate::listing::Listing;
use crate::place::{Place, Shown, Trust};
use crate::plan::Operand;
use crate::run::{Run, Worker};

/// The most levels of a tree whose directories are open at once, with two descriptors each.
const OPEN_LEVELS_MAX: usize = 32;

/// Descriptors for all else: standard streams, operands, the file at hand.
const OTHER_DESCRIPTORS: u64 = 20;

/// How many levels stay open where the process may have only so many descriptors.
fn open_levels() -> usize {
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let levels = allowed.saturating_sub(OTHER_DESCRIPTORS) / 2;
    usize::try_from(levels).map_or(OPEN_LEVELS_MAX, |levels| levels.clamp(1, OPEN_LEVELS_MAX))
}

/// A directory that is being copied.
pub(crate) struct DirTask {
    pub(crate) src: Dir,
    pub(crate) dst: Dir,
    pub(crate) listing: Listing,
    /// As it was before anything in it was read.
    pub(crate) src_stat: Stat,
    /// As it was made or found.
    pub(crate) dst_stat: Stat,
    /// This run made the destination.
    pub(crate) new: bool,
    /// The mode that the destination gets in the end when none is preserved.
    pub(crate) mode: Option<Mode>,
    /// The destination has an access control list from the directory above.
    pub(crate) inherits_acl: bool,
    /// What is made in the destination gets one from it.
    pub(crate) children_inherit_acl: bool,
    /// The directory could not be found again, so nothing more can be done in it.
    pub(crate) lost: bool,
}

/// Copies everything below `root`.
pub(crate) fn walk(run: &Run<'_>, worker: &mut Worker, operand: &Operand, root: DirTask) {
    let device = run.options.one_file_system.then(|| FileId::of(&root.src_stat).dev);
    let open_levels = open_levels();
    let mut stack = vec![root];
    while let Some(task) = stack.last_mut() {
        match next_name(run, worker, task) {
            Some(name) => {
                let job = child(run, &stack, operand, &name, device);
                if let Next::Enter(below) = copy_entry(run, worker, &job) {
                    stack.push(*below);
                    close_far_above(&mut stack, open_levels);
                }
            }
            None => leave(run, &mut stack),
        }
    }
}

/// The next name in the directory on top of the stack; `None` when there are no more.
fn next_name(run: &Run<'_>, worker: &mut Worker, task: &mut DirTask) -> Option<CString> {
    if task.lost || task.listing.has_ended() || run.observer.interrupted() {
        return None;
    }
    task.listing.next(task.src.fd(), &mut worker.listing).unwrap_or_else(|errno| {
        let path = task.src.trail.path();
        run.report(Diagnostic::Failed { action: Action::List, path, errno });
        None
    })
}

fn child<'s>(
    run: &Run<'_>,
    stack: &'s [DirTask],
    operand: &'s Operand,
    name: &'s CString,
    device: Option<u64>,
) -> Job<'s> {
    let task = stack.last().expect("a name comes from the directory on top");
    let trust = if task.new { Trust::Made } else { Trust::Entered };
    Job {
        src: Place {
            dir: task.src.fd(),
            name,
            shown: Shown::In(&task.src.trail),
            trust: Trust::Entered,
        },
        dst: Place { dir: task.dst.fd(), name, shown: Shown::In(&task.dst.trail), trust },
        home: Some(&task.dst.trail),
        operand,
        is_top: false,
        src_through_link: follows(run.options.follow, false),
        device,
        inherits_acl: task.children_inherit_acl,
        above: stack,
    }
}

/// Closes the directory that has just become one level too many. The topmost stays open: from
/// there everything can be found again.
fn close_far_above(stack: &mut [DirTask], open_levels: usize) {
    let Some(far) = stack.len().checked_sub(open_levels + 1).filter(|&far| far > 0) else { return };
    let below = &stack[far + 1];
    // `..` of a directory that was entered through a symbolic link leads elsewhere.
    let (keeps_src, keeps_dst) = (below.src.through_link, below.dst.through_link);
    let task = &mut stack[far];
    if !keeps_src {
        task.listing.suspend();
        task.src.close();
    }
    if !keeps_dst {
        task.dst.close();
    }
}

/// Leaves the directory on top of the stack for the one above it, and sets its attributes.
fn leave(run: &Run<'_>, stack: &mut Vec<DirTask>) {
    let Some(task) = stack.pop() else { return };
    if !stack.is_empty() {
        regain_top(run, stack, &task);
    }
    if !task.lost {
        directory::finish(run, &task);
    }
}

/// Opens the directory on top of the stack again if it was closed.
fn regain_top(run: &Run<'_>, stack: &mut [DirTask], below: &DirTask) {
    let top = stack.len() - 1;
    if stack[top].lost {
        return;
    }
    let src = regain(stack, |task| &mut task.src, &below.src);
    let resumed = src.and_then(|was_closed| {
        let task = &mut stack[top];
        if was_closed { task.listing.resume(task.src.fd()) } else { Ok(()) }
    });
    if let Err(errno) = resumed {
        lose(run, &mut stack[top], true, errno);
        return;
    }
    if let Err(errno) = regain(stack, |task| &mut task.dst, &below.dst) {
        lose(run, &mut stack[top], false, errno);
    }
}

/// The same for one side. Returns whether it had been closed.
fn regain(
    stack: &mut [DirTask],
    side: impl Fn(&mut DirTask) -> &mut Dir,
    below: &Dir,
) -> rustix::io::Result<bool> {
    let top = stack.len() - 1;
    if side(&mut stack[top]).is_open() {
        return Ok(false);
    }
    if below.is_open() && !below.through_link && side(&mut stack[top]).regain(below.fd()).is_ok() {
        return Ok(true);
    }
    // The directory below was moved away: go down from the nearest one that is open.
    let mut open = top;
    while !side(&mut stack[open]).is_open() {
        open = open.checked_sub(1).ok_or(Errno::STALE)?;
    }
    for level in open + 1..=top {
        let (above, rest) = stack.split_at_mut(level);
        let parent = side(&mut above[level - 1]);
        side(&mut rest[0]).regain_below(parent.fd())?;
        if level - 1 > open {
            parent.close();
        }
    }
    Ok(true)
}

/// Gives a directory up that was moved or replaced while the walk was below it.
fn lose(run: &Run<'_>, task: &mut DirTask, src: bool, errno: Errno) {
    let path = if src { task.src.trail.path() } else { task.dst.trail.path() };
    run.report(match errno {
        Errno::STALE | Errno::NOENT | Errno::LOOP | Errno::NOTDIR => {
            Diagnostic::DirectoryMoved { path }
        }
        errno => Diagnostic::Failed { action: Action::EnterDirectory, path, errno },
    });
    task.lost = true;
}
