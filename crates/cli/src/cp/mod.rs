//! `haulage cp`: the command line of GNU cp, and its words for what the copy has to say.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::SIGPIPE;
use tree::{Filter, IgnoreFile, Options, Request};

mod args;
mod at_hand;
mod books;
mod choices;
mod completions;
mod console;
mod counting;
mod draft;
mod environment;
mod errno_name;
mod figures;
mod flag;
mod flags;
mod help;
mod interrupt;
mod invocation;
mod man;
mod messages;
mod parse;
mod progress;
mod quote;
mod receipt;
mod screen;
mod speed;
mod stats;
mod tally;
#[cfg(test)]
mod tests;
mod usage_error;
mod way;

use args::{Args, Destination};
use books::Books;
use console::{Console, Looks, Unsaid};
use environment::Environment;
use interrupt::Interrupts;
pub(crate) use invocation::is_cp;
use usage_error::UsageError;

/// Copies as the words after the command's name say.
pub(crate) fn main(words: Vec<OsString>) -> ExitCode {
    let mut warn =
        |warning: usage_error::Warning| say(std::io::stderr(), warning.line().as_bytes());
    match parse::parse(words, &Environment::of_process(), &mut warn) {
        Ok(args::Request::Help) => print(&help::text(&invocation::in_full())),
        Ok(args::Request::Version) => print(&help::version()),
        Ok(args::Request::Completions(shell)) => {
            let names = crate::command_names();
            let command = match invocation::is_called_cp() {
                true => completions::Command::Cp,
                false => completions::Command::Haulage(&names),
            };
            print(&completions::script(shell, command))
        }
        Ok(args::Request::ManPage) => print(&man::page()),
        Ok(args::Request::Copy(args)) => copy(*args),
        Err(error) => {
            say(std::io::stderr(), &error.lines());
            ExitCode::FAILURE
        }
    }
}

fn copy(args: Args) -> ExitCode {
    let interrupts = Interrupts::of_process();
    // What is only read comes before what is emptied for the receipts.
    let opened = filter(&args).and_then(|filter| Ok((filter, Books::open(&args)?)));
    let (filter, books) = match opened {
        Ok(opened) => opened,
        Err(lines) => {
            say(std::io::stderr(), &lines);
            return ExitCode::FAILURE;
        }
    };
    // Where nobody looks nothing is drawn, and nothing counted.
    let shows_progress = args.progress && std::io::stderr().is_terminal();
    // Whoever asks how it is done, or sits there, hears what a script need not.
    let notices = args.debug || args.stats || std::io::stderr().is_terminal();
    let filters = !args.rules.is_empty() || !args.ignore_files.is_empty();
    let (request, mut options) = plan(args, filter);
    options.record = books.as_ref().and_then(Books::file);
    // The count knows nothing of filters, and a total that is never reached is worse than none.
    let counts = shows_progress && !filters;
    let count = counts.then(|| counting::count_beside(&request, &options));
    let console = Console::new(interrupts.clone(), books, Looks { shows_progress, notices }, count);
    if shows_progress {
        interrupts.watch(&console);
        console::keep_drawing(&console);
    }
    allow_many_files();
    let outcome = tree::copy(&request, &options, &*console);
    let said = console.finish(outcome.failures);
    interrupts.die_if_one_came();
    match said {
        Ok(()) if outcome.failures == 0 => ExitCode::SUCCESS,
        Err(Unsaid::Unheard) => interrupt::die_of(SIGPIPE),
        _ => ExitCode::FAILURE,
    }
}

/// Lets the process have as many files open as it may. That it may have 1024 as a rule and many
/// more if it asks is for the sake of select(2), which nothing here calls.
fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.map_or(FILES_ENOUGH, |maximum| maximum.min(FILES_ENOUGH));
    if limit.current.is_some_and(|current| current < most) {
        // Who may not copies with fewer.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(most), ..limit });
    }
}

/// Open files that are enough for all workers that there ever are.
const FILES_ENOUGH: u64 = 16 << 10;

/// What the command line asks for, in the terms of the copier.
fn plan(args: Args, filter: Filter) -> (Request, Options) {
    let mut sources = args.operands;
    let mut last = || sources.pop().expect("the parser saw to a destination");
    let destination = match args.destination {
        Destination::Directory(directory) => tree::Destination::Directory(directory),
        Destination::LastOperand => tree::Destination::Last(last()),
        Destination::Exact => tree::Destination::Exact(last()),
    };
    let options = Options {
        recursive: args.recursive,
        follow: args.follow,
        make: args.make,
        copy_contents: args.copy_contents,
        preserve: args.preserve,
        existing: args.existing,
        ask: args.ask,
        force: args.force,
        remove_destination: args.remove_destination,
        backup: args.backup,
        sparse: args.sparse,
        reflink: args.reflink,
        parents: args.parents,
        strip_trailing_slashes: args.strip_trailing_slashes,
        keep_directory_symlink: args.keep_directory_symlink,
        through_dangling_symlink: args.through_dangling_symlink,
        one_file_system: args.one_file_system,
        context: args.context,
        verbose: args.verbose,
        debug: args.debug,
        jobs: args.jobs,
        engine: args.engine,
        profile: args.profile,
        atomic: args.atomic,
        durable: args.durable,
        verify: args.verify,
        resume: args.resume,
        no_cache: args.no_cache,
        dry_run: args.dry_run,
        limit_rate: args.limit_rate,
        filter,
        record: None,
    };
    (Request { sources, destination }, options)
}

/// What is left out.
///
/// # Errors
/// The lines that say which ignore file cannot be read or used, and why.
fn filter(args: &Args) -> Result<Filter, Vec<u8>> {
    let read = |path: &OsString| match std::fs::read(path) {
        Ok(text) => Ok(IgnoreFile { path: path.into(), text }),
        Err(error) => {
            let error = messages::error_words(&error);
            Err(UsageError::IgnoreFileUnread { path: path.clone(), error }.lines())
        }
    };
    let files = args.ignore_files.iter().map(read).collect::<Result<_, _>>()?;
    Filter::new(args.rules.clone(), files).map_err(|bad| UsageError::BadPattern(bad).lines())
}

fn print(text: &str) -> ExitCode {
    match console::print(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Unsaid::Unheard) => interrupt::die_of(SIGPIPE),
        Err(Unsaid::Error) => ExitCode::FAILURE,
    }
}

/// Writes to standard error, where a failure leaves nobody to tell.
fn say(mut out: impl Write, bytes: &[u8]) {
    let _ = out.write_all(bytes);
}
