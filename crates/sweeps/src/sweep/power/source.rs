//! Random trees to copy, and what may be at the destination before.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use fastrand::Rng;
use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags};

/// What a tree has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Files of up to 40 KB.
    pub(super) files: usize,
    /// Files that `--resume` makes beside a journal, of 4 to 8 MiB.
    pub(super) large_files: usize,
}

/// The directories of every tree.
const DIRS: [&str; 4] = ["d", "d/e", "empty", "g"];

/// Makes a tree in the new directory `root`.
pub(super) fn make(root: &Path, shape: Shape, rng: &mut Rng) -> io::Result<()> {
    fs::create_dir(root)?;
    for dir in DIRS {
        fs::create_dir(root.join(dir))?;
    }
    for (number, path) in paths(shape).into_iter().enumerate() {
        let path = root.join(path);
        write(&path, content(number, shape, rng), rng)?;
        if rng.u8(..6) == 0 {
            fs::hard_link(&path, path.with_extension("link"))?;
        }
        if rng.u8(..6) == 0 {
            symlink(path.file_name().expect("a file has a name"), path.with_extension("sym"))?;
        }
    }
    rustix::fs::mknodat(CWD, root.join("d/fifo"), FileType::Fifo, Mode::from_raw_mode(0o640), 0)?;
    let file = File::create(root.join("sparse"))?;
    file.write_all_at(&testfs::random_bytes(5000, rng.u64(..)), 70_000)?;
    file.set_len(200_000)?;
    for dir in DIRS.iter().rev() {
        fs::set_permissions(root.join(dir), fs::Permissions::from_mode(0o755 - rng.u32(..8)))?;
        set_time(&root.join(dir), rng)?;
    }
    set_time(root, rng)
}

/// Makes an older tree in the new directory `root`: of some of the files of [`make`], other versions.
pub(super) fn make_older(root: &Path, shape: Shape, rng: &mut Rng) -> io::Result<()> {
    fs::create_dir(root)?;
    for dir in ["d", "g"] {
        fs::create_dir(root.join(dir))?;
    }
    for (number, path) in paths(shape).into_iter().enumerate() {
        let path = root.join(path);
        if path.parent().is_some_and(Path::exists) && rng.bool() {
            write(&path, content(number, shape, rng), rng)?;
        }
    }
    Ok(())
}

fn paths(shape: Shape) -> Vec<PathBuf> {
    let small = (0..shape.files).map(|number| {
        let dir = ["", "d", "d/e", "g"][number % 4];
        Path::new(dir).join(format!("f{number}"))
    });
    let large = (0..shape.large_files).map(|number| PathBuf::from(format!("large{number}")));
    small.chain(large).collect()
}

fn content(number: usize, shape: Shape, rng: &mut Rng) -> Vec<u8> {
    let len = match number < shape.files {
        true => [0, 1, 100, 4096, rng.usize(..40_000)][rng.usize(..5)],
        false => (4 << 20) + rng.usize(..4 << 20),
    };
    testfs::random_bytes(len, rng.u64(..))
}

fn write(path: &Path, content: Vec<u8>, rng: &mut Rng) -> io::Result<()> {
    fs::write(path, content)?;
    fs::set_permissions(path, fs::Permissions::from_mode([0o644, 0o600, 0o755][rng.usize(..3)]))?;
    if rng.u8(..4) == 0 {
        // tmpfs keeps such attributes since Linux 6.6.
        match rustix::fs::setxattr(path, "user.kept", b"value", XattrFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    set_time(path, rng)
}

fn set_time(path: &Path, rng: &mut Rng) -> io::Result<()> {
    let time = Timespec { tv_sec: rng.i64(1_000_000_000..1_700_000_000), tv_nsec: 123_456_789 };
    let times = Timestamps { last_access: time, last_modification: time };
    Ok(rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}
