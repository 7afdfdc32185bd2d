//! `haulage compare FIRST SECOND`: what changed between two runs.

mod args;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Context;
use lab::certificate::store::StoredCertificate;
use lab::compare::Change;
use lab::definition::deltas::{Deltas, LEAST};
use lab::run_dir::{Run, files};

use args::Request;

/// Runs the command. Exit status 1 when something got slower, or nothing was compared, and that is to be a
/// failure, or a run cannot be read; 2 for bad usage.
pub(crate) fn main(args: Vec<OsString>) -> ExitCode {
    let request = match args::parse(args) {
        Ok(request) => request,
        Err(exit) => return exit,
    };
    match compare(&request) {
        Ok(change) if request.fail_on_slower && change.slower() => ExitCode::FAILURE,
        // Whoever asks to be stopped is not to go on because nothing was looked at.
        Ok(change) if request.fail_on_slower && change.cells.is_empty() => {
            eprintln!("haulage compare: nothing was compared: the two runs have no cell in common");
            ExitCode::FAILURE
        }
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("haulage compare: {}", crate::complaint::words(&error));
            ExitCode::FAILURE
        }
    }
}

fn compare(request: &Request) -> anyhow::Result<Change> {
    let first = Run::read(&request.first)?;
    let second = Run::read(&request.second)?;
    let deltas = match request.delta {
        Some(delta) => Deltas { warm: delta, cold: delta },
        None => deltas_of([&first, &second]),
    };
    let change = Change::of(&first, &second, deltas);
    let text = if request.json {
        serde_json::to_string_pretty(&change).context("cannot write JSON")? + "\n"
    } else {
        words::render(&change, [&first, &second])
    };
    crate::bench::print(&text)?;
    Ok(change)
}

/// The larger of what the certificates of both runs say.
fn deltas_of(runs: [&Run; 2]) -> Deltas {
    let kept = runs.map(|run| StoredCertificate::read(&run.path.join(files::CERTIFICATE)));
    kept.iter().flatten().map(|kept| kept.certificate.deltas).fold(LEAST, Deltas::larger)
}
