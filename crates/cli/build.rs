//! Passes the commit to the program, for the records of measurements, and links the program so that it
//! starts fast.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    link_unwinder();
    pass_commit();
}

/// Links the stack unwinder statically. The shared library executes CPUID before `main`. On a virtual
/// machine that takes a quarter of a millisecond, a sixth of a process that copies one small file.
fn link_unwinder() {
    let set = |name| std::env::var(name).unwrap_or_default();
    let native = set("TARGET") == set("HOST") && set("CARGO_CFG_TARGET_ENV") == "gnu";
    // A compiler without the static library links the shared one.
    let found = output_of("cc", &["-print-file-name=libgcc_eh.a"]);
    if native && found.is_some_and(|path| Path::new(&path).is_file()) {
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}

fn pass_commit() {
    // A source archive has no repository, and git may not be installed.
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else { return };
    println!("cargo::rustc-env=HAULAGE_COMMIT={commit}");
    // A commit moves the branch, and appends to its log.
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}

fn git(args: &[&str]) -> Option<String> {
    output_of("git", args)
}

/// The standard output of a program. `None` if the program fails or prints nothing.
fn output_of(program: &str, args: &[&str]) -> Option<String> {
    let output =
        Command::new(program).args(args).output().ok().filter(|out| out.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
