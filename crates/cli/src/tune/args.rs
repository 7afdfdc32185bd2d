//! The arguments of `haulage tune`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use crate::terminal::command::{positive, random_seed, usage_error};

/// Find the fastest variants between directories, for later copies.
///
/// The search covers short and long files, in the page cache or not, one or several copies at once, and
/// --no-cache. In each situation every variant copies files that are made for it. Elimination rounds
/// drop slow variants, and shuffled final rounds decide among the rest. The state of the page cache is
/// set and verified before each run, and each copy is compared with its source. The fastest variants
/// are stored in the profile, which 'haulage cp' uses. The table reports how much slower the built-in
/// default, GNU cp and copy_file_range alone are.
///
/// With one directory, copies within it are measured. With several, copies from the first to each of
/// the others are measured, one pair after another. Files are made in a scratch directory below each,
/// which is removed at the end. A result holds for one pair of file systems and one kernel.
#[derive(Parser, Debug)]
#[command(
    infer_long_args = true,
    after_help = "The profile is the file that HAULAGE_PROFILE names, or else \
        $XDG_CONFIG_HOME/haulage/profile.toml, by default in ~/.config. It can be edited by hand.\n\n\
        Examples:\n  \
        haulage tune /data                     copies within /data\n  \
        haulage tune /data /backup /mnt/usb    from /data to each other one\n  \
        haulage tune /data /backup --dry-run   what would be measured\n  \
        haulage tune /data --export FILE       write a record to contribute\n  \
        haulage tune --show                    the stored results\n  \
        haulage tune --forget /mnt/usb         remove results for /mnt/usb"
)]
pub(crate) struct Args {
    /// The source directory, then the destination directories [default: copies within the first]
    #[arg(value_name = "DIR")]
    dirs: Vec<PathBuf>,

    /// The time for each pair of directories; less time covers only the most important situations, and
    /// more time finds smaller differences [default: 180]
    #[arg(long, value_name = "SECONDS", value_parser = seconds,
          allow_negative_numbers = true, conflicts_with_all = ["show", "import", "forget"])]
    time: Option<Duration>,

    /// The seed of the random order and contents [default: a random number]
    #[arg(long, value_name = "N", conflicts_with_all = ["show", "import", "forget"])]
    seed: Option<u64>,

    /// Print what would be measured, and the time and space that it would take
    #[arg(long, conflicts_with_all = ["json", "show", "export", "import", "forget"])]
    pub(super) dry_run: bool,

    /// Write all results to FILE as JSON, for 'haulage report'; `-` is standard output, which then gets
    /// no table
    #[arg(long, value_name = "FILE", conflicts_with_all = ["show", "import", "forget"])]
    pub(super) json: Option<PathBuf>,

    /// Print the profile
    #[arg(long, conflicts_with_all = ["export", "import", "forget", "dirs"])]
    show: bool,

    /// Without DIR: write the profile to FILE [default: standard output]. With DIR: measure, and write
    /// to FILE a record for the project, without names of this machine
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-",
          conflicts_with_all = ["import", "forget"])]
    pub(super) export: Option<PathBuf>,

    /// Add the exported profile FILE, with the results of all its machines; `-` is standard input.
    /// Results for the same machine and file systems are replaced
    #[arg(long, value_name = "FILE", conflicts_with_all = ["forget", "dirs"])]
    import: Option<PathBuf>,

    /// Remove the results of this machine for the file systems of each DIR, or all of them
    #[arg(long)]
    forget: bool,
}

/// What the command does.
#[derive(Debug)]
pub(super) enum Request {
    /// Search between each of these pairs of directories.
    Measure(Vec<(PathBuf, PathBuf)>),
    Show,
    Export(PathBuf),
    Import(PathBuf),
    /// Forget the choices for these directories, or all.
    Forget(Vec<PathBuf>),
}

/// The time for a pair if none is given.
const DEFAULT_TIME: Duration = Duration::from_secs(180);

impl Args {
    /// The time for each pair of directories.
    pub(super) fn time(&self) -> Duration {
        self.time.unwrap_or(DEFAULT_TIME)
    }

    /// The seed. A random one differs from call to call.
    pub(super) fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(random_seed)
    }

    pub(super) fn request(&self) -> anyhow::Result<Request> {
        if self.show {
            return Ok(Request::Show);
        }
        if let (Some(file), []) = (&self.export, self.dirs.as_slice()) {
            let measuring = [
                (self.time.is_some(), "--time"),
                (self.seed.is_some(), "--seed"),
                (self.json.is_some(), "--json"),
            ];
            if let Some((_, option)) = measuring.into_iter().find(|(given, _)| *given) {
                let text = format!(
                    "the argument '{option}' cannot be used with '--export' without a directory to \
                     measure in"
                );
                return Err(usage_error(text));
            }
            return Ok(Request::Export(file.clone()));
        }
        if let Some(file) = &self.import {
            return Ok(Request::Import(file.clone()));
        }
        if self.forget {
            return Ok(Request::Forget(self.dirs.clone()));
        }
        let pairs = match self.dirs.as_slice() {
            [] => {
                let text = "missing directory to measure in, such as '.'; see haulage tune --help";
                return Err(usage_error(text.to_owned()));
            }
            [only] => vec![(only.clone(), only.clone())],
            [src, dsts @ ..] => dsts.iter().map(|dst| (src.clone(), dst.clone())).collect(),
        };
        Ok(Request::Measure(pairs))
    }
}

fn seconds(text: &str) -> Result<Duration, &'static str> {
    let seconds = positive(text, 1e6).map(Duration::from_secs_f64);
    seconds.ok_or("it takes a number of seconds over 0, up to a million")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::output::is_stream;

    fn parsed(line: &[&str]) -> Result<Request, String> {
        let args = Args::try_parse_from(std::iter::once(&"tune").chain(line))
            .map_err(|error| crate::error_text::of_clap(&error, "haulage tune"))?;
        args.request().map_err(|error| crate::error_text::one_line(&error))
    }

    #[test]
    fn one_directory_is_both_ends_and_of_several_the_first_is_the_source() {
        let pairs = |line: &[&str]| match parsed(line) {
            Ok(Request::Measure(pairs)) => {
                let text = |path: PathBuf| path.display().to_string();
                let pairs = pairs.into_iter().map(|(src, dst)| (text(src), text(dst)));
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
        assert!(matches!(parsed(&["--export"]), Ok(Request::Export(to)) if is_stream(&to)));
        let record = ["a", "--export", "x", "--time", "3", "--json", "y"];
        assert!(matches!(parsed(&record), Ok(Request::Measure(_))));
        assert!(matches!(parsed(&["--export", "x"]), Ok(Request::Export(to)) if !is_stream(&to)));
        assert!(
            matches!(parsed(&["--import", "-"]), Ok(Request::Import(from)) if is_stream(&from))
        );
        assert!(matches!(parsed(&["--forget"]), Ok(Request::Forget(dirs)) if dirs.is_empty()));
        assert!(matches!(parsed(&["--forget", "a"]), Ok(Request::Forget(dirs)) if dirs.len() == 1));
        for line in [
            &["--import", "x", "--forget"][..],
            &["--dry-run", "--json", "x", "a"],
            &["--forget", "--json", "x", "a"],
            &["--import"],
            &["--export", "x", "--time", "3"],
            &["--export", "x", "--json", "y"],
            &["a", "--export", "x", "--dry-run"],
        ] {
            parsed(line).expect_err("more than one thing, or none");
        }
    }
}
