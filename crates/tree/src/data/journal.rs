//! `--resume`: the record of how much of a partial file is right.
//!
//! It begins with the identity of the source. For each chunk it holds the offset of its end and the
//! hash of its data. A chunk counts when its data has that hash now. So no write has to come before
//! another, and what a loss of power damaged is copied again.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use engines::sys::Buffer;
use engines::{pread_full, pwrite_all};
use rustix::fs::{Stat, ftruncate};
use rustix::io::{self, Errno};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::fs::{FileId, ctime, file_bytes, mtime};

/// The shortest stretch that is worth a line.
pub(crate) const CHUNK_BYTES_MIN: u64 = 1 << 20;

/// The longest, of which a fast disk writes a hundred in a second.
const CHUNK_BYTES_MAX: u64 = 16 << 20;

/// What a file of `size` bytes loses at most: in ten times a sixth of it, if it is not a small one.
fn chunk_bytes(size: u64) -> u64 {
    (size / 64).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX)
}

/// What a journal of a file begins with.
pub(crate) const MAGIC: &[u8; 8] = b"haulage1";
pub(crate) const HEADER_BYTES: usize = 8 * 9;
pub(crate) const RECORD_BYTES: usize = 8 + 16;
const BUFFER_BYTES: usize = 256 << 10;

/// What is known to be right of a part.
pub(crate) struct Journal {
    file: OwnedFd,
    /// Up to this offset of the part.
    pub(crate) at: u64,
    records: u64,
    /// How much of the part is noted at once.
    pub(crate) chunk_bytes: u64,
    /// It cannot be written to, and says no more.
    broken: bool,
}

/// What a journal begins with: the source as it is. Any change of it, its inode's included, makes
/// another header.
fn header(src: &Stat) -> [u8; HEADER_BYTES] {
    let id = FileId::of(src);
    let (changed, modified) = (ctime(src), mtime(src));
    let signed = [changed.0, changed.1, modified.0, modified.1].map(i64::to_le_bytes);
    let mut header = [0; HEADER_BYTES];
    let fields =
        [*MAGIC, id.dev.to_le_bytes(), id.ino.to_le_bytes(), file_bytes(src).to_le_bytes()];
    for (place, field) in header.chunks_exact_mut(8).zip(fields.iter().chain(&signed)) {
        place.copy_from_slice(field);
    }
    let sum = xxh3_64(&header[..HEADER_BYTES - 8]);
    header[HEADER_BYTES - 8..].copy_from_slice(&sum.to_le_bytes());
    header
}

impl Journal {
    /// Reads what `file` says of `partial`, and cuts both back to what is right.
    pub(crate) fn read(file: OwnedFd, partial: BorrowedFd<'_>, src: &Stat) -> io::Result<Journal> {
        let header = header(src);
        let mut found = [0; HEADER_BYTES];
        let whole = pread_full(file.as_fd(), &mut found, 0)? == HEADER_BYTES;
        let mut journal = Journal {
            file,
            at: 0,
            records: 0,
            chunk_bytes: chunk_bytes(file_bytes(src)),
            broken: false,
        };
        if whole && found == header {
            while let Some(end) = journal.next_right(partial, file_bytes(src))? {
                (journal.at, journal.records) = (end, journal.records + 1);
            }
        } else {
            ftruncate(&journal.file, 0)?;
            pwrite_all(journal.file.as_fd(), &header, 0).1?;
        }
        ftruncate(&journal.file, journal.end())?;
        // A hole at the end is part of what is right.
        ftruncate(partial, journal.at)?;
        Ok(journal)
    }

    /// Where the next stretch ends, if it is right.
    fn next_right(&self, partial: BorrowedFd<'_>, size: u64) -> io::Result<Option<u64>> {
        let mut record = [0; RECORD_BYTES];
        if pread_full(self.file.as_fd(), &mut record, self.end())? < RECORD_BYTES {
            return Ok(None);
        }
        let (end, hash) = record.split_at(8);
        let end = u64::from_le_bytes(end.try_into().expect("eight bytes"));
        if end <= self.at || end > size {
            return Ok(None);
        }
        Ok((hash_of(partial, self.at, end)?.to_le_bytes() == hash).then_some(end))
    }

    fn end(&self) -> u64 {
        HEADER_BYTES as u64 + self.records * RECORD_BYTES as u64
    }

    /// Notes that the part is right up to `at`, once that is worth a line.
    pub(crate) fn record(&mut self, partial: BorrowedFd<'_>, at: u64) {
        if self.broken || at < self.at + self.chunk_bytes {
            return;
        }
        let written = hash_of(partial, self.at, at).and_then(|hash| {
            let record = [&at.to_le_bytes()[..], &hash.to_le_bytes()].concat();
            pwrite_all(self.file.as_fd(), &record, self.end()).1
        });
        match written {
            Ok(()) => (self.at, self.records) = (at, self.records + 1),
            // The copy needs no journal; only the next run would do more than it has to.
            Err(_) => self.broken = true,
        }
    }
}

/// The hash of a stretch of a part. What lies behind its end is going to be a hole.
fn hash_of(partial: BorrowedFd<'_>, from: u64, to: u64) -> io::Result<u128> {
    let mut buffer = Buffer::page_aligned(BUFFER_BYTES).map_err(|_| Errno::NOMEM)?;
    let buffer = buffer.as_mut_slice();
    let (mut at, mut hash) = (from, Xxh3::new());
    while at < to {
        let len = usize::try_from(to - at).unwrap_or(usize::MAX).min(BUFFER_BYTES);
        let got = pread_full(partial, &mut buffer[..len], at)?;
        buffer[got..len].fill(0);
        hash.update(&buffer[..len]);
        at += len as u64;
    }
    Ok(hash.digest128())
}
