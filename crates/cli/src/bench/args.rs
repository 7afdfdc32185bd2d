//! What a user asks of `haulage bench`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use clap::error::ErrorKind;

/// Run a whole experiment, and keep every sample.
///
/// EXPERIMENT is the name of one that haulage brings along (see --list), or a TOML file of your own in
/// the same form. All variants run in shuffled, interleaved rounds, in sessions that are processes of
/// their own; the page cache is set and proved before each run, and each copy is compared with its
/// source. Samples go to a run directory as they come, so that an experiment that was interrupted can
/// be taken up again. Files are made only in one folder of ours in each --on directory, and removed in
/// the end.
#[derive(Parser, Debug)]
#[command(
    name = "haulage bench",
    bin_name = "haulage bench",
    infer_long_args = true,
    after_help = "Examples:\n  \
        haulage bench --list\n  \
        haulage bench engines --on /data --time 600\n  \
        haulage bench closson-2007 --on /ssd --on /backup --scale 0.1 --dry-run\n  \
        haulage bench --resume runs/20260131T120000Z-host-engines"
)]
struct Args {
    /// The experiment
    #[arg(value_name = "EXPERIMENT", required_unless_present_any = ["list", "resume"])]
    experiment: Option<String>,

    /// List the experiments that haulage brings along
    #[arg(long)]
    list: bool,

    /// Measure here; given twice, sources lie in the first directory and copies go to the second
    /// [default: the current directory]
    #[arg(long, value_name = "DIR")]
    on: Vec<PathBuf>,

    /// Multiply the sizes and numbers of files that are made for it by F
    #[arg(long, value_name = "F", value_parser = factor, default_value = "1")]
    scale: f64,

    /// Run exactly N rounds of each cell, however long they take
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rounds: Option<u32>,

    /// Time for everything together; with --resume, from now on [default: what the experiment says, or
    /// what is left of it]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time: Option<f64>,

    /// What the order of runs and the bytes of sources follow from [default: another one each time]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Where run directories are made
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,

    /// Say what would be run, how long it would take and how much room it needs
    #[arg(long)]
    dry_run: bool,

    /// Print every table and analysis before the answer in short; they are in the run directory anyhow
    #[arg(long)]
    details: bool,

    /// Take up an experiment that was interrupted, in its run directory
    #[arg(long, value_name = "RUN", conflicts_with_all = ["experiment", "on", "scale", "seed", "runs"])]
    resume: Option<PathBuf>,
}

/// What to do.
#[derive(Debug)]
pub(super) enum Request {
    /// List the experiments.
    List,
    /// Run one.
    Run(RunRequest),
    /// Take one up again.
    Resume(ResumeRequest),
}

/// An experiment to be run.
#[derive(Debug)]
pub(super) struct RunRequest {
    pub(super) experiment: String,
    pub(super) src_dir: PathBuf,
    pub(super) dst_dir: PathBuf,
    pub(super) scale: f64,
    pub(super) rounds: Option<u32>,
    pub(super) time: Option<Duration>,
    pub(super) seed: u64,
    pub(super) runs: PathBuf,
    pub(super) dry_run: bool,
    pub(super) details: bool,
}

/// An experiment to be taken up again, for so long or with so many rounds where that is said anew.
#[derive(Debug)]
pub(super) struct ResumeRequest {
    pub(super) run: PathBuf,
    pub(super) rounds: Option<u32>,
    pub(super) time: Option<Duration>,
    pub(super) dry_run: bool,
    pub(super) details: bool,
}

/// The request in `args`; otherwise what to exit with, after it has been said why.
pub(super) fn parse(args: Vec<OsString>) -> Result<Request, ExitCode> {
    let name = OsString::from("haulage bench");
    let args = Args::try_parse_from(std::iter::once(name).chain(args)).map_err(|error| {
        match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                // Nobody is left to be told when the help cannot be printed.
                let _ = error.print();
                ExitCode::SUCCESS
            }
            _ => complain(&crate::error_text::of_clap(&error, "haulage bench")),
        }
    })?;
    let time = args.time.map(Duration::from_secs_f64);
    if args.list {
        return Ok(Request::List);
    }
    if let Some(run) = args.resume {
        let Args { rounds, dry_run, details, .. } = args;
        return Ok(Request::Resume(ResumeRequest { run, rounds, time, dry_run, details }));
    }
    let (src_dir, dst_dir) = match args.on.as_slice() {
        [] => (PathBuf::from("."), PathBuf::from(".")),
        [one] => (one.clone(), one.clone()),
        [src, dst] => (src.clone(), dst.clone()),
        _ => return Err(complain("--on can be given once or twice")),
    };
    Ok(Request::Run(RunRequest {
        experiment: args.experiment.unwrap_or_default(),
        src_dir,
        dst_dir,
        scale: args.scale,
        rounds: args.rounds,
        time,
        seed: args.seed.unwrap_or_else(|| fastrand::u64(..1_000_000)),
        runs: args.runs,
        dry_run: args.dry_run,
        details: args.details,
    }))
}

fn complain(words: &str) -> ExitCode {
    eprintln!("haulage bench: {words}");
    ExitCode::from(2)
}

fn factor(text: &str) -> Result<f64, &'static str> {
    let factor = text.parse().ok().filter(|&factor| factor > 0.0 && factor <= 1e6);
    factor.ok_or("it takes a number over 0, up to a million")
}

fn seconds(text: &str) -> Result<f64, &'static str> {
    let seconds = text.parse().ok().filter(|&seconds| seconds > 0.0 && seconds <= 1e7);
    seconds.ok_or("it takes a number of seconds over 0, up to 10 million")
}
