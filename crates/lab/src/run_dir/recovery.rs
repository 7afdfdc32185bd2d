//! Recovery of a run directory after a kill: cuts off a torn row, and the calls of a run whose
//! sample was never written.

use std::collections::HashSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::files::{self, RunError, failed};
use crate::sample::csv_rows::{self, whole_rows};

/// A CSV file of a run that is appended to.
#[derive(Debug)]
pub(crate) struct RowFile {
    path: PathBuf,
    file: File,
}

impl RowFile {
    /// Appends rows together.
    pub(crate) fn add_all<'r, T: Serialize + 'r>(
        &mut self,
        rows: impl IntoIterator<Item = &'r T>,
    ) -> Result<(), RunError> {
        let rows: Vec<u8> = rows.into_iter().flat_map(csv_rows::row).collect();
        self.file.write_all(&rows).map_err(failed("write", &self.path))
    }
}

/// Opens a CSV file of rows like `row` to append to, without what follows its last whole row.
pub(crate) fn append(path: PathBuf, row: &impl Serialize) -> Result<RowFile, RunError> {
    let failed = |error| failed("open", &path)(error);
    let mut file =
        File::options().read(true).append(true).create(true).open(&path).map_err(failed)?;
    let whole = whole_rows(&files::read(&path).map_err(failed)?);
    file.set_len(whole as u64).map_err(failed)?;
    if whole == 0 {
        // A file without rows is then one that others open, too.
        file.write_all(&csv_rows::head(row)).map_err(failed)?;
    }
    Ok(RowFile { path, file })
}

/// The run that a row belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
struct Key {
    cell: String,
    variant: String,
    session: u32,
    /// Rows of `sequences.csv` have none: they are of a session's first round.
    #[serde(default = "first")]
    round: u32,
    #[serde(default)]
    repeat: u32,
}

fn first() -> u32 {
    1
}

/// Removes calls that belong to no sample: they are written before it, and the next session may have
/// the same number.
pub(crate) fn drop_calls_without_sample(run: &Path) -> Result<(), RunError> {
    let there: Vec<_> = [files::CALLS, files::SEQUENCES]
        .map(|name| run.join(name))
        .into_iter()
        .filter(|path| path.exists())
        .collect();
    if there.is_empty() {
        return Ok(());
    }
    let samples = files::read_records::<Key>(&run.join(files::SAMPLES))?;
    let samples: HashSet<Key> = samples.into_iter().collect();
    there.iter().try_for_each(|path| cut_off(path, &samples))
}

/// Leaves the rows up to the last one that belongs to one of `samples`.
fn cut_off(path: &Path, samples: &HashSet<Key>) -> Result<(), RunError> {
    let rows =
        files::records_by(path, |row, names, end| Ok((row.deserialize::<Key>(Some(names))?, end)))?;
    let last = rows.iter().rev().find(|(key, _)| samples.contains(key));
    let end = last.map_or(0, |&(_, end)| end);
    let file = File::options().write(true).open(path).map_err(failed("open", path))?;
    file.set_len(end).map_err(failed("cut", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::call_times::Bucket;
    use crate::sample::record::{CallRecord, Sample, SequenceRecord};

    fn rows<T: Serialize>(path: &Path, rows: &[T]) {
        append(path.to_owned(), &rows[0]).and_then(|mut to| to.add_all(rows)).expect("written");
    }

    #[test]
    fn calls_go_with_the_sample_that_was_never_written() {
        let home = tempfile::tempdir().expect("created");
        let run = home.path();
        let (cell, variant) = ("p/1M".to_owned(), "a \"b\"\nc".to_owned());
        let sample = |session, round| Sample {
            cell: cell.clone(),
            variant: variant.clone(),
            session,
            round,
            ..Sample::default()
        };
        let call = |session, round, from_ns| CallRecord {
            cell: cell.clone(),
            variant: variant.clone(),
            session,
            round,
            op: "read".to_owned(),
            bucket: Bucket { from_ns, to_ns: from_ns + 1, calls: 1, sum_ns: from_ns },
            ..CallRecord::default()
        };
        let in_order = |session, call| SequenceRecord {
            cell: cell.clone(),
            variant: variant.clone(),
            session,
            op: "read".to_owned(),
            call,
            ..SequenceRecord::default()
        };
        let (calls, sequences) = (run.join(files::CALLS), run.join(files::SEQUENCES));
        rows(&run.join(files::SAMPLES), &[sample(1, 1), sample(1, 2)]);
        let kept = [call(1, 1, 5), call(1, 1, 6), call(1, 2, 5)];
        rows(&calls, &kept);
        rows(&calls, &[call(2, 1, 5), call(2, 1, 6)]);
        rows(&sequences, &[in_order(1, 0)]);
        rows(&sequences, &[in_order(2, 0)]);
        // The kill came in the middle of a row.
        let torn = std::fs::read(&calls).expect("read");
        std::fs::write(&calls, &torn[..torn.len() - 2]).expect("cut");
        drop_calls_without_sample(run).expect("dropped");
        assert_eq!(files::read_records::<CallRecord>(&calls).expect("read"), kept);
        assert_eq!(
            files::read_records::<SequenceRecord>(&sequences).expect("read"),
            [in_order(1, 0)]
        );
        // And nothing more the next time.
        drop_calls_without_sample(run).expect("dropped");
        assert_eq!(files::read_records::<CallRecord>(&calls).expect("read"), kept);
    }
}
