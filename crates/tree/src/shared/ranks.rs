//! The other ranks of a parallel job, as the copy of one rank sees them.
//!
//! A rank gives names away with [`Ranks::give`], and what other ranks give to it, or return, is in
//! its [`Inbox`]. A name travels as bytes: the operand, and from there one component after the other
//! with the device and inode number of each directory. A rank opens them one by one and compares.
//!
//! Device numbers differ between hosts. So each rank has a number for each device that it sees,
//! which is the same on all ranks that know the device ([`Devices`]).

use std::any::Any;
use std::collections::VecDeque;
use std::ffi::{CString, OsStr};
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
use super::shared_file::{RangeBytes, SharedFile, SharedFiles};
use super::wire::{Reader, Writer};
use crate::fs::fs_type::is_on_fs_of_one_host;
use crate::fs::{
    Anchor, DirPath, FileId, SEARCH, c_name, enter_for_search, is_component, join, open_for_search,
};
use crate::hash::HashMap;
use crate::lock::lock;

/// What one rank's copy asks of the others. Any worker calls it. Only [`ready`](Ranks::ready),
/// [`ask_link`](Ranks::ask_link), [`claim`](Ranks::claim) and [`finish`](Ranks::finish) wait.
pub trait Ranks: Send + Sync {
    /// This rank knows when the run started, which decides what existed before. On the rank that has
    /// the operands: waits for the others. Returns whether the job can start.
    fn ready(&self) -> bool;

    /// How many ranks wait for work from this one. Read after each entry.
    fn waiting(&self) -> usize;

    /// How many of the names of `surplus` are worth giving to the next of them.
    fn names_to_give(&self, surplus: Surplus) -> usize;

    /// Gives `work` to a rank that waits. It comes back with `number` as [`Event::Returned`] or
    /// [`Event::NotTaken`]. `home` is the rank that reads the directory, if that is not this one.
    fn give(&self, number: u64, home: Option<u32>, work: Vec<u8>);

    /// A worker looked for names to give, and had none.
    fn no_surplus(&self);

    /// No worker has anything to do.
    fn idle(&self);

    /// A worker has something to do again.
    fn resume(&self);

    /// Everything of the share is copied.
    fn done(&self, share: u64);

    /// The share could not be opened here. The rank that gave it copies the names, or if this rank
    /// may be able to take others of the directory, and cannot only `for_now`, gives them to another.
    fn hand_back(&self, share: u64, work: Vec<u8>, for_now: bool);

    /// This rank cannot open what the operands name, and takes no further share.
    fn give_up(&self);

    /// Whether another rank has copied the source with this number. Waits while one copies it. `None`
    /// means that the caller has to copy it and to call [`copied`](Ranks::copied).
    fn ask_link(&self, inode: FileId) -> Option<Vec<u8>>;

    /// The source is copied to `name`, or could not be copied.
    fn copied(&self, inode: FileId, name: Option<Vec<u8>>);

    /// The lengths of the ranges of a file of `file_bytes` in stripes of `stripe_bytes`. `None` if there
    /// is no other rank.
    fn range_bytes(&self, file_bytes: u64, stripe_bytes: u64) -> Option<RangeBytes>;

    /// Asks the rank `owner` for a range of a file that it owns. Waits for the answer, which the owner
    /// gives by [`grant`](Ranks::grant).
    fn claim(&self, owner: u32, claim: Vec<u8>) -> Vec<u8>;

    /// Answers the claim `ticket` of the rank `to`.
    fn grant(&self, to: u32, ticket: u64, grant: Vec<u8>);

    /// On the rank that has the operands: all of them are copied. Waits until the other ranks have
    /// ended, and returns the number of their failures.
    fn finish(&self) -> u64;
}

/// Names of a directory that could be given to another rank.
#[derive(Clone, Copy, Debug)]
pub struct Surplus {
    /// How many there are.
    pub names: usize,
    /// How many levels the directory is below the operand.
    pub depth: usize,
    /// Directories are among them, or the only one is a large file.
    pub heavy: bool,
    /// The directory has further names.
    pub endless: bool,
}

/// One rank of a job.
#[derive(Clone)]
pub struct Rank {
    /// Its number, from 0. Rank 0 has the operands.
    pub number: u32,
    /// The others.
    pub ranks: Arc<dyn Ranks>,
    /// What they send.
    pub inbox: Arc<Inbox>,
    /// Differs between hosts: the boot id of the kernel. Empty if it is unknown.
    pub boot_id: Vec<u8>,
}

/// What another rank has sent, or what was the answer to something sent.
#[derive(Debug)]
pub enum Event {
    /// Work for this rank.
    Share {
        /// Its number, for [`Ranks::done`] and [`Ranks::hand_back`].
        share: u64,
        /// The rank that reads the directory.
        home: u32,
        /// What [`Ranks::give`] was called with.
        work: Vec<u8>,
    },
    /// Everything of the work that was given with this number is copied.
    Returned(u64),
    /// No rank has taken the work that was given with this number.
    NotTaken {
        /// The number.
        number: u64,
        /// The work.
        work: Vec<u8>,
        /// A rank could not open it. Otherwise none waited any more, or one takes no work at all.
        refused: bool,
    },
    /// All ranks are done.
    End,
}

/// Events for the workers of a rank.
#[derive(Default)]
pub struct Inbox {
    events: Mutex<VecDeque<Event>>,
    /// Wakes workers that wait.
    waker: Mutex<Option<Arc<dyn Fn() + Send + Sync>>>,
    pub(crate) files: SharedFiles,
}

impl Inbox {
    /// Adds an event. It is for the first worker that has nothing else to do.
    pub fn push(&self, event: Event) {
        lock(&self.events).push_back(event);
        self.wake();
    }

    fn wake(&self) {
        let waker = lock(&self.waker).clone();
        if let Some(wake) = waker {
            wake();
        }
    }

    /// The rank `from` has called [`Ranks::claim`]. It is answered now or later, by
    /// [`Ranks::grant`] with this `ticket`.
    pub fn claim(&self, ranks: &dyn Ranks, (from, ticket): (u32, u64), claim: &[u8]) {
        if let Some(grant) = self.files.claim((from, ticket), claim) {
            ranks.grant(from, ticket, grant);
        }
    }

    pub(crate) fn take(&self) -> Option<Event> {
        lock(&self.events).pop_front()
    }

    /// Takes the first event that `is_wanted`.
    fn take_if(&self, is_wanted: impl Fn(&Event) -> bool) -> Option<Event> {
        let mut events = lock(&self.events);
        let at = events.iter().position(is_wanted)?;
        events.remove(at)
    }

    /// `waker` is called after each event from now on.
    pub(crate) fn set_waker(&self, waker: Option<Arc<dyn Fn() + Send + Sync>>) {
        *lock(&self.waker) = waker;
    }
}

/// Names that another rank has given. Dropped when everything below them is copied.
pub(crate) struct ReceivedShare {
    pub(crate) ranks: Arc<dyn Ranks>,
    pub(crate) share: u64,
    /// The rank that reads the directory.
    pub(crate) home: u32,
}

impl Drop for ReceivedShare {
    fn drop(&mut self) {
        self.ranks.done(self.share);
    }
}

/// How often to look whether other ranks have returned their parts in copies of files.
const OFFER_WAIT: Duration = Duration::from_millis(1);

/// What the copy of one rank knows of the job.
pub(crate) struct RankContext {
    pub(crate) number: u32,
    pub(crate) ranks: Arc<dyn Ranks>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) devices: Devices,
    boot_id: Vec<u8>,
    /// Destinations of operands and the directory that they are in, by their paths, for hard links to
    /// files below them. One of them is open.
    tops: Mutex<HashMap<Box<[u8]>, DirPath>>,
    next_given: AtomicU64,
    /// Parts in the copy of large files that other ranks have, by the number of the share.
    offers: Mutex<HashMap<u64, Offered>>,
    has_finished: AtomicBool,
    /// Attempts in a row to open an operand that failed in a way that may pass.
    passing_failures: AtomicU32,
}

/// How another rank opens the destination of an operand.
pub(crate) struct TopMessage<'m> {
    /// The directory that stays open: the destination itself, or the one that it is in.
    held: &'m [u8],
    held_id: FileId,
    /// The name of the destination in that directory, and its identity.
    inside: Option<(CString, FileId)>,
}

impl<'m> TopMessage<'m> {
    /// What [`RankContext::encode_top`] wrote.
    pub(crate) fn read(reader: &mut Reader<'m>) -> Option<TopMessage<'m>> {
        let (held, held_id) = (reader.bytes()?, reader.id()?);
        let inside = match reader.flag()? {
            true => Some((inner_name(reader)?, reader.id()?)),
            false => None,
        };
        Some(TopMessage { held, held_id, inside })
    }
}

/// A component, or the directory itself for operands such as `d/.`.
fn inner_name(reader: &mut Reader<'_>) -> Option<CString> {
    let name = CString::new(reader.bytes()?).ok()?;
    (is_component(&name) || name.as_c_str() == c".").then_some(name)
}

/// A part in the copy of a file that another rank has.
pub(crate) struct Offered {
    /// The file, if this rank owns it.
    pub(crate) file: Option<Arc<SharedFile>>,
    /// Is dropped when the part comes back: the directory of the file, or the share of which this is a
    /// part.
    #[expect(dead_code, reason = "it is kept, and dropped")]
    pub(crate) kept: Box<dyn Any + Send + Sync>,
}

impl RankContext {
    pub(crate) fn new(rank: Rank) -> RankContext {
        let Rank { number, ranks, inbox, boot_id } = rank;
        let devices = Devices { rank: number, known: Mutex::default() };
        let (tops, next_given) = (Mutex::default(), AtomicU64::new(0));
        let has_finished = AtomicBool::new(false);
        let (offers, passing_failures) = (Mutex::default(), AtomicU32::new(0));
        RankContext {
            number,
            ranks,
            inbox,
            devices,
            boot_id,
            tops,
            next_given,
            offers,
            has_finished,
            passing_failures,
        }
    }

    /// Counts an attempt to open an operand that failed in a way that may pass. Returns how many
    /// failed before it, since the last one that succeeded.
    pub(crate) fn passing_failures(&self) -> u32 {
        self.passing_failures.fetch_add(1, Ordering::Relaxed)
    }

    /// An operand was opened.
    pub(crate) fn forget_passing_failures(&self) {
        self.passing_failures.store(0, Ordering::Relaxed);
    }

    /// [`Ranks::finish`], the first time.
    pub(crate) fn finish(&self) -> Option<u64> {
        if self.has_finished.swap(true, Ordering::Relaxed) {
            return None;
        }
        // Of operands that are files: their copies have ended, and the other ranks will soon know.
        while self.has_offers() {
            self.ranks.no_surplus();
            sleep(OFFER_WAIT);
        }
        Some(self.ranks.finish())
    }

    /// Gives another rank a part in the copy of a large file. `work` says which.
    pub(crate) fn offer(&self, owner: u32, work: Vec<u8>, offered: Offered) {
        let number = self.next_given();
        offered.file.iter().for_each(|file| file.offered());
        lock(&self.offers).insert(number, offered);
        self.ranks.give(number, Some(owner), work);
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

    /// `copy` in bytes; `None` if other ranks cannot open its directory.
    pub(crate) fn encode_copy(&self, dir: &DirPath, name: &[u8], copy: FileId) -> Option<Vec<u8>> {
        let mut out = Writer::default();
        let levels: Vec<_> = dir.levels().collect();
        let (top, below) = levels.split_first()?;
        self.encode_host(&mut out);
        self.encode_top(&mut out, top)?;
        out.count(below.len());
        below.iter().for_each(|level| out.bytes(level.name()));
        out.bytes(name);
        out.id(self.devices.common(copy));
        Some(out.into_bytes())
    }

    /// The copy that [`encode_copy`](RankContext::encode_copy) described; `None` if it cannot be
    /// reached from here.
    pub(crate) fn decode_copy(&self, bytes: &[u8]) -> Option<FirstCopy> {
        let mut reader = Reader::new(bytes);
        let sender = self.decode_host(&mut reader)?;
        let mut dir = self.top_of_destination(&TopMessage::read(&mut reader)?, sender).ok()?;
        for _ in 0..reader.count()? {
            dir = dir.child(&reader.component()?, None);
        }
        let name = reader.component()?;
        let id = self.devices.own(reader.id()?)?;
        reader.is_at_end().then_some(FirstCopy { dir, name, id })
    }

    /// Tells another rank whether it is on the same host.
    pub(crate) fn encode_host(&self, out: &mut Writer) {
        out.bytes(&self.boot_id);
    }

    /// Where the rank is that has sent what [`encode_host`](RankContext::encode_host) wrote.
    pub(crate) fn decode_host(&self, reader: &mut Reader<'_>) -> Option<Sender> {
        let theirs = reader.bytes()?;
        let is_same = !theirs.is_empty() && theirs == self.boot_id;
        Some(if is_same { Sender::SameHost } else { Sender::OtherHost })
    }

    /// How another rank opens the destination `top` of an operand; `None` if it cannot.
    pub(crate) fn encode_top(&self, out: &mut Writer, top: &DirPath) -> Option<()> {
        let (held, inside) = match top.anchor()? {
            Anchor::Held(_) => (top, None),
            Anchor::In(held, name) => (held, Some(name)),
            // Which rank trusts the link depends on what each has seen.
            Anchor::ThroughLink(..) => return None,
        };
        let Some(Anchor::Held(_)) = held.anchor() else { return None };
        out.bytes(held.name());
        out.id(self.devices.common(held.id()?));
        out.flag(inside.is_some());
        if let Some(name) = inside {
            out.bytes(name.to_bytes());
            out.id(self.devices.common(top.id()?));
        }
        Some(())
    }

    /// The destination of an operand. The first time it is opened.
    ///
    /// # Errors
    /// As [`Devices::check`] and openat(2).
    pub(crate) fn top_of_destination(
        &self,
        top: &TopMessage<'_>,
        sender: Sender,
    ) -> io::Result<DirPath> {
        let path = Path::new(OsStr::from_bytes(top.held));
        let held = self.top(path, (top.held_id, sender), || {
            let fd = openat(CWD, &*c_name(top.held)?, SEARCH, Mode::empty())?;
            let fd = Arc::new(fd);
            Ok((fd.clone(), Anchor::Held(fd)))
        })?;
        let Some((name, id)) = &top.inside else { return Ok(held) };
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
            return self.devices.check(found, wanted, sender, is_local).map(|()| top.clone());
        }
        let (fd, anchor) = open()?;
        let found = FileId::of(&fstat(&fd)?);
        self.devices.check(found, wanted, sender, || is_on_fs_of_one_host(fd.as_fd()))?;
        let top = DirPath::top(path, Some(anchor), Some(found));
        lock(&self.tops).insert(name.into(), top.clone());
        Ok(top)
    }
}

/// Opens what [`RankContext::top_of_destination`] has returned with O_PATH.
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

/// Where the rank is that has sent a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    SameHost,
    /// Or it is not known where.
    OtherHost,
}

/// [`Devices::check`] has found a file system of this host alone, and the sender is on another.
pub(crate) const LOCAL: Errno = Errno::REMOTE;

/// The numbers of devices that all ranks have in common. The rank that is the first to see a device
/// numbers it; another rank learns the number with the first directory on that device that it is
/// told to open. Two ranks that come to a file system by two mounts of it may give it two numbers:
/// then they do not exchange work there, and link no names of one file.
pub(crate) struct Devices {
    rank: u32,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    common: HashMap<u64, u64>,
    own: HashMap<u64, u64>,
    numbered: u64,
}

impl Devices {
    /// `id` with the device number that all ranks have in common.
    pub(crate) fn common(&self, id: FileId) -> FileId {
        let mut known = lock(&self.known);
        if let Some(&dev) = known.common.get(&id.dev) {
            return FileId { dev, ino: id.ino };
        }
        // Unique among all ranks, for 2^32 devices of a rank.
        let dev = u64::from(self.rank) << 32 | known.numbered;
        known.numbered += 1;
        known.common.insert(id.dev, dev);
        known.own.insert(dev, id.dev);
        FileId { dev, ino: id.ino }
    }

    /// `id` with this rank's own device number; `None` if it has not seen the device.
    pub(crate) fn own(&self, id: FileId) -> Option<FileId> {
        lock(&self.known).own.get(&id.dev).map(|&dev| FileId { dev, ino: id.ino })
    }

    /// Whether the file `found` is the one that another rank calls `wanted`. Learns the number of a
    /// device that neither rank has told the other about. Inode numbers alone do not tell file systems
    /// apart: all ext4 file systems have a root of the same number. So a sender on another host cannot
    /// mean a file system of this host, which `is_local` tells.
    ///
    /// # Errors
    /// ESTALE if it is not, [`LOCAL`] if it cannot be.
    pub(crate) fn check(
        &self,
        found: FileId,
        wanted: FileId,
        sender: Sender,
        is_local: impl FnOnce() -> bool,
    ) -> io::Result<()> {
        let mut known = lock(&self.known);
        let (common, own) =
            (known.common.get(&found.dev).copied(), known.own.get(&wanted.dev).copied());
        let is_same_device = match (common, own) {
            (None, None) if sender == Sender::OtherHost && is_local() => return Err(LOCAL),
            (None, None) if found.ino == wanted.ino => {
                known.common.insert(found.dev, wanted.dev);
                known.own.insert(wanted.dev, found.dev);
                true
            }
            (common, _) => common == Some(wanted.dev),
        };
        if is_same_device && found.ino == wanted.ino { Ok(()) } else { Err(Errno::STALE) }
    }
}
