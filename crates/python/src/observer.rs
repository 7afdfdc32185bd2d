//! The observer of a copy: it keeps what failed, and chooses entries as `shutil.copytree` does.

use std::collections::HashMap;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use haulage::Error;
use haulage::events::{Diagnostic, Errno, FileType, ProgressTracker, Receipt, Severity};
use rustix::fs::{lstat, stat};

use crate::callbacks::{Callbacks, Ignored};
use crate::failure::{Failure, Kind};

/// What the thread of the caller is told.
pub(crate) enum Event {
    /// A directory is entered: which of its entries are ignored? No answer comes after an exception.
    Entered(PathBuf, SyncSender<Ignored>),
    Finished(Box<Receipt>),
    /// The copy has ended.
    Ended,
}

/// The observer of one copy.
pub(crate) struct Observer {
    quit: AtomicBool,
    failures: Mutex<Vec<Failure>>,
    tracker: ProgressTracker,
    shows_progress: bool,
    keeps_receipts: bool,
    tree: Option<Tree>,
    /// To the thread of the caller, while it waits for the end of the copy.
    events: OnceLock<SyncSender<Event>>,
}

/// How entries of a tree are chosen.
pub(crate) struct Tree {
    pub(crate) src: PathBuf,
    pub(crate) dst: PathBuf,
    /// Symbolic links are followed.
    pub(crate) follows: bool,
    pub(crate) ignores_dangling: bool,
    /// The destination existed before, and may have entries.
    pub(crate) merges: bool,
    /// They may be those of a copy to continue.
    pub(crate) continues: bool,
    /// The ignored names of directories, once they are entered. `None` if nothing is ignored.
    pub(crate) ignored: Option<Mutex<HashMap<PathBuf, Ignored>>>,
}

impl Observer {
    /// The observer of a file, or of a tree.
    pub(crate) fn new(callbacks: &Callbacks, tree: Option<Tree>) -> Observer {
        let shows_progress = callbacks.progress.is_some();
        Observer {
            quit: AtomicBool::new(false),
            failures: Mutex::default(),
            tracker: match shows_progress {
                true => ProgressTracker::fine_grained(),
                false => ProgressTracker::default(),
            },
            shows_progress,
            keeps_receipts: callbacks.receipt.is_some(),
            tree,
            events: OnceLock::new(),
        }
    }

    /// Connects it with the thread of the caller. Called once.
    pub(crate) fn connect(&self, events: SyncSender<Event>) {
        let _ = self.events.set(events);
    }

    /// Makes the copy stop soon.
    pub(crate) fn quit(&self) {
        self.quit.store(true, Ordering::Relaxed);
    }

    pub(crate) fn tracker(&self) -> &ProgressTracker {
        &self.tracker
    }

    pub(crate) fn into_failures(self) -> Vec<Failure> {
        self.failures.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, failure: Failure) {
        lock(&self.failures).push(failure);
    }

    fn send(&self, event: Event) {
        // The thread of the caller is gone after an exception of a callback alone.
        if self.events.get().is_none_or(|events| events.send(event).is_err()) {
            self.quit();
        }
    }

    /// Asks which entries of a directory are ignored, before the copy enters it.
    fn enter(&self, ignored: &Mutex<HashMap<PathBuf, Ignored>>, dir: &Path) {
        let (answer, answered) = sync_channel(1);
        self.send(Event::Entered(dir.to_owned(), answer));
        if let Ok(names) = answered.recv() {
            lock(ignored).insert(dir.to_owned(), names);
        } else {
            self.quit();
        }
    }

    /// Whether `src` is copied, which is listed as `listed`. What `shutil.copytree` cannot copy fails
    /// here.
    fn chooses(&self, tree: &Tree, src: &Path, listed: FileType) -> bool {
        let is_ignored = |ignored: &Mutex<HashMap<PathBuf, Ignored>>| {
            let (Some(dir), Some(name)) = (src.parent(), src.file_name()) else { return false };
            lock(ignored).get(dir).is_some_and(|names| names.contains(name))
        };
        if tree.ignored.as_ref().is_some_and(is_ignored) {
            return false;
        }
        let dst = || src.strip_prefix(&tree.src).map(|below| tree.dst.join(below));
        let mut kind = listed;
        if kind == FileType::Unknown {
            // A file that is gone is left to the copy, which reports it.
            let Ok(stat) = lstat(src) else { return true };
            kind = FileType::from_raw_mode(stat.st_mode);
        }
        if kind == FileType::Symlink && tree.follows {
            match stat(src) {
                Ok(stat) => kind = FileType::from_raw_mode(stat.st_mode),
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return !tree.ignores_dangling,
                Err(_) => return true,
            }
        }
        match kind {
            FileType::Fifo => self.fail(Failure::special(Kind::Fifo, src)),
            // What open(2) returns for it.
            FileType::Socket => self.fail(Failure::call(src, Errno::NXIO)),
            FileType::Symlink => {
                if tree.merges
                    && !tree.continues
                    && let Ok(dst) = dst()
                    && lstat(&dst).is_ok()
                {
                    // What symlink(2) returns.
                    let failure = Failure::call(&dst, Errno::EXIST);
                    let target = std::fs::read_link(src).ok();
                    let target = target.map(|target| target.into_os_string().into_vec());
                    self.fail(Failure { target, ..failure });
                    return false;
                }
                return true;
            }
            FileType::Directory => {
                if let Some(ignored) = &tree.ignored {
                    self.enter(ignored, src);
                }
                return true;
            }
            _ => match dst() {
                // The copy would wait for a reader.
                Ok(dst) if tree.merges && is_fifo(&dst) => {
                    self.fail(Failure::special(Kind::Fifo, &dst));
                }
                _ => return true,
            },
        }
        false
    }
}

impl haulage::events::Observer for Observer {
    fn diagnose(&self, diagnostic: Diagnostic) {
        // `shutil` is silent only about attributes that the file system or the caller cannot have.
        let is_lost = matches!(&diagnostic, Diagnostic::Xattr { errno, .. }
            if !matches!(*errno, Errno::INVAL | Errno::NODATA));
        if is_lost || diagnostic.severity() == Severity::Failure {
            self.fail(Failure::of(&Error::from(diagnostic)));
        }
    }

    fn is_selective(&self) -> bool {
        self.tree.is_some()
    }

    fn selects(&self, src: &Path, kind: FileType) -> bool {
        self.tree.as_ref().is_none_or(|tree| self.chooses(tree, src, kind))
    }

    fn keeps_receipts(&self) -> bool {
        self.keeps_receipts
    }

    fn finished(&self, receipt: Receipt) {
        if self.keeps_receipts {
            self.send(Event::Finished(Box::new(receipt)));
        }
    }

    fn progress(&self) -> Option<&ProgressTracker> {
        self.shows_progress.then_some(&self.tracker)
    }

    fn interrupted(&self) -> bool {
        self.quit.load(Ordering::Relaxed)
    }
}

fn is_fifo(path: &Path) -> bool {
    stat(path).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo)
}

/// A panic while the lock was held leaves at most one entry out.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
