//! Sets the page cache state of the source before a run, and proves it.
//!
//! Warm means that every page is in the cache, cold that none is. cachestat(2) counts the pages
//! before each run, and the bytes that devices read during the run must agree. The prover first
//! tries itself on the source, since overlayfs answers cachestat with zeros and tmpfs cannot drop a
//! page.

use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::Advice;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::state::{Proof, State};
use crate::clock::device_bytes::device_bytes;
use crate::error::Error;
use crate::sample::measurement::Measurement;
use crate::source::{Load, Source};

/// Bytes of the source read to try the prover out.
const TRY_BYTES_MAX: u64 = 4 << 20;

/// Bytes read at a time to warm a file.
const READ_BYTES: usize = 1 << 20;

/// Times that a source is read until all of it stays in the page cache.
const WARMINGS: u32 = 10;

/// Sets the state, and proves what can be proved on one file system.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Prover {
    /// Whether cachestat tells the truth here.
    pub counts_pages: bool,
    /// Why not, in words; empty when it does.
    pub counts_pages_note: String,
    /// Whether pages can be dropped.
    pub drops_pages: bool,
    /// How they are dropped.
    pub drops_by: DropsBy,
    /// Whether /proc/self/io counts what this file system reads from a device.
    pub counts_device_reads: bool,
}

/// A method to drop pages from the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DropsBy {
    /// posix_fadvise(POSIX_FADV_DONTNEED), on this file alone.
    PosixFadvise,
    /// /proc/sys/vm/drop_caches, which drops the clean pages of the whole system; root only.
    DropCaches,
}

/// The state just before a run.
#[derive(Clone, Debug)]
pub struct Reached {
    /// What was found.
    pub proof: Proof,
    /// Why it is not what was wanted; empty when it is.
    pub note: String,
    /// Bytes of the load in the page cache, where they can be counted.
    pub resident_bytes: Option<u64>,
}

impl Prover {
    /// Tries itself on the first bytes of the source: drops them, counts, reads them and counts
    /// again. It leaves them in the page cache. Only where the cold state is wanted and cannot be
    /// had otherwise does it drop the caches of the whole system.
    ///
    /// # Errors
    /// When the source cannot be opened or read.
    pub fn try_on(source: &Source, wanted: State) -> Result<Prover, Error> {
        let load = source.first(TRY_BYTES_MAX);
        let part = load.parts[0];
        let fd = source.open_file(part.file)?;
        let reading = Error::path("cannot read", source.path_of(part.file));
        let mut drops_by = DropsBy::PosixFadvise;
        // What is beyond the first bytes stays as it was written.
        let tried = NonZeroU64::new(part.bytes);
        drop_pages(fd.as_fd(), drops_by, tried);
        let mut after_drop = resident_bytes(fd.as_fd(), part.bytes);
        if wanted == State::Cold && after_drop.is_ok_and(|bytes| bytes > 0) {
            drop_pages(fd.as_fd(), DropsBy::DropCaches, tried);
            after_drop = resident_bytes(fd.as_fd(), part.bytes);
            if after_drop == Ok(0) {
                drops_by = DropsBy::DropCaches;
            }
        }
        let reads_before = device_bytes().map(|device| device.read);
        read_through(fd.as_fd(), part.bytes).map_err(reading)?;
        let reads_after = device_bytes().map(|device| device.read);
        let after_read = resident_bytes(fd.as_fd(), part.bytes);
        let note = match (after_drop, after_read) {
            (Err(Errno::NOSYS), _) => "the kernel lacks cachestat (Linux 6.5)".to_owned(),
            (Err(errno), _) | (_, Err(errno)) => {
                format!("cachestat: {}", engines::describe(errno))
            }
            (Ok(_), Ok(0)) => "cachestat counts no pages on this file system".to_owned(),
            (Ok(_), Ok(_)) => String::new(),
        };
        let drops_pages = after_drop == Ok(0) && note.is_empty();
        let read = reads_after.zip(reads_before).map_or(0, |(after, before)| after - before);
        Ok(Prover {
            counts_pages: note.is_empty(),
            counts_pages_note: note,
            drops_pages,
            drops_by,
            counts_device_reads: drops_pages && read >= part.bytes / 10 * 9,
        })
    }

    /// Puts `load` into the wanted state and checks it.
    ///
    /// # Errors
    /// When the source cannot be opened or read, or has changed.
    pub fn reach(&self, wanted: State, source: &Source, load: &Load) -> Result<Reached, Error> {
        match wanted {
            State::Warm => self.warm(source, load)?,
            State::Cold => self.cool(source, load)?,
            State::AsItComes => {}
        }
        let resident_bytes = self.resident_bytes(source, load)?;
        // A file system in memory holds no pages for holes, and reading them makes none.
        let warm_bytes = if self.drops_pages { load.bytes } else { source.allocated_bytes(load) };
        let (proof, note) = match (wanted, resident_bytes) {
            (_, None) => (Proof::Unverified, self.counts_pages_note.clone()),
            (State::AsItComes, _) => (Proof::Unverified, "left as it came".to_owned()),
            (State::Warm, Some(bytes)) if bytes >= warm_bytes => (Proof::Warm, String::new()),
            (State::Cold, Some(0)) => (Proof::Cold, String::new()),
            (_, Some(bytes)) => (Proof::NotReached, self.missed(wanted, bytes, load.bytes)),
        };
        Ok(Reached { proof, note, resident_bytes })
    }

    /// Bytes of `load` in the page cache; `None` where that cannot be told.
    ///
    /// # Errors
    /// When the source cannot be opened, or has changed.
    pub fn resident_bytes(&self, source: &Source, load: &Load) -> Result<Option<u64>, Error> {
        if !self.counts_pages {
            return Ok(None);
        }
        let counted = load.parts.iter().map(|part| {
            let fd = source.open_file(part.file)?;
            Ok(resident_bytes(fd.as_fd(), part.bytes).ok())
        });
        counted.sum()
    }

    fn warm(&self, source: &Source, load: &Load) -> Result<(), Error> {
        // Reading one file may push pages of another out.
        for _ in 0..WARMINGS {
            let mut all_there = true;
            for part in &load.parts {
                let fd = source.open_file(part.file)?;
                if self.counts_pages && resident_bytes(fd.as_fd(), part.bytes) == Ok(part.bytes) {
                    continue;
                }
                all_there = false;
                read_through(fd.as_fd(), part.bytes)
                    .map_err(Error::path("cannot read", source.path_of(part.file)))?;
            }
            if all_there || !self.counts_pages {
                break;
            }
        }
        Ok(())
    }

    fn cool(&self, source: &Source, load: &Load) -> Result<(), Error> {
        for part in &load.parts {
            let fd = source.open_file(part.file)?;
            drop_pages(fd.as_fd(), self.drops_by, None);
            // Pages that the last run has just used may be held for a moment longer.
            for _ in 0..5 {
                if !self.counts_pages || resident_bytes(fd.as_fd(), part.bytes) == Ok(0) {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(2));
                drop_pages(fd.as_fd(), self.drops_by, None);
            }
        }
        Ok(())
    }

    fn missed(&self, wanted: State, resident: u64, bytes: u64) -> String {
        let count = |bytes: u64| crate::words::grouped(&bytes.to_string());
        let found = format!("{} of {} bytes in the page cache", count(resident), count(bytes));
        match wanted {
            State::Cold if !self.drops_pages => {
                format!("{found}: this file system, or another user of the file, keeps them there")
            }
            _ => found,
        }
    }

    /// Fills in which state the run really had, and whether it counts: the bytes that devices read during a
    /// run have to fit the state proved before it. `measured` has these, and whether extents were shared, so
    /// that nothing was read at all. `bypasses_cache` is an engine that reads from the device whatever the
    /// cache holds.
    pub fn judge(
        &self,
        measured: &mut Measurement,
        reached: Reached,
        on_medium_bytes: u64,
        bypasses_cache: bool,
    ) {
        measured.state_proved = reached.proof;
        measured.state_note = reached.note;
        // Inodes, extents and free-space maps are read from the device too.
        let metadata_bytes = (on_medium_bytes / 50).max(1 << 20);
        let read = measured.device_read_bytes.filter(|_| self.counts_device_reads);
        let contradicts = match (reached.proof, read) {
            (Proof::Warm, Some(read)) if !bypasses_cache && read > metadata_bytes => {
                Some(format!("a device had to read {}", crate::words::bytes(read)))
            }
            (Proof::Cold, Some(read))
                if !measured.shares_extents && read + metadata_bytes < on_medium_bytes =>
            {
                Some(format!("devices read no more than {}", crate::words::bytes(read)))
            }
            _ => None,
        };
        if let Some(why) = contradicts {
            measured.state_proved = Proof::NotReached;
            measured.state_note = why;
        }
        measured.counted = measured.state_proved != Proof::NotReached;
    }
}

/// Bytes of the first `len` of `fd` that are in the page cache.
pub(crate) fn resident_bytes(fd: BorrowedFd<'_>, len: u64) -> rustix::io::Result<u64> {
    let counted = sys::cachestat(fd, 0, len)?;
    // The last page may reach over the end of the file.
    Ok((counted.cached_pages * rustix::param::page_size() as u64).min(len))
}

/// Drops the first `len` bytes, or all. Where a call fails, the count that follows shows it.
fn drop_pages(fd: BorrowedFd<'_>, by: DropsBy, len: Option<NonZeroU64>) {
    // Dirty pages cannot be dropped.
    let _ = rustix::fs::fdatasync(fd);
    let _ = match by {
        DropsBy::PosixFadvise => rustix::fs::fadvise(fd, 0, len, Advice::DontNeed).is_ok(),
        DropsBy::DropCaches => std::fs::write("/proc/sys/vm/drop_caches", "1").is_ok(),
    };
}

/// Has the first `len` bytes of `fd`, which are on the medium, in the page cache because they were
/// read, and not because they were written. Where pages cannot be dropped they stay what they are.
///
/// # Errors
/// When they cannot be read.
pub(crate) fn read_anew(fd: BorrowedFd<'_>, len: u64) -> rustix::io::Result<()> {
    let _ = rustix::fs::fadvise(fd, 0, NonZeroU64::new(len), Advice::DontNeed);
    read_through(fd, len)
}

fn read_through(fd: BorrowedFd<'_>, len: u64) -> rustix::io::Result<()> {
    let mut buffer = vec![0; READ_BYTES];
    (0..len).step_by(READ_BYTES).try_for_each(|at| {
        #[allow(clippy::cast_possible_truncation)] // At most the length of the buffer.
        let piece = (len - at).min(READ_BYTES as u64) as usize;
        engines::pread_full(fd, &mut buffer[..piece], at).map(drop)
    })
}
