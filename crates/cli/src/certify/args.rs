//! The arguments of `haulage certify`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use crate::bench::measured_dirs::MeasuredDirs;
use crate::terminal::command::{random_seed, seconds};

/// Test whether measurements on this machine can be trusted.
///
/// The protocol of 'haulage bench' is run on comparisons whose truth is known: a variant with itself;
/// with itself made 2, 5 or 10 % slower; with itself made slow in a tenth of its runs; and small buffers
/// with large ones. The certificate counts how often a difference is reported where there is none, how
/// often a difference is found, and how small a difference can be found. The page cache is made cold
/// and warm, and other programs verify that it is. The certificate is stored. Each later verdict of
/// 'haulage bench' on this machine and these file systems states whether it was certified. In these
/// verdicts, differences up to those between equal variants do not count.
#[derive(Parser, Debug)]
#[command(
    infer_long_args = true,
    after_help = "Exit status: 0 if the machine passes all criteria, 1 if not, 2 for bad usage.\n\n\
        Examples:\n  \
        haulage certify --on /data\n  \
        haulage certify --on /ssd --on /backup --time 1800"
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) dirs: MeasuredDirs,

    /// The time for all measurements; more time finds smaller differences
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "600")]
    pub(super) time: Duration,

    /// The seed of the random order and contents [default: a random number]
    #[arg(long, value_name = "N", default_value_t = random_seed(), hide_default_value = true,
          value_parser = clap::value_parser!(u64).range(..1 << 63))]
    pub(super) seed: u64,

    /// Print the certificate as JSON
    #[arg(long)]
    pub(super) json: bool,

    /// The directory in which the run directory is made
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(super) runs: PathBuf,

    /// The size of the largest file
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "64M")]
    pub(super) max_size: u64,

    /// Measure at most N cells of each kind; fewer cells take less time and prove less
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) cells: Option<u16>,
}

/// Parses a size of at least the smallest file that is measured, in bytes.
fn size(text: &str) -> Result<u64, &'static str> {
    let size = text.parse::<engines::Bytes>().ok().filter(|bytes| bytes.0 >= 4096);
    size.map(|bytes| bytes.0).ok_or("it takes a size of at least 4K, as 512K or 8M")
}
