//! The partners of a copy: other processes that copy the same tree.
//!
//! [`Partners`] is what a copy asks of them. What they send is in the [`Inbox`]. A copy without partners
//! has [`Alone`] in their place: it is never asked for names, and shares no file.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rustix::io;

use super::shared_file::{Answer, RangeBytes, SharedFiles};
use crate::fs::FileId;
use crate::lock::lock;

/// What a copy asks of its partners. Any worker calls it. Only [`start`](Partners::start),
/// [`first_copy`](Partners::first_copy), [`claim`](Partners::claim), [`lock`](Partners::lock) and
/// [`finish`](Partners::finish) wait.
pub trait Partners: Send + Sync {
    /// The time of the start is taken, which decides what existed before. The process that has the
    /// operands waits for the others. Returns whether the copy can start.
    fn start(&self) -> bool;

    /// How many partners wait for names from this process. Read after each entry.
    fn waiting(&self) -> usize;

    /// How many of the names of `surplus` are worth giving to the next of them.
    fn names_to_give(&self, surplus: Surplus) -> usize;

    /// Gives `work` to a partner that waits. It comes back with `number` as [`Event::Returned`] or
    /// [`Event::NotTaken`]. `home` is the process that reads the directory, if that is not this one.
    fn give(&self, number: u64, home: Option<u32>, work: Vec<u8>);

    /// How much the workers of this process have to do from now on.
    fn tell(&self, load: Load);

    /// What became of a share.
    fn end_share(&self, share: u64, end: ShareEnd);

    /// The copy of a source that a partner has made, with the name that it told. Waits while one makes
    /// it. `None` means that the caller makes it and calls [`copied`](Partners::copied).
    fn first_copy(&self, inode: FileId) -> Option<Vec<u8>>;

    /// The source has a copy, of which `name` returns the name; `None` if it could not be copied.
    fn copied(&self, inode: FileId, name: &dyn Fn() -> Option<Vec<u8>>);

    /// The lengths of the ranges of a file of `file_bytes` in stripes of `stripe_bytes`. `None` if there
    /// is no partner.
    fn range_bytes(&self, file_bytes: u64, stripe_bytes: u64) -> Option<RangeBytes>;

    /// Asks the process `owner` for a range of a file that it owns. Waits for the answer
    /// ([`Inbox::claim`]).
    fn claim(&self, owner: u32, claim: Vec<u8>) -> Vec<u8>;

    /// Waits until no partner writes to the file, and locks it against them. Returns whether it is
    /// locked, and so has to be unlocked with flock(2).
    ///
    /// # Errors
    /// EINTR if the copy was interrupted.
    fn lock(&self, file: BorrowedFd<'_>) -> io::Result<bool>;

    /// The operands are copied. Waits until the partners have ended, and returns the number of their
    /// failures.
    fn finish(&self) -> u64;
}

/// How much the workers of a process have to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// A worker is busy again.
    Busy,
    /// A worker looked for names to give, and had none.
    NoSurplus,
    /// No worker has anything to do.
    Idle,
}

/// What became of a share.
#[derive(Debug)]
pub enum ShareEnd {
    /// Everything of it is copied.
    Copied,
    /// The directory of `work` could not be opened. The process that gave it copies the names itself.
    Refused(Vec<u8>),
    /// Another attempt may succeed, and another partner may take the work.
    RefusedForNow(Vec<u8>),
    /// This process cannot open what the operands name, and takes no further share.
    TakesNone(Vec<u8>),
}

/// Names of a directory that could be given to a partner.
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

/// A copy without partners.
pub(crate) struct Alone;

impl Partners for Alone {
    fn start(&self) -> bool {
        true
    }

    fn waiting(&self) -> usize {
        0
    }

    fn names_to_give(&self, _: Surplus) -> usize {
        0
    }

    fn give(&self, _: u64, _: Option<u32>, _: Vec<u8>) {}

    fn tell(&self, _: Load) {}

    fn end_share(&self, _: u64, _: ShareEnd) {}

    fn first_copy(&self, _: FileId) -> Option<Vec<u8>> {
        None
    }

    fn copied(&self, _: FileId, _: &dyn Fn() -> Option<Vec<u8>>) {}

    fn range_bytes(&self, _: u64, _: u64) -> Option<RangeBytes> {
        None
    }

    fn claim(&self, _: u32, _: Vec<u8>) -> Vec<u8> {
        Vec::new()
    }

    fn lock(&self, _: BorrowedFd<'_>) -> io::Result<bool> {
        Ok(false)
    }

    fn finish(&self) -> u64 {
        0
    }
}

/// One of several processes that copy a tree.
#[derive(Clone)]
pub struct Partnership {
    /// The number of this process, from 0. Process 0 has the operands.
    pub number: u32,
    /// The others.
    pub partners: Arc<dyn Partners>,
    /// What they send.
    pub inbox: Arc<Inbox>,
    /// Differs between hosts: the boot id of the kernel. Empty if it is unknown.
    pub boot_id: Vec<u8>,
}

/// What a partner has sent, or what was the answer to something sent.
#[derive(Debug)]
pub enum Event {
    /// Work for this process.
    Share {
        /// The number of the share, for [`Partners::end_share`].
        share: u64,
        /// The process that reads the directory.
        home: u32,
        /// What [`Partners::give`] was called with.
        work: Vec<u8>,
    },
    /// Everything of the work that was given with this number is copied.
    Returned(u64),
    /// No partner has taken the work that was given with this number.
    NotTaken {
        /// The number.
        number: u64,
        /// The work.
        work: Vec<u8>,
        /// A partner could not open it. Otherwise none waited any more, or one takes no work at all.
        refused: bool,
    },
    /// All processes are done.
    End,
}

/// Called after each event.
pub(crate) type Waker = Arc<dyn Fn() + Send + Sync>;

/// What arrives for the workers of a process.
#[derive(Default)]
pub struct Inbox {
    events: Mutex<VecDeque<Event>>,
    waker: Mutex<Option<Waker>>,
    pub(crate) cancelled: AtomicBool,
    pub(crate) files: SharedFiles,
}

impl Inbox {
    /// Adds an event. It is for the first worker that has nothing else to do.
    pub fn push(&self, event: Event) {
        lock(&self.events).push_back(event);
        self.wake();
    }

    /// The process `from` has called [`Partners::claim`]. `answer` is called now or later, by any
    /// thread.
    pub fn claim(&self, from: u32, claim: &[u8], answer: Answer) {
        self.files.claim(from, claim, answer);
    }

    /// The copy is to end early.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether [`cancel`](Inbox::cancel) was called.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    pub(crate) fn wake(&self) {
        let waker = lock(&self.waker).clone();
        if let Some(wake) = waker {
            wake();
        }
    }

    /// Takes the first event that `is_wanted`.
    pub(crate) fn take_if(&self, is_wanted: impl Fn(&Event) -> bool) -> Option<Event> {
        let mut events = lock(&self.events);
        let at = events.iter().position(is_wanted)?;
        events.remove(at)
    }

    pub(crate) fn set_waker(&self, waker: Option<Waker>) {
        *lock(&self.waker) = waker;
    }
}

/// Names that a partner has given. Dropped when everything below them is copied.
pub(crate) struct ReceivedShare {
    pub(crate) partners: Arc<dyn Partners>,
    pub(crate) share: u64,
    /// The process that reads the directory.
    pub(crate) home: u32,
}

impl Drop for ReceivedShare {
    fn drop(&mut self) {
        self.partners.end_share(self.share, ShareEnd::Copied);
    }
}
