//! The `haulage` command: one module a subcommand.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

mod complaint;
mod cp;
mod engines_command;

fn main() -> ExitCode {
    let mut args: Vec<OsString> = std::env::args_os().collect();
    // Installed or linked under the name of cp it is cp.
    if args.first().is_some_and(|name| Path::new(name).file_name() == Some(OsStr::new("cp"))) {
        return cp::main(args.split_off(1));
    }
    let subcommand = args.get(1).and_then(|arg| arg.to_str()).unwrap_or_default().to_owned();
    match subcommand.as_str() {
        "cp" => cp::main(args.split_off(2)),
        "engines" => engines_command::main(args.split_off(2)),
        _ => {
            eprintln!("haulage: no such command: '{subcommand}'");
            ExitCode::from(2)
        }
    }
}
