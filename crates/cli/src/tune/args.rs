//! What a user asks of `haulage tune`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::Parser;
use clap::error::ErrorKind;

/// Seconds for each pair where nobody says how long.
const SECONDS: f64 = 180.0;

/// Find out once which way of copying is the fastest between two directories, for every later copy.
///
/// For short and long files, in the page cache or not, one alone or several at once, and for
/// --no-cache, every variant that works here copies made files; those that are far behind leave, and
/// shuffled rounds decide between the rest. The page cache is set before each run and its state proved;
/// each copy is compared with its source. What is best goes into the profile, and 'haulage cp' uses it
/// from then on. The table says what not using it costs: going by the built-in default, by GNU cp's
/// way, or by copy_file_range always.
///
/// With one directory copies stay within it. With several, copies from the first to each of the others
/// are measured, one pair after another. Files are made in a directory of their own below each, and
/// removed again. What is best for one file system pair says nothing of another, nor of another kernel.
#[derive(Parser, Debug)]
#[command(
    name = "haulage tune",
    bin_name = "haulage tune",
    infer_long_args = true,
    after_help = "The profile is $XDG_CONFIG_HOME/haulage/profile.toml, by default below ~/.config, or \
        the file that HAULAGE_PROFILE names. It may be edited by hand.\n\n\
        Examples:\n  \
        haulage tune /data                    copies within /data\n  \
        haulage tune /data /backup /mnt/usb   from /data to each of the others\n  \
        haulage tune /data /backup --dry-run  what that would take\n  \
        haulage tune --show                   what is known\n  \
        haulage tune --forget /mnt/usb        as if it had not been measured"
)]
struct Args {
    /// The directory that is copied from, and those that are copied to [default: within the first]
    #[arg(value_name = "DIR")]
    dirs: Vec<PathBuf>,

    /// Time for each pair of directories; with less of it what matters most is measured, and with more
    /// of it smaller differences are found
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value_t = SECONDS,
          allow_negative_numbers = true, conflicts_with_all = ["show", "export", "import", "forget"])]
    time: f64,

    /// What the order of runs and the bytes of files follow from [default: another one each time]
    #[arg(long, value_name = "N", conflicts_with_all = ["show", "export", "import", "forget"])]
    seed: Option<u64>,

    /// Only say what would be measured, and the time and room that it would take
    #[arg(long, conflicts_with_all = ["json", "show", "export", "import", "forget"])]
    dry_run: bool,

    /// Write everything that was measured to FILE, for 'haulage report'; `-` is standard output, in
    /// place of the table
    #[arg(long, value_name = "FILE", conflicts_with_all = ["show", "export", "import", "forget"])]
    json: Option<PathBuf>,

    /// Show what the profile holds
    #[arg(long, conflicts_with_all = ["export", "import", "forget", "dirs"])]
    show: bool,

    /// Write the profile to FILE, or to standard output
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-",
          conflicts_with_all = ["import", "forget", "dirs"])]
    export: Option<PathBuf>,

    /// Take over what FILE, which was exported, holds for any machine; `-` is standard input. What was
    /// measured on the same machine and file systems before is replaced
    #[arg(long, value_name = "FILE", conflicts_with_all = ["forget", "dirs"])]
    import: Option<PathBuf>,

    /// Forget what was measured on this machine on the file systems of each DIR, or all of it
    #[arg(long)]
    forget: bool,
}

/// One of the things that the command does.
#[derive(Debug)]
pub(super) enum Request {
    Measure(Measure),
    Show,
    Export(Target),
    Import(Target),
    /// Of these directories, or everything.
    Forget(Vec<PathBuf>),
}

/// What to measure, and how.
#[derive(Debug)]
pub(super) struct Measure {
    /// From where to where.
    pub(super) pairs: Vec<(PathBuf, PathBuf)>,
    pub(super) time: Duration,
    pub(super) seed: u64,
    pub(super) dry_run: bool,
    pub(super) json: Option<Target>,
}

/// A file, or a standard stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Stream,
    File(PathBuf),
}

impl From<PathBuf> for Target {
    fn from(path: PathBuf) -> Target {
        if path == Path::new("-") { Target::Stream } else { Target::File(path) }
    }
}

/// The request in `args`; otherwise what to exit with, after it has been said why.
pub(super) fn parse(args: Vec<OsString>) -> Result<Request, ExitCode> {
    let name = OsString::from("haulage tune");
    let complain = |words: &str| {
        eprintln!("haulage tune: {words}");
        ExitCode::from(2)
    };
    let args = Args::try_parse_from(std::iter::once(name).chain(args)).map_err(|error| {
        match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                // Nobody is left to be told when the help cannot be printed.
                let _ = error.print();
                ExitCode::SUCCESS
            }
            _ => complain(&crate::error_text::of_clap(&error, "haulage tune")),
        }
    })?;
    request(args).map_err(|error| complain(&crate::error_text::one_line(&error)))
}

fn request(args: Args) -> anyhow::Result<Request> {
    if args.show {
        return Ok(Request::Show);
    }
    if let Some(file) = args.export {
        return Ok(Request::Export(file.into()));
    }
    if let Some(file) = args.import {
        return Ok(Request::Import(file.into()));
    }
    if args.forget {
        return Ok(Request::Forget(args.dirs));
    }
    let pairs = match args.dirs.as_slice() {
        [] => bail!("missing directory to measure in; see haulage tune --help"),
        [only] => vec![(only.clone(), only.clone())],
        [src, dsts @ ..] => dsts.iter().map(|dst| (src.clone(), dst.clone())).collect(),
    };
    Ok(Request::Measure(Measure {
        pairs,
        time: Duration::from_secs_f64(args.time),
        seed: args.seed.unwrap_or_else(|| fastrand::u64(..1_000_000)),
        dry_run: args.dry_run,
        json: args.json.map(Target::from),
    }))
}

fn seconds(text: &str) -> Result<f64, &'static str> {
    let seconds = text.parse().ok().filter(|&seconds| seconds > 0.0 && seconds <= 1e6);
    seconds.ok_or("it takes a number of seconds over 0, up to a million")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &[&str]) -> Result<Request, String> {
        let args = Args::try_parse_from(std::iter::once(&"tune").chain(line))
            .map_err(|error| crate::error_text::of_clap(&error, "haulage tune"))?;
        request(args).map_err(|error| crate::error_text::one_line(&error))
    }

    #[test]
    fn one_directory_is_both_ends_and_of_several_the_first_is_the_source() {
        let pairs = |line: &[&str]| match parsed(line) {
            Ok(Request::Measure(measure)) => {
                let text = |path: PathBuf| path.display().to_string();
                let pairs = measure.pairs.into_iter().map(|(src, dst)| (text(src), text(dst)));
                pairs.map(|(src, dst)| format!("{src}>{dst}")).collect::<Vec<_>>().join(" ")
            }
            other => format!("{other:?}"),
        };
        assert_eq!(pairs(&["a"]), "a>a");
        assert_eq!(pairs(&["a", "b", "c", "--time", "5"]), "a>b a>c");
    }

    #[test]
    fn one_thing_at_a_time() {
        assert!(matches!(parsed(&["--show"]), Ok(Request::Show)));
        assert!(matches!(parsed(&["--export"]), Ok(Request::Export(Target::Stream))));
        assert!(matches!(parsed(&["--export", "x"]), Ok(Request::Export(Target::File(_)))));
        assert!(matches!(parsed(&["--import", "-"]), Ok(Request::Import(Target::Stream))));
        assert!(matches!(parsed(&["--forget"]), Ok(Request::Forget(dirs)) if dirs.is_empty()));
        assert!(matches!(parsed(&["--forget", "a"]), Ok(Request::Forget(dirs)) if dirs.len() == 1));
        for line in [
            &["--show", "--export"][..],
            &["--show", "a"],
            &["--show", "--time", "3"],
            &["--forget", "--seed", "3"],
            &["--import", "x", "--forget"],
            &["--dry-run", "--json", "x", "a"],
            &["--forget", "--json", "x", "a"],
            &["--time", "0", "a"],
            &["--time", "-3", "a"],
            &["--import"],
            &[],
        ] {
            parsed(line).expect_err("more than one thing, or none");
        }
    }
}
