//! What a user asks of `haulage race`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::error::ErrorKind;
use clap::{Parser, ValueEnum};
use engines::Variant;
use lab::page_cache::state::State;
use lab::search::selection;

/// Time for everything where neither time nor rounds are asked for.
const TIME_SECONDS: f64 = 20.0;

/// Find out which way of copying wins on your own file and file system.
///
/// Every variant copies SRC into a fresh directory under DSTDIR, in shuffled rounds. The page cache
/// is set before each run and the state proved; the clock runs around the copy alone; each copy is
/// compared with the source afterwards. The answer is a table and one sentence, which may be "too
/// close to call". Nothing of yours is overwritten, and nothing stays behind.
#[derive(Parser, Debug)]
#[command(
    name = "haulage race",
    bin_name = "haulage race",
    infer_long_args = true,
    after_help = "Examples:\n  \
        haulage race                              a made file, in the current directory\n  \
        haulage race big.iso /mnt/usb --state cold\n  \
        haulage race --engines sendfile,splice:1M,pipe=1M,read_write:256K@2 --time 60\n\n\
        `haulage engines` lists the engines."
)]
struct Args {
    /// The file to copy, or a directory whose regular files are copied one after another; without
    /// it, a file of 256 MiB of random bytes is made and removed again
    #[arg(value_name = "SRC")]
    first: Option<PathBuf>,

    /// Where to copy to [default: the current directory; a single operand that is a directory is
    /// DSTDIR]
    #[arg(value_name = "DSTDIR")]
    second: Option<PathBuf>,

    /// The page cache before each run: all of the source in it, or nothing
    #[arg(long, value_enum, default_value = "warm")]
    state: StateName,

    /// The variants to race, separated by commas [default: all that haulage proposes]. A name
    /// alone stands for all the proposed variants of that engine. After a colon, items that are a
    /// number or an option of that engine belong to it, and any other item starts the next variant:
    /// `sendfile,splice:1M,pipe=1M,read_write:4K` are three variants
    #[arg(long, value_name = "LIST")]
    engines: Vec<String>,

    /// Run exactly this many rounds of every variant, however long they take
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rounds: Option<u32>,

    /// Time for everything together [default: 20, or none when --rounds is given]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    time: Option<f64>,

    /// The seed that the order of runs follows from [default: another one each time]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Write environment, samples, summary and verdict to FILE; `-` is standard output, in place of
    /// the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Write one line a sample to FILE; `-` is standard output, in place of the table
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum StateName {
    Warm,
    Cold,
}

/// The same with every default filled in.
#[derive(Debug)]
pub(super) struct Request {
    /// `None` for a source to be made.
    pub(super) src: Option<PathBuf>,
    pub(super) dst_dir: PathBuf,
    pub(super) state: State,
    pub(super) variants: Vec<Variant>,
    pub(super) named: bool,
    pub(super) rounds: Option<u32>,
    pub(super) time: Option<Duration>,
    pub(super) seed: u64,
    pub(super) json: Option<PathBuf>,
    pub(super) csv: Option<PathBuf>,
}

/// The request in `args`; otherwise what to exit with, after it has been said why.
pub(super) fn parse(args: Vec<OsString>) -> Result<Request, ExitCode> {
    let name = OsString::from("haulage race");
    let args = Args::try_parse_from(std::iter::once(name).chain(args)).map_err(|error| {
        match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                // Nobody is left to be told when the help cannot be printed.
                let _ = error.print();
                ExitCode::SUCCESS
            }
            _ => complain(&crate::complaint::of_clap(&error, "haulage race"), 2),
        }
    })?;
    let operands = operands(args.first.as_deref(), args.second.as_deref())
        .map_err(|error| complain(&crate::complaint::words(&error.error), error.status))?;
    request(args, operands).map_err(|error| complain(&crate::complaint::words(&error), 2))
}

fn complain(words: &str, status: u8) -> ExitCode {
    eprintln!("haulage race: {words}");
    ExitCode::from(status)
}

fn request(args: Args, (src, dst_dir): (Option<PathBuf>, PathBuf)) -> anyhow::Result<Request> {
    let named = !args.engines.is_empty();
    let variants = if named {
        let list = args.engines.join(",");
        selection::parse(&list).with_context(|| format!("--engines {list}"))?
    } else {
        Variant::proposed()
    };
    let time = match (args.time, args.rounds) {
        (None, None) => Some(TIME_SECONDS),
        (time, _) => time,
    };
    let is_stdout = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
    if is_stdout(&args.json) && is_stdout(&args.csv) {
        bail!("--json - and --csv - cannot both have standard output");
    }
    Ok(Request {
        src,
        dst_dir,
        state: match args.state {
            StateName::Warm => State::Warm,
            StateName::Cold => State::Cold,
        },
        variants,
        named,
        rounds: args.rounds,
        time: time.map(Duration::from_secs_f64),
        seed: args.seed.unwrap_or_else(|| fastrand::u64(..1_000_000)),
        json: args.json,
        csv: args.csv,
    })
}

fn seconds(text: &str) -> Result<f64, &'static str> {
    let seconds = text.parse().ok().filter(|&seconds| seconds > 0.0 && seconds <= 1e7);
    seconds.ok_or("it takes a number of seconds over 0, up to 10 million")
}

/// An error with the exit status that it deserves.
struct OperandError {
    error: anyhow::Error,
    status: u8,
}

fn operands(
    first: Option<&Path>,
    second: Option<&Path>,
) -> Result<(Option<PathBuf>, PathBuf), OperandError> {
    let usage = |error: anyhow::Error| OperandError { error, status: 2 };
    let world = |error: anyhow::Error| OperandError { error, status: 1 };
    let is_dir = |path: &Path| {
        let metadata = std::fs::metadata(path);
        metadata
            .map(|metadata| metadata.is_dir())
            .with_context(|| format!("cannot stat '{}'", path.display()))
    };
    match (first, second) {
        (None, _) => Ok((None, PathBuf::from("."))),
        (Some(only), None) if is_dir(only).map_err(world)? => Ok((None, only.to_owned())),
        (Some(only), None) => Err(usage(anyhow::anyhow!(
            "missing directory to copy '{0}' into, as in: haulage race '{0}' .",
            only.display()
        ))),
        (Some(src), Some(dst_dir)) => {
            is_dir(src).map_err(world)?;
            if !is_dir(dst_dir).map_err(world)? {
                return Err(usage(anyhow::anyhow!("'{}' is not a directory", dst_dir.display())));
            }
            Ok((Some(src.to_owned()), dst_dir.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_is_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn clap_messages_fit_one_line() {
        let error = Args::try_parse_from(["race", "--state", "hot"]).expect_err("no such state");
        assert_eq!(
            crate::complaint::of_clap(&error, "haulage race"),
            "invalid value 'hot' for '--state <STATE>' [possible values: warm, cold]; \
             see haulage race --help"
        );
    }

    #[test]
    fn rounds_take_the_time_limit_away() {
        let time = |line: &[&str]| {
            let args = Args::try_parse_from(std::iter::once(&"race").chain(line)).expect("good");
            request(args, (None, PathBuf::from("."))).expect("good").time
        };
        assert_eq!(time(&[]), Some(Duration::from_secs(20)));
        assert_eq!(time(&["--rounds", "3"]), None);
        assert_eq!(time(&["--rounds", "3", "--time", "0.5"]), Some(Duration::from_millis(500)));
    }
}
