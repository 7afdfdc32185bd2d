//! `haulage cp`: the command line of GNU cp, and its messages.
//!
//! From top to bottom: `parse` reads the arguments by the flag table in `flags/`, `builder` resolves
//! the options into a [`CopyCommand`], [`haulage::Copy`] copies, and `console` reports.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use haulage::events::words_of_error;
use haulage::options::{Destination, Filter, IgnoreFile};
use rustix::process::{Resource, Rlimit, setrlimit};
use signal_hook::consts::SIGPIPE;
use sys::resource_limit;

mod builder;
mod command_line;
mod console;
mod docs;
mod environment;
mod flags;
mod interrupt;
mod invocation;
mod job;
mod messages;
mod parse;
mod progress;
mod receipt;
#[cfg(test)]
mod tests;
mod units;
mod values;

use command_line::{Command, CopyCommand};
use console::{Console, ConsoleOptions, OutputError, ShownProgress};
pub(crate) use docs::clap_command::clap_command;
use docs::help;
pub(crate) use docs::man::page;
use environment::Environment;
use interrupt::Interrupts;
pub(crate) use invocation::{is_called_cp, is_cp};
pub use job::{Collector, Ended, Job, OtherRanks};
use messages::sink::{self, put};
use messages::wording::message;
use progress::scan;
use receipt::json::Receipts;
use receipt::recorder::Recorder;
use values::Generated;

use crate::docs::completions::Shell;
use crate::last_words;
use crate::terminal::output;
use crate::version;

/// Runs `cp` with the arguments after the command's name. `completions` returns the script for a shell,
/// or what completes the last of the words.
pub(crate) fn main(
    arguments: Vec<OsString>,
    completions: fn(Shell, Vec<OsString>) -> String,
) -> ExitCode {
    let mut warn = |warning: &'static str| put(warning.as_bytes());
    match parse::parse(arguments, &Environment::of_process(), &mut warn) {
        Ok(Command::Help) => print(&help::text(&invocation::in_full(), output::columns())),
        Ok(Command::Version) => print(&version::text("cp (haulage)")),
        Ok(Command::Generate(Generated::Man)) => print(&page(is_called_cp())),
        Ok(Command::Generate(Generated::Completions(shell))) => {
            let words = std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
            print(&completions(shell, words))
        }
        Ok(Command::Copy(command)) => copy(*command, None),
        Err(error) => {
            put(&error.lines());
            ExitCode::FAILURE
        }
    }
}

/// Runs `cp` with the arguments after the command's name on one rank of `job`.
pub fn run_as_rank(arguments: Vec<OsString>, job: &Arc<dyn Job>) -> ExitCode {
    let sink = job.clone();
    sink::set(move |lines| sink.put(lines));
    // All ranks find the same mistakes.
    let put = |lines: &[u8]| {
        if job.is_first() {
            sink::put(lines);
        }
    };
    let mut warn = |warning: &'static str| put(warning.as_bytes());
    let command = match parse::parse(arguments, &Environment::of_process(), &mut warn) {
        Ok(Command::Copy(command)) => command,
        Ok(Command::Help | Command::Version) if !job.is_first() => return ExitCode::SUCCESS,
        Ok(Command::Help) => return print(&help::text("haulage-mpi cp", output::columns())),
        Ok(Command::Version) => return print(&version::text("cp (haulage)")),
        Ok(Command::Generate(_)) => {
            put(b"cp: --generate: use 'haulage cp'\n");
            return ExitCode::FAILURE;
        }
        Err(error) => {
            put(&error.lines());
            return ExitCode::FAILURE;
        }
    };
    if let Some((option, why)) = job::refused(&command) {
        put(format!("cp: {option} cannot be used by several processes: {why}\n").as_bytes());
        return ExitCode::FAILURE;
    }
    copy(*command, Some(job))
}

/// Copies; as a rank of `job`, if there is one.
fn copy(mut command: CopyCommand, job: Option<&Arc<dyn Job>>) -> ExitCode {
    if resource_limit(Resource::As).is_ok_and(|limit| limit.current.is_some()) {
        // Before any thread has an arena of its own.
        sys::use_one_arena();
    }
    let interrupts = Interrupts::of_process();
    // The ignore files are read before the file for receipts is truncated: it may be one of them.
    let opened = filter(&command)
        .and_then(|filter| Ok((filter, Recorder::open(&command.reports, &command.request, job)?)));
    let (filter, recorder) = match opened {
        Ok(opened) => opened,
        Err(lines) => {
            put(&lines);
            return ExitCode::FAILURE;
        }
    };
    command.options.filter = filter;
    command.options.record =
        recorder.as_ref().and_then(Recorder::receipts).and_then(Receipts::file);
    let CopyCommand { request, options, rules, ignore_files, reports } = command;
    let stderr_is_terminal = std::io::stderr().is_terminal();
    let is_first = job.is_none_or(|job| job.is_first());
    let shown = match (reports.progress, job) {
        (true, Some(_)) if !is_first => ShownProgress::ByRank0,
        (true, _) if stderr_is_terminal => ShownProgress::Redrawn,
        (true, Some(_)) => ShownProgress::Lines,
        _ => ShownProgress::No,
    };
    // Notices are for users who ask how the copy works, and for those at a terminal, not for scripts.
    let shows_notices = options.debug || reports.stats || stderr_is_terminal;
    // The pre-scan does not apply filters, so its total would never be reached.
    let is_filtered = !rules.is_empty() || !ignore_files.is_empty();
    let shows_progress = matches!(shown, ShownProgress::Redrawn | ShownProgress::Lines);
    let scan = (shows_progress && !is_filtered).then(|| scan::start(&request, &options));
    let says_unwritten = job.is_none() && (shown == ShownProgress::Redrawn || reports.stats);
    let (Destination::Directory(destination)
    | Destination::Last(destination)
    | Destination::Exact(destination)) = &request.destination;
    let writes_to = says_unwritten.then(|| destination.into());
    let waits = options.waits_for_medium();
    let console_options = ConsoleOptions { shown, shows_notices, waits, writes_to };
    let console = Console::new(interrupts.clone(), recorder, console_options, scan, job.cloned());
    let failing = console.clone();
    last_words::set_command("cp", move || failing.incomplete_at_failure());
    if shows_progress {
        console.watch_signals();
        console::keep_showing(&console, shown);
    }
    raise_open_file_limit();
    let outcome = match job {
        None => haulage::Copy::of(request, options).run_observed(&*console),
        Some(job) => {
            let collector: Arc<dyn Collector> = console.clone();
            job.copy(request, options, &collector)
        }
    };
    let reported = console.finish(outcome.failures);
    if job.is_some() && interrupts.arrived() {
        // The job has an end of its own.
        return ExitCode::FAILURE;
    }
    interrupts.die_if_arrived();
    match reported {
        Ok(()) if outcome.failures == 0 => ExitCode::SUCCESS,
        Err(OutputError::BrokenPipe) => interrupt::die_of(SIGPIPE),
        _ => ExitCode::FAILURE,
    }
}

/// Raises the soft limit of open files (RLIMIT_NOFILE) to the hard limit. The usual soft limit of
/// 1024 exists for select(2), which nothing here calls.
fn raise_open_file_limit() {
    let Ok(limit) = resource_limit(Resource::Nofile) else { return };
    let most = limit.maximum.map_or(OPEN_FILES_MAX, |maximum| maximum.min(OPEN_FILES_MAX));
    if limit.current.is_some_and(|current| current < most) {
        // If that is refused, the copy keeps fewer files open.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(most), ..limit });
    }
}

/// Open files that suffice for the largest number of workers.
const OPEN_FILES_MAX: u64 = 16 << 10;

/// The filter of `--exclude`, `--include` and `--ignore-file`.
///
/// # Errors
/// The error lines, if an ignore file cannot be read or has an invalid glob.
fn filter(command: &CopyCommand) -> Result<Filter, Vec<u8>> {
    let read = |path: &OsString| match std::fs::read(path) {
        Ok(text) => Ok(IgnoreFile { path: path.into(), text }),
        Err(error) => {
            Err(message(&format!("cannot read {{}}: {}", words_of_error(&error)), &[path.as_ref()]))
        }
    };
    let files = command.ignore_files.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Filter::new(&command.rules, &files).expect("each rule was tried when it was read"))
}

fn print(text: &str) -> ExitCode {
    match console::print(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(OutputError::BrokenPipe) => interrupt::die_of(SIGPIPE),
        Err(OutputError::Reported) => ExitCode::FAILURE,
    }
}
