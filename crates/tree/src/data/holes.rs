//! The extents and holes of a file, by lseek(2). `copy_by_options` in `transfer.rs` decides whether they
//! are used: on file systems of [`engines::fs_types::Storage::Reliable`] only (docs/design/holes.md).

use std::os::fd::BorrowedFd;

use engines::{Moved, Pair, Side, Stop};
use rustix::fs::{SeekFrom, seek};
use rustix::io::{self, Errno};

/// A range of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Offset in bytes.
    pub(crate) at: u64,
    /// Bytes.
    pub(crate) len: u64,
}

/// The first extent of `fd` at or after `at` and before `end`; `None` when only a hole remains.
pub(crate) fn next_data(fd: BorrowedFd<'_>, at: u64, end: u64) -> io::Result<Option<Extent>> {
    let find = |from| match seek(fd, from) {
        Err(Errno::NXIO) => Ok(end),
        found => found,
    };
    let data = find(SeekFrom::Data(at))?;
    if data >= end {
        return Ok(None);
    }
    // Every file ends in a hole. ENXIO means that the file was truncated meanwhile.
    let hole = find(SeekFrom::Hole(data))?;
    Ok(Some(Extent { at: data, len: hole.min(end).saturating_sub(data) }))
}

/// The result of [`copy_without_zeros`].
pub(crate) struct CopiedWithoutZeros {
    /// Bytes read, including zeros, and why the copy stopped.
    pub(crate) moved: Moved,
    /// How many of them were not written.
    pub(crate) hole_bytes: u64,
}

/// Reads `len` bytes from the offset `src_at`, or from where the source is, and writes the blocks of `block_bytes` that
/// are not zeros from the offset `at`. The destination must read as zeros where nothing is written.
pub(crate) fn copy_without_zeros(
    pair: Pair<'_>,
    (src_at, at): (Option<u64>, u64),
    len: u64,
    block_bytes: usize,
    buffer: &mut [u8],
) -> CopiedWithoutZeros {
    // Blocks are aligned to the start of the file, as in the file system.
    let whole_blocks = (buffer.len() / block_bytes).max(1) * block_bytes;
    let buffer_bytes = whole_blocks.min(buffer.len());
    let mut copied =
        CopiedWithoutZeros { moved: Moved { bytes: 0, stop: Stop::Done }, hole_bytes: 0 };
    while copied.moved.bytes < len {
        let bytes = copied.moved.bytes;
        let offset = at + bytes;
        let to_boundary = buffer_bytes as u64 - offset % buffer_bytes as u64;
        let want = usize::try_from((len - bytes).min(to_boundary)).unwrap_or(buffer_bytes);
        let buffer = &mut buffer[..want];
        let read = match src_at {
            Some(src_at) => io::pread(pair.src, &mut *buffer, src_at + bytes),
            None => io::read(pair.src, &mut *buffer),
        };
        copied.moved.stop = match read {
            Ok(0) => Stop::Eof,
            Err(Errno::INTR) => continue,
            Err(errno) => Stop::Failed { side: Side::Src, errno },
            Ok(got) => {
                let written = write_data(pair.dst, &buffer[..got], at, block_bytes, &mut copied);
                if let Some(meter) = pair.meter {
                    meter.add(copied.moved.bytes - bytes);
                }
                let Err(errno) = written else { continue };
                Stop::Failed { side: Side::Dst, errno }
            }
        };
        break;
    }
    copied
}

/// Writes the blocks of `bytes` that are not zeros behind those that were copied from `at` on.
fn write_data(
    dst: BorrowedFd<'_>,
    bytes: &[u8],
    at: u64,
    block_bytes: usize,
    copied: &mut CopiedWithoutZeros,
) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let offset = at + copied.moved.bytes;
        let first = block_bytes - usize::try_from(offset % block_bytes as u64).unwrap_or(0);
        let (passed, written) = match run_of_blocks(rest, first, block_bytes, true) {
            0 => {
                let data = run_of_blocks(rest, first, block_bytes, false);
                engines::pwrite_all(dst, &rest[..data], offset)
            }
            zeros => {
                copied.hole_bytes += zeros as u64;
                (zeros, Ok(()))
            }
        };
        copied.moved.bytes += passed as u64;
        written?;
        rest = &rest[passed..];
    }
    Ok(())
}

/// How many bytes at the front of `bytes` are blocks of zeros, or of data. The first block has
/// `first` bytes; the last may be shorter.
fn run_of_blocks(bytes: &[u8], first: usize, block_bytes: usize, zeros: bool) -> usize {
    let mut end = 0;
    let mut block = first;
    while end < bytes.len() {
        let next = (end + block).min(bytes.len());
        if is_zeros(&bytes[end..next]) != zeros {
            break;
        }
        end = next;
        block = block_bytes;
    }
    end
}

/// Whether all `bytes` are zeros.
pub(super) fn is_zeros(bytes: &[u8]) -> bool {
    let chunks = bytes.chunks_exact(16);
    let tail = chunks.remainder();
    let mut chunks = chunks;
    chunks.all(|chunk| chunk == [0; 16]) && tail.iter().all(|&byte| byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    #[test]
    fn every_block_of_zeros_becomes_a_hole() {
        let block = 4096;
        for (blocks, cut) in [("0", 0), ("1", 0), ("0101", 7), ("1001", 0), ("0000110", 100)] {
            let mut bytes = Vec::new();
            for digit in blocks.bytes() {
                bytes.extend(std::iter::repeat_n(digit - b'0', block));
            }
            bytes.truncate(bytes.len() - cut);
            let src = tempfile::tempfile().expect("created");
            let dst = tempfile::tempfile().expect("created");
            src.write_all_at(&bytes, 0).expect("written");
            for buffer_bytes in [block, 3 * block, 64 * block] {
                dst.set_len(0).expect("emptied");
                let mut buffer = vec![0xaa; buffer_bytes];
                let len = bytes.len() as u64;
                let pair = Pair::new(src.as_fd(), dst.as_fd());
                let result = copy_without_zeros(pair, (Some(0), 0), len, block, &mut buffer);
                assert_eq!(result.moved, Moved { bytes: len, stop: Stop::Done });
                dst.set_len(len).expect("extended");
                let mut copied = vec![1; bytes.len()];
                dst.read_exact_at(&mut copied, 0).expect("read");
                assert!(copied == bytes, "{blocks}");
                let zeros = bytes.iter().filter(|&&byte| byte == 0).count() as u64;
                assert_eq!(result.hole_bytes, zeros, "{blocks}");
            }
        }
    }
}
