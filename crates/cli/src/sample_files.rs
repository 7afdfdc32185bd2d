//! Files to try engines with: unnamed scratch files in directories of the user, so that none can be left
//! behind.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use engines::{Engine, Pair, Verdict};
use rustix::fs::{Mode, OFlags};
use serde::Serialize;

/// Bytes of the sample that every engine copies: whole pages, and a part of one.
const SAMPLE_BYTES: usize = (256 << 10) + 1234;

/// The source and the destination that at most two operands name: one operand is both, and without any it is
/// this directory.
pub(crate) fn ends(operands: &[PathBuf]) -> [&Path; 2] {
    [operands.first(), operands.last()].map(|path| path.map_or(Path::new("."), PathBuf::as_path))
}

pub(crate) fn open_dir(path: &Path) -> anyhow::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
        .map_err(std::io::Error::from)
        .with_context(|| format!("cannot open the directory '{}'", path.display()))
}

/// The directory for scratch files: `path`, or the directory of the file `path`.
pub(crate) fn directory_of(path: &Path) -> anyhow::Result<PathBuf> {
    let metadata =
        std::fs::metadata(path).with_context(|| format!("cannot stat '{}'", path.display()))?;
    if metadata.is_dir() {
        return Ok(path.to_owned());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    Ok(parent.unwrap_or(Path::new(".")).to_owned())
}

/// The file to read: `path`, or a sample in the directory `path`. If none can be written there, a file of
/// it.
pub(crate) fn source(path: &Path) -> anyhow::Result<File> {
    if !path.is_dir() {
        let file = File::open(path);
        return file.with_context(|| format!("cannot open '{}' for reading", path.display()));
    }
    let error = match sample_file(path) {
        Ok(file) => return Ok(file),
        Err(error) => error,
    };
    let entries = std::fs::read_dir(path)
        .with_context(|| format!("cannot read directory '{}'", path.display()))?;
    let readable = entries.filter_map(Result::ok).find_map(|entry| {
        let metadata = entry.metadata().ok()?;
        let has_bytes = metadata.is_file() && metadata.len() > 0;
        has_bytes.then(|| File::open(entry.path()).ok()).flatten()
    });
    match readable {
        Some(file) => Ok(file),
        None => bail!("{error:#}, and it has no file to read"),
    }
}

/// An unnamed file in `dir` with the sample.
pub(crate) fn sample_file(dir: &Path) -> anyhow::Result<File> {
    let file = scratch_file(dir)?;
    engines::write_sample(file.as_fd(), SAMPLE_BYTES)
        .with_context(|| format!("cannot write a sample in '{}'", dir.display()))?;
    Ok(file)
}

/// An unnamed empty file in `dir`, where there is room for the sample. Without room every engine would
/// fail, and seem not to work.
pub(crate) fn empty_file(dir: &Path) -> anyhow::Result<File> {
    let file = sample_file(dir)?;
    file.set_len(0)?;
    Ok(file)
}

/// A file without a name. It cannot be left behind.
fn scratch_file(directory: &Path) -> anyhow::Result<File> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let unnamed = rustix::fs::open(directory, flags | OFlags::TMPFILE, mode);
    let file = match unnamed {
        Ok(fd) => return Ok(fd.into()),
        // Without O_TMPFILE in the file system or the kernel, the file has a name until it is unlinked.
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR | rustix::io::Errno::INVAL) => {
            let path = directory.join(format!(".haulage-engines-{}", std::process::id()));
            rustix::fs::open(&path, flags | OFlags::CREATE | OFlags::EXCL, mode).and_then(|fd| {
                rustix::fs::unlink(&path)?;
                Ok(fd)
            })
        }
        Err(errno) => Err(errno),
    };
    match file {
        Ok(fd) => Ok(fd.into()),
        Err(errno) => bail!(
            "cannot make a scratch file in '{}': {}",
            directory.display(),
            engines::describe(errno)
        ),
    }
}

/// Whether an engine works between two files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct EngineFound {
    pub(crate) name: &'static str,
    /// yes, maybe or no; floor where it copies no files, and unknown where it could not be tried.
    pub(crate) verdict: &'static str,
    /// Empty if the verdict is yes.
    pub(crate) reason: String,
}

/// Tries `engine` between two files. `None` for a floor.
pub(crate) fn tried(engine: &'static Engine, pair: Pair<'_>) -> Option<EngineFound> {
    let (verdict, reason) = match engines::probe(engine, pair)? {
        Verdict::Yes => ("yes", String::new()),
        Verdict::Maybe(why) => ("maybe", why),
        Verdict::No(why) => ("no", why),
    };
    Some(EngineFound { name: engine.name, verdict, reason })
}
