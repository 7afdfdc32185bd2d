//! Names that pass from one process to another.
//!
//! A process that has names gives some of them to one that has none, as a message
//! ([`crate::shared::messages`]). The other opens their directory ([`super::opened_places`]).

use std::cell::Cell;
use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::{CWD, OFlags};
use rustix::io::{self, Errno, fcntl_dupfd_cloexec};

use super::opened_places::Refused;
use super::stack::{Frame, Stack};
use super::tree_walk::TreeWalk;
use super::work_pool::{Incoming, ShareGuard, WorkPool, WorkShare};
use crate::copy::context::CopyWorker;
use crate::copy::directory_pair::DirectoryPair;
use crate::copy::range_owner;
use crate::data::context::{Files, Shared};
use crate::destination::context::CopyContext;
use crate::entry::{Operand, open_regular};
use crate::fs::{
    DirPath, DisplayPath, FileId, FsTypes, OpenFile, Place, Trust, c_name, file_bytes, fs_type_of,
    is_component, is_within, join, open_for_search, open_listed, split,
};
use crate::report::Diagnostic;
use crate::request::Follow;
use crate::shared::messages::{
    Component, DirectoryMessage, FilePlace, Names, OperandMessage, RangeOffer, SourceVersion, Work,
    decode, encode,
};
use crate::shared::{Kept, LOCAL, Load, Offered, ReceivedShare, ShareEnd, Surplus};

/// Whether entries below an operand may be copied by partners: not if its copy is below itself,
/// which only the process that creates directories notices, and not through symbolic links, by which it
/// may come to be there.
pub(super) fn is_shareable(cx: &CopyContext<'_>, root: &DirectoryPair) -> bool {
    let is_below = || is_within(root.dst.fd(), root.src.id()).unwrap_or(true);
    cx.options.follow != Follow::Always && !is_below()
}

impl<'w> TreeWalk<'w> {
    /// Gives names to a partner that waits, from the directory nearest to the top that has enough.
    pub(super) fn give_to_partner(&self, stack: &mut Stack<'_, '_>) {
        let (partners, Some(pool)) = (&self.cx.partners, self.pool) else { return };
        if partners.others.waiting() == 0 {
            return;
        }
        for (is_top, frame) in stack.giving(self.open_levels) {
            if frame.listing.buffered() == 0 || !is_given(&frame.pair) {
                continue;
            }
            let endless = frame.listing.is_endless();
            // This worker keeps one name, unless it has a directory to continue with.
            let kept = usize::from(is_top && !endless);
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
            return give(self.cx, pool, pair, Names::new(place, &names, frame.is_large_file));
        }
        partners.others.tell(Load::NoSurplus);
    }

    /// Gives a large file to a partner that waits. Returns whether one does.
    pub(super) fn give_file_to_partner(&self, WorkShare { pair, names, .. }: &WorkShare) -> bool {
        let (partners, Some(pool)) = (&self.cx.partners, self.pool) else { return false };
        if partners.others.waiting() == 0 || !is_given(pair) {
            return false;
        }
        let Some(place) = directory_message(self.cx, pair) else { return false };
        give(self.cx, pool, pair.clone(), Names::new(place, names, true));
        true
    }

    /// Starts what a partner has given. If its directory cannot be opened, it is handed back.
    pub(super) fn start_received(
        &self,
        worker: &mut CopyWorker,
        incoming: Incoming,
        guard: ShareGuard<'w>,
    ) -> Option<Frame<'w>> {
        let opened = match decode(&incoming.work) {
            Some(Work::File(offer)) => {
                self.help_with_file(worker, incoming, &offer);
                return None;
            }
            Some(Work::Names(names)) => {
                self.cx.operands.note_partner();
                self.places.open_share(self.cx, &incoming, &names)
            }
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
        self.cx.partners.others.end_share(share, end);
    }
}

/// Whether names of the directory may be given to partners.
pub(super) fn is_given(pair: &DirectoryPair) -> bool {
    pair.operand.shareable.load(Ordering::Relaxed) && !pair.returned.load(Ordering::Relaxed)
}

fn give(cx: &CopyContext<'_>, pool: &WorkPool, pair: Arc<DirectoryPair>, names: Names) {
    cx.operands.note_partner();
    let partners = &cx.partners;
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
    let (partners, operand) = (&cx.partners, &pair.operand);
    let src: Vec<_> = pair.src.dir_path.levels().collect();
    let dst: Vec<_> = pair.dst.dir_path.levels().collect();
    // A directory that was entered through a symbolic link has no directory above it.
    if src.len() != dst.len() {
        return None;
    }
    let ((&src_top, src_below), (&dst_top, dst_below)) = (src.split_first()?, dst.split_first()?);
    let common = |level: &DirPath| Some(partners.common(level.id()?));
    let level = |(src, dst): (&&DirPath, &&DirPath)| {
        let name = (src.name() == dst.name()).then(|| CString::new(src.name()).ok())??;
        Some((Component::new(name), common(src)?, common(dst)?))
    };
    // Links in a directory that existed before the run may be followed, if they are as old.
    let is_followed = !pair.facts.new && cx.options.may_write_through();
    let links = is_followed.then(|| cx.security.recorded(pair.dst.id())).flatten();
    let links = links.map(|links| links.into_iter().map(|link| partners.common(link)).collect());
    Some(DirectoryMessage {
        operand: OperandMessage {
            boot_id: partners.boot_id.clone(),
            src: operand.src.as_os_str().as_bytes().into(),
            src_id: common(src_top)?,
            dst: operand.dst.as_os_str().as_bytes().into(),
            merged: operand.merged.iter().map(|src| src.as_os_str().as_bytes().into()).collect(),
            into_directory: operand.into_directory,
            is_created_root: cx.operands.is_created_root(dst_top.id()?),
            top: partners.top_message(dst_top)?,
        },
        facts: pair.facts,
        levels: src_below.iter().zip(dst_below).map(level).collect::<Option<_>>()?,
        links,
    })
}

// Parts in the copy of large files that pass from one process to another.
//
// A message names the directories as for a share of names ([`super::partner_shares`]), and both files
// with their identities. The receiver opens them without following symbolic links, and takes no part
// if one is another file, or if the source has changed.

/// The [`RangePlace`](crate::entry::RangePlace) of a file in a directory that is being copied.
pub(super) fn place_in(
    cx: &CopyContext<'_>,
    pair: &Arc<DirectoryPair>,
) -> Option<(FilePlace, Kept)> {
    let message = is_given(pair).then(|| directory_message(cx, pair))??;
    Some((FilePlace::Directory(message), pair.clone()))
}

/// That of an operand that is a file, and whose copy is in `dst_dir`.
pub(super) fn place_of_operand(
    cx: &CopyContext<'_>,
    operand: &Operand,
    dst_dir: BorrowedFd<'_>,
) -> Option<(FilePlace, Kept)> {
    let partners = &cx.partners;
    let dst = c_name(operand.dst.as_os_str().as_bytes()).ok()?;
    let place = FilePlace::Operand {
        boot_id: partners.boot_id.clone(),
        dst_dir: split(&dst).0.into(),
        dst_dir_id: partners.common(FileId::of_open(dst_dir).ok()?),
    };
    // The run waits for all parts at its end.
    Some((place, Arc::new(())))
}

/// The files of an offer, open on this process.
struct OpenedFiles {
    src: OpenFile,
    dst: OpenFile,
    /// Of the copy.
    dir: OwnedFd,
    shown: (PathBuf, PathBuf),
}

impl TreeWalk<'_> {
    /// Takes part in the copy of a file that a partner has offered. If the files cannot be opened,
    /// the offer is handed back.
    pub(super) fn help_with_file(
        &self,
        worker: &mut CopyWorker,
        incoming: Incoming,
        offer: &RangeOffer,
    ) {
        let partners = &self.cx.partners;
        let opened = match self.open_files(&mut worker.data.fs_types, offer) {
            Ok(opened) => opened,
            Err(refused) => return self.hand_back(incoming, refused),
        };
        let Incoming { share, home, work } = incoming;
        // Returned when it is dropped here, and by those to which it is passed on.
        let received = Arc::new(ReceivedShare { partners: partners.others.clone(), share, home });
        let has_more = Cell::new(false);
        let look = || {
            partners.has_offers();
            if !has_more.get() || partners.others.waiting() == 0 {
                return partners.others.tell(Load::NoSurplus);
            }
            while partners.others.waiting() > 0 {
                let offered = Offered { file: None, kept: received.clone() };
                partners.offer(offer.owner, work.clone(), offered);
            }
        };
        let OpenedFiles { src, dst, dir, shown } = &opened;
        let place = |name, shown| Place {
            dir: dir.as_fd(),
            name,
            shown: DisplayPath::Operand(shown),
            trust: Trust::PreExisting,
        };
        let src_place = place(&offer.src_name, shown.0.as_path());
        let dst_place = place(offer.dst_shown.name(), shown.1.as_path());
        let files = Files {
            src: src.at(&src_place),
            dst: dst.at(&dst_place),
            new: true,
            atomic: offer.atomic,
            opened_here: true,
            shared: Some(Shared { owned: None, look: &look }),
        };
        let data = &mut worker.data;
        range_owner::help(self.cx, data, offer, &files, &has_more);
    }

    fn open_files(
        &self,
        fs_types: &mut FsTypes,
        offer: &RangeOffer,
    ) -> Result<OpenedFiles, Refused> {
        let partners = &self.cx.partners;
        let (opened, sender) = match &offer.place {
            FilePlace::Directory(_) if !is_component(&offer.src_name) => {
                return Err(Refused::Directory);
            }
            FilePlace::Directory(message) => {
                let place = self.places.open(self.cx, message)?;
                let (src, dst) = (&place.src, &place.dst);
                let dst_shown = dst.dir_path.join(offer.dst_shown.name());
                let shown = (src.dir_path.join(&offer.src_name), dst_shown);
                let dst = fcntl_dupfd_cloexec(dst.fd(), 0)?;
                let opened = open_both(fs_types, (src.fd(), false), dst, shown, offer);
                (opened, partners.sender(&message.operand.boot_id))
            }
            FilePlace::Operand { boot_id, dst_dir, dst_dir_id } => {
                let sender = partners.sender(boot_id);
                let path = |bytes| Path::new(OsStr::from_bytes(bytes));
                let dst_shown =
                    join(path(dst_dir), OsStr::from_bytes(offer.dst_shown.name().to_bytes()));
                let shown = (path(offer.src_name.to_bytes()).to_owned(), dst_shown);
                let dst = open_for_search(CWD, &c_name(dst_dir)?)?;
                let opened = partners.check(dst.as_fd(), *dst_dir_id, sender).and_then(|_| {
                    let follows = self.cx.options.follow.follows(true);
                    open_both(fs_types, (CWD, follows), dst, shown, offer)
                });
                (opened, sender)
            }
        };
        let checked = opened.and_then(|opened| {
            partners.check(opened.src.fd.as_fd(), offer.src_id, sender)?;
            partners.check(opened.dst.fd.as_fd(), offer.dst_id, sender)?;
            Ok(opened)
        });
        let opened = checked.map_err(|errno| match errno {
            LOCAL => {
                let path = Path::new(OsStr::from_bytes(offer.src_name.to_bytes())).to_owned();
                Refused::Operand(Diagnostic::LocalToHost { path })
            }
            // The file may be complete by now, and have another name.
            _ => Refused::Directory,
        })?;
        // An engine that finds the copy shorter than it is would cut off what partners write.
        let is_whole = file_bytes(&opened.dst.stat) >= offer.version.file_bytes;
        let is_same = SourceVersion::of(&opened.src.stat) == offer.version;
        if is_whole && is_same { Ok(opened) } else { Err(Refused::Directory) }
    }
}

const WRITE: OFlags =
    OFlags::RDWR.union(OFlags::CLOEXEC).union(OFlags::NOCTTY).union(OFlags::NOFOLLOW);

fn open_both(
    fs_types: &mut FsTypes,
    (src_dir, follows): (BorrowedFd<'_>, bool),
    dir: OwnedFd,
    shown: (PathBuf, PathBuf),
    offer: &RangeOffer,
) -> io::Result<OpenedFiles> {
    let (name, shown_src) = (&*offer.src_name, DisplayPath::Operand(&shown.0));
    let src_place = Place::new(src_dir, name, shown_src, Trust::PreExisting);
    let src = open_regular(fs_types, &src_place, follows).ok_or(Errno::STALE)?;
    let dst_name = (dir.as_fd(), offer.dst_name.name());
    let dst = open_listed(fs_types, fs_type_of(dir.as_fd()), dst_name, WRITE);
    Ok(OpenedFiles { src, dst: dst.ok_or(Errno::STALE)?, dir, shown })
}
