//! `haulage race [SRC] [DSTDIR]`: measures every variant on one source, and reports the fastest.

mod args;
mod progress_view;
mod table;

use std::process::ExitCode;

use anyhow::anyhow;
use lab::race::config::Config;
use lab::race::report::Report;
use lab::sample::csv_rows;
use lab::scratch::Scratch;
use lab::search::winner::Kind;
use lab::source::Source;

use crate::scratch::{ScratchGuard, random_source, report_abandoned};
use crate::terminal::live_lines::LiveLines;
use crate::terminal::output::{self, ResultFile};
use crate::version::COMMIT;
pub(crate) use args::Args;
use args::Operands;

/// Bytes of the source that is made if the user names none.
const MADE_SOURCE_BYTES: u64 = 256 << 20;

/// Room for the metadata of the scratch files.
const METADATA_BYTES: u64 = 16 << 20;

/// Runs the command. Exit status 1 if the race could not be run, a copy was wrong, or no run was
/// counted; 2 for bad usage.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let operands = args.operands()?;
    let config = args.config()?;
    let options = [("--json", &args.json), ("--csv", &args.csv)];
    let [json, csv] = ResultFile::open_two(options, operands.src.as_deref())?;
    let report = ScratchGuard::around("race", |guard| race(&operands, &config, guard))?;
    // Before the files, so that it is not lost if they cannot be written.
    if ![&json, &csv].into_iter().flatten().any(ResultFile::is_standard_output) {
        output::print(&table::render(&report, operands.src.is_none(), output::columns()))?;
    }
    if let Some(json) = &json {
        json.write(output::json(&report)?.as_bytes())?;
    }
    if let Some(csv) = &csv {
        csv.write(&csv_rows::table(&report.samples))?;
    }
    Ok(exit_status(&report))
}

fn race(operands: &Operands, config: &Config, guard: &ScratchGuard) -> anyhow::Result<Report> {
    report_abandoned("race", [&operands.dst_dir]);
    let scratch = guard.create_scratch(&operands.dst_dir, "race")?;
    let source = match &operands.src {
        Some(path) => Source::open(path)?,
        None => made_source(&scratch, config.seed)?,
    };
    let headline = headline(operands, config, &source);
    let mut live = LiveLines::new();
    let report = lab::race::run(config, &source, &scratch, COMMIT, &mut |progress| {
        live.draw(|rows| progress_view::lines(&headline, progress, rows));
    });
    // The table follows.
    live.clear();
    Ok(report?)
}

/// A race without a counted run has failed. "Too close to call" is a result.
fn exit_status(report: &Report) -> ExitCode {
    let counted =
        report.samples.iter().any(|sample| sample.measured.counted && sample.measured.verified);
    if report.verdict.kind == Kind::NoVerdict && !counted {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn headline(operands: &Operands, config: &Config, source: &Source) -> String {
    let from = match &operands.src {
        Some(path) => format!("'{}'", path.display()),
        None => "a file of random bytes".to_owned(),
    };
    let bytes = lab::words::bytes(source.whole().bytes);
    let to = operands.dst_dir.display();
    format!("{bytes} from {from} to '{to}', {}", config.state.name())
}

/// A file of random bytes, in the scratch directory and removed with it.
fn made_source(scratch: &Scratch, seed: u64) -> anyhow::Result<Source> {
    // The file, and a copy of it.
    let enough = scratch.require_space(2 * MADE_SOURCE_BYTES + METADATA_BYTES);
    enough
        .map_err(|error| anyhow!("{error}, or a smaller file to copy: haulage race SRC DSTDIR"))?;
    random_source(scratch, "source", MADE_SOURCE_BYTES, seed)
}
