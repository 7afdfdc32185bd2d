//! Counts the entries and bytes to copy while the copy runs. The totals are a hint for progress
//! display: what cannot be read is left out.

use std::ffi::OsStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, statat};
use walkdir::{DirEntry, WalkDir};

use crate::entry::bytes_to_copy;
use crate::fs::is_directory;
use crate::request::{Follow, Make, Options, Request};

/// Directories that are open at once. The copy needs the other descriptors.
const OPEN_DIRECTORIES: usize = 7;

/// Entries between two calls of the throttle: they take a tenth of a millisecond.
const THROTTLE_ENTRIES: usize = 64;

/// The counts so far, which other threads may read at any time.
#[derive(Debug, Default)]
pub struct PreScan {
    entries: AtomicU64,
    bytes: AtomicU64,
    ended: AtomicBool,
    stopped: AtomicBool,
}

/// Entries and bytes that a run copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// All but directories.
    pub entries: u64,
    /// The lengths of regular files whose data is copied.
    pub bytes: u64,
    /// Everything is counted.
    pub all: bool,
}

impl PreScan {
    /// Counts what `request` names, until all is counted or [`stop`](PreScan::stop) is called.
    /// `throttle` is called every few dozen entries, and may block.
    pub fn run(&self, request: &Request, options: &Options, throttle: &dyn Fn()) {
        let entries = request.sources.iter().flat_map(|source| walk(source, options));
        for (step, entry) in entries.enumerate() {
            if step.is_multiple_of(THROTTLE_ENTRIES) {
                throttle();
            }
            if self.is_stopped() {
                return;
            }
            if let Ok(entry) = entry
                && let Some(bytes) = bytes_of(&entry, options)
            {
                self.entries.fetch_add(1, Ordering::Relaxed);
                self.bytes.fetch_add(bytes, Ordering::Relaxed);
            }
        }
        self.ended.store(!self.is_stopped(), Ordering::Release);
    }

    /// Makes [`run`](PreScan::run) return soon.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether [`stop`](PreScan::stop) was called.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// The counts so far.
    #[must_use]
    pub fn get(&self) -> Totals {
        let all = self.ended.load(Ordering::Acquire);
        let load = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
        Totals { entries: load(&self.entries), bytes: load(&self.bytes), all }
    }
}

fn walk(source: &OsStr, options: &Options) -> walkdir::IntoIter {
    WalkDir::new(source)
        .follow_links(options.follow == Follow::Always)
        .follow_root_links(options.follow.follows(true))
        .same_file_system(options.one_file_system)
        .max_depth(if options.recursive { usize::MAX } else { 0 })
        .max_open(OPEN_DIRECTORIES)
        .into_iter()
}

/// Bytes of data of an entry; `None` for a directory and for what cannot be looked at, which is not copied
/// either.
fn bytes_of(entry: &DirEntry, options: &Options) -> Option<u64> {
    let (kind, follow) = (entry.file_type(), options.follow.follows(entry.depth() == 0));
    // walkdir has the type of a link's target unless the link is an operand.
    if !(follow && kind.is_symlink()) {
        if kind.is_dir() {
            return None;
        }
        if !kind.is_file() || options.make != Make::Copy {
            return Some(0);
        }
    }
    let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
    let stat = statat(CWD, entry.path(), flags).ok()?;
    (!is_directory(&stat)).then(|| bytes_to_copy(options, &stat))
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, write};

    use super::*;
    use crate::request::options::Destination;

    fn count(source: &std::path::Path, options: &Options) -> Totals {
        let count = PreScan::default();
        let request = Request {
            sources: vec![source.into()],
            destination: Destination::Exact("unused".into()),
        };
        count.run(&request, options, &|| ());
        count.get()
    }

    #[test]
    fn everything_is_counted_however_deep() {
        let dir = tempfile::tempdir().expect("created");
        let mut deepest = dir.path().to_owned();
        for level in 0..40 {
            // Files on both sides of the directory in each listing.
            for name in ["a", "z"] {
                write(deepest.join(format!("{name}{level}")), [0; 10]).expect("written");
            }
            deepest.push("d");
            create_dir_all(&deepest).expect("created");
        }
        for number in 0..600 {
            write(deepest.join(number.to_string()), "x").expect("written");
        }
        std::os::unix::fs::symlink(dir.path(), deepest.join("loop")).expect("linked");
        let options = Options::archive();
        let all = true;
        let expected = Totals { entries: 80 + 600 + 1, bytes: 800 + 600, all };
        assert_eq!(count(dir.path(), &options), expected);
        let follow = Options { follow: Follow::Always, ..Options::archive() };
        let expected = Totals { entries: 80 + 600, bytes: 800 + 600, all };
        assert_eq!(count(dir.path(), &follow), expected);
        let links = Options { make: Make::HardLink, ..Options::archive() };
        assert_eq!(count(dir.path(), &links), Totals { entries: 681, bytes: 0, all });
        let flat = Options { recursive: false, ..Options::archive() };
        assert_eq!(count(dir.path(), &flat), Totals { entries: 0, bytes: 0, all });
        assert_eq!(count(&dir.path().join("a0"), &flat), Totals { entries: 1, bytes: 10, all });
    }

    #[test]
    fn a_count_that_is_stopped_is_not_all() {
        let count = PreScan::default();
        count.stop();
        let request =
            Request { sources: vec!["/".into()], destination: Destination::Exact("x".into()) };
        count.run(&request, &Options::archive(), &|| ());
        assert_eq!(count.get(), Totals { entries: 0, bytes: 0, all: false });
    }
}
