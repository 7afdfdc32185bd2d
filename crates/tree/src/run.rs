//! What all directories of one run share, and what each worker has for itself.

use std::num::NonZeroUsize;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Once, OnceLock};
use std::time::{Duration, Instant};

use engines::sys::close;
use rustix::fs::{Mode, Stat};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::activity::Station;
use crate::backup::{Numbers, Own};
use crate::began::Began;
use crate::choice;
use crate::contents::Unfinished;
use crate::diagnostic::{Action, Diagnostic, Severity};
use crate::durable::{Remainder, Unsynced};
use crate::extents;
use crate::identity::{FileId, ctime};
use crate::links::{Links, Reached, Tops};
use crate::listing;
use crate::measured::{End, Measured};
use crate::observer::{Announcement, Observer};
use crate::open::FileSystem;
use crate::options::Options;
use crate::order::{Order, Owed};
use crate::pace::{Crew, Turn};
use crate::page_cache::Held;
use crate::place::Place;
use crate::receipt::Receipt;
use crate::region::Regions;
use crate::rehearsal::Rehearsal;
use crate::remains::Remains;
use crate::routes::Routes;
use crate::standing::Standing;
use crate::throttle::Throttle;
use crate::umask::umask;
use crate::writing::Writing;

/// Shared by reference among all workers of a run.
pub(crate) struct Run<'r> {
    pub(crate) options: &'r Options,
    pub(crate) observer: &'r dyn Observer,
    /// The permissions that new files do not get.
    pub(crate) umask: Mode,
    pub(crate) euid: u32,
    egid: u32,
    began: Began,
    begun: Instant,
    pub(crate) standing: Standing,
    pub(crate) remains: Remains,
    pub(crate) links: Links,
    pub(crate) tops: Tops,
    pub(crate) own: Own,
    pub(crate) numbers: Numbers,
    pub(crate) writing: Writing,
    pub(crate) regions: Regions,
    pub(crate) remainder: Remainder,
    pub(crate) throttle: Option<Throttle>,
    pub(crate) measured: Measured,
    /// Nothing is to be made.
    pub(crate) rehearsal: Option<Rehearsal>,
    /// For messages about operands that are copied together.
    pub(crate) order: Order,
    in_earnest: Once,
    jobs: OnceLock<usize>,
    failures: AtomicU64,
}

impl<'r> Run<'r> {
    pub(crate) fn new(options: &'r Options, observer: &'r dyn Observer) -> Run<'r> {
        let began = Began::now();
        Run {
            options,
            observer,
            umask: umask(),
            euid: rustix::process::geteuid().as_raw(),
            egid: rustix::process::getegid().as_raw(),
            began,
            begun: Instant::now(),
            standing: Standing::new(began),
            remains: Remains::default(),
            links: Links::default(),
            tops: Tops::default(),
            own: Own::default(),
            numbers: Numbers::default(),
            writing: Writing::default(),
            regions: Regions::default(),
            remainder: Remainder::default(),
            rehearsal: options.dry_run.then(Rehearsal::default),
            throttle: options.limit_rate.map(Throttle::new),
            measured: Measured::default(),
            order: Order::default(),
            in_earnest: Once::new(),
            jobs: OnceLock::new(),
            failures: AtomicU64::new(0),
        }
    }

    /// Tells of `diagnostic` and counts it.
    pub(crate) fn report(&self, diagnostic: Diagnostic) {
        self.count(&diagnostic);
        self.order.tell(self.observer, diagnostic);
    }

    /// The same for what was yet to be said of a file.
    pub(crate) fn report_owed(&self, owed: Owed, diagnostics: Vec<Diagnostic>) {
        diagnostics.iter().for_each(|diagnostic| self.count(diagnostic));
        self.order.settle(self.observer, owed, diagnostics);
    }

    fn count(&self, diagnostic: &Diagnostic) {
        if diagnostic.severity() == Severity::Failure {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The user has said no, which is a failure without a message.
    pub(crate) fn declined(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts failures that another run has told of.
    pub(crate) fn add_failures(&self, failures: u64) {
        self.failures.fetch_add(failures, Ordering::Relaxed);
    }

    /// The number of failures so far.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Tells that the copy may take longer than an instant from now on.
    pub(crate) fn begin_in_earnest(&self) {
        self.in_earnest.call_once(|| self.observer.begins_in_earnest());
    }

    /// Whether that was told.
    pub(crate) fn is_in_earnest(&self) -> bool {
        self.in_earnest.is_completed()
    }

    /// How long it has lasted.
    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Whether somebody wants to know which way each file's data went.
    pub(crate) fn keeps_attempts(&self) -> bool {
        self.options.debug || self.observer.keeps_receipts()
    }

    /// How many workers may copy at once. To count processors takes as long as to copy some files, so
    /// that is left until there is work for several.
    pub(crate) fn jobs(&self) -> usize {
        *self.jobs.get_or_init(|| self.options.jobs.unwrap_or_else(processors).get())
    }

    /// How many workers share a tree, or many operands.
    pub(crate) fn crew(&self) -> Crew {
        Crew::new(processors().get(), self.options.jobs.map(NonZeroUsize::get))
    }

    /// Tells of what `tell` makes, when somebody wants to hear it.
    pub(crate) fn announce(&self, tell: impl FnOnce() -> Announcement) {
        if self.options.verbose {
            self.observer.announce(tell());
        }
    }

    /// Whether a failed chown is a surprise: root may give files away.
    pub(crate) fn is_root(&self) -> bool {
        self.euid == 0
    }

    /// Whether the inode belongs to the user who copies.
    pub(crate) fn is_mine(&self, stat: &Stat) -> bool {
        stat.st_uid == self.euid
    }

    /// Whether a file that this run makes is of the inode's owner and group without further ado. A
    /// directory may give its own group to what is made in it; that is seen to later.
    pub(crate) fn is_own(&self, stat: &Stat) -> bool {
        (stat.st_uid, stat.st_gid) == (self.euid, self.egid)
    }

    /// Whether the inode came, or was renamed, after this run began.
    pub(crate) fn is_younger(&self, stat: &Stat) -> bool {
        self.began.is_before(ctime(stat))
    }

    /// Whether a symbolic link belongs to somebody whom this run need not distrust.
    pub(crate) fn trusts_owner(&self, stat: &Stat) -> bool {
        stat.st_uid == 0 || stat.st_uid == self.euid
    }
}

/// The diagnostic for a call on the file at `place`.
pub(crate) fn failed<'p>(
    action: Action,
    place: &'p Place<'p>,
) -> impl FnOnce(Errno) -> Diagnostic + use<'p> {
    move |errno| Diagnostic::Failed { action, path: place.path(), errno }
}

/// Descriptors for all but files and directories that are copied: standard streams, operands.
pub(crate) const OTHER_DESCRIPTORS: u64 = 20;

/// Who may have more of them is not asked how many are taken, which takes 20 microseconds.
const FEW_DESCRIPTORS: u64 = 1024;

/// How many descriptors the process may have, but for those that whoever began it, or has it copy, keeps
/// open beyond [`OTHER_DESCRIPTORS`].
pub(crate) fn descriptors() -> u64 {
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    if allowed > FEW_DESCRIPTORS {
        return allowed;
    }
    // Where that cannot be read it shows when one cannot be had.
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, |open| open.count() as u64);
    allowed.saturating_sub(open.saturating_sub(OTHER_DESCRIPTORS))
}

fn processors() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// What one worker keeps from file to file.
pub(crate) struct Worker {
    pairs: Vec<(FileId, Routes)>,
    /// File systems by device number, and the numbers that statfs(2) gives them.
    kinds: Vec<(u64, Option<u64>)>,
    /// For looking at data. Empty until that is done: most copies never do.
    buffer: Vec<u8>,
    /// For listing directories.
    pub(crate) listing: listing::Buffer,
    /// All other workers have something to do.
    pub(crate) others_busy: bool,
    /// Its place among other workers, of whom not all may be at work.
    pub(crate) turn: Turn,
    unsynced: Unsynced,
    /// The last entry was another name of what had been copied before.
    pub(crate) links_again: bool,
    /// Where that was.
    pub(crate) reached: Reached,
    /// How many small files it makes before it fills the first.
    pub(crate) files_at_once: usize,
    /// The files before shared their blocks in an instant.
    pub(crate) shares_at_once: bool,
    /// Entries met so far.
    pub(crate) entries: u64,
    /// Bytes of data copied so far, and how many of them were moved, not shared.
    pub(crate) data_bytes: u64,
    pub(crate) moved_bytes: u64,
    /// What came of the data of the file at hand, where that failed and receipts are kept.
    pub(crate) unfinished: Option<Unfinished>,
    /// Copies that are still in the page cache, where they are not to stay.
    pub(crate) held: Held,
    /// Where it shows what it does.
    pub(crate) station: Station,
}

/// Bytes of a worker's buffer.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;

impl Worker {
    /// The first worker of a run, or one who joins it.
    pub(crate) fn new(run: &Run<'_>) -> Worker {
        Worker {
            pairs: Vec::new(),
            kinds: Vec::new(),
            buffer: Vec::new(),
            listing: listing::Buffer::default(),
            others_busy: false,
            turn: Turn::default(),
            unsynced: Unsynced::default(),
            links_again: false,
            reached: Reached::default(),
            files_at_once: 1,
            shares_at_once: false,
            entries: 0,
            data_bytes: 0,
            moved_bytes: 0,
            unfinished: None,
            held: Held::default(),
            station: Station::new(run.observer.activity()),
        }
    }

    /// Closes a destination that is done with, once it is on the medium if it has to be.
    pub(crate) fn close(
        &mut self,
        run: &Run<'_>,
        fd: OwnedFd,
        place: &Place<'_>,
    ) -> Result<(), Diagnostic> {
        if !run.options.durable {
            return close(fd).map_err(failed(Action::Close, place));
        }
        self.unsynced.add(run, fd, place.path());
        Ok(())
    }

    /// Tells what became of an entry, once that is on the medium if it has to be.
    pub(crate) fn finish(&mut self, run: &Run<'_>, receipt: Receipt) {
        if let Some(receipt) = self.unsynced.keep(receipt) {
            run.observer.finished(receipt);
        }
    }

    /// Waits for the files that this worker has written, if they have become many.
    pub(crate) fn sync_many(&mut self, run: &Run<'_>) {
        self.unsynced.sync_many(run);
    }

    /// Sees to the files that this worker has kept: those that are not to stay in the page cache, and
    /// those that have to be on the medium.
    pub(crate) fn release(&mut self, run: &Run<'_>) {
        self.held.drop_all(run);
        self.sync(run);
    }

    /// Waits until all files that this worker has written are on the medium.
    pub(crate) fn sync(&mut self, run: &Run<'_>) {
        self.unsynced.sync(run);
    }

    /// Whether what the file system of `fd`, which is on the device `dev`, says of lengths and holes
    /// is to be believed.
    pub(crate) fn is_honest(&mut self, fd: BorrowedFd<'_>, dev: u64) -> bool {
        self.file_system(fd, dev).is_some_and(extents::is_honest)
    }

    /// What is known by now of the file system that a file was seen on.
    pub(crate) fn known(&self, seen: &Stat) -> FileSystem {
        match self.known_kind(FileId::of(seen).dev) {
            Some(Some(kind)) if extents::is_honest(kind) => FileSystem::Honest,
            _ => FileSystem::Any,
        }
    }

    fn file_system(&mut self, fd: BorrowedFd<'_>, dev: u64) -> Option<u64> {
        self.known_kind(dev).unwrap_or_else(|| {
            let kind = extents::file_system(fd);
            self.kinds.push((dev, kind));
            kind
        })
    }

    fn known_kind(&self, dev: u64) -> Option<Option<u64>> {
        self.kinds.iter().find(|(known, _)| *known == dev).map(|(_, kind)| *kind)
    }

    /// The file `fd`, which is on the device `dev`, as one end of a copy.
    pub(crate) fn end<'f>(&mut self, fd: BorrowedFd<'f>, dev: u64) -> End<'f> {
        End { fd, dev, kind: self.file_system(fd, dev) }
    }

    /// The routes from one file system to the other, the buffer, and the place among other workers.
    pub(crate) fn routes(
        &mut self,
        src: End<'_>,
        dst: End<'_>,
        options: &Options,
    ) -> (&mut Routes, &mut Vec<u8>, &mut Turn) {
        // Any two numbers that belong together; there are never more than a handful of pairs.
        let key = FileId { dev: src.dev, ino: dst.dev };
        let at = match self.pairs.iter().position(|(pair, _)| *pair == key) {
            Some(at) => at,
            None => {
                let ways = choice::ways(options, src.kind, dst.kind);
                self.pairs.push((key, Routes::new(options, ways)));
                self.pairs.len() - 1
            }
        };
        (&mut self.pairs[at].1, &mut self.buffer, &mut self.turn)
    }
}
