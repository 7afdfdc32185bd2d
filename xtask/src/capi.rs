//! Installs libhaulage as its users do, and tries it: `cargo xtask capi`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, ensure};
use clap::Parser;

use crate::command::{self, root, succeed};
use crate::dist::CARGO_C;

/// The most bytes of the stripped library.
const LIBRARY_BYTES_MAX: u64 = 3_000_000;

/// Install libhaulage with cargo-c, try the program of the README with it, and check its size.
///
/// cargo-c is installed into target/tools if it is missing, which takes four minutes of processor time.
#[derive(Parser, Debug)]
#[command(name = "cargo xtask capi")]
pub(crate) struct Args {
    /// Then time copies of a small file in this directory against copies by hand
    #[arg(long, value_name = "DIR")]
    bench: Option<PathBuf>,
}

/// Runs the task.
///
/// # Errors
/// If a step fails, or the library is too large.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let root = root();
    let program = CARGO_C.find()?;
    let path = with_first(program.parent().context("it is in a directory")?)?;
    let cargo = |words: &[&str]| {
        let mut command = command::cargo();
        command.args(words).env("PATH", &path).current_dir(root);
        command
    };
    if args.bench.is_none() {
        succeed(&mut cargo(&["test", "--package", "haulage-capi", "--test", "readme"]))?;
    }
    let place = root.join("target/capi");
    let words = ["cinstall", "--package", "haulage-capi", "--profile", "dist", "--locked"];
    let mut install = cargo(&words);
    install.args(["--prefix", "/usr", "--libdir", "/usr/lib", "--destdir"]).arg(&place);
    succeed(&mut install)?;
    let library = place.join("usr/lib/libhaulage.so");
    let stripped = place.join("stripped.so");
    succeed(Command::new("strip").arg("-o").arg(&stripped).arg(&library))?;
    let bytes = std::fs::metadata(&stripped)?.len();
    eprintln!("xtask: libhaulage.so has {bytes} bytes without symbols");
    ensure!(bytes < LIBRARY_BYTES_MAX, "it has {LIBRARY_BYTES_MAX} bytes or more");
    if let Some(dir) = &args.bench {
        let bench = place.join("against_by_hand");
        let lib = place.join("usr/lib");
        let mut compile = Command::new("cc");
        compile.arg("-O2").arg(root.join("crates/capi/benches/against_by_hand.c")).arg("-o");
        compile.arg(&bench).arg("-I").arg(place.join("usr/include")).arg("-L").arg(&lib);
        succeed(compile.arg("-lhaulage"))?;
        succeed(Command::new(&bench).env("LD_LIBRARY_PATH", &lib).current_dir(dir))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The PATH with `dir` in front.
fn with_first(dir: &Path) -> anyhow::Result<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::iter::once(dir.to_owned()).chain(std::env::split_paths(&path));
    std::env::join_paths(dirs).context("PATH")
}
