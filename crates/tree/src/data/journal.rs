//! `--resume`: the journal records how much of a partial file is valid (docs/design/resume.md).
//!
//! It starts with the identity of the source. For each chunk it holds the offset of its end and the
//! hash of its blocks that are not zeros. A chunk is valid if its data still has that hash. So the order of writes does
//! not matter, and data that a power failure damaged is copied again.

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use engines::{pread_full, pwrite_all};
use rustix::fs::{Stat, ftruncate};
use rustix::io::{self, Errno};
use sys::Buffer;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::holes::{self, Extent, is_zeros};
use crate::fs::stat::{coarsest_resolution, elapsed_since};
use crate::fs::{FileId, ctime, file_bytes, fs_type_of, is_reliable, mtime};
use crate::shared::messages::ChunkRecord;

/// A shorter file gets no journal: it is copied again in milliseconds.
pub(crate) const FILE_BYTES_MIN: u64 = 4 << 20;

/// The shortest chunk that is worth a record.
pub(crate) const CHUNK_BYTES_MIN: u64 = 1 << 20;

/// The longest chunk. A fast disk writes a hundred of them in a second.
const CHUNK_BYTES_MAX: u64 = 16 << 20;

/// The chunk of a file of `size` bytes, which is copied again at most.
fn chunk_bytes(size: u64) -> u64 {
    (size / 64).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX)
}

/// The first bytes of a journal.
pub(crate) const MAGIC: &[u8; 8] = b"haulage2";
pub(crate) const HEADER_BYTES: usize = 8 * 9;
pub(crate) const RECORD_BYTES: usize = 8 + 16;
const BUFFER_BYTES: usize = 256 << 10;

/// What is hashed at a time, or left out if it is zeros. Boundaries are those of the file.
const BLOCK_BYTES: u64 = 4096;

/// How much of a partial file is valid.
pub(crate) struct Journal {
    file: OwnedFd,
    /// Valid up to this offset.
    pub(crate) at: u64,
    records: u64,
    pub(crate) chunk_bytes: u64,
    /// Nothing more is recorded, as after a write that failed. The copy continues; the next run would copy more.
    pub(super) broken: bool,
}

/// The header identifies the source by `id`. Any change of the source, also of its inode, changes the
/// header.
fn header((id, src): (FileId, &Stat)) -> Vec<u8> {
    let (changed, modified) = (ctime(src), mtime(src));
    let numbers = [id.dev, id.ino, file_bytes(src)].map(u64::to_le_bytes);
    let times = [changed.0, changed.1, modified.0, modified.1].map(i64::to_le_bytes);
    let mut header = [&MAGIC[..], numbers.as_flattened(), times.as_flattened()].concat();
    header.extend(xxh3_64(&header).to_le_bytes());
    header
}

/// Whether the source may change once more without other times: they are coarse, and it has just changed.
fn may_change_unseen(src: &Stat) -> bool {
    elapsed_since(ctime(src)) < coarsest_resolution(ctime(src))
}

impl Journal {
    /// Reads the journal `file` of `partial`, and truncates both to what is valid.
    pub(crate) fn read(
        file: OwnedFd,
        partial: BorrowedFd<'_>,
        (id, src): (FileId, &Stat),
    ) -> io::Result<Journal> {
        let is_of_source = Journal::is_of(file.as_fd(), (id, src))?;
        let mut journal = Journal {
            file,
            at: 0,
            records: 0,
            chunk_bytes: chunk_bytes(file_bytes(src)),
            // What is copied now may be of an earlier state of the source than its times tell.
            broken: !is_of_source && may_change_unseen(src),
        };
        if is_of_source {
            while let Some(end) = journal.next_valid(partial, file_bytes(src))? {
                (journal.at, journal.records) = (end, journal.records + 1);
            }
        } else {
            ftruncate(&journal.file, 0)?;
            pwrite_all(journal.file.as_fd(), &header((id, src)), 0).1?;
        }
        ftruncate(&journal.file, journal.end())?;
        // The valid part may end in a hole.
        ftruncate(partial, journal.at)?;
        Ok(journal)
    }

    /// Whether the journal `file` is one of `src` as it is now.
    pub(crate) fn is_of(file: BorrowedFd<'_>, src: (FileId, &Stat)) -> io::Result<bool> {
        let mut found = [0; HEADER_BYTES];
        Ok(pread_full(file, &mut found, 0)? == HEADER_BYTES && header(src) == found)
    }

    /// The end of the next chunk, if it is valid.
    fn next_valid(&self, partial: BorrowedFd<'_>, size: u64) -> io::Result<Option<u64>> {
        let mut record = [0; RECORD_BYTES];
        if pread_full(self.file.as_fd(), &mut record, self.end())? < RECORD_BYTES {
            return Ok(None);
        }
        let (end, hash) = record.split_at(8);
        let end = u64::from_le_bytes(end.try_into().expect("eight bytes"));
        if end <= self.at || end > size {
            return Ok(None);
        }
        let holes = holes_of(partial, self.at, end);
        Ok((hash_of(partial, self.at..end, &holes)?.to_le_bytes() == hash).then_some(end))
    }

    fn end(&self) -> u64 {
        HEADER_BYTES as u64 + self.records * RECORD_BYTES as u64
    }

    /// Adds records of chunks that follow what is recorded, and that partners may have written.
    pub(crate) fn append(&mut self, records: &[ChunkRecord]) {
        for &(at, hash) in records {
            self.broken = self.broken || self.write(at, hash).is_err();
        }
    }

    fn write(&mut self, at: u64, hash: u128) -> io::Result<()> {
        let record = [&at.to_le_bytes()[..], &hash.to_le_bytes()].concat();
        pwrite_all(self.file.as_fd(), &record, self.end()).1?;
        (self.at, self.records) = (at, self.records + 1);
        Ok(())
    }
}

/// What a journal will record of what is copied: of the whole file, or of a range that one of several processes
/// copies.
#[derive(Debug, Default)]
pub(crate) struct RangeRecords {
    /// Everything before this offset is recorded.
    pub(super) at: u64,
    /// 0 without a journal.
    chunk_bytes: u64,
    records: Vec<ChunkRecord>,
    /// The records before this offset were taken.
    taken_to: u64,
    /// What was skipped since the last record, in order.
    holes: Vec<Range<u64>>,
    broken: bool,
}

impl RangeRecords {
    /// For a range from `at`; `chunk_bytes` are those of the journal, 0 if there is none.
    pub(crate) fn new(at: u64, chunk_bytes: u64) -> RangeRecords {
        RangeRecords { at, chunk_bytes, taken_to: at, ..RangeRecords::default() }
    }

    /// The copy goes on behind `hole`, to which it wrote nothing.
    pub(super) fn skip(&mut self, hole: Range<u64>) {
        if self.chunk_bytes().is_some() {
            self.holes.push(hole);
        }
    }

    /// The range is copied up to `at`, to its end if `is_last`.
    pub(crate) fn record(&mut self, partial: BorrowedFd<'_>, at: u64, is_last: bool) {
        let is_due = at > self.at && (is_last || at >= self.at + self.chunk_bytes);
        if self.chunk_bytes().is_none() || !is_due {
            return;
        }
        match hash_of(partial, self.at..at, &self.holes) {
            Ok(hash) => {
                self.records.push((at, hash));
                self.holes.clear();
                self.at = at;
            }
            Err(_) => self.broken = true,
        }
    }

    /// The bytes between two records; `None` if there are no more.
    pub(super) fn chunk_bytes(&self) -> Option<u64> {
        (self.chunk_bytes > 0 && !self.broken).then_some(self.chunk_bytes)
    }

    /// Whether the records that were not taken follow the offset `at`.
    pub(super) fn follows(&self, at: u64) -> bool {
        self.taken_to == at
    }

    /// The records since the last call.
    pub(crate) fn take(&mut self) -> Vec<ChunkRecord> {
        self.taken_to = self.at;
        std::mem::take(&mut self.records)
    }
}

/// The holes of a chunk, where the file system is trusted with them.
fn holes_of(partial: BorrowedFd<'_>, from: u64, to: u64) -> Vec<Range<u64>> {
    let (mut at, mut holes) = (from, Vec::new());
    if !fs_type_of(partial).is_some_and(is_reliable) {
        return holes;
    }
    while at < to {
        let Ok(next) = holes::next_data(partial, at, to) else { break };
        let Extent { at: data, len } = next.unwrap_or(Extent { at: to, len: 0 });
        holes.push(at..data);
        at = (data + len).max(at + 1);
    }
    holes
}

/// The hash of the offsets and contents of a chunk's blocks that are not zeros. Of the `holes`, in order, no whole
/// block is read. Bytes after the end of the file count as zeros, since they become a hole.
fn hash_of(partial: BorrowedFd<'_>, chunk: Range<u64>, holes: &[Range<u64>]) -> io::Result<u128> {
    let mut buffer = Buffer::page_aligned(BUFFER_BYTES).map_err(|_| Errno::NOMEM)?;
    let buffer = buffer.as_mut_slice();
    let (mut at, mut hash) = (chunk.start, Xxh3::new());
    let whole_blocks = |hole: &Range<u64>| {
        hole.start.next_multiple_of(BLOCK_BYTES)..hole.end / BLOCK_BYTES * BLOCK_BYTES
    };
    let mut holes = holes.iter().map(whole_blocks).filter(|hole| hole.end > chunk.start).peekable();
    while at < chunk.end {
        while holes.next_if(|hole| hole.is_empty() || hole.end <= at).is_some() {}
        if let Some(hole) = holes.next_if(|hole| hole.start <= at) {
            at = hole.end.min(chunk.end);
            continue;
        }
        let end = holes.peek().map_or(chunk.end, |hole| hole.start.min(chunk.end));
        let len = usize::try_from(end - at).unwrap_or(usize::MAX).min(BUFFER_BYTES);
        let got = pread_full(partial, &mut buffer[..len], at)?;
        buffer[got..len].fill(0);
        let mut rest = &buffer[..len];
        while !rest.is_empty() {
            let to_boundary = usize::try_from(BLOCK_BYTES - at % BLOCK_BYTES).expect("a block");
            let (block, after) = rest.split_at(to_boundary.min(rest.len()));
            if !is_zeros(block) {
                hash.update(&at.to_le_bytes());
                hash.update(block);
            }
            at += block.len() as u64;
            rest = after;
        }
    }
    Ok(hash.digest128())
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use rustix::fs::fstat;

    use super::*;

    #[test]
    fn a_hole_is_hashed_as_the_zeros_that_it_reads_as_and_is_not_read() {
        let file = tempfile::tempfile().expect("created");
        // Neither end is that of a block.
        let (hole, end) = (5000..(4 << 20) + 300, (4 << 20) + 9000);
        pwrite_all(file.as_fd(), &[1; 5000], 0).1.expect("written");
        pwrite_all(file.as_fd(), &[2; 8700], hole.end).1.expect("written");
        let hash = |holes: &[Range<u64>]| hash_of(file.as_fd(), 0..end, holes).expect("a hash");
        let recorded = hash(std::slice::from_ref(&hole));
        assert_eq!(recorded, hash(&[]));
        assert_eq!(recorded, hash(&holes_of(file.as_fd(), 0, end)));
        pwrite_all(file.as_fd(), &[3], 1 << 20).1.expect("written");
        assert_eq!(recorded, hash(std::slice::from_ref(&hole)), "the hole was read");
        assert_ne!(recorded, hash(&[]));
        assert_ne!(recorded, hash(&holes_of(file.as_fd(), 0, end)));
    }

    #[test]
    fn a_source_with_coarse_times_may_change_unseen_until_they_differ() {
        let mut src = fstat(tempfile::tempfile().expect("created")).expect("looked at");
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("later");
        let even = i64::try_from(now.as_secs()).expect("a time") / 2 * 2;
        for (seconds, nanoseconds, may_change) in [
            (even, 0, true),
            (even - 2, 0, false),
            (even - 3, 0, false),
            (even, 1, false),
            (even + 9, 500_000_000, true),
        ] {
            (src.st_ctime, src.st_ctime_nsec) = (seconds, nanoseconds);
            let what = format!("{} and {nanoseconds} ns", seconds - even);
            assert_eq!(may_change_unseen(&src), may_change, "{what}");
        }
    }
}
