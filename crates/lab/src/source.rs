//! The source: a file, or the regular files below a directory in a fixed order.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::error::Error;

/// Files to copy. They are opened afresh for each run, and must not change meanwhile.
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    /// The directory that the files are named from; `None` when `path` is the one file.
    root: Option<OwnedFd>,
    files: Vec<SourceFile>,
}

#[derive(Debug)]
struct SourceFile {
    /// From the root of the source; the file itself when there is no root.
    name: PathBuf,
    identity: Identity,
}

/// What identifies a file and shows that it was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    dev: u64,
    ino: u64,
    bytes: u64,
    allocated_bytes: u64,
    mtime: (i64, i64),
}

/// What one run copies: the source, or the start of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// The files in order.
    pub parts: Vec<Part>,
    /// All of them together.
    pub bytes: u64,
}

/// The first bytes of one file of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The index of the file in the source.
    pub file: usize,
    /// Bytes from its start.
    pub bytes: u64,
}

impl Source {
    /// The file or directory at `path`. A directory is walked without following symbolic links;
    /// only regular files that hold bytes count.
    ///
    /// # Errors
    /// When something cannot be opened or read, or nothing holds a byte.
    pub fn open(path: &Path) -> Result<Source, Error> {
        let cannot_open = |errno| Error::path("cannot open", path)(errno);
        let fd = rustix::fs::open(path, READ, Mode::empty()).map_err(cannot_open)?;
        let stat = rustix::fs::fstat(&fd).map_err(cannot_open)?;
        let (root, files) = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                (None, vec![SourceFile { name: path.to_owned(), identity: Identity::of(&stat) }])
            }
            FileType::Directory => {
                let mut files = Vec::new();
                walk(&fd, path, Path::new(""), &mut files)?;
                // The order in which a directory lists its entries is not the same everywhere.
                files.sort_by(|a, b| a.name.cmp(&b.name));
                (Some(fd), files)
            }
            _ => {
                let why = "is neither a regular file nor a directory";
                return Err(Error::Empty { path: path.to_owned(), why });
            }
        };
        if files.iter().all(|file| file.identity.bytes == 0) {
            let why = if root.is_some() { "holds no regular file with bytes" } else { "is empty" };
            return Err(Error::Empty { path: path.to_owned(), why });
        }
        Ok(Source { path: path.to_owned(), root, files })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file, for messages.
    pub fn path_of(&self, file: usize) -> PathBuf {
        match self.root {
            Some(_) => self.path.join(&self.files[file].name),
            None => self.path.clone(),
        }
    }

    /// Everything there is to copy.
    pub fn whole(&self) -> Load {
        self.first(u64::MAX)
    }

    /// The first `bytes` of it, or less when it is smaller.
    pub fn first(&self, bytes: u64) -> Load {
        let mut load = Load { parts: Vec::new(), bytes: 0 };
        for (file, SourceFile { identity, .. }) in self.files.iter().enumerate() {
            let part_bytes = identity.bytes.min(bytes - load.bytes);
            if part_bytes > 0 {
                load.parts.push(Part { file, bytes: part_bytes });
                load.bytes += part_bytes;
            }
        }
        load
    }

    /// Bytes of `load` that lie on the medium rather than in holes, as far as that is known.
    pub fn allocated_bytes(&self, load: &Load) -> u64 {
        load.parts
            .iter()
            .map(|part| part.bytes.min(self.files[part.file].identity.allocated_bytes))
            .sum()
    }

    /// Has dirty pages of the source written to the medium, so that this does not happen in the
    /// middle of a run.
    ///
    /// # Errors
    /// When a file cannot be opened, or has changed.
    pub fn settle(&self) -> Result<(), Error> {
        for file in 0..self.files.len() {
            // File systems that cannot do it have nothing to write.
            let _ = rustix::fs::fdatasync(self.open_file(file)?);
        }
        Ok(())
    }

    /// Opens a file of the source for reading.
    ///
    /// # Errors
    /// When it cannot be opened, or is not the file that it was.
    pub fn open_file(&self, file: usize) -> Result<OwnedFd, Error> {
        let SourceFile { name, identity } = &self.files[file];
        let failed = |errno| Error::path("cannot open", self.path_of(file))(errno);
        let fd = match &self.root {
            None => rustix::fs::open(name, READ, Mode::empty()),
            Some(root) => open_below(root.as_fd(), name),
        }
        .map_err(failed)?;
        let now = Identity::of(&rustix::fs::fstat(&fd).map_err(failed)?);
        // Blocks are given to a file when its bytes reach the medium; that is no change.
        if (Identity { allocated_bytes: identity.allocated_bytes, ..now }) != *identity {
            return Err(Error::SourceChanged(self.path_of(file)));
        }
        Ok(fd)
    }
}

/// O_NONBLOCK: the opening of a fifo that was named by mistake must not wait for a writer. Regular
/// files do not know it.
const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

/// Opens `name` below `root` without leaving it and without following links.
fn open_below(root: BorrowedFd<'_>, name: &Path) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match rustix::fs::openat2(root, name, READ, Mode::empty(), resolve) {
        // A filter that does not know openat2. The file is only read, and its identity compared.
        Err(Errno::NOSYS | Errno::PERM) => {
            rustix::fs::openat(root, name, READ | OFlags::NOFOLLOW, Mode::empty())
        }
        result => result,
    }
}

fn walk(
    dir: &OwnedFd,
    path: &Path,
    prefix: &Path,
    files: &mut Vec<SourceFile>,
) -> Result<(), Error> {
    let cannot_read = |errno| Error::path("cannot read the directory", path.join(prefix))(errno);
    for entry in Dir::read_from(dir).map_err(cannot_read)? {
        let entry = entry.map_err(cannot_read)?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let below = prefix.join(name);
        let flags = READ | OFlags::NOFOLLOW;
        let stat = rustix::fs::statat(dir, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)
            .map_err(Error::path("cannot stat", path.join(&below)))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                files.push(SourceFile { name: below, identity: Identity::of(&stat) });
            }
            FileType::Directory => {
                let fd = rustix::fs::openat(dir, name, flags | OFlags::DIRECTORY, Mode::empty())
                    .map_err(Error::path("cannot open", path.join(&below)))?;
                walk(&fd, path, &below, files)?;
            }
            _ => {}
        }
    }
    Ok(())
}

impl Identity {
    fn of(stat: &Stat) -> Identity {
        let unsigned = |value: i64| u64::try_from(value).unwrap_or(0);
        Identity {
            dev: stat.st_dev,
            ino: stat.st_ino,
            bytes: unsigned(stat.st_size),
            allocated_bytes: unsigned(stat.st_blocks) * 512,
            mtime: (stat.st_mtime, stat.st_mtime_nsec),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_directory_is_its_regular_files_in_order() {
        let home = tempfile::tempdir().expect("created");
        fs::write(home.path().join("b"), [1; 10]).expect("written");
        fs::write(home.path().join("empty"), []).expect("written");
        fs::create_dir(home.path().join("a")).expect("made");
        let odd = OsStr::from_bytes(b"not \xff utf-8");
        fs::write(home.path().join("a").join(odd), [2; 5]).expect("written");
        std::os::unix::fs::symlink("b", home.path().join("link")).expect("linked");
        let source = Source::open(home.path()).expect("opened");
        let load = source.whole();
        assert_eq!(load.bytes, 15);
        assert_eq!(load.parts.iter().map(|part| part.bytes).collect::<Vec<_>>(), [5, 10]);
        assert_eq!(source.first(7).parts.iter().map(|p| p.bytes).collect::<Vec<_>>(), [5, 2]);
        source.open_file(load.parts[0].file).expect("opened by its odd name");
        fs::write(home.path().join("b"), [1; 11]).expect("written");
        let changed = source.open_file(load.parts[1].file).expect_err("it grew");
        assert!(matches!(changed, Error::SourceChanged(_)), "{changed}");
    }

    #[test]
    fn what_holds_nothing_is_refused() {
        let home = tempfile::tempdir().expect("created");
        let refusal = |path: &Path| Source::open(path).expect_err("nothing there").to_string();
        assert!(refusal(home.path()).contains("no regular file with bytes"));
        let file = home.path().join("empty");
        fs::write(&file, []).expect("written");
        assert!(refusal(&file).contains("is empty"));
        assert!(refusal(Path::new("/dev/null")).contains("neither"));
        assert!(refusal(&home.path().join("none")).contains("No such file"));
    }
}
