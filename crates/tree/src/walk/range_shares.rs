//! Parts in the copy of large files that pass from one rank of a job to another.
//!
//! A message names the directories as for a share of names ([`super::share_message`]), and both files
//! with their identities. The receiver opens them without following symbolic links, and takes no part
//! if one is another file, or if the source has changed.

use std::any::Any;
use std::cell::Cell;
use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{CWD, OFlags, Stat, fstat};
use rustix::io::Errno;

use super::opened_places::{OpenedPlace, OpenedPlaces, Refused};
use super::rank_shares::is_given;
use super::share_message::encode_place;
use super::tree_walk::TreeWalk;
use super::work_pool::Incoming;
use super::worker::Worker;
use crate::copy::context::CopyContext;
use crate::copy::directory_pair::DirectoryPair;
use crate::copy::range_helper;
use crate::data::files::{Files, Shared};
use crate::entry::{Operand, RangePlace, open_regular};
use crate::fs::fs_type::is_on_fs_of_one_host;
use crate::fs::{
    DisplayPath, FileId, FsTypes, Place, Trust, c_name, file_bytes, fs_type_of, join,
    open_for_search, open_listed, split,
};
use crate::report::Diagnostic;
use crate::shared::range_offer::{RangeOffer, SourceVersion};
use crate::shared::ranks::Offered;
use crate::shared::wire::{Reader, Writer};
use crate::shared::{LOCAL, RankContext, ReceivedShare, Sender};

/// A directory that is being copied.
pub(super) struct InDirectory<'p> {
    pub(super) cx: &'p CopyContext<'p>,
    pub(super) pair: &'p Arc<DirectoryPair>,
}

impl RangePlace for InDirectory<'_> {
    fn encode(&self) -> Option<Vec<u8>> {
        is_given(self.pair).then(|| encode_place(self.cx, self.cx.rank()?, self.pair))?
    }

    fn is_in_directory(&self) -> bool {
        true
    }

    fn keep(&self) -> Box<dyn Any + Send + Sync> {
        Box::new(self.pair.clone())
    }
}

/// The name of an operand that is a file, and the directory of its copy.
pub(super) struct OfOperand<'p> {
    pub(super) cx: &'p CopyContext<'p>,
    pub(super) operand: &'p Operand,
    pub(super) dst_dir: BorrowedFd<'p>,
}

impl RangePlace for OfOperand<'_> {
    fn encode(&self) -> Option<Vec<u8>> {
        let rank = self.cx.rank()?;
        let dst = c_name(self.operand.dst.as_os_str().as_bytes()).ok()?;
        let mut out = Writer::default();
        rank.encode_host(&mut out);
        out.bytes(self.operand.src.as_os_str().as_bytes());
        out.bytes(split(&dst).0);
        out.id(rank.devices.common(FileId::of(&fstat(self.dst_dir).ok()?)));
        Some(out.into_bytes())
    }

    fn is_in_directory(&self) -> bool {
        false
    }

    fn keep(&self) -> Box<dyn Any + Send + Sync> {
        // The run waits for all parts at its end.
        Box::new(())
    }
}

/// The files of an offer, open on this rank.
struct OpenedFiles {
    src: OwnedFd,
    src_stat: Stat,
    dst: OwnedFd,
    dst_stat: Stat,
    /// Of the copy.
    dir: OwnedFd,
    shown: (std::path::PathBuf, std::path::PathBuf),
}

impl TreeWalk<'_> {
    /// Takes part in the copy of a file that another rank has offered. If the files cannot be opened,
    /// the offer is handed back.
    pub(super) fn help_with_file(
        &self,
        worker: &mut Worker,
        (places, rank): (&OpenedPlaces, &Arc<RankContext>),
        (incoming, offer): (Incoming, &RangeOffer),
    ) {
        let Incoming { share, home, work } = incoming;
        let fs_types = &mut worker.copy.data.fs_types;
        let opened = match self.open_files(fs_types, places, rank, offer) {
            Ok(opened) => opened,
            Err(refused) => {
                let for_now = matches!(refused, Refused::ForNow);
                if let Refused::Operand(diagnostic) = refused {
                    rank.ranks.give_up();
                    self.cx.report.report(diagnostic);
                }
                return rank.ranks.hand_back(share, work, for_now);
            }
        };
        // Returned when it is dropped here, and by those to which it is passed on.
        let received = Arc::new(ReceivedShare { ranks: rank.ranks.clone(), share, home });
        let has_more = Cell::new(false);
        let look = || {
            rank.has_offers();
            if !has_more.get() || rank.ranks.waiting() == 0 {
                return rank.ranks.no_surplus();
            }
            while rank.ranks.waiting() > 0 {
                let offered = Offered { file: None, kept: Box::new(received.clone()) };
                rank.offer(offer.owner, work.clone(), offered);
            }
        };
        let OpenedFiles { src, src_stat, dst, dst_stat, dir, shown } = &opened;
        let place = |name, shown| Place {
            dir: dir.as_fd(),
            name,
            shown: DisplayPath::Operand(shown),
            trust: Trust::PreExisting,
        };
        let files = Files {
            src: src.as_fd(),
            src_stat,
            src_place: &place(offer.src_name.as_c_str(), shown.0.as_path()),
            dst: dst.as_fd(),
            dst_stat,
            dst_place: &place(offer.dst_shown.as_c_str(), shown.1.as_path()),
            new: true,
            atomic: offer.atomic,
            opened_here: true,
            shared: Some(Shared { owned: None, look: &look }),
        };
        let data = &mut worker.copy.data;
        range_helper::help(self.cx, data, (rank, offer), &files, &has_more);
    }

    fn open_files(
        &self,
        fs_types: &mut FsTypes,
        places: &OpenedPlaces,
        rank: &RankContext,
        offer: &RangeOffer,
    ) -> Result<OpenedFiles, Refused> {
        let mut reader = Reader::new(&offer.place);
        let sender = rank.decode_host(&mut reader).ok_or(Refused::Directory)?;
        let opened = if offer.in_directory {
            let place = places.open(self.cx, rank, &offer.place)?;
            open_in_directory(fs_types, &place, offer)
        } else {
            open_operand(self.cx, fs_types, (rank, sender), &mut reader, offer)
        };
        let opened = opened.map_err(|errno| refused(errno, offer))?;
        let is_wanted = |fd: &OwnedFd, stat: &Stat, wanted| {
            let is_local = || is_on_fs_of_one_host(fd.as_fd());
            rank.devices.check(FileId::of(stat), wanted, sender, is_local)
        };
        is_wanted(&opened.src, &opened.src_stat, offer.src_id)
            .and_then(|()| is_wanted(&opened.dst, &opened.dst_stat, offer.dst_id))
            .map_err(|errno| refused(errno, offer))?;
        // An engine that finds the copy shorter than it is would cut off what other ranks write.
        let is_whole = file_bytes(&opened.dst_stat) >= offer.version.file_bytes;
        let is_same = SourceVersion::of(&opened.src_stat) == offer.version;
        if is_whole && is_same { Ok(opened) } else { Err(Refused::Directory) }
    }
}

/// What an error means for the rank. The file may be complete by now, and have another name.
fn refused(errno: Errno, offer: &RangeOffer) -> Refused {
    match errno {
        LOCAL => {
            let path = Path::new(OsStr::from_bytes(offer.src_name.to_bytes())).to_owned();
            Refused::Operand(Diagnostic::LocalToHost { path })
        }
        _ => Refused::Directory,
    }
}

const WRITE: OFlags =
    OFlags::RDWR.union(OFlags::CLOEXEC).union(OFlags::NOCTTY).union(OFlags::NOFOLLOW);

fn open_in_directory(
    fs_types: &mut FsTypes,
    place: &OpenedPlace,
    offer: &RangeOffer,
) -> rustix::io::Result<OpenedFiles> {
    let shown = (place.src_path.join(&offer.src_name), place.dst_path.join(&offer.dst_shown));
    let (src_dir, dir) = (place.src.as_fd(), place.dst.try_clone().map_err(|_| Errno::MFILE)?);
    open_both(fs_types, (src_dir, false), dir, shown, offer)
}

fn open_operand(
    cx: &CopyContext<'_>,
    fs_types: &mut FsTypes,
    (rank, sender): (&RankContext, Sender),
    reader: &mut Reader<'_>,
    offer: &RangeOffer,
) -> rustix::io::Result<OpenedFiles> {
    let src = reader.bytes().ok_or(Errno::PROTO)?;
    let above = reader.bytes().ok_or(Errno::PROTO)?;
    let id = reader.id().ok_or(Errno::PROTO)?;
    let dir = open_for_search(CWD, &c_name(above)?)?;
    let found = FileId::of(&fstat(&dir)?);
    rank.devices.check(found, id, sender, || is_on_fs_of_one_host(dir.as_fd()))?;
    let path = |bytes| Path::new(OsStr::from_bytes(bytes));
    let dst_shown = join(path(above), OsStr::from_bytes(offer.dst_shown.to_bytes()));
    let follows = cx.options.follow.follows(true);
    open_both(fs_types, (CWD, follows), dir, (path(src).to_owned(), dst_shown), offer)
}

fn open_both(
    fs_types: &mut FsTypes,
    (src_dir, follows): (BorrowedFd<'_>, bool),
    dir: OwnedFd,
    shown: (std::path::PathBuf, std::path::PathBuf),
    offer: &RangeOffer,
) -> rustix::io::Result<OpenedFiles> {
    let name: &CStr = &offer.src_name;
    let src_place = Place::new(src_dir, name, DisplayPath::Operand(&shown.0), Trust::PreExisting);
    let src = open_regular(fs_types, &src_place, follows).ok_or(Errno::STALE)?;
    let dst_name = (dir.as_fd(), &*offer.dst_name);
    let dst = open_listed(fs_types, fs_type_of(dir.as_fd()), dst_name, WRITE);
    let (dst, dst_stat) = dst.ok_or(Errno::STALE)?;
    Ok(OpenedFiles { src: src.fd, src_stat: src.stat, dst, dst_stat, dir, shown })
}
