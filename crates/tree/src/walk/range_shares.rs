//! Parts in the copy of large files that pass from one process to another.
//!
//! A message names the directories as for a share of names ([`super::partner_shares`]), and both files
//! with their identities. The receiver opens them without following symbolic links, and takes no part
//! if one is another file, or if the source has changed.

use std::any::Any;
use std::cell::Cell;
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, OFlags, Stat, fstat};
use rustix::io::{self, Errno, fcntl_dupfd_cloexec};

use super::contexts::Worker;
use super::opened_places::{Directories, Refused};
use super::partner_shares::{directory_message, is_given};
use super::tree_walk::TreeWalk;
use super::work_pool::Incoming;
use crate::copy::context::CopyContext;
use crate::copy::directory_pair::DirectoryPair;
use crate::copy::range_owner;
use crate::data::context::{Files, Shared};
use crate::entry::{Operand, RangePlace, open_regular};
use crate::fs::{
    DisplayPath, FileId, FsTypes, Place, Trust, c_name, file_bytes, fs_type_of, is_component, join,
    open_for_search, open_listed, split,
};
use crate::report::Diagnostic;
use crate::shared::messages::{FilePlace, RangeOffer, SourceVersion};
use crate::shared::{LOCAL, Load, Offered, ReceivedShare};

/// A directory that is being copied.
pub(super) struct InDirectory<'p> {
    pub(super) cx: &'p CopyContext<'p>,
    pub(super) pair: &'p Arc<DirectoryPair>,
}

impl RangePlace for InDirectory<'_> {
    fn message(&self) -> Option<FilePlace> {
        let message = is_given(self.pair).then(|| directory_message(self.cx, self.pair))??;
        Some(FilePlace::Directory(message))
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
    fn message(&self) -> Option<FilePlace> {
        let partners = self.cx.partners();
        let dst = c_name(self.operand.dst.as_os_str().as_bytes()).ok()?;
        Some(FilePlace::Operand {
            boot_id: partners.boot_id.clone(),
            dst_dir: split(&dst).0.into(),
            dst_dir_id: partners.devices.common(FileId::of(&fstat(self.dst_dir).ok()?)),
        })
    }

    fn keep(&self) -> Box<dyn Any + Send + Sync> {
        // The run waits for all parts at its end.
        Box::new(())
    }
}

/// The files of an offer, open on this process.
struct OpenedFiles {
    src: OwnedFd,
    src_stat: Stat,
    dst: OwnedFd,
    dst_stat: Stat,
    /// Of the copy.
    dir: OwnedFd,
    shown: (PathBuf, PathBuf),
}

impl TreeWalk<'_> {
    /// Takes part in the copy of a file that a partner has offered. If the files cannot be opened,
    /// the offer is handed back.
    pub(super) fn help_with_file(
        &self,
        worker: &mut Worker,
        incoming: Incoming,
        offer: &RangeOffer,
    ) {
        let partners = self.cx.partners();
        let opened = match self.open_files(&mut worker.copy.data.fs_types, offer) {
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
                let offered = Offered { file: None, kept: Box::new(received.clone()) };
                partners.offer(offer.owner, work.clone(), offered);
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
            src_place: &place(&offer.src_name, shown.0.as_path()),
            dst: dst.as_fd(),
            dst_stat,
            dst_place: &place(offer.dst_shown.name(), shown.1.as_path()),
            new: true,
            atomic: offer.atomic,
            opened_here: true,
            shared: Some(Shared { owned: None, look: &look }),
        };
        let data = &mut worker.copy.data;
        range_owner::help(self.cx, data, offer, &files, &has_more);
    }

    fn open_files(
        &self,
        fs_types: &mut FsTypes,
        offer: &RangeOffer,
    ) -> Result<OpenedFiles, Refused> {
        let partners = self.cx.partners();
        let (opened, sender) = match &offer.place {
            FilePlace::Directory(_) if !is_component(&offer.src_name) => {
                return Err(Refused::Directory);
            }
            FilePlace::Directory(message) => {
                let place = self.places.open(self.cx, message)?;
                let Directories { src, dst, src_path, dst_path } = &place.directories;
                let shown = (src_path.join(&offer.src_name), dst_path.join(offer.dst_shown.name()));
                let dst = fcntl_dupfd_cloexec(dst, 0)?;
                let opened = open_both(fs_types, (src.as_fd(), false), dst, shown, offer);
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
            partners.check(opened.src.as_fd(), offer.src_id, sender)?;
            partners.check(opened.dst.as_fd(), offer.dst_id, sender)?;
            Ok(opened)
        });
        let opened = checked.map_err(|errno| refused(errno, offer))?;
        // An engine that finds the copy shorter than it is would cut off what partners write.
        let is_whole = file_bytes(&opened.dst_stat) >= offer.version.file_bytes;
        let is_same = SourceVersion::of(&opened.src_stat) == offer.version;
        if is_whole && is_same { Ok(opened) } else { Err(Refused::Directory) }
    }
}

/// What an error means for the offer. The file may be complete by now, and have another name.
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
    let (dst, dst_stat) = dst.ok_or(Errno::STALE)?;
    Ok(OpenedFiles { src: src.fd, src_stat: src.stat, dst, dst_stat, dir, shown })
}
