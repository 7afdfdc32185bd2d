//! Runs a command of the lab: parses its arguments and reports its errors.

use std::ffi::OsString;
use std::fmt;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Arg, Parser, ValueEnum, value_parser};

use crate::error_text;

/// An error in the arguments. It makes the exit status 2 instead of 1.
#[derive(Debug)]
pub(crate) struct UsageError(pub(crate) anyhow::Error);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for UsageError {}

/// When a command writes colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum When {
    /// On a terminal, unless the environment variable NO_COLOR is set or TERM is dumb
    #[default]
    Auto,
    /// Into files and pipes too
    Always,
    /// Never
    Never,
}

impl When {
    fn set(self) {
        match self {
            When::Auto => anstream::ColorChoice::Auto,
            When::Always => anstream::ColorChoice::Always,
            When::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

/// The option of all commands of the lab.
const COLOR: &str = "color";

/// `command` with the option `--color`.
pub(crate) fn with_color(command: clap::Command) -> clap::Command {
    command.arg(
        Arg::new(COLOR)
            .long(COLOR)
            .value_name("WHEN")
            .value_parser(value_parser!(When))
            .default_value("auto")
            .help("Write colours: auto is on a terminal only, unless NO_COLOR is set")
            // The long form lists what each value means.
            .long_help("When to write colours"),
    )
}

/// Parses `arguments` for the command `name` and calls `run`. Returns the exit status: that of `run`,
/// 0 after `--help`, 1 after an error, 2 after bad usage.
pub(crate) fn run<Args: Parser>(
    name: &str,
    arguments: Vec<OsString>,
    run: impl FnOnce(&Args) -> anyhow::Result<ExitCode>,
) -> ExitCode {
    let program = format!("haulage {name}");
    let line = std::iter::once(OsString::from(&program)).chain(arguments);
    let parsed = with_color(Args::command()).try_get_matches_from(line).and_then(|matches| {
        matches.get_one::<When>(COLOR).copied().unwrap_or_default().set();
        Args::from_arg_matches(&matches)
    });
    let done = match parsed {
        Ok(args) => run(&args),
        Err(error)
            if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) =>
        {
            // A help that cannot be printed is no error of the command.
            let _ = error.print();
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => Err(usage_error(error_text::of_clap(&error, &program))),
    };
    done.unwrap_or_else(|error| {
        report_error(name, &error);
        if error.is::<UsageError>() { ExitCode::from(2) } else { ExitCode::FAILURE }
    })
}

/// Writes one line with `error` to standard error.
pub(crate) fn report_error(name: &str, error: &anyhow::Error) {
    eprintln!("haulage {name}: {}", error_text::one_line(error));
}

/// `text` as an error in the arguments.
pub(crate) fn usage_error(text: String) -> anyhow::Error {
    UsageError(anyhow::Error::msg(text)).into()
}

/// Parses a time in seconds.
pub(crate) fn seconds(text: &str) -> Result<Duration, &'static str> {
    let seconds = positive(text, 1e7).map(Duration::from_secs_f64);
    seconds.ok_or("it takes a number of seconds over 0, up to 10 million")
}

/// Parses a number over 0, up to `max`.
pub(crate) fn positive(text: &str, max: f64) -> Option<f64> {
    text.parse().ok().filter(|&number| number > 0.0 && number <= max)
}

/// The seed of a run for which the user gives none. It is short enough to type.
pub(crate) fn random_seed() -> u64 {
    fastrand::u64(..1_000_000)
}
