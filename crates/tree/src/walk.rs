//! The walk through a tree: one frame a directory, on a stack of our own, so that no depth of the
//! tree is a depth of calls.
//!
//! It begins with one worker, and a small tree ends so. When there is more to do, others join, and
//! take names off the directories that are open (`pool.rs`). A directory is finished, and gets its
//! attributes, by the worker who entered it, when the last of those who took names from it is done;
//! until then that worker helps others.
//!
//! Only so many directories are open at once. One that is too far above is closed, and gained again
//! through `..` of the one below it, where it must prove to be the same by device and inode number.

use std::ffi::CString;
use std::sync::{Arc, Mutex};
use std::thread::{self, Scope};
use std::time::Instant;

use rustix::fs::{FileType, Mode, Stat};
use rustix::io::Errno;

use crate::diagnostic::{Action, Diagnostic};
use crate::dir::Dir;
use crate::directory;
use crate::entry::{Job, Next, copy_entry, follows};
use crate::extents::{BTRFS, XFS, file_system};
use crate::filter;
use crate::identity::FileId;
use crate::listing::Listing;
use crate::options::Options;
use crate::pace::{Turn, Work};
use crate::place::{Place, Shown, Trust};
use crate::plan::Operand;
use crate::pool::{Loan, Pool, Share};
use crate::region::Region;
use crate::run::{Run, Worker};

pub(crate) use ahead::Ahead;
pub(crate) use alone::Alone;
pub(crate) use means::Means;

mod ahead;
mod alone;
mod means;

/// Whether one thing has to happen after the other: people read along, or are asked. And a backup may
/// take the name of another entry, as may what a symbolic link to a directory leads to: then the order
/// of the entries decides what is left, and what a rehearsal foresees.
pub(crate) fn in_order(options: &Options) -> bool {
    options.verbose
        || options.dry_run
        || options.debug
        || options.ask
        || options.backup.is_some()
        || options.keep_directory_symlink
}

/// Whether files of the destination are removed for others. The kernel's own threads take those apart
/// on xfs, under the locks under which inodes are made: two workers and they take a fifth longer than
/// one (two processors, 10,000 small files), and no window of the copy shows it, since they come later.
fn removes(options: &Options, root: &DirTask) -> bool {
    options.remove_destination && !root.new
}

/// A directory that is being copied. Workers who have names from it share it.
pub(crate) struct DirTask {
    pub(crate) src: Dir,
    pub(crate) dst: Dir,
    /// As it was before anything in it was read.
    pub(crate) src_stat: Stat,
    /// As it was made or found.
    pub(crate) dst_stat: Stat,
    /// This run made the destination.
    pub(crate) new: bool,
    /// And nobody else may give or take names there until it is finished.
    pub(crate) private: bool,
    /// The mode that the destination gets in the end when none is preserved.
    pub(crate) mode: Option<Mode>,
    /// The destination has an access control list from the directory above.
    pub(crate) inherits_acl: bool,
    /// What is made in the destination gets one from it.
    pub(crate) children_inherit_acl: bool,
    /// When it was first looked at, if receipts are kept.
    pub(crate) begun: Option<Instant>,
    /// What went wrong with the directory itself, if receipts are kept.
    pub(crate) failures: Mutex<Vec<Diagnostic>>,
    /// Where the blocks are that files may share, and where files are made.
    pub(crate) src_region: Region,
    pub(crate) dst_region: Region,
}

/// A worker's place in a directory.
struct Frame<'p> {
    task: Arc<DirTask>,
    listing: Listing,
    /// The directory could not be found again, so nothing more can be done in it.
    lost: bool,
    /// Names from another worker's directory. It is told when this is dropped, and by then `task`
    /// must be: fields are dropped in this order.
    loan: Option<Loan<'p>>,
}

impl Frame<'_> {
    /// The directory, unless other workers have names from it.
    fn sole(&mut self) -> Option<&mut DirTask> {
        Arc::get_mut(&mut self.task)
    }

    /// The directory of a frame that was closed, which nobody else can have.
    fn closed(&mut self) -> &mut DirTask {
        self.sole().expect("no names are given from a directory that is closed")
    }
}

/// Copies everything below `root`.
pub(crate) fn walk(
    run: &Run<'_>,
    worker: &mut Worker,
    operand: &Operand,
    (root, listing): (Arc<DirTask>, Listing),
) {
    let device = run.options.one_file_system.then(|| FileId::of(&root.src_stat).dev);
    let open_levels = Means::of_process(run.options, 1).open_levels;
    let pool;
    let at_large = Walk { run, operand, device, open_levels, files_ahead: 1, pool: None };
    let mut stack = Stack::default();
    stack.frames.push(Frame { task: root, listing, lost: false, loan: None });
    let alone = Alone::from_now(run.options, worker);
    at_large.go(worker, &mut stack, |worker| !alone.is_over(worker));
    if let Some(alone) = Alone::for_the_last(run.options, worker, stack.names_in_hand()) {
        at_large.go(worker, &mut stack, |worker| !alone.is_over(worker));
    }
    if stack.frames.is_empty() {
        return;
    }
    let (crew, means) = Means::for_crew(run.crew(), |workers| {
        Means::of_process(run.options, if in_order(run.options) { 1 } else { workers })
    });
    let top = &stack.frames[0].task;
    if crew.most > 1 && !run.is_in_earnest() && top.src.is_open() {
        means.make_room(crew.most, top.src.fd());
    }
    run.begin_in_earnest();
    if crew.most == 1 {
        return at_large.go(worker, &mut stack, |_| true);
    }
    let kind = run.options.jobs.is_none().then(|| file_system(top.dst.fd())).flatten();
    let crew = match kind {
        // All that is made in one of its subvolumes changes one tree, and who finds that locked is woken
        // late.
        Some(BTRFS) => crew.one_at_first(),
        Some(XFS) if removes(run.options, top) => crew.one_unless_waiting(),
        _ => crew,
    };
    let Means { open_levels, files_ahead, .. } = means;
    if kind == Some(BTRFS) {
        // Nor are threads made before there is enough to tell whether they help.
        let alone = Alone::for_longer(worker);
        let apart = Walk { open_levels, files_ahead, ..at_large };
        apart.go(worker, &mut stack, |worker| !alone.is_over(worker));
        if stack.frames.is_empty() {
            return;
        }
    }
    pool = Pool::new(crew);
    let shared = Walk { pool: Some(&pool), open_levels, files_ahead, ..at_large };
    thread::scope(|scope| {
        shared.hire(scope);
        // Should this worker panic, the others must not wait for it.
        let _closing = Closing(&pool);
        worker.turn = Turn::at(&pool.pace);
        shared.go(worker, &mut stack, |_| shared.hire(scope));
        worker.turn = Turn::default();
    });
}

/// Closes the pool on every way out.
struct Closing<'p>(&'p Pool);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// What all workers on one tree know.
#[derive(Clone, Copy)]
struct Walk<'w> {
    run: &'w Run<'w>,
    operand: &'w Operand,
    /// The only file system to enter.
    device: Option<u64>,
    open_levels: usize,
    /// How many files are made before the first of them is filled.
    files_ahead: usize,
    /// Where the workers meet, when there are several.
    pool: Option<&'w Pool>,
}

/// The directories that a worker is in, from the top down. Above a frame may stand one on loan from
/// another worker, with what is below that.
#[derive(Default)]
struct Stack<'w> {
    frames: Vec<Frame<'w>>,
    /// Frames that are too far above to stay open, but that others still have names from.
    lingering: Vec<usize>,
}

impl<'w> Walk<'w> {
    /// Has as many workers join as there are to be. Says that whoever asks may go on.
    fn hire<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> bool {
        if let Some(pool) = self.pool {
            pool.pace.hire(scope, || self.serve(scope));
        }
        true
    }

    /// What a worker does who joins: others' work, until there is no more.
    fn serve<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        let mut worker = Worker::new(self.run);
        let mut stack = Stack::default();
        worker.turn = self.pool.map_or_else(Turn::default, |pool| Turn::at(&pool.pace));
        while self.borrow(&mut worker, &mut stack, || false) {
            self.go(&mut worker, &mut stack, |_| self.hire(scope));
        }
        worker.turn.pass();
        worker.release(self.run);
    }

    /// Takes names from another worker, unless `sated` says first that they are not needed. Returns
    /// whether it has some.
    fn borrow(&self, worker: &mut Worker, stack: &mut Stack<'w>, sated: impl Fn() -> bool) -> bool {
        // Those who have something to give may be waiting for their turn.
        worker.turn.pass();
        let Some((share, loan)) = self.pool.and_then(|pool| pool.take(sated)) else { return false };
        let (task, listing) = (share.task, share.names);
        stack.frames.push(Frame { task, listing, lost: false, loan: Some(loan) });
        true
    }

    /// Works until `stack` is empty or `on` says no.
    fn go(&self, worker: &mut Worker, stack: &mut Stack<'w>, on: impl Fn(&Worker) -> bool) {
        // Whoever has only to leave needs no help with that.
        while let Some(frame) = stack.frames.last_mut()
            && (frame.listing.has_ended() || on(worker))
        {
            let Some((name, kind)) = self.next_name(worker, frame) else {
                self.leave(worker, stack);
                continue;
            };
            if let Some(pool) = self.pool {
                worker.others_busy = pool.hungry() == 0;
            }
            let job = self.child(&frame.task, &name, kind);
            if filter::leaves_out(self.run, &job) {
                continue;
            }
            worker.turn.take();
            let next = if self.goes_ahead(worker, &job) {
                self.copy_some(worker, frame, (name, kind))
            } else {
                self.copy_one(worker, &job, None)
            };
            if let Next::Enter(task, listing) = next {
                stack.frames.push(Frame { task, listing, lost: false, loan: None });
                stack.close_far_above(self.open_levels);
            }
            self.share(stack);
        }
    }

    /// Copies one entry, for which `ahead` has been done before.
    fn copy_one(&self, worker: &mut Worker, job: &Job<'_>, ahead: Option<Ahead>) -> Next {
        worker.entries += 1;
        let made = ahead.as_ref().is_some_and(|ahead| ahead.made.is_some());
        let moved_before = worker.moved_bytes;
        let next = copy_entry(self.run, worker, job, ahead);
        if let Some(pool) = self.pool {
            let work = Work { bytes: worker.moved_bytes - moved_before, made };
            worker.turn.count(work, pool.hungry() > 0);
        }
        next
    }

    /// The next name in a directory, and what the directory says it is; `None` when there are no
    /// more.
    fn next_name(&self, worker: &mut Worker, frame: &mut Frame<'_>) -> Option<(CString, FileType)> {
        if frame.lost || frame.listing.has_ended() || self.run.observer.interrupted() {
            return None;
        }
        let task = &frame.task;
        frame.listing.next(task.src.fd(), &mut worker.listing).unwrap_or_else(|errno| {
            let path = task.src.trail.path();
            let diagnostic = Diagnostic::Failed { action: Action::List, path, errno };
            directory::tell(self.run, &task.failures, diagnostic);
            None
        })
    }

    fn child<'s>(&'s self, task: &'s DirTask, name: &'s CString, kind: FileType) -> Job<'s> {
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
            operand: self.operand,
            is_top: false,
            listed_as: kind,
            src_through_link: follows(self.run.options.follow, false),
            device: self.device,
            inherits_acl: task.children_inherit_acl,
            private: task.private,
            begun: self.run.observer.keeps_receipts().then(Instant::now),
        }
    }

    /// Gives names to a worker who has none: half of those in hand, from as near to the top as
    /// there are any.
    fn share(&self, stack: &mut Stack<'_>) {
        let Some(pool) = self.pool.filter(|pool| pool.hungry() > 0) else { return };
        let Some(top) = stack.frames.len().checked_sub(1) else { return };
        // Those between are closed, but for a few.
        let near = top.saturating_sub(self.open_levels).max(1);
        for level in std::iter::once(0).chain(near..=top) {
            let Some(frame) = stack.frames.get_mut(level) else { return };
            let is_open = frame.task.src.is_open() && frame.task.dst.is_open();
            // This worker needs one as well, unless it has a directory to go on with.
            let keeps = usize::from(level == top);
            if frame.lost || !is_open || frame.listing.in_hand() <= keeps {
                continue;
            }
            let names = frame.listing.give_half(keeps);
            return pool.give(Share { task: frame.task.clone(), names });
        }
    }

    /// Leaves the directory on top of the stack for the one below it, and sets its attributes. While
    /// others still have names from it, this worker takes some of theirs.
    fn leave(&self, worker: &mut Worker, stack: &mut Stack<'w>) {
        let Some(frame) = stack.frames.last_mut() else { return };
        if frame.loan.is_none() && frame.sole().is_none() {
            let task = frame.task.clone();
            // This very clone is the second.
            self.borrow(worker, stack, || Arc::strong_count(&task) == 2);
            return;
        }
        let Some(frame) = stack.frames.pop() else { return };
        stack.forget_above();
        if frame.loan.is_some() {
            return;
        }
        if !stack.frames.is_empty() {
            regain_top(self.run, &mut stack.frames, &frame.task);
        }
        if frame.lost {
            directory::give_up(self.run, &frame.task);
        } else {
            directory::finish(self.run, &frame.task);
        }
    }
}

impl Stack<'_> {
    fn names_in_hand(&self) -> u64 {
        self.frames.iter().map(|frame| frame.listing.in_hand() as u64).sum()
    }

    /// Closes the directory that has just become one level too many, and those that could not be
    /// closed before. The topmost stays open: from there everything can be found again.
    fn close_far_above(&mut self, open_levels: usize) {
        let far = self.frames.len().checked_sub(open_levels + 1).filter(|&far| far > 0);
        self.lingering.extend(far);
        let frames = &mut self.frames;
        self.lingering.retain(|&level| !close(frames, level));
    }

    fn forget_above(&mut self) {
        while self.lingering.last().is_some_and(|&level| level >= self.frames.len()) {
            self.lingering.pop();
        }
    }
}

/// Closes the directory at `level`. Returns whether that is settled: one that others have names
/// from has to be tried again.
fn close(frames: &mut [Frame<'_>], level: usize) -> bool {
    let [frame, below, ..] = &mut frames[level..] else { return false };
    if frame.loan.is_some() || below.loan.is_some() {
        // The lender sees to it; and `..` of a directory on loan is not this one.
        return frame.loan.is_some();
    }
    // `..` of a directory that was entered through a symbolic link leads elsewhere.
    let (keeps_src, keeps_dst) = (below.task.src.through_link, below.task.dst.through_link);
    let Some(task) = Arc::get_mut(&mut frame.task) else { return false };
    if !keeps_src {
        frame.listing.suspend();
        task.src.close();
    }
    if !keeps_dst {
        task.dst.close();
    }
    true
}

/// Opens the directory on top of the stack again if it was closed.
fn regain_top(run: &Run<'_>, frames: &mut [Frame<'_>], below: &DirTask) {
    let top = frames.len() - 1;
    if frames[top].lost {
        return;
    }
    let src = regain(frames, |task| &mut task.src, |task| &task.src, &below.src);
    let resumed = src.and_then(|was_closed| {
        let frame = &mut frames[top];
        if was_closed { frame.listing.resume(frame.task.src.fd()) } else { Ok(()) }
    });
    if let Err(errno) = resumed {
        lose(run, &mut frames[top], true, errno);
        return;
    }
    if let Err(errno) = regain(frames, |task| &mut task.dst, |task| &task.dst, &below.dst) {
        lose(run, &mut frames[top], false, errno);
    }
}

/// The same for one side. Returns whether it had been closed.
fn regain(
    frames: &mut [Frame<'_>],
    side_mut: impl Fn(&mut DirTask) -> &mut Dir,
    side: impl Fn(&DirTask) -> &Dir,
    below: &Dir,
) -> rustix::io::Result<bool> {
    let top = frames.len() - 1;
    if side(&frames[top].task).is_open() {
        return Ok(false);
    }
    let closed = side_mut(frames[top].closed());
    if below.is_open() && !below.through_link && closed.regain(below.fd()).is_ok() {
        return Ok(true);
    }
    // The directory below was moved away: go down from the nearest one that is open.
    let mut open = top;
    while !side(&frames[open].task).is_open() {
        open = open.checked_sub(1).ok_or(Errno::STALE)?;
    }
    for level in open + 1..=top {
        let (above, rest) = frames.split_at_mut(level);
        let parent = &mut above[level - 1];
        side_mut(rest[0].closed()).regain_below(side(&parent.task).fd())?;
        if level - 1 > open {
            side_mut(parent.closed()).close();
        }
    }
    Ok(true)
}

/// Gives a directory up that was moved or replaced while the walk was below it.
fn lose(run: &Run<'_>, frame: &mut Frame<'_>, src: bool, errno: Errno) {
    let task = &frame.task;
    let path = if src { task.src.trail.path() } else { task.dst.trail.path() };
    let diagnostic = match errno {
        Errno::STALE | Errno::NOENT | Errno::LOOP | Errno::NOTDIR => {
            Diagnostic::DirectoryMoved { path }
        }
        errno => Diagnostic::Failed { action: Action::EnterDirectory, path, errno },
    };
    directory::tell(run, &task.failures, diagnostic);
    frame.lost = true;
}
