//! What a user asks of `haulage certify`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use clap::error::ErrorKind;

/// Seconds where nobody says how long.
const SECONDS: f64 = 600.0;

/// Find out whether what is measured on this machine can be believed.
///
/// The protocol of 'haulage bench' is run on comparisons whose truth is known: a variant against
/// itself, against itself made 2, 5 or 10 % slower, against itself slow in a tenth of its runs, and small
/// buffers against large ones. What it says of them is counted: how often it sees a difference where
/// there is none, how often it finds one that is there, how small a one it can find. The page cache is
/// made cold and warm, and others than the prover are asked whether it is. The certificate is kept, and
/// 'haulage bench' says of every later result on this machine and these file systems whether it was
/// certified. Differences smaller than those between equal arms count as none from then on.
#[derive(Parser, Debug)]
#[command(
    name = "haulage certify",
    bin_name = "haulage certify",
    infer_long_args = true,
    after_help = "Exit status: 0 when all that is asked is so, 1 when not, 2 for bad usage.\n\n\
        Examples:\n  \
        haulage certify --on /data\n  \
        haulage certify --on /ssd --on /backup --time 1800"
)]
struct Args {
    /// Measure here; given twice, sources lie in the first directory and copies go to the second
    /// [default: the current directory]
    #[arg(long, value_name = "DIR")]
    on: Vec<PathBuf>,

    /// Time for everything together; more of it finds smaller differences
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value_t = SECONDS)]
    time: f64,

    /// What the order of runs and the bytes of sources follow from [default: another one each time]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Print the certificate as JSON
    #[arg(long)]
    json: bool,

    /// Where the run directory with all samples is made
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,

    /// Use no file larger than this
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "64M")]
    max_size: u64,

    /// Measure at most N cells of each kind: less time, and less sure
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    cells: Option<u16>,
}

/// What to certify, and how.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) src_dir: PathBuf,
    pub(super) dst_dir: PathBuf,
    pub(super) time: Duration,
    pub(super) seed: u64,
    pub(super) json: bool,
    pub(super) runs: PathBuf,
    pub(super) file_bytes_max: u64,
    pub(super) cells_max: usize,
}

/// The request in `args`; otherwise what to exit with, after it has been said why.
pub(super) fn parse(args: Vec<OsString>) -> Result<Request, ExitCode> {
    let name = OsString::from("haulage certify");
    let args = Args::try_parse_from(std::iter::once(name).chain(args)).map_err(|error| {
        match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                // Nobody is left to be told when the help cannot be printed.
                let _ = error.print();
                ExitCode::SUCCESS
            }
            _ => complain(&crate::error_text::of_clap(&error, "haulage certify")),
        }
    })?;
    let (src_dir, dst_dir) = match args.on.as_slice() {
        [] => (PathBuf::from("."), PathBuf::from(".")),
        [one] => (one.clone(), one.clone()),
        [src, dst] => (src.clone(), dst.clone()),
        _ => return Err(complain("--on can be given once or twice")),
    };
    Ok(Request {
        src_dir,
        dst_dir,
        time: Duration::from_secs_f64(args.time),
        seed: args.seed.unwrap_or_else(|| fastrand::u64(..1_000_000)),
        json: args.json,
        runs: args.runs,
        file_bytes_max: args.max_size,
        cells_max: args.cells.map_or(usize::MAX, usize::from),
    })
}

fn complain(words: &str) -> ExitCode {
    eprintln!("haulage certify: {words}");
    ExitCode::from(2)
}

fn seconds(text: &str) -> Result<f64, &'static str> {
    let seconds = text.parse().ok().filter(|&seconds| seconds > 0.0 && seconds <= 1e7);
    seconds.ok_or("it takes a number of seconds over 0, up to 10 million")
}

/// At least the smallest size that is measured.
fn size(text: &str) -> Result<u64, &'static str> {
    let size = text.parse::<engines::Bytes>().ok().filter(|bytes| bytes.0 >= 4096);
    size.map(|bytes| bytes.0).ok_or("it takes a size of at least 4K, as 512K or 8M")
}
