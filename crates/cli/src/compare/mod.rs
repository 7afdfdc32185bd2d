//! `haulage compare FIRST SECOND`: reports what changed between two runs.

mod args;
mod text;

use std::path::PathBuf;
use std::process::ExitCode;

use lab::certificate::store::StoredCertificate;
use lab::compare::Change;
use lab::definition::deltas::{Deltas, LEAST};
use lab::run_dir::Run;
use lab::run_dir::files::RunError;

use crate::terminal::output;
use crate::terminal::steps::Steps;
pub(crate) use args::Args;
use args::FailOn;

/// Runs the command. Exit status 1 if a run cannot be read; with `--fail-on slower` also if something
/// is slower or nothing was compared. 2 for bad usage.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut steps = Steps::new("compare");
    steps.show("reading the runs");
    let read = |path: &PathBuf| Run::read(path);
    let runs = read(&args.first).and_then(|first| Ok((first, read(&args.second)?)));
    steps.clear();
    let (first, second) = runs?;
    let deltas = match args.delta {
        Some(delta) => Deltas { warm: delta, cold: delta },
        None => deltas_of([&first, &second])?,
    };
    let change = Change::of(&first, &second, deltas);
    let text = match args.json {
        true => output::json(&change)?,
        false => text::render(&change, [&first, &second], output::columns()),
    };
    output::print(&text)?;
    match args.fail_on {
        None => Ok(ExitCode::SUCCESS),
        Some(FailOn::Slower) if change.slower() => Ok(ExitCode::FAILURE),
        // Without a comparison there is no proof that nothing is slower.
        Some(FailOn::Slower) if change.cells.is_empty() => {
            anyhow::bail!("nothing was compared: the two runs have no cell in common")
        }
        Some(FailOn::Slower) => Ok(ExitCode::SUCCESS),
    }
}

/// The larger differences of the certificates in both runs.
fn deltas_of(runs: [&Run; 2]) -> Result<Deltas, RunError> {
    runs.iter().try_fold(LEAST, |deltas, run| {
        let kept = StoredCertificate::of_run(&run.path)?;
        Ok(kept.map_or(deltas, |kept| deltas.larger(kept.certificate.deltas)))
    })
}
