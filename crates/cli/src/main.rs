//! The `haulage` command: one module a subcommand.

#![cfg_attr(all(target_env = "gnu", not(test)), no_main)]

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

mod bench;
mod certify;
mod compare;
mod cp;
mod engines_command;
mod error_text;
mod race;
mod report;
mod scratch;
mod signals;
mod terminal;
mod tune;
mod version;

/// A subcommand: its name, its purpose, and the function that runs it with the arguments after its
/// name.
struct Command {
    name: &'static str,
    about: &'static str,
    main: fn(Vec<OsString>) -> ExitCode,
}

/// The subcommands, in the order of the help.
static COMMANDS: &[Command] = &[
    Command {
        name: "race",
        about: "measure all variants on one file or directory, and name the fastest",
        main: race::main,
    },
    Command { name: "bench", about: "run an experiment and keep every sample", main: bench::main },
    Command {
        name: "certify",
        about: "test whether measurements on this machine can be trusted",
        main: certify::main,
    },
    Command {
        name: "compare",
        about: "report what changed between two runs of an experiment",
        main: compare::main,
    },
    Command {
        name: "report",
        about: "show runs as a page, as figures or as text",
        main: report::main,
    },
    Command {
        name: "tune",
        about: "find the fastest variants between directories, for later copies",
        main: tune::main,
    },
    Command { name: "cp", about: "copy files and trees, as GNU cp does", main: cp_main },
    Command {
        name: "engines",
        about: "list the engines, and whether each works here",
        main: engines_command::main,
    },
];

/// The names of the subcommands.
fn command_names() -> Vec<&'static str> {
    COMMANDS.iter().map(|command| command.name).collect()
}

fn cp_main(arguments: Vec<OsString>) -> ExitCode {
    cp::main(arguments, command_names)
}

engines::program!(run);

fn run() -> ExitCode {
    let mut args: Vec<OsString> = std::env::args_os().collect();
    // A link or copy of this program that is named cp acts as cp.
    if args.first().is_some_and(|name| cp::is_cp(name)) {
        return cp_main(args.split_off(1));
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

fn help() -> String {
    let mut text = String::from(
        "haulage copies files with the fastest engine for your machine, and measures which one that is.\n\
         \n\
         Usage: haulage COMMAND [ARGUMENT]...\n\
         \n\
         Commands:\n",
    );
    for Command { name, about, .. } in COMMANDS {
        text.push_str(&format!("  {name:<9}{about}\n"));
    }
    text.push_str(
        "\n'haulage COMMAND --help' describes a command. A haulage that is named cp acts as 'haulage cp'.\n",
    );
    text
}

fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn bad_usage(problem: &str) -> ExitCode {
    eprintln!("haulage: {problem}\nTry 'haulage --help' for more information.");
    ExitCode::from(2)
}
