//! The `haulage` command: one module a subcommand.

use std::ffi::OsString;
use std::process::ExitCode;

mod complaint;
mod engines_command;
mod race;

fn main() -> ExitCode {
    let mut args: Vec<OsString> = std::env::args_os().collect();
    let subcommand = args.get(1).and_then(|arg| arg.to_str()).unwrap_or_default().to_owned();
    match subcommand.as_str() {
        "engines" => engines_command::main(args.split_off(2)),
        "race" => race::main(args.split_off(2)),
        _ => {
            eprintln!("haulage: no such command: '{subcommand}'");
            ExitCode::from(2)
        }
    }
}
