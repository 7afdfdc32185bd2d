//! The arguments of `haulage race`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Parser;
use clap::builder::PossibleValuesParser;
use engines::Variant;
use lab::page_cache::state::State;
use lab::race::config::Config;
use lab::search::selection;

use crate::terminal::command::{UsageError, random_seed, seconds, usage_error};

/// The time for everything if the user gives neither time nor rounds.
const TIME: Duration = Duration::from_secs(20);

/// Measure all variants on one source, and name the fastest.
///
/// A variant is a copy method with its parameters: `read_write:256K@2` reads and writes through a
/// buffer of 256 KiB, by two workers. Every variant copies SRC into a new directory below DSTDIR, in
/// shuffled rounds. The state of the page cache is set and verified before each run. Only the copy is
/// timed. Each copy is compared with SRC after its run. The result is a table and one sentence, which
/// may be "too close to call". Your files are not changed, and the copies are removed.
#[derive(Parser, Debug)]
#[command(
    infer_long_args = true,
    after_help = "Examples:\n  \
        haulage race                     a file of random bytes, in this directory\n  \
        haulage race big.iso /mnt/usb --state cold\n  \
        haulage race --engines sendfile,splice:1M,pipe=1M,read_write:256K@2 --time 60\n\n\
        Exit status: 0; 1 if the race could not be run, a copy was wrong, or no run was counted; 2 \
        for bad usage."
)]
pub(crate) struct Args {
    /// The file to copy, or a directory whose regular files are copied one after another [default:
    /// a file of 256 MiB of random bytes, which is removed at the end]
    #[arg(value_name = "SRC")]
    first: Option<PathBuf>,

    /// The directory to copy to; a single operand that is a directory is DSTDIR [default: the
    /// current directory]
    #[arg(value_name = "DSTDIR")]
    second: Option<PathBuf>,

    /// The state of the page cache before each run: it holds all of SRC (warm) or nothing of it
    /// (cold)
    #[arg(long, value_parser = PossibleValuesParser::new(["warm", "cold"]), default_value = "warm")]
    state: String,

    /// The variants to measure, separated by commas [default: all that haulage proposes]. The name of
    /// an engine stands for all its proposed variants. After a colon, numbers and options of the
    /// engine belong to its variant; any other item starts the next variant. So
    /// `sendfile,splice:1M,pipe=1M,read_write:4K` are three variants. 'haulage engines' lists the
    /// engines
    #[arg(long, value_name = "LIST")]
    engines: Vec<String>,

    /// Run N rounds of every variant, without a time limit unless --time is given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rounds: Option<u32>,

    /// The time for the whole race [default: 20, or no limit if --rounds is given]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    time: Option<Duration>,

    /// The seed of the random order and contents [default: a random number]
    #[arg(long, value_name = "N", default_value_t = random_seed(), hide_default_value = true)]
    seed: u64,

    /// Write environment, samples, summary and verdict to FILE as JSON; `-` is standard output, which
    /// then gets no table
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,

    /// Write one line for each sample to FILE as CSV; `-` is standard output, which then gets no table
    #[arg(long, value_name = "FILE")]
    pub(super) csv: Option<PathBuf>,
}

/// What is copied, and where to.
pub(super) struct Operands {
    /// `None` if a source is to be made.
    pub(super) src: Option<PathBuf>,
    pub(super) dst_dir: PathBuf,
}

impl Args {
    /// The operands. A single directory is the destination.
    pub(super) fn operands(&self) -> anyhow::Result<Operands> {
        let (src, dst_dir) = match (&self.first, &self.second) {
            (None, _) => (None, Path::new(".")),
            (Some(only), None) if is_dir(only)? => (None, only.as_path()),
            (Some(only), None) => {
                return Err(usage_error(format!(
                    "missing directory to copy '{0}' into, as in: haulage race '{0}' .",
                    only.display()
                )));
            }
            (Some(src), Some(dst_dir)) => {
                is_dir(src)?;
                if !is_dir(dst_dir)? {
                    let dst_dir = dst_dir.display();
                    return Err(usage_error(format!("'{dst_dir}' is not a directory")));
                }
                (Some(src.clone()), dst_dir.as_path())
            }
        };
        Ok(Operands { src, dst_dir: dst_dir.to_owned() })
    }

    /// What to race, and how long from now on.
    pub(super) fn config(&self) -> anyhow::Result<Config> {
        let named = !self.engines.is_empty();
        let variants = if named { self.named_variants()? } else { Variant::proposed() };
        Ok(Config {
            state: if self.state == "cold" { State::Cold } else { State::Warm },
            variants,
            named,
            rounds: self.rounds,
            time: match (self.time, self.rounds) {
                (None, None) => Some(TIME),
                (time, _) => time,
            },
            started: Instant::now(),
            visit: None,
            seed: self.seed,
        })
    }

    fn named_variants(&self) -> anyhow::Result<Vec<Variant>> {
        let list = self.engines.join(",");
        let variants = selection::parse(&list).with_context(|| format!("--engines {list}"));
        variants.map_err(|error| UsageError(error).into())
    }
}

fn is_dir(path: &Path) -> anyhow::Result<bool> {
    let metadata = std::fs::metadata(path);
    Ok(metadata.with_context(|| format!("cannot stat '{}'", path.display()))?.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_remove_the_default_time_limit() {
        let time = |line: &[&str]| {
            let args = Args::try_parse_from(std::iter::once(&"race").chain(line)).expect("good");
            args.config().expect("good").time
        };
        assert_eq!(time(&[]), Some(Duration::from_secs(20)));
        assert_eq!(time(&["--rounds", "3"]), None);
        assert_eq!(time(&["--rounds", "3", "--time", "0.5"]), Some(Duration::from_millis(500)));
    }
}
