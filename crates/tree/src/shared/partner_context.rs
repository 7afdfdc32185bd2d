//! What a copy knows of its partners: which files are the same on their hosts, how they open a
//! directory, and what they have of large files.
//!
//! A name travels as bytes: the operand, and from there one component after the other with the device
//! and inode number of each directory. The receiver opens them one by one and compares.
//!
//! Device numbers differ between hosts. So each process has a number for each device that it sees,
//! which is the same for all processes that know the device ([`PartnerContext::common`]).

use std::any::Any;
use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{CWD, Mode, fstat, openat};
use rustix::io::{self, Errno};

use super::copied_inodes::FirstCopy;
use super::messages::{Component, CopyMessage, TopMessage, decode, encode};
use super::partners::{Alone, Event, Inbox, Load, Partners, Partnership, ShareEnd};
use super::shared_file::SharedFile;
use crate::fs::fs_type::is_on_fs_of_one_host;
use crate::fs::{
    Anchor, DirPath, FileId, SEARCH, c_name, enter_for_search, is_component, join, open_for_search,
};
use crate::hash::HashMap;
use crate::lock::lock;

/// How often to look whether partners have returned their parts in copies of files.
const OFFER_WAIT: Duration = Duration::from_millis(1);

/// What a copy knows of its partners. A copy without any has one, too.
pub(crate) struct PartnerContext {
    pub(crate) number: u32,
    pub(crate) others: Arc<dyn Partners>,
    pub(crate) inbox: Arc<Inbox>,
    /// The device numbers of this process, each with the one that all processes have in common: a handful at most.
    devices: Mutex<Vec<(u64, u64)>>,
    pub(crate) boot_id: Vec<u8>,
    /// Whether other processes copy the same tree. The walk alone asks that.
    pub(crate) exist: bool,
    /// Destinations of operands and the directory that they are in, by their paths, for hard links to
    /// files below them. One of them is open.
    tops: Mutex<HashMap<Box<[u8]>, DirPath>>,
    next_given: AtomicU64,
    /// Parts in the copy of large files that partners have, by the number of the share.
    offers: Mutex<HashMap<u64, Offered>>,
    has_finished: AtomicBool,
    /// Attempts in a row to open an operand that failed in a way that may pass.
    pub(crate) passing_failures: AtomicU32,
}

/// A part in the copy of a file that a partner has.
pub(crate) struct Offered {
    /// The file, if this process owns it.
    pub(crate) file: Option<Arc<SharedFile>>,
    /// Is dropped when the part comes back: the directory of the file, or the share of which this is a
    /// part.
    #[expect(dead_code, reason = "it is kept, and dropped")]
    pub(crate) kept: Kept,
}

/// What is only kept, and dropped.
pub(crate) type Kept = Arc<dyn Any + Send + Sync>;

impl PartnerContext {
    pub(crate) fn new(partnership: Partnership) -> PartnerContext {
        let Partnership { number, partners, inbox, boot_id } = partnership;
        PartnerContext {
            number,
            others: partners,
            inbox,
            devices: Mutex::default(),
            boot_id,
            exist: true,
            tops: Mutex::default(),
            next_given: AtomicU64::new(0),
            offers: Mutex::default(),
            has_finished: AtomicBool::new(false),
            passing_failures: AtomicU32::new(0),
        }
    }

    /// Of a copy without partners.
    pub(crate) fn alone() -> PartnerContext {
        let (inbox, boot_id) = (Arc::default(), Vec::new());
        let alone = Partnership { number: 0, partners: Arc::new(Alone), inbox, boot_id };
        PartnerContext { exist: false, ..PartnerContext::new(alone) }
    }

    /// [`Partners::finish`]; the second time there are no failures.
    pub(crate) fn finish(&self) -> u64 {
        if self.has_finished.swap(true, Ordering::Relaxed) {
            return 0;
        }
        // Of operands that are files: their copies have ended, and the partners will soon know.
        while self.has_offers() {
            // A helper may pass a part on to this process, which has no worker for it any more.
            while let Some(Event::Share { share, work, .. }) =
                self.inbox.take_if(|event| matches!(event, Event::Share { .. }))
            {
                self.others.end_share(share, ShareEnd::RefusedForNow(work));
            }
            self.others.tell(Load::NoSurplus);
            sleep(OFFER_WAIT);
        }
        self.others.finish()
    }

    /// Gives a partner a part in the copy of a large file. `work` says which.
    pub(crate) fn offer(&self, owner: u32, work: Vec<u8>, offered: Offered) {
        let number = self.next_given();
        offered.file.iter().for_each(|file| file.offered());
        lock(&self.offers).insert(number, offered);
        self.others.give(number, Some(owner), work);
    }

    /// Whether `event` is about a part in the copy of a file. If it came back, that is noted.
    pub(crate) fn is_about_offer(&self, event: &Event) -> bool {
        let (number, refused) = match event {
            Event::Returned(number) => (number, false),
            Event::NotTaken { number, refused, .. } => (number, *refused),
            Event::Share { .. } | Event::End => return false,
        };
        let Some(offered) = lock(&self.offers).remove(number) else { return false };
        offered.file.iter().for_each(|file| file.returned(refused));
        true
    }

    /// Notes which parts in copies of files have come back. Returns whether others have some.
    pub(crate) fn has_offers(&self) -> bool {
        while self.inbox.take_if(|event| self.is_about_offer(event)).is_some() {
            // A worker may wait for the directory to come back.
            self.inbox.wake();
        }
        !lock(&self.offers).is_empty()
    }

    /// A number for work that is given.
    pub(crate) fn next_given(&self) -> u64 {
        self.next_given.fetch_add(1, Ordering::Relaxed)
    }

    /// `copy` in bytes; `None` if partners cannot open its directory.
    pub(crate) fn encode_copy(&self, dir: &DirPath, name: &CStr, copy: FileId) -> Option<Vec<u8>> {
        let levels: Vec<_> = dir.levels().collect();
        let (top, below) = levels.split_first()?;
        let component = |level: &&DirPath| Some(Component::new(CString::new(level.name()).ok()?));
        Some(encode(&CopyMessage {
            boot_id: self.boot_id.clone(),
            top: self.top_message(top)?,
            levels: below.iter().map(component).collect::<Option<_>>()?,
            name: Component::new(name),
            id: self.common(copy),
        }))
    }

    /// The copy that [`encode_copy`](PartnerContext::encode_copy) described; `None` if it cannot be
    /// reached from here.
    pub(crate) fn decode_copy(&self, bytes: &[u8]) -> Option<FirstCopy> {
        let CopyMessage { boot_id, top, levels, name, id } = decode(bytes)?;
        let mut dir = self.top_of_destination(&top, self.sender(&boot_id)).ok()?;
        for level in levels {
            dir = dir.child(level.name(), None);
        }
        Some(FirstCopy { dir, name: name.name().into(), id: self.own(id)? })
    }

    /// Where the process is that has this boot id.
    pub(crate) fn sender(&self, boot_id: &[u8]) -> Sender {
        let is_same = !boot_id.is_empty() && boot_id == self.boot_id;
        if is_same { Sender::SameHost } else { Sender::OtherHost }
    }

    /// How a partner opens the destination `top` of an operand; `None` if it cannot.
    pub(crate) fn top_message(&self, top: &DirPath) -> Option<TopMessage> {
        let (held, inside) = match top.anchor()? {
            Anchor::Held(_) => (top, None),
            Anchor::In(held, name) => (held, Some((name.clone(), self.common(top.id()?)))),
            // Which process trusts the link depends on what each has seen.
            Anchor::ThroughLink(..) => return None,
        };
        let Some(Anchor::Held(_)) = held.anchor() else { return None };
        let held_id = self.common(held.id()?);
        Some(TopMessage { held: held.name().into(), held_id, inside })
    }

    /// The file that was opened, if a partner calls it `wanted`.
    ///
    /// # Errors
    /// As [`PartnerContext::check_id`] and fstat(2).
    pub(crate) fn check(
        &self,
        fd: BorrowedFd<'_>,
        wanted: FileId,
        sender: Sender,
    ) -> io::Result<FileId> {
        let found = FileId::of(&fstat(fd)?);
        self.check_id(found, wanted, sender, || is_on_fs_of_one_host(fd))?;
        Ok(found)
    }

    /// The destination of an operand. The first time it is opened.
    ///
    /// # Errors
    /// As [`PartnerContext::check_id`] and openat(2).
    pub(crate) fn top_of_destination(
        &self,
        top: &TopMessage,
        sender: Sender,
    ) -> io::Result<DirPath> {
        let path = Path::new(OsStr::from_bytes(&top.held));
        let held = self.top(path, (top.held_id, sender), || {
            let fd = openat(CWD, &*c_name(&top.held)?, SEARCH, Mode::empty())?;
            let fd = Arc::new(fd);
            Ok((fd.clone(), Anchor::Held(fd)))
        })?;
        let Some((name, id)) = &top.inside else { return Ok(held) };
        if !is_component(name) && name.as_c_str() != c"." {
            return Err(Errno::PROTO);
        }
        let path = join(path, OsStr::from_bytes(name.to_bytes()));
        // It does not stay open: there may be more operands than descriptors.
        self.top(&path, (*id, sender), || {
            let fd = enter_for_search(held_fd(&held)?, name)?;
            Ok((fd.into(), Anchor::In(held.clone(), name.clone())))
        })
    }

    /// The destination at `path`, which was opened before, or is now and has to be `wanted`.
    fn top(
        &self,
        path: &Path,
        (wanted, sender): (FileId, Sender),
        open: impl FnOnce() -> io::Result<(Arc<OwnedFd>, Anchor)>,
    ) -> io::Result<DirPath> {
        let name = path.as_os_str().as_bytes();
        if let Some(top) = lock(&self.tops).get(name) {
            let found = top.id().ok_or(Errno::STALE)?;
            // Its device has been learned.
            let is_local = || true;
            return self.check_id(found, wanted, sender, is_local).map(|()| top.clone());
        }
        let (fd, anchor) = open()?;
        let found = self.check(fd.as_fd(), wanted, sender)?;
        let top = DirPath::top(path, Some(anchor), Some(found));
        lock(&self.tops).insert(name.into(), top.clone());
        Ok(top)
    }
}

/// Opens what [`PartnerContext::top_of_destination`] has returned with O_PATH.
///
/// # Errors
/// As openat(2), and ESTALE if another directory has its name now.
pub(crate) fn open_top(top: &DirPath) -> io::Result<OwnedFd> {
    let Some(Anchor::In(held, name)) = top.anchor() else {
        return open_for_search(held_fd(top)?, c".");
    };
    let fd = enter_for_search(held_fd(held)?, name)?;
    let found = FileId::of(&fstat(&fd)?);
    if top.id() == Some(found) { Ok(fd) } else { Err(Errno::STALE) }
}

fn held_fd(top: &DirPath) -> io::Result<BorrowedFd<'_>> {
    match top.anchor() {
        Some(Anchor::Held(held)) => Ok(held.as_fd()),
        _ => Err(Errno::STALE),
    }
}

/// Where the process is that has sent a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    SameHost,
    /// Or it is not known where.
    OtherHost,
}

/// [`PartnerContext::check_id`] has found a file system of this host alone, and the sender is on another.
pub(crate) const LOCAL: Errno = Errno::REMOTE;

// The numbers of devices that all processes have in common. The process that is the first to see a device
// numbers it; another learns the number with the first directory on that device that it is
// told to open. Two processes that come to a file system by two mounts of it may give it two numbers:
// then they do not exchange work there, and link no names of one file.

impl PartnerContext {
    /// `id` with the device number that all processes have in common.
    pub(crate) fn common(&self, id: FileId) -> FileId {
        let mut known = lock(&self.devices);
        let dev = known.iter().find(|(own, _)| *own == id.dev).map(|(_, common)| *common);
        let dev = dev.unwrap_or_else(|| {
            // Unique among all processes, for 2^32 devices of each.
            let dev = u64::from(self.number) << 32 | known.len() as u64;
            known.push((id.dev, dev));
            dev
        });
        FileId { dev, ino: id.ino }
    }

    /// `id` with this process's own device number; `None` if it has not seen the device.
    pub(crate) fn own(&self, id: FileId) -> Option<FileId> {
        let known = lock(&self.devices);
        let own = known.iter().find(|(_, common)| *common == id.dev);
        own.map(|(dev, _)| FileId { dev: *dev, ino: id.ino })
    }

    /// Whether the file `found` is the one that a partner calls `wanted`. Learns the number of a
    /// device that neither process has told the other about. Inode numbers alone do not tell file systems
    /// apart: all ext4 file systems have a root of the same number. So a sender on another host cannot
    /// mean a file system of this host, which `is_local` tells.
    ///
    /// # Errors
    /// ESTALE if it is not, [`LOCAL`] if it cannot be.
    fn check_id(
        &self,
        found: FileId,
        wanted: FileId,
        sender: Sender,
        is_local: impl FnOnce() -> bool,
    ) -> io::Result<()> {
        let mut known = lock(&self.devices);
        let devices = (found.dev, wanted.dev);
        let is_new = |&(own, common): &(u64, u64)| own != devices.0 && common != devices.1;
        let are_new = known.iter().all(is_new);
        if are_new && sender == Sender::OtherHost && is_local() {
            return Err(LOCAL);
        }
        if found.ino != wanted.ino || !are_new && !known.contains(&devices) {
            return Err(Errno::STALE);
        }
        if are_new {
            known.push(devices);
        }
        Ok(())
    }
}
