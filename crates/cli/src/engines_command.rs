//! `haulage engines`: which engines work here.

use std::ffi::OsString;
use std::process::ExitCode;

/// Lists the engines.
pub(crate) fn main(_args: Vec<OsString>) -> ExitCode {
    for engine in engines::ENGINES {
        println!("{:<16} {}", engine.name, engine.about);
    }
    ExitCode::SUCCESS
}
