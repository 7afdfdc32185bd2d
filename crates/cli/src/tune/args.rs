//! The arguments of `haulage tune`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use crate::terminal::command::{positive, random_seed, usage_error};

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
pub(super) struct Args {
    /// The directory that is copied from, and those that are copied to [default: within the first]
    #[arg(value_name = "DIR")]
    dirs: Vec<PathBuf>,

    /// Time for each pair of directories; with less of it what matters most is measured, and with more
    /// of it smaller differences are found
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "180",
          allow_negative_numbers = true, conflicts_with_all = ["show", "export", "import", "forget"])]
    pub(super) time: Duration,

    /// What the order of runs and the bytes of files follow from [default: another one each time]
    #[arg(long, value_name = "N", default_value_t = random_seed(), hide_default_value = true,
          conflicts_with_all = ["show", "export", "import", "forget"])]
    pub(super) seed: u64,

    /// Only say what would be measured, and the time and room that it would take
    #[arg(long, conflicts_with_all = ["json", "show", "export", "import", "forget"])]
    pub(super) dry_run: bool,

    /// Write everything that was measured to FILE, for 'haulage report'; `-` is standard output, in
    /// place of the table
    #[arg(long, value_name = "FILE", conflicts_with_all = ["show", "export", "import", "forget"])]
    pub(super) json: Option<PathBuf>,

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

impl Args {
    pub(super) fn request(&self) -> anyhow::Result<Request> {
        if self.show {
            return Ok(Request::Show);
        }
        if let Some(file) = &self.export {
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
                let text = "missing directory to measure in; see haulage tune --help";
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
        assert!(matches!(parsed(&["--export", "x"]), Ok(Request::Export(to)) if !is_stream(&to)));
        assert!(
            matches!(parsed(&["--import", "-"]), Ok(Request::Import(from)) if is_stream(&from))
        );
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
