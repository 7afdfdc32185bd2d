//! `--verify`: a copy is read back and compared with its source (docs/design/verify.md).
//!
//! The destination is synced and its pages are dropped first, so that it is read from the medium.
//! cachestat(2) tells whether all pages are gone. If not, as on tmpfs, or if that is not known, as
//! before Linux 6.5, the cached copy is compared and the receipt says so.

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use engines::pread_full;
use rustix::fs::{Advice, CWD, Mode, OFlags, fadvise, fcntl_getfl, fdatasync, fstat, openat};
use rustix::io::{self, Errno, fcntl_dupfd_cloexec, retry_on_intr};
use sys::{Buffer, cachestat};
use xxhash_rust::xxh3::Xxh3;

use super::context::Files;
use super::data_copy::is_sparse;
use super::holes::{Extent, next_data};
use super::page_cache::drop_pages;
use crate::fs::fs_type::is_on_reliable_fs;
use crate::fs::{FileAt, Handle, TMPFS, file_bytes, fs_type_of, is_regular};
use crate::report::{Action, Diagnostic, Reporter, Result, Verified, WorkerCounters, failed};
use crate::shared::messages::ByteRange;

/// Reads both files again and compares them. `None` if no receipt shows what was compared.
///
/// # Errors
/// The first difference, and failures to read.
pub(crate) fn verify(
    report: &Reporter<'_>,
    files: &Files<'_>,
    counters: Option<&WorkerCounters>,
) -> Result<Option<Verified>> {
    for FileAt { place, stat, .. } in [files.src, files.dst] {
        if !is_regular(stat) {
            return Err(Diagnostic::Unverifiable { path: place.path() });
        }
    }
    let past_cache = drop_cache(files.dst.fd).map_err(failed(Action::Sync, files.dst.place))?;
    let dst = reopen(files.dst.fd).map_err(failed(Action::OpenForReading, files.dst.place))?;
    let interrupted = || files.interrupted_unverified();
    let dst = FileAt { fd: dst.as_fd(), ..files.dst };
    let compared = compare(report, (files.src, dst), 0..u64::MAX, counters, interrupted)?;
    let digest = compared.map_err(|at| {
        let (src, dst) = (files.src.place.path(), files.dst.place.path());
        Diagnostic::Differs { src, dst, at }
    })?;
    Ok(digest.map(|digest| Verified { digest, past_cache }))
}

/// Reads a range of both files again and compares it. The range was written and synced, maybe by a
/// partner. Returns the offset of the first difference.
///
/// # Errors
/// Failures to read.
pub(crate) fn verify_range(
    report: &Reporter<'_>,
    files: &Files<'_>,
    range: ByteRange,
) -> Result<Option<u64>> {
    // Hints. What another host has written is not cached here, or is old once the file is opened anew.
    drop_pages(files.dst.fd, range.start..range.end);
    let dst = reopen(files.dst.fd).map_err(failed(Action::OpenForReading, files.dst.place))?;
    let dst = FileAt { fd: dst.as_fd(), ..files.dst };
    let is_last = range.end == file_bytes(files.src.stat);
    let end = if is_last { u64::MAX } else { range.end };
    let interrupted = || files.interrupted_unverified();
    Ok(compare(report, (files.src, dst), range.start..end, None, interrupted)?.err())
}

/// Compares the source `src` with the existing destination `dst`, which this run has not written.
/// `None` when they differ, or when `dst` cannot be synced. Within it `None` if no receipt shows
/// what was compared.
///
/// # Errors
/// Failures to read.
pub(crate) fn compare_existing(
    report: &Reporter<'_>,
    (src, dst): (FileAt<'_>, FileAt<'_>),
) -> Result<Option<Option<Verified>>> {
    let Ok(past_cache) = drop_cache(dst.fd) else { return Ok(None) };
    let interrupted = || Diagnostic::InterruptedBefore { dst: dst.place.path() };
    let compared = compare(report, (src, dst), 0..u64::MAX, None, interrupted)?;
    Ok(compared.ok().map(|digest| digest.map(|digest| Verified { digest, past_cache })))
}

/// Syncs the file and drops its pages. Returns whether no page is left in the cache.
fn drop_cache(fd: BorrowedFd<'_>) -> io::Result<bool> {
    retry_on_intr(|| fdatasync(fd))?;
    if fstat(fd)?.st_size == 0 {
        return Ok(true);
    }
    // A hint. cachestat(2) tells whether it worked.
    let _ = fadvise(fd, 0, None, Advice::DontNeed);
    // tmpfs has no medium.
    let in_memory = fs_type_of(fd) == Some(TMPFS);
    Ok(!in_memory && cachestat(fd, 0, 0).is_ok_and(|counted| counted.cached_pages == 0))
}

/// Opens the file `fd` for reading, through /proc: it may have no name yet. Where locks are mandatory, as on
/// SMB, only the descriptor that has locked a temporary or a partial file may read it.
fn reopen(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let opened = openat(CWD, Handle::proc_path(fd), flags, Mode::empty());
    let read = match &opened {
        Ok(opened) => pread_full(opened.as_fd(), &mut [0], 0).map(drop),
        Err(errno) => Err(*errno),
    };
    let is_readable = || fcntl_getfl(fd).is_ok_and(|flags| flags & OFlags::RWMODE == OFlags::RDWR);
    match read {
        Err(Errno::ACCESS) if is_readable() => fcntl_dupfd_cloexec(fd, 0),
        _ => opened,
    }
}

// Two files are compared byte by byte (`--verify`).
//
// What is a hole of both is not read, if both are on reliable file systems (`holes.rs`). A hole of
// one against data of the other is read.

/// Bytes that are compared at once. Those of both files fit into a processor's cache.
const BLOCK_BYTES: usize = 128 << 10;

/// The xxh3-128 of both files, if receipts are kept; or the offset of the first difference.
type Compared = Result<Option<u128>, u64>;

/// Compares a range of both files. Its end is [`u64::MAX`] if that is where both reads return nothing: the lengths
/// of other file systems may be wrong. `counters` count what was read back.
///
/// # Errors
/// Failures to read; `interrupted` if the run is.
fn compare(
    report: &Reporter<'_>,
    (src, dst): (FileAt<'_>, FileAt<'_>),
    range: Range<u64>,
    counters: Option<&WorkerCounters>,
    interrupted: impl Fn() -> Diagnostic,
) -> Result<Compared> {
    // Only a receipt shows the digest. Holes take no time without it. No file with a receipt is compared in ranges.
    let hash = report.keeps_receipts().then(Xxh3::new);
    let mut buffers = Buffer::page_aligned(2 * BLOCK_BYTES)
        .map_err(|_| failed(Action::Read, src.place)(Errno::NOMEM))?;
    let buffers = buffers.as_mut_slice().split_at_mut(BLOCK_BYTES);
    let go_on = || if report.interrupted() { Err(interrupted()) } else { Ok(()) };
    let skips_holes = has_reliable_holes(src.fd) && has_reliable_holes(dst.fd);
    let mut comparison = Comparison { src, dst, buffers, at: range.start, hash, counters, go_on };
    if skips_holes && let Some(compared) = comparison.compare_extents(range.end)? {
        return Ok(compared);
    }
    let compared = comparison.compare_to(range.end)?;
    Ok(compared.unwrap_or_else(|| comparison.equal()))
}

/// How far two files are compared.
struct Comparison<'f, G> {
    src: FileAt<'f>,
    dst: FileAt<'f>,
    /// One for each, of `BLOCK_BYTES`.
    buffers: (&'f mut [u8], &'f mut [u8]),
    /// Both files are equal up to this offset.
    at: u64,
    hash: Option<Xxh3>,
    counters: Option<&'f WorkerCounters>,
    /// Fails once the run is interrupted.
    go_on: G,
}

impl<'f, G: Fn() -> Result<()>> Comparison<'f, G> {
    /// Compares what is data of either file before `end`. `None` once a file system does not support
    /// SEEK_DATA.
    fn compare_extents(&mut self, end: u64) -> Result<Option<Compared>> {
        let end_of = |FileAt { fd, place, .. }: FileAt<'f>| {
            fstat(fd).map(|stat| file_bytes(&stat)).map_err(failed(Action::Fstat, place))
        };
        loop {
            // What is behind the end of one file differs from its end on, and is no extent.
            let (src_end, dst_end) = (end_of(self.src)?, end_of(self.dst)?);
            let both_end = src_end.min(dst_end);
            let mut first: Option<Extent> = None;
            for FileAt { fd, place, .. } in [self.src, self.dst] {
                match next_data(fd, self.at, end.min(both_end)) {
                    Ok(data) => first = first.into_iter().chain(data).min_by_key(|data| data.at),
                    Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(None),
                    Err(errno) => return Err(failed(Action::Read, place)(errno)),
                }
            }
            let Some(data) = first else {
                if src_end != dst_end && both_end < end {
                    return Ok(Some(Err(both_end)));
                }
                // The hole may go on after the end.
                self.pass_hole(both_end.min(end))?;
                return Ok(Some(self.equal()));
            };
            self.pass_hole(data.at)?;
            if let Some(compared) = self.compare_to(data.at + data.len)? {
                return Ok(Some(compared));
            }
        }
    }

    /// Continues at `end`, up to which both files have a hole.
    fn pass_hole(&mut self, end: u64) -> Result<()> {
        if let Some(hash) = &mut self.hash {
            // Zeros in the program itself would make each program larger by a block.
            let zeros = &mut self.buffers.0[..block_bytes(end.saturating_sub(self.at))];
            zeros.fill(0);
            while self.at < end {
                (self.go_on)()?;
                let len = block_bytes(end - self.at);
                hash.update(&zeros[..len]);
                self.at += len as u64;
                self.counters.iter().for_each(|counters| counters.verified(len as u64));
            }
        }
        self.passed(end.saturating_sub(self.at));
        Ok(())
    }

    /// Reads and compares up to `end`. `None` if both are equal up to there and may go on.
    fn compare_to(&mut self, end: u64) -> Result<Option<Compared>> {
        while self.at < end {
            (self.go_on)()?;
            let len = block_bytes(end - self.at);
            let src_block = read_block(self.src, &mut self.buffers.0[..len], self.at)?;
            let dst_block = read_block(self.dst, &mut self.buffers.1[..len], self.at)?;
            if src_block != dst_block {
                let pairs = src_block.iter().zip(dst_block);
                let same = pairs.take_while(|(src, dst)| src == dst).count();
                return Ok(Some(Err(self.at + same as u64)));
            }
            if let Some(hash) = &mut self.hash {
                hash.update(dst_block);
            }
            let compared = dst_block.len();
            self.passed(compared as u64);
            if compared < len {
                return Ok(Some(self.equal()));
            }
        }
        Ok(None)
    }

    /// So many bytes more are equal.
    fn passed(&mut self, bytes: u64) {
        self.at += bytes;
        self.counters.iter().for_each(|counters| counters.verified(bytes));
    }

    fn equal(&self) -> Compared {
        Ok(self.hash.as_ref().map(Xxh3::digest128))
    }
}

/// Whether the file has a hole, and its file system never reports data as one.
fn has_reliable_holes(fd: BorrowedFd<'_>) -> bool {
    fstat(fd).is_ok_and(|stat| is_sparse(&stat)) && is_on_reliable_fs(fd)
}

fn block_bytes(left: u64) -> usize {
    usize::try_from(left).map_or(BLOCK_BYTES, |left| left.min(BLOCK_BYTES))
}

/// Reads a block. Only the last one of a file is shorter.
fn read_block<'b>(of: FileAt<'_>, buffer: &'b mut [u8], at: u64) -> Result<&'b [u8]> {
    let filled = pread_full(of.fd, buffer, at).map_err(failed(Action::Read, of.place))?;
    Ok(&buffer[..filled])
}

#[cfg(test)]
mod tests {
    use std::fs::{File, read};
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;
    use std::path::Path;

    use rustix::fs::CWD;

    use super::*;
    use crate::fs::{DisplayPath, Place, Trust};
    use crate::report::Silent;

    /// The length of a file, and where it has data.
    type Shape = (u64, &'static [u64]);

    fn make(path: &Path, (len, data_at): Shape) -> File {
        let file = File::create_new(path).expect("created");
        file.set_len(len).expect("length set");
        for &at in data_at {
            file.write_all_at(b"x", at).expect("written");
        }
        File::open(path).expect("opened")
    }

    /// As cmp(1): the first byte that differs, or that only one of them has.
    fn first_difference(one: &[u8], other: &[u8]) -> Option<u64> {
        let same = one.iter().zip(other).take_while(|(one, other)| one == other).count();
        (one != other).then_some(same as u64)
    }

    #[test]
    fn the_first_difference_is_found_wherever_a_file_ends() {
        const LEN: u64 = 1 << 20;
        testfs::each_fs(|kind, dir| {
            let shapes: &[Shape] = &[
                (0, &[]),
                (LEN, &[]),
                (LEN, &[0]),
                (LEN, &[LEN - 1]),
                (2 * LEN, &[]),
                (2 * LEN, &[0]),
                (2 * LEN, &[LEN]),
                (2 * LEN, &[LEN - 1, LEN + 70_000]),
                (2 * LEN, &[2 * LEN - 1]),
                (3 * LEN - 7, &[0, LEN + 300_000]),
            ];
            for (number, (src, dst)) in
                shapes.iter().flat_map(|src| shapes.iter().map(move |dst| (src, dst))).enumerate()
            {
                let [src_path, dst_path] =
                    ["s", "d"].map(|name| dir.join(format!("{name}{number}")));
                let (src_file, dst_file) = (make(&src_path, *src), make(&dst_path, *dst));
                let place = Place::new(
                    CWD,
                    c"name",
                    DisplayPath::Operand(Path::new("name")),
                    Trust::Operand,
                );
                let stat = fstat(&src_file).expect("looked at");
                let at = |fd| FileAt { fd, stat: &stat, place: &place };
                let (options, never) = (crate::request::Options::default(), false.into());
                let report = Reporter::new(&Silent, &options, &never);
                let files = (at(src_file.as_fd()), at(dst_file.as_fd()));
                let compared =
                    compare(&report, files, 0..u64::MAX, None, || panic!("nothing interrupts it"));
                let found = compared.expect("both can be read").err();
                let [src_bytes, dst_bytes] = [src_path, dst_path].map(|path| {
                    let bytes = read(&path).expect("read");
                    std::fs::remove_file(path).expect("removed");
                    bytes
                });
                let due = first_difference(&src_bytes, &dst_bytes);
                assert_eq!(found, due, "{kind}: {src:?} {dst:?}");
            }
        });
    }
}
