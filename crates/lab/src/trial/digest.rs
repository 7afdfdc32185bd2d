//! Compares files by the xxh3-128 digests of their blocks. Several threads compute them, since a
//! race verifies every copy.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use crate::error::Error;
use crate::source::{Load, Source};

/// Bytes digested as one; small enough to stay in a processor's cache between read and digest.
const BLOCK_BYTES: u64 = 1 << 20;

/// Bytes digested as one, as a length in memory.
const BLOCK_LEN: usize = 1 << 20;

/// More threads than this wait for memory and not for each other.
const THREADS_MAX: usize = 4;

/// The digests of one file's blocks.
pub(crate) type Digest = Vec<u128>;

/// The digests of a load, a file after another.
#[derive(Debug, Serialize, Deserialize)]
pub struct Digests {
    parts: Vec<Digest>,
}

impl Digests {
    /// Reads the load.
    ///
    /// # Errors
    /// When a file cannot be opened or read, or has changed.
    pub fn of(source: &Source, load: &Load) -> Result<Digests, Error> {
        let parts = load.parts.iter().map(|part| {
            let fd = source.open_file(part.file)?;
            digest(fd.as_fd(), part.bytes)
                .map_err(Error::path("cannot read", source.path_of(part.file)))
        });
        Ok(Digests { parts: parts.collect::<Result<_, _>>()? })
    }

    /// The digests of one file of `len` bytes, whose block at an offset `fill` makes.
    pub(crate) fn of_made(len: u64, mut fill: impl FnMut(u64, &mut [u8])) -> Digests {
        let mut buffer = vec![0; BLOCK_LEN];
        let blocks = (0..len).step_by(BLOCK_LEN).map(|at| {
            #[allow(clippy::cast_possible_truncation)] // At most the length of a block.
            let piece = &mut buffer[..(len - at).min(BLOCK_BYTES) as usize];
            fill(at, piece);
            xxh3_128(piece)
        });
        Digests { parts: vec![blocks.collect()] }
    }

    /// How `copy` differs from part `index` of the load; `None` when it is equal.
    ///
    /// # Errors
    /// When the copy cannot be read.
    pub(crate) fn difference(
        &self,
        index: usize,
        bytes: u64,
        copy: BorrowedFd<'_>,
    ) -> rustix::io::Result<Option<String>> {
        let copy_bytes = u64::try_from(rustix::fs::fstat(copy)?.st_size).unwrap_or(0);
        if copy_bytes != bytes {
            return Ok(Some(format!("has {copy_bytes} bytes and not {bytes}")));
        }
        let digest = digest(copy, bytes)?;
        let differs = digest.iter().zip(&self.parts[index]).position(|(a, b)| a != b);
        Ok(differs.map(|block| {
            let at = block as u64 * BLOCK_BYTES;
            format!("has other bytes in the MiB at offset {at}")
        }))
    }
}

/// The digests of the first `len` bytes of `fd`. A file that ends earlier is an EIO.
fn digest(fd: BorrowedFd<'_>, len: u64) -> rustix::io::Result<Digest> {
    let blocks = usize::try_from(len.div_ceil(BLOCK_BYTES)).map_err(|_| Errno::FBIG)?;
    let next = AtomicUsize::new(0);
    let work = || -> rustix::io::Result<Vec<(usize, u128)>> {
        let mut found = Vec::new();
        let mut buffer = vec![0; BLOCK_LEN.min(usize::try_from(len).unwrap_or(BLOCK_LEN))];
        loop {
            let block = next.fetch_add(1, Ordering::Relaxed);
            if block >= blocks {
                return Ok(found);
            }
            let at = block as u64 * BLOCK_BYTES;
            let want = usize::try_from((len - at).min(BLOCK_BYTES)).map_err(|_| Errno::FBIG)?;
            read_exactly(fd, &mut buffer[..want], at)?;
            found.push((block, xxh3_128(&buffer[..want])));
        }
    };
    let mut found = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads_for(blocks))
            // If a thread cannot be started, the others do its blocks.
            .filter_map(|_| std::thread::Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        let mut found = work()?;
        for other in others {
            found.extend(other.join().expect("digesting does not panic")?);
        }
        rustix::io::Result::Ok(found)
    })?;
    found.sort_unstable_by_key(|(block, _)| *block);
    Ok(found.into_iter().map(|(_, digest)| digest).collect())
}

/// Reading the number of processors costs more than digesting a small file.
fn threads_for(blocks: usize) -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    let wanted = blocks.div_ceil(4).min(THREADS_MAX);
    if wanted <= 1 {
        return wanted;
    }
    let processors =
        PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from));
    wanted.min(*processors)
}

fn read_exactly(fd: BorrowedFd<'_>, buffer: &mut [u8], at: u64) -> rustix::io::Result<()> {
    let got = engines::pread_full(fd, buffer, at)?;
    if got < buffer.len() { Err(Errno::IO) } else { Ok(()) }
}
