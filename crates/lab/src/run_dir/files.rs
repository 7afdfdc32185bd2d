//! The files of a run directory: their names, how they are written, and errors with their paths.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

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
/// The same for people, with every table.
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
