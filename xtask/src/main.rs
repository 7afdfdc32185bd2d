//! The tasks of a contributor, one row each: `cargo xtask test` and the others of `TASKS`.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use clap::Parser;
use xtask::{command, file_systems, packages, skips};

mod book;
mod capi;
mod check;
mod deny;
mod dist;
mod follow;
mod layers;
mod mpi;
mod python;
mod release_check;

/// A task.
struct Task {
    /// The name of the task and what may follow it.
    usage: &'static str,
    about: &'static str,
    /// Gets the name and what follows it.
    run: fn(&[OsString]) -> anyhow::Result<ExitCode>,
}

const fn task(
    usage: &'static str,
    about: &'static str,
    run: fn(&[OsString]) -> anyhow::Result<ExitCode>,
) -> Task {
    Task { usage, about, run }
}

const TASKS: &[Task] = &[
    task("test", "set up what the tests need, and run every check", |_| check::everything()),
    task(
        "with-fs CMD...",
        "run CMD with the test file systems, as HAULAGE_TEST_FS names them",
        with_fs,
    ),
    task("sweep [--help]", "try faults, kills and limits on haulage cp by the thousand", of_sweeps),
    task("guest [--help]", "run a command on another kernel, in a virtual machine", of_sweeps),
    task(
        "matrix [--help]",
        "copy with haulage and GNU cp on file systems of other kernels",
        of_sweeps,
    ),
    task(
        "mutants [--help]",
        "break the copier in known ways, and demand that a test or sweep notices",
        of_sweeps,
    ),
    task("book", "build the book of the documents in target/book, with mdbook", |_| book::run()),
    task("dist [--help]", "make packages: .deb, .rpm, and a static tarball", |words| {
        dist::run(&Parser::parse_from(words))
    }),
    task("release-check VERSION", "check whether this commit can be released", |words| {
        release_check::run(&Parser::parse_from(words))
    }),
    task("follow DOCUMENT", "do what a worked example says, in a scratch clone", |words| {
        follow::run(&Parser::parse_from(words))
    }),
    task("python [--help]", "build the Python package, and run its tests", |words| {
        python::run(&Parser::parse_from(words))
    }),
    task("mpi [--help]", "build haulage-mpi, and run its tests", |words| {
        mpi::run(&Parser::parse_from(words))
    }),
    task("capi [--help]", "install libhaulage as its users do, and try it", |words| {
        capi::run(&Parser::parse_from(words))
    }),
    task(
        "layers [--help]",
        "check imports between files: no circle, and none against the layers",
        |words| layers::run(&Parser::parse_from(words)),
    ),
    task("deny [--help]", "check licences, versions and origins of the dependencies", |words| {
        deny::run(&Parser::parse_from(words))
    }),
    task("fuzz [--help]", "search for inputs that crash haulage", of_sweeps),
];

/// Runs a command with the test file systems.
fn with_fs(words: &[OsString]) -> anyhow::Result<ExitCode> {
    let [_, program, arguments @ ..] = words else { return Ok(usage()) };
    let file_systems = file_systems::all_mounted()?;
    file_systems.announce();
    command::step(Command::new(program).args(arguments).envs(file_systems.environment()))
}

/// Runs a task of crates/sweeps, which no other task has to compile.
fn of_sweeps(words: &[OsString]) -> anyhow::Result<ExitCode> {
    let run = ["run", "--quiet", "--package", "haulage-sweeps", "--"];
    command::step(command::cargo().args(run).args(words))
}

/// What a wrong command line is answered with.
fn usage() -> ExitCode {
    eprintln!("usage:");
    for Task { usage, about, .. } in TASKS {
        eprintln!("  cargo xtask {usage:<25} {about}");
    }
    ExitCode::from(2)
}

fn main() -> ExitCode {
    let words = xtask::words();
    let name = words.first().and_then(|name| name.to_str()).unwrap_or_default();
    let task = TASKS.iter().find(|task| task.usage.split(' ').next() == Some(name));
    // Those without a blank take nothing.
    let Some(task) = task.filter(|task| task.usage.contains(' ') || words.len() == 1) else {
        return usage();
    };
    (task.run)(&words).unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}
