//! Names that pass from one rank of a job to another.
//!
//! A rank that has names gives some of them to one that has none, as a message
//! ([`super::share_message`]). The other opens their directory ([`super::opened_places`]).

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::{FileType, fstat};

use super::opened_places::{OpenedPlaces, Refused};
use super::share_message::{encode, encode_place};
use super::stack::{Frame, Stack};
use super::tree_walk::TreeWalk;
use super::work_pool::{Incoming, ShareGuard, WorkPool};
use crate::copy::context::CopyContext;
use crate::copy::directory_pair::DirectoryPair;
use crate::fs::{FileId, Listing, open_for_search};
use crate::request::Follow;
use crate::shared::{RankContext, Surplus};

/// Whether entries below an operand may be copied by other ranks: not if its copy is below itself,
/// which only the rank that creates directories notices, and not through symbolic links, by which it
/// may come to be there.
pub(super) fn is_shareable(cx: &CopyContext<'_>, root: &DirectoryPair) -> bool {
    cx.options.follow != Follow::Always && !is_below(root.dst.fd().as_fd(), root.src.id)
}

/// Whether the directory `fd` is `above` or below it. Yes if that cannot be found out.
fn is_below(fd: BorrowedFd<'_>, above: FileId) -> bool {
    let climb = || -> rustix::io::Result<bool> {
        let mut at = open_for_search(fd, c".")?;
        let mut id = FileId::of(&fstat(&at)?);
        loop {
            if id == above {
                return Ok(true);
            }
            at = open_for_search(at.as_fd(), c"..")?;
            let parent = FileId::of(&fstat(&at)?);
            if parent == id {
                return Ok(false);
            }
            id = parent;
        }
    };
    climb().unwrap_or(true)
}

impl<'w> TreeWalk<'w> {
    /// Gives names to a rank that waits, from the directory nearest to the top that has enough.
    pub(super) fn give_to_rank(&self, stack: &mut Stack<'_>) {
        let (Some(rank), Some(pool)) = (self.cx.rank(), self.pool) else { return };
        if rank.ranks.waiting() == 0 {
            return;
        }
        let top = stack.frames.len();
        let near = top.saturating_sub(self.open_levels + 1).max(1);
        for level in std::iter::once(0).chain(near..top) {
            let Some(frame) = stack.frames.get_mut(level) else { break };
            if !may_give(frame) {
                continue;
            }
            let endless = frame.listing.is_endless();
            // This worker keeps one name, unless it has a directory to continue with.
            let kept = usize::from(level + 1 == top && !endless);
            let surplus = Surplus {
                names: frame.listing.buffered().saturating_sub(kept),
                depth: frame.pair.src.dir_path.levels().len() - 1,
                heavy: frame.is_large_file || frame.listing.has_directories(),
                endless,
            };
            let count = rank.ranks.names_to_give(surplus).min(surplus.names);
            if count == 0 {
                continue;
            }
            let pair = frame.pair.clone();
            let Some(place) = encode_place(self.cx, rank, &pair) else {
                pair.returned.store(true, Ordering::Relaxed);
                continue;
            };
            let names = frame.listing.give_first(count);
            return give(rank, pool, pair, &place, (&names, frame.is_large_file));
        }
        rank.ranks.no_surplus();
    }

    /// Gives a large file to a rank that waits. Returns whether one does.
    pub(super) fn give_file_to_rank(
        &self,
        pair: &Arc<DirectoryPair>,
        name: &CString,
        listed_as: FileType,
    ) -> bool {
        let (Some(rank), Some(pool)) = (self.cx.rank(), self.pool) else { return false };
        if rank.ranks.waiting() == 0 || !is_given(pair) {
            return false;
        }
        let Some(place) = encode_place(self.cx, rank, pair) else { return false };
        let names = Listing::of_name(name.clone(), listed_as);
        give(rank, pool, pair.clone(), &place, (&names, true));
        true
    }

    /// Opens what another rank has given. If that fails, it is handed back.
    pub(super) fn open_received(
        &self,
        places: &OpenedPlaces,
        rank: &Arc<RankContext>,
        incoming: Incoming,
        guard: ShareGuard<'w>,
    ) -> Option<Frame<'w>> {
        match places.open_share(self.cx, rank, &incoming) {
            Ok(share) => Some(Frame::of_share(share, guard)),
            Err(refused) => {
                let for_now = matches!(refused, Refused::ForNow);
                if let Refused::Operand(diagnostic) = refused {
                    rank.ranks.give_up();
                    self.cx.report.report(diagnostic);
                }
                rank.ranks.hand_back(incoming.share, incoming.work, for_now);
                None
            }
        }
    }
}

fn may_give(frame: &Frame<'_>) -> bool {
    let pair = &frame.pair;
    let is_open = pair.src.is_open() && pair.dst.is_open();
    !frame.lost && is_open && frame.listing.buffered() > 0 && is_given(pair)
}

/// Whether names of the directory may be given to other ranks.
pub(super) fn is_given(pair: &DirectoryPair) -> bool {
    pair.operand.shareable.load(Ordering::Relaxed) && !pair.returned.load(Ordering::Relaxed)
}

fn give(
    rank: &RankContext,
    pool: &WorkPool,
    pair: Arc<DirectoryPair>,
    place: &[u8],
    (names, is_large_file): (&Listing, bool),
) {
    let home = pair.received.as_ref().map(|received| received.home);
    let number = rank.next_given();
    pool.note_given(number, pair);
    rank.ranks.give(number, home, encode(place, names, is_large_file));
}
