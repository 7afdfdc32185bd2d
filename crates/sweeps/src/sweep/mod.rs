//! `cargo xtask sweep`: tries faults, kills and limits by the thousand, and demands that each copy is right
//! or says what is wrong.
//!
//! One file a sweep, one row in `SWEEPS`. A sweep names cases and tries one; `run` has the order, the counts and the
//! findings, each with the text from which the case can be made again.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, ensure};

use run::{Run, Settings, Sweep};
use xtask::command::build_haulage;
use xtask::file_systems::FileSystems;

mod calls;
pub(crate) mod copies;
mod counts;
mod kills;
mod liars;
mod limits;
mod power;
pub(crate) mod process;
mod run;
mod short;
mod strace;
mod test_programs;

/// All sweeps, in the order of `--list`.
const SWEEPS: &[Sweep] = &[
    calls::SWEEP,
    kills::SWEEP,
    short::SWEEP,
    limits::SWEEP,
    power::SWEEP,
    liars::SWEEP,
    test_programs::ATTACK,
    test_programs::DIFFERENTIAL,
];

/// Try faults, kills and limits on `haulage cp`, and demand that each copy is right or says what is wrong.
///
/// Prints how many cases were tried, and each finding with the command line that repeats it. Exits with 1 if
/// there are findings.
#[derive(clap::Parser, Debug)]
#[command(name = "cargo xtask sweep", bin_name = "cargo xtask sweep")]
pub(crate) struct Args {
    /// Sweep to run [possible values: see --list]
    #[arg(value_name = "NAME", value_parser = parse_name, required_unless_present = "list")]
    name: Option<&'static Sweep>,
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// Write the counts of every combination to this CSV file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Print the sweeps and exit
    #[arg(long)]
    pub(crate) list: bool,
}

/// Prints the sweeps.
pub(crate) fn list() -> ExitCode {
    for Sweep { name, about, .. } in SWEEPS {
        println!("{name:<8} {about}");
    }
    ExitCode::SUCCESS
}

/// Runs the sweep and prints what it found.
pub(crate) fn run(args: Args, file_systems: FileSystems) -> anyhow::Result<ExitCode> {
    let sweep = args.name.context("no sweep is named; see --list")?;
    let program = match &args.settings.haulage {
        Some(path) => path.canonicalize().with_context(|| path.display().to_string())?,
        None => build_haulage()?,
    };
    file_systems.announce();
    let mut run = Run::new(sweep, program, args.settings, file_systems);
    match run.settings.case.clone() {
        Some(case) => run.repeat(&case)?,
        None => run.try_cases()?,
    }
    if let Some(path) = &args.csv {
        run.counts.write_csv(path)?;
    }
    print!("{}", run.summary());
    // Nothing tried is no success.
    ensure!(run.counts.tried() > 0, "no case was tried");
    Ok(if run.has_findings() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn parse_name(name: &str) -> anyhow::Result<&'static Sweep> {
    SWEEPS.iter().find(|sweep| sweep.name == name).with_context(|| {
        let names: Vec<&str> = SWEEPS.iter().map(|sweep| sweep.name).collect();
        format!("the sweeps are {}", names.join(", "))
    })
}
