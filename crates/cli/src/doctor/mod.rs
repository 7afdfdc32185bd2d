//! `haulage doctor [DIR [DIR]]`: what this machine has for copies, what a copy uses, and what would be
//! better.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::sample_files::ends;
use crate::terminal::output;

mod advice;
mod choices;
mod findings;
mod limits;
mod place;
mod text;

/// Show what this machine has for copies, what a copy uses here, and what would be better.
///
/// Every engine is tried with a small sample in unnamed scratch files, so nothing is left behind. Where no
/// file can be made, the engines are tried in memory as far as that tells anything. `haulage engines` lists
/// them with their reasons. No privileges are needed. Include the output in a report of a problem: it has
/// the paths, mount points and devices of the directories, and no name of the machine.
#[derive(Parser, Debug)]
#[command(
    infer_long_args = true,
    after_help = "Examples:\n  \
        haulage doctor\n  \
        haulage doctor /data /mnt/backup\n  \
        haulage doctor --json | jq .advice"
)]
pub(crate) struct Args {
    /// The directory to copy within; or that of the source, and that of the destination
    /// [default: the current directory]
    #[arg(value_name = "DIR", num_args = 0..=2)]
    dirs: Vec<PathBuf>,

    /// Print a JSON object, whose fields docs/doctor.md describes
    #[arg(long)]
    json: bool,
}

/// Runs the command. Exit status 1 if a directory cannot be opened, 2 for bad usage. What would be better is
/// no failure.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let [src, dst] = ends(&args.dirs);
    let mut findings = findings::Findings::between(src, dst)?;
    findings.advice = advice::on(&findings);
    let text = match args.json {
        true => output::json(&findings)?,
        false => text::of(&findings, output::columns()),
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
