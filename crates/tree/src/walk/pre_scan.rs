//! Counts the entries and bytes to copy while the copy runs. The totals are a hint for progress
//! display: what cannot be read is left out.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, openat, statat};
use rustix::io;

use crate::entry::bytes_to_copy;
use crate::fs::{Buffer, DIRECTORY, FileId, Listing, is_directory, kind};
use crate::request::{Follow, Make, Options, Request};

/// Directories that are open at once beside the first. The copy needs the other descriptors.
const OPEN_LEVELS: usize = 6;

/// Entries between two calls of the throttle: they take a tenth of a millisecond.
const THROTTLE_ENTRIES: u64 = 64;

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
        let mut walk = Walk { count: self, options, device: None, levels: Vec::new() };
        let mut buffer = Buffer::default();
        for source in &request.sources {
            if self.is_stopped() {
                return;
            }
            // What cannot be looked at is not copied either.
            let _ = walk.operand(source, &mut buffer, throttle);
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

    fn add(&self, bytes: u64) {
        self.entries.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

struct Walk<'c> {
    count: &'c PreScan,
    options: &'c Options,
    /// The only file system to enter.
    device: Option<u64>,
    levels: Vec<Level>,
}

/// A directory on the way down.
struct Level {
    /// `None` while it is too far above.
    dir: Option<OwnedFd>,
    name: CString,
    id: FileId,
    listing: Listing,
}

impl Walk<'_> {
    fn operand(
        &mut self,
        source: &OsStr,
        buffer: &mut Buffer,
        throttle: &dyn Fn(),
    ) -> io::Result<()> {
        let name = CString::new(source.as_bytes()).map_err(|_| io::Errno::INVAL)?;
        let stat = look(CWD, &name, self.options.follow.follows(true))?;
        if !is_directory(&stat) {
            self.count.add(bytes_to_copy(self.options, &stat));
            return Ok(());
        }
        if !self.options.recursive {
            return Ok(());
        }
        let id = FileId::of(&stat);
        self.device = self.options.one_file_system.then_some(id.dev);
        let dir = Some(openat(CWD, &name, DIRECTORY, Mode::empty())?);
        self.levels = vec![Level { dir, name, id, listing: Listing::default() }];
        for step in 0_u64.. {
            if step.is_multiple_of(THROTTLE_ENTRIES) {
                throttle();
            }
            if self.levels.is_empty() || self.count.is_stopped() {
                break;
            }
            self.step(buffer);
        }
        Ok(())
    }

    /// Counts the next name in the lowest directory. A directory that cannot be read is left.
    fn step(&mut self, buffer: &mut Buffer) {
        let next = self.reopen().and_then(|()| {
            let level = self.levels.last_mut().expect("there is a directory to look into");
            let dir = level.dir.as_ref().expect("it was just reopened");
            level.listing.next(dir.as_fd(), buffer)
        });
        match next {
            Ok(Some((name, kind))) => {
                // It may be gone meanwhile.
                let _ = self.entry(name, kind);
            }
            Ok(None) | Err(_) => {
                self.levels.pop();
            }
        }
    }

    fn entry(&mut self, name: CString, listed_as: FileType) -> io::Result<()> {
        let through_links = self.options.follow == Follow::Always;
        let settled = match listed_as {
            FileType::Directory | FileType::RegularFile | FileType::Unknown => false,
            FileType::Symlink => !through_links,
            _ => true,
        };
        if settled || (listed_as == FileType::RegularFile && self.options.make != Make::Copy) {
            self.count.add(0);
            return Ok(());
        }
        let level = self.levels.last().expect("the name is in it");
        let dir = level.dir.as_ref().expect("the name was just read").as_fd();
        let stat = look(dir, &name, through_links)?;
        if kind(&stat) != FileType::Directory {
            self.count.add(bytes_to_copy(self.options, &stat));
            return Ok(());
        }
        let id = FileId::of(&stat);
        let elsewhere = self.device.is_some_and(|device| device != id.dev);
        if elsewhere || (through_links && self.levels.iter().any(|level| level.id == id)) {
            return Ok(());
        }
        let flags = if through_links { DIRECTORY } else { DIRECTORY | OFlags::NOFOLLOW };
        let dir = Some(openat(dir, &name, flags, Mode::empty())?);
        self.levels.push(Level { dir, name, id, listing: Listing::default() });
        // The first stays open: from there every other can be opened again.
        let far = self.levels.len().checked_sub(OPEN_LEVELS + 1).filter(|&far| far > 0);
        if let Some(far) = far.map(|far| &mut self.levels[far]) {
            far.listing.suspend();
            far.dir = None;
        }
        Ok(())
    }

    /// Opens the lowest directory again if it was closed, by its path from the first one.
    fn reopen(&mut self) -> io::Result<()> {
        let [first, .., last] = &self.levels[..] else { return Ok(()) };
        if last.dir.is_some() {
            return Ok(());
        }
        let names: Vec<&[u8]> =
            self.levels[1..].iter().map(|level| level.name.to_bytes()).collect();
        let dir = openat(
            first.dir.as_ref().expect("it stays open"),
            names.join(&b'/'),
            DIRECTORY,
            Mode::empty(),
        )?;
        let last = self.levels.last_mut().expect("it was just there");
        last.listing.resume(dir.as_fd())?;
        last.dir = Some(dir);
        Ok(())
    }
}

fn look(dir: impl AsFd, name: &CStr, follow: bool) -> io::Result<Stat> {
    let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
    statat(dir, name, flags)
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
        let dir = tempfile::tempdir().expect("a directory");
        let mut deepest = dir.path().to_owned();
        for level in 0..40 {
            // Files on both sides of the directory in each listing.
            for name in ["a", "z"] {
                write(deepest.join(format!("{name}{level}")), [0; 10]).expect("a file");
            }
            deepest.push("d");
            create_dir_all(&deepest).expect("a directory");
        }
        for number in 0..600 {
            write(deepest.join(number.to_string()), "x").expect("a file");
        }
        std::os::unix::fs::symlink(dir.path(), deepest.join("loop")).expect("a link");
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
