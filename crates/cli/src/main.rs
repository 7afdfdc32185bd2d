//! The `haulage` command: one module a subcommand.

#![cfg_attr(all(target_env = "gnu", not(test)), no_main)]

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

mod bench;
mod certify;
mod compare;
mod complaint;
mod cp;
mod engines_command;
mod interrupt;
mod live;
mod race;
mod report;
mod signals;
mod tune;

/// A subcommand: its name, what it is for, and what runs it with the words after its name.
struct Command {
    name: &'static str,
    about: &'static str,
    main: fn(Vec<OsString>) -> ExitCode,
}

/// Every subcommand, in the order in which a newcomer needs them.
static COMMANDS: &[Command] = &[
    Command {
        name: "race",
        about: "measure every way of copying on your own file, and say which one wins",
        main: race::main,
    },
    Command {
        name: "bench",
        about: "run a whole experiment and keep every sample",
        main: bench::main,
    },
    Command {
        name: "certify",
        about: "find out whether what is measured on this machine can be believed",
        main: certify::main,
    },
    Command {
        name: "compare",
        about: "say what changed between two runs of an experiment",
        main: compare::main,
    },
    Command {
        name: "report",
        about: "show what experiments came to: a page, drawings or text",
        main: report::main,
    },
    Command {
        name: "tune",
        about: "find out once what is fastest here, for every later copy",
        main: tune::main,
    },
    Command { name: "cp", about: "copy files and trees, as GNU cp does", main: cp::main },
    Command {
        name: "engines",
        about: "say which ways of copying work here, and why not",
        main: engines_command::main,
    },
];

/// What each subcommand is called.
fn command_names() -> Vec<&'static str> {
    COMMANDS.iter().map(|command| command.name).collect()
}

engines::program!(run);

fn run() -> ExitCode {
    let mut args: Vec<OsString> = std::env::args_os().collect();
    // Installed or linked under the name of cp it is cp.
    if args.first().is_some_and(|name| cp::is_cp(name)) {
        return cp::main(args.split_off(1));
    }
    match args.get(1).map(|word| word.as_encoded_bytes()) {
        // What an experiment runs in processes of their own; nobody types it.
        Some(word) if word == lab::process::SUBCOMMAND.as_bytes() => bench::session(),
        None => bad_usage("a command is missing"),
        Some(b"--help" | b"-h" | b"help") => print(&help()),
        Some(b"--version" | b"-V") => print(&format!("haulage {}\n", env!("CARGO_PKG_VERSION"))),
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
        "haulage copies files by the way that is fastest on your machine, and shows that it is.\n\
         \n\
         Usage: haulage COMMAND [ARGUMENT]...\n\
         \n\
         Commands:\n",
    );
    for Command { name, about, .. } in COMMANDS {
        text.push_str(&format!("  {name:<9}{about}\n"));
    }
    text.push_str(
        "\n'haulage COMMAND --help' says more of each. Under the name cp, haulage is 'haulage cp'.\n",
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
