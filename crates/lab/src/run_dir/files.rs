//! The files of a run directory: their names, how they are written, and errors with their paths.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::experiment::parse::DefinitionError;
use crate::sample::record;

/// The definition as it was run, with a table `run` that says how.
pub const EXPERIMENT: &str = "experiment.toml";
/// Where it was run.
pub const ENVIRONMENT: &str = "environment.json";
/// A line a sample.
pub const SAMPLES: &str = "samples.csv";
/// A line a round.
pub const ROUNDS: &str = "rounds.csv";
/// Histograms of single calls.
pub const CALLS: &str = "calls.csv";
/// Single calls in their order.
pub const SEQUENCES: &str = "sequences.csv";
/// Variants that do not work here, a line each.
pub const REFUSALS: &str = "refusals.csv";
/// The answers.
pub const VERDICT: &str = "verdict.json";
/// The answers for people, with every table.
pub const DETAILS: &str = "verdict.txt";
/// The certificate in force, where there is one.
pub const CERTIFICATE: &str = "certificate.json";

/// A run directory that cannot be made, read or written.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file or directory.
    #[error("cannot {action} '{}': {error}", .path.display())]
    File {
        /// What was being done.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it could not be done.
        error: std::io::Error,
    },
    /// A file whose contents are not what they have to be.
    #[error(transparent)]
    Record(#[from] record::ReadError),
    /// The definition in it is wrong.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// Something else about it.
    #[error("'{}': {problem}", .path.display())]
    Other {
        /// The directory.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

/// Reads a whole file of a run directory, which may be that of another user.
///
/// # Errors
/// Those of open(2) and read(2), and for all but regular files: a fifo would be waited for, and a device has no end.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let mut file = File::options().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        let kind =
            if metadata.is_dir() { io::ErrorKind::IsADirectory } else { io::ErrorKind::Other };
        return Err(io::Error::new(kind, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a whole file of text.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Writes a whole file under another name and renames it.
pub(crate) fn write(path: &Path, text: &[u8]) -> Result<(), RunError> {
    let part = path.with_extension("part");
    let written = File::create(&part).and_then(|mut file| {
        file.write_all(text)?;
        file.write_all(b"\n")
    });
    written.and_then(|()| std::fs::rename(&part, path)).map_err(failed("write", path))
}

pub(crate) fn failed(
    action: &'static str,
    path: impl Into<PathBuf>,
) -> impl FnOnce(std::io::Error) -> RunError {
    let path = path.into();
    move |error| RunError::File { action, path, error }
}
