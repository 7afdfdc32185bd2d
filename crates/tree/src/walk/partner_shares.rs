//! Names that pass from one process to another.
//!
//! A process that has names gives some of them to one that has none, as a message
//! ([`crate::shared::messages`]). The other opens their directory ([`super::opened_places`]).

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::FileType;

use super::contexts::Worker;
use super::opened_places::Refused;
use super::stack::{Frame, Stack};
use super::tree_walk::TreeWalk;
use super::work_pool::{Incoming, ShareGuard, WorkPool};
use crate::copy::context::CopyContext;
use crate::copy::directory_pair::DirectoryPair;
use crate::fs::{DirPath, Listing, is_within};
use crate::request::Follow;
use crate::shared::messages::{
    Component, DirectoryMessage, Facts, Names, OperandMessage, Work, decode, encode,
};
use crate::shared::{Load, PartnerContext, ShareEnd, Surplus};

/// Whether entries below an operand may be copied by partners: not if its copy is below itself,
/// which only the process that creates directories notices, and not through symbolic links, by which it
/// may come to be there.
pub(super) fn is_shareable(cx: &CopyContext<'_>, root: &DirectoryPair) -> bool {
    let is_below = || is_within(root.dst.fd(), root.src.id).unwrap_or(true);
    cx.options.follow != Follow::Always && !is_below()
}

impl<'w> TreeWalk<'w> {
    /// Gives names to a partner that waits, from the directory nearest to the top that has enough.
    pub(super) fn give_to_partner(&self, stack: &mut Stack<'_>) {
        let (partners, Some(pool)) = (self.cx.partners(), self.pool) else { return };
        if partners.others.waiting() == 0 {
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
            let count = partners.others.names_to_give(surplus).min(surplus.names);
            if count == 0 {
                continue;
            }
            let pair = frame.pair.clone();
            let Some(place) = directory_message(self.cx, &pair) else {
                pair.returned.store(true, Ordering::Relaxed);
                continue;
            };
            let names = frame.listing.give_first(count);
            return give(partners, pool, pair, Names::new(place, &names, frame.is_large_file));
        }
        partners.others.tell(Load::NoSurplus);
    }

    /// Gives a large file to a partner that waits. Returns whether one does.
    pub(super) fn give_file_to_partner(
        &self,
        pair: &Arc<DirectoryPair>,
        name: &CString,
        listed_as: FileType,
    ) -> bool {
        let (partners, Some(pool)) = (self.cx.partners(), self.pool) else { return false };
        if partners.others.waiting() == 0 || !is_given(pair) {
            return false;
        }
        let Some(place) = directory_message(self.cx, pair) else { return false };
        let names = Listing::of_name(name.clone(), listed_as);
        give(partners, pool, pair.clone(), Names::new(place, &names, true));
        true
    }

    /// Starts what a partner has given. If its directory cannot be opened, it is handed back.
    pub(super) fn start_received(
        &self,
        worker: &mut Worker,
        incoming: Incoming,
        guard: ShareGuard<'w>,
    ) -> Option<Frame<'w>> {
        let opened = match decode(&incoming.work) {
            Some(Work::File(offer)) => {
                self.help_with_file(worker, incoming, &offer);
                return None;
            }
            Some(Work::Names(names)) => self.places.open_share(self.cx, &incoming, &names),
            None => Err(Refused::Directory),
        };
        match opened {
            Ok(share) => Some(Frame::of_share(share, guard)),
            Err(refused) => {
                self.hand_back(incoming, refused);
                None
            }
        }
    }

    /// Returns what could not be opened.
    pub(super) fn hand_back(&self, Incoming { share, work, .. }: Incoming, refused: Refused) {
        let (end, diagnostic) = match refused {
            Refused::Operand(diagnostic) => (ShareEnd::TakesNone(work), Some(diagnostic)),
            Refused::Directory => (ShareEnd::Refused(work), None),
            Refused::ForNow => (ShareEnd::RefusedForNow(work), None),
        };
        diagnostic.into_iter().for_each(|diagnostic| self.cx.report.report(diagnostic));
        self.cx.partners().others.end_share(share, end);
    }
}

fn may_give(frame: &Frame<'_>) -> bool {
    let pair = &frame.pair;
    let is_open = pair.src.is_open() && pair.dst.is_open();
    !frame.lost && is_open && frame.listing.buffered() > 0 && is_given(pair)
}

/// Whether names of the directory may be given to partners.
pub(super) fn is_given(pair: &DirectoryPair) -> bool {
    pair.operand.shareable.load(Ordering::Relaxed) && !pair.returned.load(Ordering::Relaxed)
}

fn give(partners: &PartnerContext, pool: &WorkPool, pair: Arc<DirectoryPair>, names: Names) {
    let home = pair.received.as_ref().map(|received| received.home);
    let number = partners.next_given();
    pool.note_given(number, pair);
    partners.others.give(number, home, encode(&Work::Names(names)));
}

/// The directory of `pair`, as a partner can open it; `None` if it cannot.
pub(super) fn directory_message(
    cx: &CopyContext<'_>,
    pair: &DirectoryPair,
) -> Option<DirectoryMessage> {
    let (partners, operand) = (cx.partners(), &pair.operand);
    let src: Vec<_> = pair.src.dir_path.levels().collect();
    let dst: Vec<_> = pair.dst.dir_path.levels().collect();
    // A directory that was entered through a symbolic link has no directory above it.
    if src.len() != dst.len() {
        return None;
    }
    let ((&src_top, src_below), (&dst_top, dst_below)) = (src.split_first()?, dst.split_first()?);
    let common = |level: &DirPath| Some(partners.devices.common(level.id()?));
    let level = |(src, dst): (&&DirPath, &&DirPath)| {
        let name = (src.name() == dst.name()).then(|| CString::new(src.name()).ok())??;
        Some((Component::new(name), common(src)?, common(dst)?))
    };
    // Links in a directory that existed before the run may be followed, if they are as old.
    let is_followed = !pair.new && cx.options.may_write_through();
    let links = is_followed.then(|| cx.security().preexisting.recorded(pair.dst.id)).flatten();
    let links =
        links.map(|links| links.into_iter().map(|link| partners.devices.common(link)).collect());
    Some(DirectoryMessage {
        operand: OperandMessage {
            boot_id: partners.boot_id.clone(),
            src: operand.src.as_os_str().as_bytes().into(),
            src_id: common(src_top)?,
            dst: operand.dst.as_os_str().as_bytes().into(),
            into_directory: operand.into_directory,
            is_created_root: cx.destination.operands.is_created_root(dst_top.id()?),
            top: partners.top_message(dst_top)?,
        },
        facts: Facts {
            new: pair.new,
            private: pair.private,
            children_inherit_acl: pair.children_inherit_acl,
            one_file_system: pair.device.is_some(),
        },
        levels: src_below.iter().zip(dst_below).map(level).collect::<Option<_>>()?,
        links,
    })
}
