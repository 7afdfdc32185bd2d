//! The free space of the file systems of sources and copies.

use std::path::Path;

use crate::error::Error;

/// Bytes that are free.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space {
    pub(crate) src: u64,
    pub(crate) dst: u64,
    /// Both directories are on one file system.
    pub(crate) same: bool,
}

/// Missing space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lack {
    /// Where the sources are to be, rather than where the copies are.
    of_src: bool,
    pub(crate) needed_bytes: u64,
    pub(crate) free_bytes: u64,
}

impl Space {
    pub(crate) fn between(src_dir: &Path, dst_dir: &Path) -> Result<Space, Error> {
        let dev = |dir: &Path| rustix::fs::stat(dir).map(|stat| stat.st_dev).ok();
        let same = dev(src_dir) == dev(dst_dir);
        Ok(Space { src: free_bytes(src_dir)?, dst: free_bytes(dst_dir)?, same })
    }

    /// What there is not enough of for sources and copies of so many bytes; `None` where there is.
    pub(crate) fn lack(&self, (src_bytes, dst_bytes): (u64, u64)) -> Option<Lack> {
        let together = (src_bytes.saturating_add(dst_bytes), self.src.min(self.dst), false);
        let apart = [(src_bytes, self.src, true), (dst_bytes, self.dst, false)];
        let ends = if self.same { vec![together] } else { apart.to_vec() };
        let lacks = |&(needed_bytes, free_bytes, _): &(u64, u64, bool)| needed_bytes > free_bytes;
        let (needed_bytes, free_bytes, of_src) = ends.into_iter().find(lacks)?;
        Some(Lack { of_src, needed_bytes, free_bytes })
    }
}

/// Refuses where there is no room for sources in one directory and copies in another.
///
/// # Errors
/// `NoSpace`, in words.
pub fn require_space(src_dir: &Path, dst_dir: &Path, bytes: (u64, u64)) -> Result<(), Error> {
    let Some(lack) = Space::between(src_dir, dst_dir)?.lack(bytes) else { return Ok(()) };
    let Lack { of_src, needed_bytes, free_bytes } = lack;
    let dir = if of_src { src_dir } else { dst_dir }.to_owned();
    Err(Error::NoSpace { dir, needed_bytes, free_bytes })
}

fn free_bytes(dir: &Path) -> Result<u64, Error> {
    let stat =
        rustix::fs::statvfs(dir).map_err(Error::path("cannot ask for the free space of", dir))?;
    // Some file systems without a fixed size report none at all.
    let known = stat.f_blocks > 0;
    Ok(if known { stat.f_bavail.saturating_mul(stat.f_frsize) } else { u64::MAX })
}
