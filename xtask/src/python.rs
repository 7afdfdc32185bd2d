//! Builds the Python package, installs it into a virtual environment of its own, and runs its tests:
//! `cargo xtask python`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, ensure};
use clap::Parser;

use crate::command::{self, root, step, succeed};
use crate::skips::report_skip;
use crate::{check, mpi, packages};

/// The tools of the build and of the tests, and what the examples and the frames need.
const TOOLS: &[&str] = &[
    "maturin>=1.9,<2",
    "pytest>=8,<10",
    "mypy>=1.15,<3",
    "matplotlib",
    "pandas",
    "polars",
    "rich",
    "tqdm",
];

/// Build the Python package, and run its tests, the copy tests of CPython and the hazards of every border
/// with it.
#[derive(Parser, Debug)]
#[command(name = "cargo xtask python")]
pub(crate) struct Args {
    /// The interpreter, CPython 3.9 or later
    #[arg(long, default_value = "python3")]
    python: OsString,

    /// The cargo profile of the extension module [default: dev, and dist for `--bench`]
    #[arg(long)]
    profile: Option<String>,

    /// The command `haulage` for the tests of the lab [default: target/debug/haulage; without it they
    /// are skipped]
    #[arg(long, value_name = "PATH")]
    command: Option<PathBuf>,

    /// Time the functions against those of shutil instead
    #[arg(long)]
    bench: bool,

    /// Further arguments, for pytest or the timing
    #[arg(last = true)]
    rest: Vec<OsString>,
}

/// Runs the task.
///
/// # Errors
/// If a step fails. Without an interpreter or without a package registry it is skipped, loudly.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let root = root();
    let environment = match environment(root, args) {
        Ok(environment) => environment,
        Err(why) => {
            report_skip(&format!("the Python package: {why:#}"))?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    let python = environment.join("bin/python");
    let usual = if args.bench { "dist" } else { "dev" };
    install(root, &environment, args.profile.as_deref().unwrap_or(usual))?;
    if args.bench {
        let script = root.join("crates/python/benches/against_shutil.py");
        return step(Command::new(&python).arg(script).args(&args.rest).current_dir(root));
    }
    let checked = step(Command::new(&python).args(["-m", "mypy"]).current_dir(root))?;
    if checked != ExitCode::SUCCESS {
        return Ok(checked);
    }
    let mut pytest = Command::new(&python);
    pytest.args(["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"]).args(&args.rest);
    let built = root.join("target/debug/haulage");
    if let Some(command) = args.command.as_ref().or_else(|| built.exists().then_some(&built)) {
        pytest.env("HAULAGE_COMMAND", command.canonicalize().context("--command")?);
    }
    let tested = step(pytest.current_dir(root))?;
    if tested != ExitCode::SUCCESS || !args.rest.is_empty() {
        return Ok(tested);
    }
    // The hazards that every border is tried with are a test of the library for C.
    // With the features of `cargo xtask test`, cargo compiles nothing again.
    let features: &[&str] = match mpi::find_tools() {
        Ok(_) => &["--features", mpi::FEATURE],
        Err(_) => &[],
    };
    let mut borders = command::cargo();
    borders.args(check::of_workspace(&["test", "--workspace", "--test", "borders"], features));
    step(borders.env("HAULAGE_PYTHON", &python).current_dir(root))
}

/// Makes the virtual environment below `target`, with the tools in it, unless it is there.
fn environment(root: &Path, args: &Args) -> anyhow::Result<PathBuf> {
    let tag = "import sys; print(f'{sys.implementation.name}-{sys.version_info[0]}.{sys.version_info[1]}')";
    let asked = Command::new(&args.python).args(["-c", tag]).output();
    let asked = asked.with_context(|| args.python.display().to_string())?;
    ensure!(asked.status.success(), "{}: {}", args.python.display(), asked.status);
    let tag = String::from_utf8(asked.stdout)?;
    let environment = root.join("target/python").join(tag.trim());
    let complete = environment.join("complete");
    let wanted = TOOLS.join("\n");
    if std::fs::read_to_string(&complete).is_ok_and(|has| has == wanted) {
        return Ok(environment);
    }
    if environment.exists() {
        std::fs::remove_dir_all(&environment)?;
    }
    let uv = packages::from_pypi("uv")?;
    let make = ["venv", "--quiet", "--python"];
    succeed(Command::new(&uv).args(make).args([&args.python, environment.as_os_str()]))?;
    succeed(pip_install(&uv, &environment).args(TOOLS))?;
    std::fs::write(complete, wanted)?;
    Ok(environment)
}

/// A call of uv, to which packages are added. pip takes several times as long.
fn pip_install(uv: &Path, environment: &Path) -> Command {
    let mut command = Command::new(uv);
    command.args(["pip", "install", "--quiet", "--python"]).arg(environment.join("bin/python"));
    command
}

/// Builds the wheel, and installs it in place of an older one.
fn install(root: &Path, environment: &Path, profile: &str) -> anyhow::Result<()> {
    let wheels = environment.join("wheels");
    if wheels.exists() {
        std::fs::remove_dir_all(&wheels)?;
    }
    let python = environment.join("bin/python");
    let mut build = Command::new(environment.join("bin/maturin"));
    build.args(["build", "--quiet", "--profile", profile, "--interpreter"]).arg(&python);
    // Libraries newer than those of the platform tags are no obstacle on this machine.
    succeed(build.args(["--compatibility", "linux", "--out"]).arg(&wheels).current_dir(root))?;
    let wheel = std::fs::read_dir(&wheels)?.next().context("maturin made no wheel")??.path();
    let mut pip = pip_install(&packages::from_pypi("uv")?, environment);
    succeed(pip.args(["--no-index", "--reinstall", "--no-deps"]).arg(wheel))
}
