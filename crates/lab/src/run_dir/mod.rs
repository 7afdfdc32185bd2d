//! The run directory: the experiment as it was run, the environment, and every sample, appended as
//! soon as it is measured.

pub mod files;
mod recovery;

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::definition::Definition;
use crate::environment::{host, utc_now};
use crate::experiment::parse::MINUTES_MAX;
use crate::sample::record::{CallRecord, RoundRecord, Sample, SequenceRecord};
use crate::sample::run_samples::Samples;
use files::{RunError, failed, write};
use recovery::{RowFile, append, drop_calls_without_sample};

/// The version of the files in a run directory; it changes when a field changes its meaning or
/// goes. 2: `samples.csv` repeats nothing of the cell and has no `ended_ns`; 1 can be read, and not be taken up.
pub const SCHEMA: u32 = 2;

/// How an experiment was run: the table `run` of its file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HowRun {
    /// The version of the files beside it.
    pub schema: u32,
    /// The directory for sources.
    pub src_dir: PathBuf,
    /// The directory for what runs make.
    pub dst_dir: PathBuf,
    /// What all orders and bytes follow from.
    pub seed: u64,
    /// Seconds for everything together; none when rounds were asked for.
    pub seconds: Option<f64>,
    /// Rounds asked for.
    pub rounds: Option<u32>,
    /// By what sizes and numbers of files were multiplied.
    pub scale: f64,
    /// How the run was made: the version of haulage.
    pub haulage_version: String,
    /// The purpose of its scratch directories, which their names tell.
    #[serde(default = "new_purpose")]
    pub scratch: String,
}

/// A purpose that no other run has.
pub fn new_purpose() -> String {
    format!("{PURPOSE}{:016x}", fastrand::u64(..))
}

/// The most rounds of a cell that can be asked for.
pub const ROUNDS_MAX: u32 = 100_000;

/// How the purposes of scratch directories of runs begin.
const PURPOSE: &str = "bench-";

impl HowRun {
    /// Refuses what no run has, and an edited file may hold.
    fn check(&self) -> Result<(), String> {
        let HowRun { schema, seconds, rounds, scale, haulage_version, scratch, .. } = self;
        if !(1..=SCHEMA).contains(schema) {
            return Err(format!(
                "its files have schema {schema}, and this haulage reads 1 to {SCHEMA}; haulage \
                 {haulage_version} made it and can read it"
            ));
        }
        let known = scratch.strip_prefix(PURPOSE).filter(|own| !own.is_empty());
        let is_known = known.is_some_and(|own| own.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let (seconds, rounds) = (seconds.unwrap_or(0.0), rounds.unwrap_or(1));
        let is_time = (0.0..=60.0 * MINUTES_MAX).contains(&seconds);
        for (is_possible, key, value) in [
            (is_time, "seconds", format!("{seconds:?}")),
            ((1..=ROUNDS_MAX).contains(&rounds), "rounds", rounds.to_string()),
            (*scale > 0.0 && scale.is_finite(), "scale", format!("{scale:?}")),
            (is_known, "scratch", format!("{scratch:?}")),
        ] {
            if !is_possible {
                return Err(format!("{}: [run]: {key} = {value} is impossible", files::EXPERIMENT));
            }
        }
        Ok(())
    }
}

/// A run directory that is being written.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    pub(crate) samples: RowFile,
    pub(crate) rounds: RowFile,
    pub(crate) refusals: RowFile,
    /// Only where single calls are timed.
    calls: Option<(RowFile, RowFile)>,
    /// Held for as long as it is written, so that two programs do not write to one.
    _lock: File,
}

/// What a run directory holds.
#[derive(Clone, Debug)]
pub struct Run {
    /// Where it is.
    pub path: PathBuf,
    /// The definition as it was run.
    pub definition: Definition,
    /// How it was run.
    pub how: HowRun,
    /// Where, as written.
    pub environment: serde_json::Value,
    /// Every sample.
    pub samples: Vec<Sample>,
    /// Every round.
    pub rounds: Vec<RoundRecord>,
    /// What does not work here.
    pub refusals: Vec<RefusalRecord>,
    /// Single calls, where they were timed.
    pub calls: Vec<CallRecord>,
    /// Single calls in their order.
    pub sequences: Vec<SequenceRecord>,
}

/// A variant that does not work in a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalRecord {
    /// The cell's short name.
    pub cell: String,
    /// The variant.
    pub variant: String,
    /// Why, in words.
    pub refusals: String,
}

impl RunDir {
    /// Makes `<time>-<host>-<experiment>` in `runs_dir`, which is made too if need be.
    ///
    /// # Errors
    /// When something cannot be made or written.
    pub fn create(
        runs_dir: &Path,
        definition: &Definition,
        how: &HowRun,
        environment: &impl Serialize,
    ) -> Result<RunDir, RunError> {
        std::fs::create_dir_all(runs_dir).map_err(failed("create", runs_dir))?;
        let name = format!("{}-{}-{}", now(), host(), definition.name);
        // Two runs may begin within a second.
        let path = (1..)
            .map(|n| if n == 1 { name.clone() } else { format!("{name}-{n}") })
            .map(|name| runs_dir.join(name))
            .find_map(|path| match std::fs::create_dir(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => None,
                result => Some(result.map(|()| path.clone()).map_err(failed("create", path))),
            })
            .expect("some number is free")?;
        let fill = || {
            let dir = RunDir::open(path.clone())?;
            dir.write(files::ENVIRONMENT, environment)?;
            // The last file, which makes it a run: a kill leaves no run without its samples.
            write_experiment(&path, definition, how)?;
            Ok(dir)
        };
        fill().inspect_err(|_| {
            // Without its first files it is no run. It was made a moment ago and holds nothing else.
            let _ = std::fs::remove_dir_all(&path);
        })
    }

    /// Takes up the run in `path` again: what a kill left of a last line is cut off, and answers of
    /// before are removed.
    ///
    /// # Errors
    /// When something cannot be written, or another program writes there.
    pub fn open(path: PathBuf) -> Result<RunDir, RunError> {
        let lock = File::open(&path).map_err(failed("open", &path))?;
        if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(RunError::about(&path, "another program is writing there"));
        }
        // What they say is of fewer samples than there will be.
        for answers in [files::VERDICT, files::DETAILS] {
            match std::fs::remove_file(path.join(answers)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(failed("remove", path.join(answers))(error));
                }
                _ => {}
            }
        }
        let samples = append(path.join(files::SAMPLES), &Sample::default())?;
        drop_calls_without_sample(&path)?;
        Ok(RunDir {
            samples,
            rounds: append(path.join(files::ROUNDS), &RoundRecord::default())?,
            refusals: append(path.join(files::REFUSALS), &RefusalRecord::default())?,
            calls: None,
            _lock: lock,
            path,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends the calls of one run, before its sample: only with that the run is known.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn add_calls(
        &mut self,
        (calls, sequence): &(Vec<CallRecord>, Vec<SequenceRecord>),
    ) -> Result<(), RunError> {
        let (of_calls, of_sequences) = match &mut self.calls {
            Some(rows) => rows,
            none => none.insert((
                append(self.path.join(files::CALLS), &CallRecord::default())?,
                append(self.path.join(files::SEQUENCES), &SequenceRecord::default())?,
            )),
        };
        of_calls.add_all(calls)?;
        of_sequences.add_all(sequence)
    }

    /// Writes a file of its own, as [`files::VERDICT`]; a former one is replaced as a whole.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, name: &str, content: &impl Serialize) -> Result<(), RunError> {
        let text = serde_json::to_vec_pretty(content).expect("plain data");
        write(&self.path.join(name), &text)
    }

    /// Writes a text as a file of its own, as [`files::DETAILS`].
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_text(&self, name: &str, text: &str) -> Result<(), RunError> {
        write(&self.path.join(name), text.trim_end().as_bytes())
    }
}

impl Run {
    /// The samples of the run.
    pub fn samples(&self) -> Samples<'_> {
        Samples { samples: &self.samples, calls: &self.calls, sequences: &self.sequences }
    }

    /// How long its rounds took together: what a run that is taken up again has used of its time.
    /// What beginning sessions took is not written down.
    pub fn measured_for(&self) -> std::time::Duration {
        self.rounds.iter().map(|round| std::time::Duration::from_nanos(round.round_ns)).sum()
    }

    /// Reads a run directory.
    ///
    /// # Errors
    /// When a file of it is missing or damaged.
    pub fn read(path: &Path) -> Result<Run, RunError> {
        let other = |problem: String| RunError::about(path, problem);
        let file = path.join(files::EXPERIMENT);
        let text = files::read_text(&file).map_err(|error| match error.kind() {
            ErrorKind::NotFound if path.is_dir() => other(format!(
                "it is no run directory of haulage bench, since it has no {}",
                files::EXPERIMENT
            )),
            ErrorKind::NotFound => other(
                "there is no such run directory; haulage bench makes them in 'runs', and names the one \
                 that it made at its end"
                    .to_owned(),
            ),
            ErrorKind::NotADirectory => {
                other("it is a file, and no run directory of haulage bench".to_owned())
            }
            _ => failed("read", &file)(error),
        })?;
        let definition = Definition::parse(&text, &file.to_string_lossy())?;
        let table: toml::Table =
            text.parse().map_err(|error| other(format!("{}: {error}", files::EXPERIMENT)))?;
        let how: HowRun = table
            .get("run")
            .cloned()
            .ok_or_else(|| other(format!("{} has no table [run]", files::EXPERIMENT)))?
            .try_into()
            .map_err(|error| other(format!("{}: [run]: {error}", files::EXPERIMENT)))?;
        how.check().map_err(other)?;
        let file = path.join(files::ENVIRONMENT);
        let text = files::read(&file).map_err(failed("read", &file))?;
        let environment = serde_json::from_slice(&text)
            .map_err(|error| other(format!("{}: {error}", files::ENVIRONMENT)))?;
        Ok(Run {
            path: path.to_owned(),
            definition,
            how,
            environment,
            samples: files::read_samples(&path.join(files::SAMPLES))?,
            rounds: files::read_records(&path.join(files::ROUNDS))?,
            refusals: files::read_if_there(&path.join(files::REFUSALS))?,
            calls: files::read_if_there(&path.join(files::CALLS))?,
            sequences: files::read_if_there(&path.join(files::SEQUENCES))?,
        })
    }
}

fn write_experiment(path: &Path, definition: &Definition, how: &HowRun) -> Result<(), RunError> {
    let table = toml::to_string(how).expect("plain data");
    let text = format!("{}\n[run]\n{table}", definition.to_toml());
    write(&path.join(files::EXPERIMENT), text.as_bytes())
}

/// The time in UTC as `20260131T235959Z`, which sorts as it passes.
fn now() -> String {
    utc_now().replace(['-', ':'], "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tests::Synthetic;

    #[test]
    fn a_run_reads_back_and_is_taken_up_after_a_kill() {
        let home = tempfile::tempdir().expect("created");
        let Run { definition, how, .. } = Synthetic::new("copy", &["sendfile"], &["4K"]).run();
        let mut dir = RunDir::create(home.path(), &definition, &how, &"here").expect("made");
        // Files without rows have their names, and open as any other.
        let refusals = std::fs::read_to_string(dir.path().join(files::REFUSALS)).expect("read");
        assert_eq!(refusals, "cell,variant,refusals\n");
        let sample = Sample { cell: "p/4K".to_owned(), ..Sample::default() };
        dir.samples.add_all([&sample]).expect("written");
        dir.samples.add_all([&sample]).expect("written");
        let path = dir.path().to_owned();
        assert!(RunDir::open(path.clone()).is_err(), "two writers");
        dir.write(files::VERDICT, &"early").expect("written");
        drop(dir);
        let file = path.join(files::SAMPLES);
        let cut = std::fs::read(&file).expect("read");
        std::fs::write(&file, &cut[..cut.len() - 9]).expect("cut");
        let mut dir = RunDir::open(path.clone()).expect("taken up");
        assert!(!path.join(files::VERDICT).exists(), "it is of fewer samples");
        dir.samples.add_all([&sample]).expect("written");
        drop(dir);
        let run = Run::read(&path).expect("read");
        assert_eq!((run.definition, run.how), (definition, how));
        assert_eq!(run.samples, [sample.clone(), sample]);
        assert_eq!(run.environment, "here");
    }
}
