//! The files of a run directory: their names, how they are written, and errors with their paths.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use csv::{ErrorKind, StringRecord};
use rustix::fs::OFlags;
use serde::de::DeserializeOwned;

use crate::experiment::parse::DefinitionError;
use crate::sample::csv_rows::whole_rows;
use crate::sample::record::Sample;

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

/// Every file of a run directory.
pub const ALL: [&str; 10] = [
    EXPERIMENT,
    ENVIRONMENT,
    SAMPLES,
    ROUNDS,
    CALLS,
    SEQUENCES,
    REFUSALS,
    VERDICT,
    DETAILS,
    CERTIFICATE,
];

/// A run directory that cannot be made, read or written, in words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RunError(String);

impl RunError {
    /// What is wrong with a file or directory.
    pub fn about(path: &Path, problem: impl Display) -> RunError {
        RunError(format!("'{}': {problem}", path.display()))
    }
}

impl From<DefinitionError> for RunError {
    fn from(error: DefinitionError) -> RunError {
        RunError(error.to_string())
    }
}

/// Reads a CSV file of records of one kind. A last line without its end is left out: the writer was
/// killed.
pub(super) fn read_records<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, RunError> {
    records_by(path, |row, names, _| row.deserialize(Some(names)))
}

/// Reads a file of samples, as [`read_records`].
pub(super) fn read_samples(path: &Path) -> Result<Vec<Sample>, RunError> {
    // serde reads flattened fields without their types, by which a word may look like a number.
    records_by(path, |row, names, _| {
        let measured = row.deserialize(Some(names))?;
        Ok(Sample { measured, ..row.deserialize(Some(names))? })
    })
}

/// Reads a file as [`read_records`], or none of them if it is not there.
pub(super) fn read_if_there<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, RunError> {
    let is_missing = std::fs::exists(path).is_ok_and(|is_there| !is_there);
    if is_missing { Ok(Vec::new()) } else { read_records(path) }
}

/// Reads a file as [`read_records`], each row by `of_row`: from the row, the names of its fields, and
/// the place in the file where the row ends.
pub(super) fn records_by<T>(
    path: &Path,
    of_row: impl Fn(&StringRecord, &StringRecord, u64) -> csv::Result<T>,
) -> Result<Vec<T>, RunError> {
    let bytes = read(path).map_err(|error| RunError::about(path, error))?;
    let mut csv = csv::Reader::from_reader(&bytes[..whole_rows(&bytes)]);
    let damaged = |error: csv::Error| match error.kind() {
        ErrorKind::Deserialize { pos: Some(at), err } => {
            RunError::about(path, format!("line {}: {err}", at.line()))
        }
        _ => RunError::about(path, error),
    };
    let names = csv.headers().map_err(damaged)?.clone();
    let mut records = Vec::new();
    let mut row = StringRecord::new();
    while csv.read_record(&mut row).map_err(damaged)? {
        records.push(of_row(&row, &names, csv.position().byte()).map_err(damaged)?);
    }
    Ok(records)
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

/// Reads a JSON file, which need not be there.
///
/// # Errors
/// When it cannot be read, or holds something else.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, RunError> {
    match read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(RunError::about(path, error)),
        Ok(text) => {
            serde_json::from_slice(&text).map(Some).map_err(|error| RunError::about(path, error))
        }
    }
}

/// Reads a whole file of text.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Writes a whole file under another name and renames it.
pub(crate) fn write(path: &Path, text: &[u8]) -> Result<(), RunError> {
    let part = path.with_extension("part");
    let written = std::fs::write(&part, [text, b"\n"].concat());
    written.and_then(|()| std::fs::rename(&part, path)).map_err(failed("write", path))
}

pub(crate) fn failed(
    action: &'static str,
    path: impl Into<PathBuf>,
) -> impl FnOnce(std::io::Error) -> RunError {
    let path = path.into();
    move |error| RunError(format!("cannot {action} '{}': {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::csv_rows::table;
    use crate::sample::measurement::Measurement;

    #[test]
    fn what_is_written_reads_back() {
        let home = tempfile::tempdir().expect("created");
        let path = home.path().join("samples.csv");
        // Words that look like a number or a truth value, or hold quotes, and the largest number.
        let full = Sample {
            cell: "a/4K".to_owned(),
            variant: "123".to_owned(),
            probe_ns: 4096,
            measured: Measurement {
                elapsed_ns: u64::MAX,
                durable_ns: Some(7),
                each_ns: vec![5, 6],
                state_note: "1, or \"2\"".to_owned(),
                refusals: "true".to_owned(),
                verified: true,
                ..Measurement::default()
            },
            ..Sample::default()
        };
        let mut single = Sample::default();
        single.measured.each_ns = vec![7];
        let records = [full, single, Sample::default()];
        let mut text = table(&records);
        std::fs::write(&path, &text).expect("written");
        assert_eq!(read_samples(&path).expect("read"), records);
        // A kill in the middle of a line loses that line and no other.
        text.truncate(text.len() - 3);
        std::fs::write(&path, &text).expect("written");
        assert_eq!(read_samples(&path).expect("read"), records[..2]);
        let broken = String::from_utf8(text).expect("text").replace("4096", "many");
        std::fs::write(&path, broken).expect("written");
        let error = read_samples(&path).expect_err("no number").to_string();
        assert!(error.contains("line 2"), "{error}");
    }
}
