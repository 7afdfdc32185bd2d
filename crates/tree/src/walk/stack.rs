//! The stack of directories that a worker is in.
//!
//! Directories far above the current one are closed. They are opened again through `..` of the
//! directory below, and must have the same device and inode number as before.

use std::path::PathBuf;
use std::sync::Arc;

use rustix::io::Errno;

use super::work_pool::{ShareGuard, WorkShare};
use crate::copy::context::CopyWorker;
use crate::copy::directory::report_failure;
use crate::copy::directory_pair::DirectoryPair;
use crate::destination::context::CopyContext;
use crate::fs::{Dir, Listing};
use crate::report::{Action, Diagnostic};

/// A directory, and the names in it that this worker still has to copy.
pub(super) struct Frame<'p> {
    pub(super) pair: Arc<DirectoryPair>,
    pub(super) listing: Listing,
    /// The directory could not be opened again; nothing more can be done in it.
    pub(super) lost: bool,
    /// The only name is that of a large file, which another worker gave to this one.
    pub(super) is_large_file: bool,
    /// Set if the names are another worker's. That worker is told when this is dropped, and `pair`
    /// must be dropped by then: fields are dropped in this order.
    pub(super) share_guard: Option<ShareGuard<'p>>,
}

impl<'p> Frame<'p> {
    /// For all names in a directory.
    pub(super) fn of_directory(pair: Arc<DirectoryPair>, listing: Listing) -> Frame<'p> {
        Frame { pair, listing, lost: false, is_large_file: false, share_guard: None }
    }

    /// For names in a directory of another worker.
    pub(super) fn of_share(share: WorkShare, share_guard: ShareGuard<'p>) -> Frame<'p> {
        let WorkShare { pair, names, is_large_file } = share;
        let share_guard = Some(share_guard);
        Frame { pair, listing: names, lost: false, is_large_file, share_guard }
    }

    /// The directory, unless other workers have names from it.
    pub(super) fn unshared(&mut self) -> Option<&mut DirectoryPair> {
        Arc::get_mut(&mut self.pair)
    }

    fn closed(&mut self) -> &mut DirectoryPair {
        self.unshared().expect("no names are given from a directory that is closed")
    }
}

/// The directories that a worker is in, from the top down. A frame with a share of another worker
/// may be above another frame; the frames after it are below the shared directory.
pub(super) struct Stack<'a, 'w> {
    pub(super) worker: &'a mut CopyWorker,
    pub(super) frames: Vec<Frame<'w>>,
    /// Levels too far above to stay open, which other workers still have names from.
    unclosed: Vec<usize>,
    /// Large files that other workers copy as soon as there are any.
    pub(super) given: Vec<WorkShare>,
}

impl<'a, 'w> Stack<'a, 'w> {
    pub(super) fn new(worker: &'a mut CopyWorker) -> Stack<'a, 'w> {
        Stack { worker, frames: Vec::new(), unclosed: Vec::new(), given: Vec::new() }
    }

    /// # Panics
    /// If something is left: a name that no worker has copied must not be forgotten.
    pub(super) fn assert_done(&self) {
        assert!(self.frames.is_empty() && self.given.is_empty(), "all names are copied");
    }

    /// Whether this worker has further names, or directories to read further.
    pub(super) fn has_names(&self) -> bool {
        self.frames.iter().any(|frame| !frame.lost && !frame.listing.has_ended())
    }

    /// Puts a frame on top. Closes the directory that is now one level too many, and those that could
    /// not be closed before. The first stays open: from there every other can be opened again.
    pub(super) fn push(&mut self, frame: Frame<'w>, open_levels: usize) {
        self.frames.push(frame);
        let far = self.frames.len().checked_sub(open_levels + 1).filter(|&far| far > 0);
        let Some(far) = far else { return };
        if !self.unclosed.contains(&far) {
            self.unclosed.push(far);
        }
        let frames = &mut self.frames;
        // Levels may have come nearer since they were noted.
        self.unclosed.retain(|&level| level > far || !close(frames, level));
    }

    /// The directories from which names can be given, the first one first. Most of those between the first and the
    /// last few are closed. With each, whether it is that on top.
    pub(super) fn giving(
        &mut self,
        open_levels: usize,
    ) -> impl Iterator<Item = (bool, &mut Frame<'w>)> {
        let levels = self.frames.len();
        let near = levels.saturating_sub(open_levels + 1).max(1);
        let mut frames = self.frames.iter_mut().enumerate();
        let first = frames.next();
        let is_open = |pair: &DirectoryPair| pair.src.is_open() && pair.dst.is_open();
        let frames = first.into_iter().chain(frames.skip(near - 1));
        frames
            .filter(move |(_, frame)| !frame.lost && is_open(&frame.pair))
            .map(move |(level, frame)| (level + 1 == levels, frame))
    }

    /// Drops levels that are no longer on the stack from those to close.
    pub(super) fn forget_popped(&mut self) {
        let levels = self.frames.len();
        self.unclosed.retain(|&level| level < levels);
    }
}

/// Closes the directory at `level`. Returns false if it has to be tried again, because other
/// workers have names from it.
fn close(frames: &mut [Frame<'_>], level: usize) -> bool {
    let Some([frame, below, ..]) = frames.get_mut(level..) else { return false };
    if frame.share_guard.is_some() || below.share_guard.is_some() {
        // The worker that gave the share closes it; and `..` of a shared directory is not this one.
        return frame.share_guard.is_some();
    }
    // `..` of a directory that was entered through a symbolic link is another directory.
    let (keeps_src, keeps_dst) = (below.pair.src.through_link, below.pair.dst.through_link);
    let Some(pair) = Arc::get_mut(&mut frame.pair) else { return false };
    if !keeps_src {
        frame.listing.suspend();
        pair.src.close();
    }
    if !keeps_dst {
        pair.dst.close();
    }
    true
}

/// Opens the directory on top of the stack again if it was closed. `below` is the directory that
/// was just left.
pub(super) fn reopen_top(cx: &CopyContext<'_>, frames: &mut [Frame<'_>], below: &DirectoryPair) {
    let top = frames.len() - 1;
    if frames[top].lost {
        return;
    }
    let src = reopen(frames, |pair| &mut pair.src, |pair| &pair.src, &below.src);
    let resumed = src.and_then(|was_closed| {
        let frame = &mut frames[top];
        if was_closed { frame.listing.resume(frame.pair.src.fd()) } else { Ok(()) }
    });
    if let Err(errno) = resumed {
        let path = frames[top].pair.src.dir_path.path();
        return mark_lost(cx, &mut frames[top], path, errno);
    }
    if let Err(errno) = reopen(frames, |pair| &mut pair.dst, |pair| &pair.dst, &below.dst) {
        let path = frames[top].pair.dst.dir_path.path();
        mark_lost(cx, &mut frames[top], path, errno);
    }
}

/// Opens one side of the top directory again. Returns whether it had been closed.
fn reopen(
    frames: &mut [Frame<'_>],
    side_mut: impl Fn(&mut DirectoryPair) -> &mut Dir,
    side: impl Fn(&DirectoryPair) -> &Dir,
    below: &Dir,
) -> rustix::io::Result<bool> {
    let top = frames.len() - 1;
    if side(&frames[top].pair).is_open() {
        return Ok(false);
    }
    let closed = side_mut(frames[top].closed());
    if below.is_open() && !below.through_link && closed.reopen(below.fd()).is_ok() {
        return Ok(true);
    }
    // The directory below was moved: open each level again from the nearest one that is open.
    let mut open = top;
    while !side(&frames[open].pair).is_open() {
        open = open.checked_sub(1).ok_or(Errno::STALE)?;
    }
    for level in open + 1..=top {
        let (above, rest) = frames.split_at_mut(level);
        let parent = &mut above[level - 1];
        side_mut(rest[0].closed()).reopen_in(side(&parent.pair).fd())?;
        if level - 1 > open {
            side_mut(parent.closed()).close();
        }
    }
    Ok(true)
}

/// Reports a directory that was moved or replaced while the walk was below it.
fn mark_lost(cx: &CopyContext<'_>, frame: &mut Frame<'_>, path: PathBuf, errno: Errno) {
    let diagnostic = match errno {
        Errno::STALE | Errno::NOENT | Errno::LOOP | Errno::NOTDIR => {
            Diagnostic::DirectoryMoved { path }
        }
        errno => Diagnostic::Failed { action: Action::EnterDirectory, path, errno },
    };
    report_failure(cx, &frame.pair.failures, diagnostic);
    frame.lost = true;
}
