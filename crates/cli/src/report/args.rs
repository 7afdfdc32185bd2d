//! The arguments of `haulage report`.

use std::path::PathBuf;

use clap::Parser;

/// Show runs as a page, as figures or as text.
///
/// RUN is a run directory of 'haulage bench', or a file that 'haulage tune --json' wrote. Without
/// options, one HTML page of all runs is written into the first run directory, or beside the first
/// file. The page contains everything that it shows, and uses no network. The command measures nothing
/// and does not change the samples.
#[derive(Parser, Debug)]
#[command(
    infer_long_args = true,
    after_help = "Examples:\n  \
        haulage report runs/20260131T120000Z-host-engines\n  \
        haulage report runs/* -o all.html\n  \
        haulage report RUN --text | less\n  \
        haulage report RUN --svg figures --png figures\n  \
        haulage report --compare BEFORE AFTER -o change.html"
)]
pub(crate) struct Args {
    /// A run directory, or a file of 'haulage tune --json'
    #[arg(value_name = "RUN", required_unless_present = "compare")]
    pub(super) runs: Vec<PathBuf>,

    /// Show run A and run B, and first what changed from A to B
    #[arg(long, value_names = ["A", "B"], num_args = 2, conflicts_with = "runs")]
    pub(super) compare: Vec<PathBuf>,

    /// Write the page to FILE [default: report.html in the first RUN]
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    /// Write the figures to DIR as SVG
    #[arg(long, value_name = "DIR")]
    pub(super) svg: Option<PathBuf>,

    /// Write the figures to DIR as PNG
    #[arg(long, value_name = "DIR")]
    pub(super) png: Option<PathBuf>,

    /// Print the results and figures as text
    #[arg(long)]
    pub(super) text: bool,

    /// Recommend the buffer with which the system calls add PERCENT, from 0.1 to 20, to the time of
    /// the bytes
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = percent)]
    pub(super) epsilon: f64,
}

impl Args {
    /// The runs to show, those of `--compare` as well.
    pub(super) fn all_runs(&self) -> &[PathBuf] {
        if self.compare.is_empty() { &self.runs } else { &self.compare }
    }

    /// The file of the page. `None` if only figures or text are asked for.
    pub(super) fn page(&self) -> Option<PathBuf> {
        match &self.output {
            Some(file) => Some(file.clone()),
            None if self.text || self.svg.is_some() || self.png.is_some() => None,
            None if self.all_runs()[0].is_file() => Some(self.all_runs()[0].with_extension("html")),
            None => Some(self.all_runs()[0].join("report.html")),
        }
    }
}

/// Parses a percentage with or without its sign, and returns it as a fraction. The limits are those
/// of the slider on the page.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse::<f64>() {
        Ok(percent) if (0.1..=20.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("a number from 0.1 to 20 is wanted".to_owned()),
    }
}
