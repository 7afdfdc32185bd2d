//! What all directories of one run share, and what each worker has for itself.

use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use engines::{Chain, Variant};
use rustix::fs::{Mode, Stat};
use rustix::io::Errno;

use crate::backup::Own;
use crate::began::Began;
use crate::diagnostic::{Action, Diagnostic, Severity};
use crate::extents;
use crate::identity::{FileId, ctime};
use crate::links::{Links, Tops};
use crate::listing;
use crate::observer::{Announcement, Observer};
use crate::options::{Options, Reflink, Sparse};
use crate::place::Place;
use crate::standing::Standing;

/// Shared by reference among all workers of a run.
pub(crate) struct Run<'r> {
    pub(crate) options: &'r Options,
    pub(crate) observer: &'r dyn Observer,
    /// The permissions that new files do not get.
    pub(crate) umask: Mode,
    euid: u32,
    began: Began,
    pub(crate) standing: Standing,
    pub(crate) links: Links,
    pub(crate) tops: Tops,
    pub(crate) own: Own,
    failures: AtomicU64,
}

impl<'r> Run<'r> {
    pub(crate) fn new(options: &'r Options, observer: &'r dyn Observer) -> Run<'r> {
        let began = Began::now();
        Run {
            options,
            observer,
            umask: read_umask(),
            euid: rustix::process::geteuid().as_raw(),
            began,
            standing: Standing::new(began),
            links: Links::default(),
            tops: Tops::default(),
            own: Own::default(),
            failures: AtomicU64::new(0),
        }
    }

    /// Tells of `diagnostic` and counts it.
    pub(crate) fn report(&self, diagnostic: Diagnostic) {
        if diagnostic.severity() == Severity::Failure {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        self.observer.diagnose(diagnostic);
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

    /// Whether the inode came, or was renamed, after this run began.
    pub(crate) fn is_younger(&self, stat: &Stat) -> bool {
        self.began.is_before(ctime(stat))
    }

    /// Whether a symbolic link belongs to somebody whom this run need not distrust.
    pub(crate) fn trusts_owner(&self, stat: &Stat) -> bool {
        stat.st_uid == 0 || stat.st_uid == self.euid
    }
}

/// The process's umask can only be read by setting it. For that instant it is the strictest one, so
/// that a file made meanwhile by another thread is too private rather than too public.
fn read_umask() -> Mode {
    let umask = rustix::process::umask(Mode::from_raw_mode(0o077));
    rustix::process::umask(umask);
    umask
}

/// The diagnostic for a call on the file at `place`.
pub(crate) fn failed<'p>(
    action: Action,
    place: &'p Place<'p>,
) -> impl FnOnce(Errno) -> Diagnostic + use<'p> {
    move |errno| Diagnostic::Failed { action, path: place.path(), errno }
}

/// What one worker keeps from file to file.
pub(crate) struct Worker {
    pairs: Vec<(FileId, PairChains)>,
    /// File systems by device number, and whether their lengths and holes can be believed.
    honest: Vec<(u64, bool)>,
    /// For looking at data.
    buffer: Vec<u8>,
    /// For listing directories.
    pub(crate) listing: Vec<MaybeUninit<u8>>,
}

/// The chains for one pair of file systems; they remember what was refused there.
pub(crate) struct PairChains {
    /// Sharing blocks; `None` once the file systems have said that they cannot, or when it is
    /// not wanted.
    pub(crate) clone: Option<Chain>,
    /// The way of data that is worth telling apart from holes only by the file system.
    pub(crate) data: Chain,
    /// Through user memory.
    pub(crate) plain: Chain,
    /// Whether `data` may leave the copying to the kernel.
    pub(crate) offloads: bool,
}

/// Bytes of a worker's buffer.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;

impl Worker {
    pub(crate) fn new() -> Worker {
        Worker {
            pairs: Vec::new(),
            honest: Vec::new(),
            buffer: vec![0; BUFFER_BYTES],
            listing: listing::buffer(),
        }
    }

    /// Whether what the file system of `fd`, which is on the device `dev`, says of lengths and holes
    /// is to be believed.
    pub(crate) fn is_honest(&mut self, fd: BorrowedFd<'_>, dev: u64) -> bool {
        if let Some((_, honest)) = self.honest.iter().find(|(known, _)| *known == dev) {
            return *honest;
        }
        let honest = extents::are_honest(fd);
        self.honest.push((dev, honest));
        honest
    }

    /// The chains from file system `src_dev` to `dst_dev`, and the buffer.
    pub(crate) fn chains(
        &mut self,
        src_dev: u64,
        dst_dev: u64,
        options: &Options,
    ) -> (&mut PairChains, &mut [u8]) {
        // Any two numbers that belong together; there are never more than a handful of pairs.
        let key = FileId { dev: src_dev, ino: dst_dev };
        let at = match self.pairs.iter().position(|(pair, _)| *pair == key) {
            Some(at) => at,
            None => {
                self.pairs.push((key, PairChains::new(options)));
                self.pairs.len() - 1
            }
        };
        (&mut self.pairs[at].1, &mut self.buffer)
    }
}

impl PairChains {
    fn new(options: &Options) -> PairChains {
        let variant = |text: &str| text.parse::<Variant>().expect("the engine is in the table");
        let offloads = options.sparse != Sparse::Never && options.reflink != Reflink::Never;
        let clones = options.reflink != Reflink::Never && options.sparse == Sparse::Auto;
        let plain = || Chain::exactly([variant("read_write:256K")]);
        PairChains {
            clone: clones.then(|| Chain::exactly([variant("reflink")])),
            data: if offloads {
                Chain::exactly([variant("copy_file_range"), variant("read_write:256K")])
            } else {
                plain()
            },
            plain: plain(),
            offloads,
        }
    }
}
