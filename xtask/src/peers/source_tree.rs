//! Builds sources from a seed: the same seed gives the same source.

use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, XattrFlags};

pub(crate) const KIB: u64 = 1 << 10;
pub(crate) const MIB: u64 = 1 << 20;

/// Pseudo-random bytes, of which all contents are parts. No two pages are equal.
const NOISE_BYTES: usize = 1 << 20;

/// One in this many files also has a hard link, one is the target of a symlink, and so on. That is
/// too few to affect the time, and enough to detect a copier that loses them.
const LINK_EVERY: u64 = 50;
const ODD_EVERY: u64 = 40;

/// The first of January 2020.
const LONG_AGO: i64 = 1_577_836_800;

/// A source under construction.
pub(crate) struct Builder {
    /// The file or directory to be copied.
    root: PathBuf,
    rng: fastrand::Rng,
    noise: Vec<u8>,
    dirs: Vec<PathBuf>,
    files: u64,
    bytes: u64,
}

impl Builder {
    pub(crate) fn new(root: PathBuf, seed: u64) -> Builder {
        let noise = testfs::random_bytes(2 * NOISE_BYTES, seed);
        let rng = fastrand::Rng::with_seed(seed);
        Builder { root, rng, noise, dirs: Vec::new(), files: 0, bytes: 0 }
    }

    /// Number of files so far. Hard links count once.
    pub(crate) fn files(&self) -> u64 {
        self.files
    }

    /// Bytes of the files so far. Hard links count once.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn uniform(&mut self, low: u64, high: u64) -> u64 {
        self.rng.u64(low..=high)
    }

    /// A log-uniform size: as many files between 1 and 2 KiB as between 1 and 2 MiB.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub(crate) fn log_uniform(&mut self, low: u64, high: u64) -> u64 {
        let (low, high) = ((low as f64).ln(), (high as f64).ln());
        (low + (high - low) * self.rng.f64()).exp() as u64
    }

    /// Creates the root and a directory below it. The empty path is the root itself.
    pub(crate) fn dir(&mut self, path: &str) -> anyhow::Result<()> {
        let dir = if path.is_empty() { self.root.clone() } else { self.root.join(path) };
        std::fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
        self.dirs.push(dir);
        Ok(())
    }

    /// Creates the root and `count` directories, each in a random earlier one.
    pub(crate) fn nested_dirs(&mut self, count: u64) -> anyhow::Result<()> {
        self.dir("")?;
        for number in 0..count {
            let dir = self.any_dir().join(format!("dir-{number}"));
            std::fs::create_dir(&dir).with_context(|| dir.display().to_string())?;
            self.dirs.push(dir);
        }
        Ok(())
    }

    pub(crate) fn file_in_any_dir(&mut self, bytes: u64) -> anyhow::Result<()> {
        let dir = self.any_dir();
        self.file_in(&dir, bytes)
    }

    pub(crate) fn file_in_last_dir(&mut self, bytes: u64) -> anyhow::Result<()> {
        let dir = self.dirs.last().expect("a directory was created").clone();
        self.file_in(&dir, bytes)
    }

    /// Creates a file in the last directory, without links beside it: the copy of an operand that
    /// is a symbolic link is a file.
    pub(crate) fn plain_file_in_last_dir(&mut self, bytes: u64) -> anyhow::Result<()> {
        let dir = self.dirs.last().expect("a directory was created");
        let path = dir.join(format!("file-{}", self.files));
        self.write(&path, bytes)
    }

    /// Creates a directory below the root with a hard link to each file in the directory `of`.
    pub(crate) fn dir_of_hard_links(&mut self, path: &str, of: &str) -> anyhow::Result<()> {
        self.dir(path)?;
        let (dir, of) = (self.root.join(path), self.root.join(of));
        for entry in std::fs::read_dir(&of).with_context(|| of.display().to_string())? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                let link = dir.join(entry.file_name());
                std::fs::hard_link(entry.path(), &link)
                    .with_context(|| link.display().to_string())?;
            }
        }
        Ok(())
    }

    pub(crate) fn symlink_in_last_dir(&mut self, number: u64) -> anyhow::Result<()> {
        let link =
            self.dirs.last().expect("a directory was created").join(format!("link-{number}"));
        symlink(format!("some/target-{number}"), &link).with_context(|| link.display().to_string())
    }

    /// Creates the root as a file.
    pub(crate) fn only_file(&mut self, bytes: u64) -> anyhow::Result<()> {
        let root = self.root.clone();
        self.write(&root, bytes)
    }

    /// Creates the root as a file of `bytes` with `data_bytes` in every `period_bytes`, the rest
    /// holes.
    pub(crate) fn only_sparse_file(
        &mut self,
        bytes: u64,
        data_bytes: usize,
        period_bytes: usize,
    ) -> anyhow::Result<()> {
        let file = File::create(&self.root).with_context(|| self.root.display().to_string())?;
        file.set_len(bytes)?;
        for at in (0..bytes).step_by(period_bytes) {
            let len = data_bytes.min(usize::try_from(bytes - at)?);
            file.write_all_at(&self.noise[..len], at)?;
        }
        self.files += 1;
        self.bytes += bytes;
        Ok(())
    }

    /// Sets a distinct old modification time on every entry. With the current time, a copier that
    /// compares whole seconds could take the time of a new copy for the right one.
    pub(crate) fn age(&self) -> anyhow::Result<()> {
        let mut seconds = LONG_AGO;
        age(&self.root, &mut seconds).with_context(|| self.root.display().to_string())
    }

    fn any_dir(&mut self) -> PathBuf {
        self.dirs[self.rng.usize(..self.dirs.len())].clone()
    }

    fn file_in(&mut self, dir: &Path, bytes: u64) -> anyhow::Result<()> {
        let number = self.files;
        let path = dir.join(format!("file-{number}"));
        self.write(&path, bytes)?;
        self.make_odd(&path, number).with_context(|| path.display().to_string())?;
        if number.is_multiple_of(LINK_EVERY) {
            let hard_link = self.any_dir().join(format!("hard-link-{number}"));
            std::fs::hard_link(&path, &hard_link)
                .with_context(|| hard_link.display().to_string())?;
            symlink(format!("file-{number}"), dir.join(format!("symlink-{number}")))?;
        }
        Ok(())
    }

    fn write(&mut self, path: &Path, bytes: u64) -> anyhow::Result<()> {
        let mut file = File::create(path).with_context(|| path.display().to_string())?;
        let start = self.rng.usize(..NOISE_BYTES);
        let mut left = bytes;
        while left > 0 {
            let len = usize::try_from(left).unwrap_or(usize::MAX).min(NOISE_BYTES);
            file.write_all(&self.noise[start..start + len])
                .with_context(|| path.display().to_string())?;
            left -= len as u64;
        }
        self.files += 1;
        self.bytes += bytes;
        Ok(())
    }

    /// Sets another mode, extended attribute or, if permitted, owner on some entries, to detect
    /// copiers that lose them.
    fn make_odd(&self, path: &Path, number: u64) -> anyhow::Result<()> {
        match number % ODD_EVERY {
            1 => std::fs::set_permissions(path, Permissions::from_mode(0o4751))?,
            2 => match rustix::fs::setxattr(path, "user.colour", b"red", XattrFlags::empty()) {
                // Not every file system supports them.
                Err(rustix::io::Errno::OPNOTSUPP) => {}
                result => result?,
            },
            3 if rustix::process::geteuid().is_root() => {
                std::os::unix::fs::chown(path, Some(1234), Some(4321))?;
            }
            _ => {}
        }
        Ok(())
    }
}

fn age(path: &Path, seconds: &mut i64) -> std::io::Result<()> {
    if path.symlink_metadata()?.is_dir() {
        let mut entries =
            std::fs::read_dir(path)?.collect::<std::io::Result<Vec<std::fs::DirEntry>>>()?;
        // The order of directory entries differs between directories.
        entries.sort_by_key(std::fs::DirEntry::file_name);
        entries.iter().try_for_each(|entry| age(&entry.path(), seconds))?;
    }
    *seconds += 1;
    let time = Timespec { tv_sec: *seconds, tv_nsec: 123_456_789 };
    let times = Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use testfs::{Aspects, Tree};

    use super::*;

    fn build(home: &Path, name: &str, seed: u64) -> Tree {
        let mut builder = Builder::new(home.join(name), seed);
        builder.nested_dirs(10).expect("directories");
        for _ in 0..60 {
            let bytes = builder.log_uniform(100, 4 * KIB);
            assert!((100..=4 * KIB).contains(&bytes), "{bytes}");
            builder.file_in_any_dir(bytes).expect("a file");
        }
        assert_eq!(builder.files(), 60);
        builder.age().expect("times");
        Tree::read(&home.join(name)).expect("readable")
    }

    #[test]
    fn the_same_seed_gives_the_same_tree() {
        let home = tempfile::tempdir().expect("a directory");
        let one = build(home.path(), "one", 7);
        let again = build(home.path(), "again", 7);
        assert_eq!(one.differences(&again, Aspects::ALL), [""; 0]);
        let other = build(home.path(), "other", 8);
        assert!(!one.differences(&other, Aspects::ALL).is_empty());
    }

    #[test]
    fn a_sparse_file_has_holes() {
        use std::os::unix::fs::MetadataExt;
        let home = tempfile::tempdir().expect("a directory");
        let mut builder = Builder::new(home.path().join("sparse"), 1);
        builder.only_sparse_file(8 * MIB, 64 << 10, 6400 << 10).expect("a file");
        let metadata = std::fs::metadata(home.path().join("sparse")).expect("there");
        assert_eq!(metadata.len(), 8 * MIB);
        let allocated_bytes = metadata.blocks() * 512;
        assert!((128 * KIB..MIB).contains(&allocated_bytes), "{allocated_bytes}");
    }
}
