//! `cargo xtask sweep` as a program of its own, which the tests of this crate start.

use std::process::ExitCode;

fn main() -> ExitCode {
    let words = [vec!["sweep".into()], sweeps::words()].concat();
    sweeps::tasks::sweep(&words).unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}
