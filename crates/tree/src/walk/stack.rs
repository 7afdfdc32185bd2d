//! The stack of directories that a worker is in. Directories far above are closed and opened again.

use std::sync::Arc;

use rustix::io::Errno;

use super::work_pool::ShareGuard;
use crate::copy::context::CopyContext;
use crate::copy::directory::report_failure;
use crate::copy::directory_pair::DirectoryPair;
use crate::fs::{Dir, Listing};
use crate::report::{Action, Diagnostic};

/// A worker's place in a directory.
pub(super) struct Frame<'p> {
    pub(super) pair: Arc<DirectoryPair>,
    pub(super) listing: Listing,
    /// The directory could not be found again, so nothing more can be done in it.
    pub(super) lost: bool,
    /// Names from another worker's directory. It is told when this is dropped, and by then `pair`
    /// must be: fields are dropped in this order.
    pub(super) share_guard: Option<ShareGuard<'p>>,
}

impl Frame<'_> {
    /// The directory, unless other workers have names from it.
    pub(super) fn sole(&mut self) -> Option<&mut DirectoryPair> {
        Arc::get_mut(&mut self.pair)
    }

    /// The directory of a frame that was closed, which nobody else can have.
    fn closed(&mut self) -> &mut DirectoryPair {
        self.sole().expect("no names are given from a directory that is closed")
    }
}

/// The directories that a worker is in, from the top down. Above a frame may stand one on loan from
/// another worker, with what is below that.
#[derive(Default)]
pub(super) struct Stack<'w> {
    pub(super) frames: Vec<Frame<'w>>,
    /// Frames that are too far above to stay open, but that others still have names from.
    unclosed: Vec<usize>,
}

impl Stack<'_> {
    pub(super) fn names_buffered(&self) -> u64 {
        self.frames.iter().map(|frame| frame.listing.buffered() as u64).sum()
    }

    /// Closes the directory that has just become one level too many, and those that could not be
    /// closed before. The topmost stays open: from there everything can be found again.
    pub(super) fn close_far_above(&mut self, open_levels: usize) {
        let far = self.frames.len().checked_sub(open_levels + 1).filter(|&far| far > 0);
        self.unclosed.extend(far);
        let frames = &mut self.frames;
        self.unclosed.retain(|&level| !close(frames, level));
    }

    pub(super) fn forget_above(&mut self) {
        while self.unclosed.last().is_some_and(|&level| level >= self.frames.len()) {
            self.unclosed.pop();
        }
    }
}

/// Closes the directory at `level`. Returns whether that is settled: one that others have names
/// from has to be tried again.
fn close(frames: &mut [Frame<'_>], level: usize) -> bool {
    let [frame, below, ..] = &mut frames[level..] else { return false };
    if frame.share_guard.is_some() || below.share_guard.is_some() {
        // The lender sees to it; and `..` of a directory on loan is not this one.
        return frame.share_guard.is_some();
    }
    // `..` of a directory that was entered through a symbolic link leads elsewhere.
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

/// Opens the directory on top of the stack again if it was closed.
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
        lose(cx, &mut frames[top], true, errno);
        return;
    }
    if let Err(errno) = reopen(frames, |pair| &mut pair.dst, |pair| &pair.dst, &below.dst) {
        lose(cx, &mut frames[top], false, errno);
    }
}

/// The same for one side. Returns whether it had been closed.
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
    // The directory below was moved away: go down from the nearest one that is open.
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

/// Gives a directory up that was moved or replaced while the walk was below it.
fn lose(cx: &CopyContext<'_>, frame: &mut Frame<'_>, src: bool, errno: Errno) {
    let pair = &frame.pair;
    let path = if src { pair.src.dir_path.path() } else { pair.dst.dir_path.path() };
    let diagnostic = match errno {
        Errno::STALE | Errno::NOENT | Errno::LOOP | Errno::NOTDIR => {
            Diagnostic::DirectoryMoved { path }
        }
        errno => Diagnostic::Failed { action: Action::EnterDirectory, path, errno },
    };
    report_failure(cx, &pair.failures, diagnostic);
    frame.lost = true;
}
