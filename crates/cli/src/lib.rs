//! The `haulage` command: one module a subcommand. A library, so that `haulage-mpi` has the arguments,
//! messages and receipts of `haulage cp`.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use clap::CommandFactory;
use signal_hook::consts::SIGXFSZ;

mod bench;
mod certify;
mod compare;
mod completions_command;
mod cp;
mod docs;
mod doctor;
mod engines_command;
mod error_text;
mod kernel;
mod last_words;
mod man_command;
mod race;
mod report;
mod sample_files;
mod scratch;
mod signals;
mod terminal;
mod tune;
mod version;

use ::report::columns::{wrapped, wrapped_behind};
pub use cp::{Collector, Ended, Job, OtherRanks, run_as_rank};
use docs::completions::{self, Shell};
use docs::{of_clap, overview};
pub use last_words::install as install_last_words;
use man_command::Page;
use terminal::command::{self, with_color};
use terminal::output;
pub use version::text as version_line;

/// A subcommand.
struct Command {
    name: &'static str,
    /// The purpose of the command in a phrase.
    about: &'static str,
    /// Runs it with the arguments after its name.
    main: fn(Vec<OsString>) -> ExitCode,
    /// The arguments of the command. `None` for `cp`, which has a table of its own.
    arguments: Option<fn() -> clap::Command>,
}

/// The help is in so many columns at most, also in a pipe.
const HELP_COLUMNS: usize = 80;

/// The subcommands, in the order of the help.
static COMMANDS: &[Command] = &[
    Command {
        name: "race",
        about: "measure all variants on one file or directory; name the fastest",
        main: |words| command::run("race", words, race::run),
        arguments: Some(race::Args::command),
    },
    Command {
        name: "bench",
        about: "run an experiment and keep every sample",
        main: |words| command::run("bench", words, bench::run),
        arguments: Some(bench::Args::command),
    },
    Command {
        name: "certify",
        about: "test whether measurements on this machine can be trusted",
        main: |words| command::run("certify", words, certify::run),
        arguments: Some(certify::Args::command),
    },
    Command {
        name: "compare",
        about: "report what changed between two runs of an experiment",
        main: |words| command::run("compare", words, compare::run),
        arguments: Some(compare::Args::command),
    },
    Command {
        name: "report",
        about: "show runs as a page, as figures or as text",
        main: |words| command::run("report", words, report::run),
        arguments: Some(report::Args::command),
    },
    Command {
        name: "tune",
        about: "find the fastest variants between directories, for later copies",
        main: |words| command::run("tune", words, tune::run),
        arguments: Some(tune::Args::command),
    },
    Command {
        name: "cp",
        about: "copy files and trees, as GNU cp does",
        main: |arguments| cp::main(arguments, completions),
        arguments: None,
    },
    Command {
        name: "engines",
        about: "list the engines, and whether each works here",
        main: |words| command::run("engines", words, engines_command::run),
        arguments: Some(engines_command::Args::command),
    },
    Command {
        name: "doctor",
        about: "show what this machine has for copies, and what would be better",
        main: |words| command::run("doctor", words, doctor::run),
        arguments: Some(doctor::Args::command),
    },
    Command {
        name: "man",
        about: "print a manual page, or write all of them",
        main: |words| command::run("man", words, |args| man_command::run(args, pages())),
        arguments: Some(man_command::Args::command),
    },
    Command {
        name: "completions",
        about: "print the completion script for a shell",
        main: |words| {
            command::run("completions", words, |args| completions_command::run(args, completions))
        },
        arguments: Some(completions_command::Args::command),
    },
];

impl Command {
    /// The command as completions read it.
    fn clap_command(&self) -> clap::Command {
        let command = self.arguments.map_or_else(cp::clap_command, |it| with_color(it()));
        let command = command.name(self.name).about(self.about);
        match self.name {
            // The pages are those of the commands.
            "man" => command.mut_arg("command", |arg| {
                arg.value_parser(COMMANDS.iter().map(|it| it.name).collect::<Vec<_>>())
            }),
            _ => command,
        }
    }

    fn page(&self) -> Page {
        let text = match self.arguments {
            Some(arguments) => {
                let others = COMMANDS.iter().filter(|other| other.name != self.name);
                let others = others.map(|other| format!("haulage-{}(1)", other.name));
                let others: Vec<_> = ["haulage(1)".to_owned()].into_iter().chain(others).collect();
                of_clap::page(self.name, self.about, with_color(arguments()), &others)
            }
            None => cp::page(false),
        };
        Page { command: Some(self.name), text }
    }
}

/// The manual: first the page of haulage itself.
fn pages() -> Vec<Page> {
    let abouts: Vec<_> = COMMANDS.iter().map(|command| (command.name, command.about)).collect();
    let overview = Page { command: None, text: overview::page(&abouts) };
    std::iter::once(overview).chain(COMMANDS.iter().map(Command::page)).collect()
}

/// The script by which `shell` completes the program as it was called, or what completes the last of
/// `words`.
fn completions(shell: Shell, words: Vec<OsString>) -> String {
    if cp::is_called_cp() {
        return completions::text(shell, cp::clap_command(), "--generate=", words);
    }
    let haulage = clap::Command::new("haulage")
        .disable_help_subcommand(true)
        .version(version::VERSION)
        .subcommands(COMMANDS.iter().map(Command::clap_command));
    completions::text(shell, haulage, "completions ", words)
}

/// Runs the program with the arguments of the process, and returns its exit code.
pub fn run() -> ExitCode {
    last_words::install();
    let mut args: Vec<OsString> = std::env::args_os().collect();
    // A link or copy of this program that is named cp acts as cp.
    if args.first().is_some_and(|name| cp::is_cp(name)) {
        return cp::main(args.split_off(1), completions);
    }
    if args.get(1).is_none_or(|command| command != "cp") {
        // A file that the process may not make so long is then an error. GNU cp is ended by the signal.
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    }
    match args.get(1).map(|word| word.as_encoded_bytes()) {
        // The processes that an experiment starts. It is not meant for users.
        Some(word) if word == lab::process::SUBCOMMAND.as_bytes() => bench::session(),
        None => bad_usage("a command is missing"),
        Some(b"--help" | b"-h" | b"help") => print(&help()),
        Some(b"--version" | b"-V") => print(&version::text("haulage")),
        Some(word) => {
            let command = COMMANDS.iter().find(|command| command.name.as_bytes() == word);
            match command {
                Some(command) => (command.main)(args.split_off(2)),
                None => bad_usage(&format!("no command is called '{}'", args[1].display())),
            }
        }
    }
}

/// The examples of the help, which fit 60 columns.
const EXAMPLES: &str = "Examples:
  haulage race             which variant is the fastest here
  haulage cp -a SRC DST    copy a tree
  haulage tune SRC DST     measure for later copies there
";

fn help() -> String {
    let columns = output::columns().min(HELP_COLUMNS);
    let mut text = wrapped(
        "haulage copies files with the fastest engine for your machine, and measures which one that is.",
        columns,
        "",
    );
    text.push_str(
        "\nUsage: haulage COMMAND [ARGUMENT]...\n  or:  haulage --help | --version\n\nCommands:\n",
    );
    for Command { name, about, .. } in COMMANDS {
        text.push_str(&wrapped_behind(&format!("  {name:<13}"), about, columns));
    }
    text.push('\n');
    for paragraph in [
        "An engine is a copy method of the kernel. A variant is an engine with its parameters, such as \
         read_write:256K@2: reads and writes through a buffer of 256 KiB by two workers.",
        "'haulage COMMAND --help' describes a command. A haulage that is named cp acts as 'haulage cp'.",
    ] {
        text.push_str(&wrapped(paragraph, columns, ""));
        text.push('\n');
    }
    text.push_str(EXAMPLES);
    text
}

fn print(text: &str) -> ExitCode {
    match output::print(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("haulage: {}", error_text::one_line(&error));
            ExitCode::FAILURE
        }
    }
}

fn bad_usage(problem: &str) -> ExitCode {
    eprintln!("haulage: {problem}\nTry 'haulage --help' for more information.");
    ExitCode::from(2)
}
