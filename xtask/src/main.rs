//! Sets up what the tests need and runs them: `cargo xtask test`. Compares `haulage cp` with other
//! copiers: `cargo xtask peers`.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use clap::Parser;
use file_systems::FileSystems;

mod book;
mod capi;
mod check;
mod command;
mod default_profile;
mod deny;
mod dist;
mod file_systems;
mod follow;
mod fuzz;
mod guest;
mod judge_profile;
mod judge_selection;
mod layers;
mod matrix;
mod mpi;
mod mutants;
mod namespace;
mod packages;
mod peers;
mod python;
mod release_check;
mod skips;
mod sweep;

const USAGE: &str = "usage:
  cargo xtask test             set up what the tests need, and run every check
  cargo xtask with-fs CMD...   run CMD with the test file systems, as HAULAGE_TEST_FS names them
  cargo xtask peers [--help]   time haulage cp against GNU cp and other copiers
  cargo xtask default-profile [--help]
                               derive the built-in profile from the measurements in record/
  cargo xtask judge-profile [--help]
                               compare the choices of haulage tune and the built-in profile with a long search
  cargo xtask judge-selection [--help]
                               compare the default of haulage cp with each variant, on one large file
  cargo xtask sweep [--help]   try faults, kills and limits on haulage cp by the thousand
  cargo xtask guest [--help]   run a command on another kernel, in a virtual machine
  cargo xtask matrix [--help]  copy with haulage and GNU cp on file systems of other kernels
  cargo xtask book             build the book of the documents in target/book, with mdbook
  cargo xtask dist [--help]    make packages: .deb, .rpm, and a static tarball
  cargo xtask release-check VERSION
                               check whether this commit can be released
  cargo xtask follow DOCUMENT  do what a worked example says, in a scratch clone
  cargo xtask python [--help]  build the Python package, and run its tests
  cargo xtask mpi [--help]     build haulage-mpi, and run its tests
  cargo xtask capi [--help]    install libhaulage as its users do, and try it
  cargo xtask layers [--help]  check imports between files: no circle, and none against the layers
  cargo xtask deny             check licences, versions and origins of the dependencies
  cargo xtask fuzz [--help]    search for inputs that crash haulage
  cargo xtask mutants [--help] break the copier in known ways, and demand that a test or sweep notices
";

enum Task {
    Test,
    WithFs(Vec<OsString>),
    Peers(Box<peers::Args>),
    DefaultProfile(Box<default_profile::Args>),
    JudgeProfile(Box<judge_profile::Args>),
    JudgeSelection(Box<judge_selection::Args>),
    Sweep(Box<sweep::Args>),
    Guest(Box<guest::Args>),
    Matrix(Box<matrix::Args>),
    Book,
    Dist(Box<dist::Args>),
    ReleaseCheck(Box<release_check::Args>),
    Follow(Box<follow::Args>),
    Layers(Box<layers::Args>),
    Python(Box<python::Args>),
    Mpi(Box<mpi::Args>),
    Capi(Box<capi::Args>),
    Deny(Vec<OsString>),
    Fuzz(Box<fuzz::Args>),
    Mutants(Box<mutants::Args>),
}

impl Task {
    fn parse(args: &[OsString]) -> Option<Task> {
        match args {
            [task] if task == "test" => Some(Task::Test),
            [task, command @ ..] if task == "with-fs" && !command.is_empty() => {
                Some(Task::WithFs(command.to_vec()))
            }
            [task] if task == "book" => Some(Task::Book),
            [task, ..] if task == "peers" => Some(Task::Peers(parsed(args))),
            [task, ..] if task == "default-profile" => Some(Task::DefaultProfile(parsed(args))),
            [task, ..] if task == "judge-profile" => Some(Task::JudgeProfile(parsed(args))),
            [task, ..] if task == "judge-selection" => Some(Task::JudgeSelection(parsed(args))),
            [task, ..] if task == "sweep" => Some(Task::Sweep(parsed(args))),
            [task, ..] if task == "guest" => Some(Task::Guest(parsed(args))),
            [task, ..] if task == "matrix" => Some(Task::Matrix(parsed(args))),
            [task, ..] if task == "dist" => Some(Task::Dist(parsed(args))),
            [task, ..] if task == "release-check" => Some(Task::ReleaseCheck(parsed(args))),
            [task, ..] if task == "follow" => Some(Task::Follow(parsed(args))),
            [task, ..] if task == "layers" => Some(Task::Layers(parsed(args))),
            [task, ..] if task == "mpi" => Some(Task::Mpi(parsed(args))),
            [task, ..] if task == "capi" => Some(Task::Capi(parsed(args))),
            [task, ..] if task == "python" => Some(Task::Python(parsed(args))),
            [task, rest @ ..] if task == "deny" => Some(Task::Deny(rest.to_vec())),
            [task, ..] if task == "fuzz" => Some(Task::Fuzz(parsed(args))),
            [task, ..] if task == "mutants" => Some(Task::Mutants(parsed(args))),
            _ => None,
        }
    }

    /// Whether no file system has to be mounted.
    fn needs_no_mounts(&self) -> bool {
        match self {
            Task::Peers(args) => args.needs_no_mounts(),
            Task::DefaultProfile(args) => args.needs_no_mounts(),
            Task::JudgeSelection(args) => args.needs_no_mounts(),
            Task::Sweep(args) => args.needs_no_mounts(),
            Task::Mutants(args) => args.needs_no_mounts(),
            Task::JudgeProfile(_)
            | Task::Guest(_)
            | Task::Matrix(_)
            | Task::Layers(_)
            | Task::Python(_)
            | Task::Mpi(_)
            | Task::Capi(_)
            | Task::Fuzz(_)
            | Task::Deny(_)
            | Task::Book
            | Task::Dist(_)
            | Task::ReleaseCheck(_)
            | Task::Follow(_) => true,
            Task::Test | Task::WithFs(_) => false,
        }
    }

    /// For a task that needs mounts.
    fn mount(&self) -> anyhow::Result<FileSystems> {
        match self {
            Task::Peers(args) => file_systems::mount_only(&args.kinds(), args.scale),
            Task::DefaultProfile(args) => file_systems::mount_only(&args.kinds(), 1.0),
            Task::JudgeSelection(args) => file_systems::mount_only(&args.kinds(), 1.0),
            // A sweep within `cargo xtask test` or `with-fs` uses their file systems.
            Task::Sweep(args) => match FileSystems::from_environment()? {
                Some(given) => Ok(given),
                None => file_systems::mount_with_small(args.kinds()),
            },
            _ => file_systems::mount_with_small(&file_systems::KINDS),
        }
    }

    fn run(&self, file_systems: &FileSystems) -> anyhow::Result<ExitCode> {
        match self {
            Task::Test => check::everything(file_systems),
            Task::Peers(args) => peers::run(args, file_systems),
            Task::DefaultProfile(args) => default_profile::run(args, file_systems),
            Task::JudgeProfile(args) => judge_profile::run(args),
            Task::JudgeSelection(args) => judge_selection::run(args, file_systems),
            Task::Sweep(args) => sweep::run(args, file_systems),
            Task::Guest(args) => guest::run(args),
            Task::Matrix(args) => matrix::run(args),
            Task::Dist(args) => dist::run(args),
            Task::ReleaseCheck(args) => release_check::run(args),
            Task::Follow(args) => follow::run(args),
            Task::Layers(args) => layers::run(args),
            Task::Python(args) => python::run(args),
            Task::Mpi(args) => mpi::run(args),
            Task::Capi(args) => capi::run(args),
            Task::Deny(args) => deny::run(args),
            Task::Fuzz(args) => fuzz::run(args),
            Task::Mutants(args) => mutants::run(args, file_systems),
            Task::Book => book::run(),
            Task::WithFs(command) => {
                file_systems.announce();
                let status = Command::new(&command[0])
                    .args(&command[1..])
                    .envs(file_systems.environment())
                    .status()
                    .map_err(|error| anyhow::anyhow!("{}: {error}", command[0].display()))?;
                Ok(command::exit_code(status))
            }
        }
    }
}

/// The arguments of a task. On --help or an error clap prints its message and exits.
fn parsed<Args: Parser>(args: &[OsString]) -> Box<Args> {
    Box::new(Args::parse_from(args))
}

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let (inside, args) = match args.split_first() {
        Some((first, rest)) if first == namespace::INSIDE => (true, rest),
        _ => (false, &args[..]),
    };
    let Some(task) = Task::parse(args) else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    let outcome = match &task {
        task if task.needs_no_mounts() => task.run(&FileSystems::none()),
        _ if inside => task.mount().and_then(|mounted| task.run(&mounted)),
        _ => {
            packages::install_missing();
            // A new process in a mount namespace of its own makes the mounts.
            let why = namespace::enter(args);
            task.run(&file_systems::find(&why))
        }
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}
