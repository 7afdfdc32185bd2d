//! Runs an experiment in scratch directories, for `bench` and `certify`.

use std::path::{Display, Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use lab::certificate::store::StoredCertificate;
use lab::conduct::{Conductor, Limits, Places, Progress, session_process};
use lab::definition::Definition;
use lab::definition::deltas::Deltas;
use lab::environment::Environment;
use lab::experiment::space::SpaceNeeded;
use lab::in_order::distinct;
use lab::page_cache::prover::Prover;
use lab::page_cache::state::State;
use lab::run_dir::{self, HowRun, Run, RunDir};
use lab::scratch::{self, Scratch};
use lab::words;

use super::measured_dirs::MeasuredDirs;
use super::plan;
use crate::scratch::{ScratchGuard, random_source, report_abandoned};
use crate::terminal::steps::Steps;
use crate::version::{COMMIT, VERSION};

/// Bytes of the file on which the prover of the page cache state is tried.
const PROVER_BYTES: u64 = 4 << 20;

/// Whether a run is new.
pub(crate) enum Start<'s> {
    /// A new run, whose directory is made in `runs`.
    New { runs: &'s Path },
    /// A run that was interrupted.
    Resume(Box<Run>),
}

/// What an experiment is run for.
pub(crate) struct Purpose<'p> {
    /// The command, as messages name it.
    pub(crate) command: &'static str,
    /// Differences up to these shares do not matter.
    pub(crate) deltas: Deltas,
    /// The certificate that is copied into the run directory.
    pub(crate) certificate: Option<&'p StoredCertificate>,
    /// What a message says of an interrupted run in this directory.
    pub(crate) note_on_interrupt: fn(Display<'_>) -> String,
}

/// How a new run in `dirs` is made, without limits and at full scale.
pub(crate) fn new_run(dirs: &MeasuredDirs, seed: u64) -> anyhow::Result<HowRun> {
    let [src_dir, dst_dir] = dirs.absolute()?;
    Ok(HowRun {
        schema: run_dir::SCHEMA,
        src_dir,
        dst_dir,
        seed,
        seconds: None,
        rounds: None,
        scale: 1.0,
        haulage_version: VERSION.to_owned(),
        scratch: run_dir::new_purpose(),
    })
}

/// Runs an experiment, and calls `finish` with its results before the scratch directories are removed.
pub(crate) fn run<T>(
    definition: &Definition,
    how: &HowRun,
    start: Start<'_>,
    purpose: &Purpose<'_>,
    guard: &ScratchGuard,
    finish: impl FnOnce(&Conductor<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let scratch = scratch_dirs(definition, how, purpose, guard)?;
    let [src, dst] = [&scratch[0], &scratch[scratch.len() - 1]];
    let (dir, before) = match start {
        Start::New { runs } => {
            let environment = environment(definition, how, src)?;
            let made = RunDir::create(runs, definition, how, &environment);
            let advice = "name another directory for runs: --runs DIR";
            let made = made.map_err(|error| anyhow!("{error}; {advice}"))?;
            (made, None)
        }
        Start::Resume(run) => (RunDir::open(run.path.clone())?, Some(run)),
    };
    if let Some(certificate) = purpose.certificate {
        dir.write(run_dir::files::CERTIFICATE, certificate)?;
    }
    let note = (purpose.note_on_interrupt)(dir.path().display());
    let time = how.seconds.map(Duration::from_secs_f64);
    let limits = Limits { time, rounds: how.rounds, deltas: purpose.deltas };
    let places = Places { src: src.path(), dst: dst.path() };
    let mut conducted =
        Conductor::new(definition, dir, places, limits, how.seed, before.as_deref());
    let running = conducted.running();
    guard.on_signal(move || session_process::end_session(&running), note.clone());
    let mut steps = steps(purpose.command, definition);
    let result = conducted.run(&mut |progress| steps.show(&in_words(progress)));
    steps.clear();
    guard.wait_if_ending();
    result.map_err(|error| anyhow!("{error}{note}"))?;
    finish(&conducted)
}

/// The progress of an experiment, by `command`.
pub(super) fn steps(command: &str, definition: &Definition) -> Steps {
    Steps::new(&format!("{command}: {}", definition.name)).with_lines()
}

fn in_words(progress: &Progress<'_>) -> String {
    let seconds = |time: Duration| words::duration(time.as_secs_f64());
    let left = match progress.left {
        Some(left) => format!("at most {} left", seconds(left)),
        None => format!("{} so far", seconds(progress.elapsed)),
    };
    format!(
        "{left}; {} of {} cells done, {} samples; now {}",
        progress.ended,
        progress.cells,
        words::grouped(&progress.samples.to_string()),
        progress.cell.id()
    )
}

/// Refuses if the file systems of the two directories have not the room that is needed. `option` makes
/// the files smaller.
pub(crate) fn require_space(
    needed: &SpaceNeeded,
    how: &HowRun,
    option: Option<&str>,
) -> anyhow::Result<()> {
    let (src, dst) = (&how.src_dir, &how.dst_dir);
    // Two directories may share one file system and its room.
    let enough = scratch::space::require_space(src, dst, (needed.src_bytes, needed.dst_bytes));
    enough.map_err(|error| match option {
        Some(option) => anyhow!("{error}; {option} makes the files smaller"),
        None => error.into(),
    })
}

/// Creates the scratch directories of sources and copies, one if both are measured in the same directory, if
/// there is enough room and memory for the experiment.
fn scratch_dirs(
    definition: &Definition,
    how: &HowRun,
    purpose: &Purpose<'_>,
    guard: &ScratchGuard,
) -> anyhow::Result<Vec<Scratch>> {
    let dirs = distinct([&how.src_dir, &how.dst_dir]);
    // A resumed run finds what a killed one left.
    dirs.iter().for_each(|dir| scratch::remove_left(dir, &how.scratch));
    report_abandoned(purpose.command, dirs.iter().copied());
    let create = |dir: &&PathBuf| guard.create_scratch(dir, &how.scratch);
    let scratch = dirs.iter().map(create).collect::<Result<_, _>>()?;
    let needed = SpaceNeeded::of(definition);
    let scaled = definition.parts.iter().any(|part| part.scaled);
    require_space(&needed, how, scaled.then_some("--scale"))?;
    plan::require_memory(&needed)?;
    Ok(scratch)
}

fn environment(
    definition: &Definition,
    how: &HowRun,
    scratch: &Scratch,
) -> anyhow::Result<Environment> {
    let name = "prover";
    let source = random_source(scratch, name, PROVER_BYTES, how.seed)?;
    let cold = definition.parts.iter().any(|part| part.states.contains(&State::Cold));
    let prover = Prover::try_on(&source, if cold { State::Cold } else { State::Warm })?;
    scratch.remove_file(name)?;
    Ok(Environment::look(&how.src_dir, &how.dst_dir, prover, how.seed, COMMIT))
}
