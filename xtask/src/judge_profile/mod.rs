//! `cargo xtask judge-profile`: how far the variants that a copy uses are from the best that a long
//! search found.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use lab::tune::record::{Record, Records};

use crate::default_profile::records;

mod judge;
mod table;

/// Compare the variants that `haulage cp` uses between two directories with a long search there.
///
/// For each situation it prints the best variant of the long search, and the variant that a copy
/// uses with the profile of the short search ("tuned"), with the built-in profile ("built in"), and
/// with the profile that would be built in without measurements between these two types of file
/// systems ("unseen"). The loss of each is from the times of the long search, in the rounds that
/// both variants ran. Both records are from 'haulage tune --json' on the same directories and
/// machine, with different seeds. The exit status is 1 if the tuned choice is not within 5 % in 90
/// % of the situations, or the default not within 15 %.
///
/// With --record, each search in record/ is compared with the profile derived from the others.
#[derive(clap::Parser, Debug)]
#[command(name = "cargo xtask judge-profile", bin_name = "cargo xtask judge-profile")]
pub(crate) struct Args {
    /// The record of a long search, the reference
    #[arg(long, value_name = "FILE", required_unless_present = "record")]
    long: Option<PathBuf>,
    /// The record of a shorter search, as a user would run it
    #[arg(long, value_name = "FILE")]
    tuned: Option<PathBuf>,
    /// Compare each search in record/ with the profile derived from the others
    #[arg(long, conflicts_with_all = ["long", "tuned"])]
    record: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let record = records()?;
    let Some(long) = &args.long else {
        let mut all = Vec::new();
        for long in &record {
            let judged = judge::judge(long, None, &record);
            println!("{}", table::render(long, None, &judged));
            all.extend(judged);
        }
        let verdicts = judge::verdicts(&all);
        println!("all of record/");
        verdicts.iter().for_each(|verdict| print!("{}", table::sentence(verdict)));
        return Ok(exit_of(verdicts.iter().all(judge::Verdict::holds)));
    };
    let long = read(long)?;
    let tuned = args.tuned.as_deref().map(read).transpose()?;
    let mut holds = true;
    for long in &long {
        let tuned = match &tuned {
            None => None,
            Some(records) => Some(judge::of_the_same(long, records).with_context(|| {
                format!("the shorter search is not between {}", judge::place(long))
            })?),
        };
        if let Some(tuned) = tuned
            && judge::seed(tuned) == judge::seed(long)
        {
            bail!("both searches have the seed {}", judge::seed(long).unwrap_or_default());
        }
        let judged = judge::judge(long, tuned, &record);
        print!("{}", table::render(long, tuned, &judged));
        holds &= judge::verdicts(&judged).iter().all(|verdict| verdict.holds());
    }
    Ok(exit_of(holds))
}

fn exit_of(holds: bool) -> ExitCode {
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn read(path: &Path) -> anyhow::Result<Vec<Record>> {
    let text = std::fs::read(path).with_context(|| path.display().to_string())?;
    let read = Records::parse(&text).map_err(|why| anyhow!("'{}': {why}", path.display()))?;
    Ok(read.pairs)
}
