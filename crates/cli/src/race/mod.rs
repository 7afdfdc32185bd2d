//! `haulage race [SRC] [DSTDIR]`: which way of copying wins here.

mod args;
mod board;
mod results;
mod table;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use lab::race::config::Config;
use lab::race::report::Report;
use lab::scratch::{self, Scratch};
use lab::search::winner::Kind;
use lab::source::Source;

use crate::interrupt::Interrupts;
use args::Request;
use board::Board;
use results::Results;

/// Bytes of the source that is made where none is named.
const MADE_SOURCE_BYTES: u64 = 256 << 20;

/// The commit that this program was built from, where the build could tell.
const COMMIT: Option<&str> = option_env!("HAULAGE_COMMIT");

/// Runs the command. Exit status 1 when the race could not be run, a copy was wrong, or no run had
/// the state that was asked for; 2 for bad usage.
pub(crate) fn main(args: Vec<OsString>) -> ExitCode {
    let begun = Instant::now();
    let request = match args::parse(args) {
        Ok(request) => request,
        Err(exit) => return exit,
    };
    match run(&request, begun) {
        Ok(exit) => exit,
        Err(error) => {
            eprintln!("haulage race: {}", crate::complaint::words(&error));
            ExitCode::FAILURE
        }
    }
}

fn run(request: &Request, begun: Instant) -> anyhow::Result<ExitCode> {
    let results = Results::open(request)?;
    let interrupts = Interrupts::watch("race").context("cannot watch for signals")?;
    let report = race(request, begun, &interrupts);
    interrupts.give_way();
    let report = report?;
    results.write(&report)?;
    if !results.take_standard_output() {
        print(&report, request)?;
    }
    Ok(exit_of(&report))
}

fn race(request: &Request, begun: Instant, interrupts: &Interrupts) -> anyhow::Result<Report> {
    for left in scratch::abandoned(&request.dst_dir) {
        let left = left.display();
        eprintln!("haulage race: '{left}' was left behind by a race that was killed; remove it");
    }
    let scratch = interrupts.guard(|| {
        let scratch = Scratch::create(&request.dst_dir, "race")?;
        let remover = scratch.remover()?;
        Ok((scratch, remover))
    })?;
    let source = match &request.src {
        Some(path) => Source::open(path)?,
        None => made_source(&scratch, request.seed)?,
    };
    let config = Config {
        state: request.state,
        variants: request.variants.clone(),
        named: request.named,
        rounds: request.rounds,
        time: request.time,
        begun,
        seed: request.seed,
    };
    let mut board = Board::new(headline(request, &source));
    let report = {
        let mut watch = |progress: &lab::race::config::Progress<'_>| board.draw(progress);
        lab::race::run(&config, &source, &scratch, COMMIT, &mut watch)
    };
    board.clear();
    Ok(report?)
}

/// A race without a counted run has failed; any other answer, "too close to call" too, is one.
fn exit_of(report: &Report) -> ExitCode {
    let counted =
        report.samples.iter().any(|sample| sample.measured.counted && sample.measured.verified);
    if report.verdict.kind == Kind::NoVerdict && !counted && !report.samples.is_empty() {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn headline(request: &Request, source: &Source) -> String {
    let from = match &request.src {
        Some(path) => format!("'{}'", path.display()),
        None => "a file of random bytes".to_owned(),
    };
    let bytes = lab::words::bytes(source.whole().bytes);
    let to = request.dst_dir.display();
    format!("{bytes} from {from} to '{to}', {}", request.state.name())
}

fn print(report: &Report, request: &Request) -> anyhow::Result<()> {
    let stdout = std::io::stdout();
    let columns =
        if stdout.is_terminal() { crate::live::columns(&stdout).unwrap_or(100) } else { 100 };
    let text = table::render(report, request.src.is_none(), columns);
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // The reader has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to standard output"),
    }
}

/// A file of random bytes, in the scratch directory and removed with it. No file system can shorten
/// those by compression, or find two equal blocks.
fn made_source(scratch: &Scratch, seed: u64) -> anyhow::Result<Source> {
    // The file, and a copy of it.
    scratch.require_space(2 * MADE_SOURCE_BYTES + (16 << 20))?;
    let name = "source";
    let file: OwnedFd = scratch.create_file(name)?;
    let path: PathBuf = scratch.path().join(name);
    fill(&mut std::fs::File::from(file), &path, seed)?;
    Ok(Source::open(&path)?)
}

fn fill(file: &mut std::fs::File, path: &Path, seed: u64) -> anyhow::Result<()> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut block = vec![0; 1 << 20];
    for _ in 0..MADE_SOURCE_BYTES >> 20 {
        rng.fill(&mut block);
        file.write_all(&block).with_context(|| format!("cannot write '{}'", path.display()))?;
    }
    Ok(())
}
