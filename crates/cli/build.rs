//! Tells the program its commit, profile and target, for `--version` and the records of measurements, and
//! links it so that it starts fast. Two builds of one commit tell the same.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    link_unwinder();
    pass_commit();
    println!("cargo::rustc-env=HAULAGE_PROFILE_NAME={}", profile());
    if profile() == "dev" {
        // Tests start the program thousands of times. Relocations of a debug build take half of its start.
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
    println!("cargo::rustc-env=HAULAGE_TARGET={}", variable("TARGET"));
}

/// Links the stack unwinder statically. The shared library executes CPUID before `main`. On a virtual
/// machine that takes a quarter of a millisecond, a sixth of a process that copies one small file.
fn link_unwinder() {
    let native =
        variable("TARGET") == variable("HOST") && variable("CARGO_CFG_TARGET_ENV") == "gnu";
    // A compiler without the static library links the shared one.
    let found = output_of("cc", &["-print-file-name=libgcc_eh.a"]);
    if native && found.is_some_and(|path| Path::new(&path).is_file()) {
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}

/// The name of the build profile. Cargo's variable `PROFILE` names only the built-in profile that it
/// inherits from. The directory before `build` has the own name, except for `dev`.
fn profile() -> String {
    let out_dir = variable("OUT_DIR");
    let before = out_dir.rsplit_once("/build/").map_or("", |(before, _)| before);
    match before.rsplit('/').next() {
        Some("debug") => "dev".to_owned(),
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => variable("PROFILE"),
    }
}

fn pass_commit() {
    if let Some(commit) = packaged_commit() {
        println!("cargo::rustc-env=HAULAGE_COMMIT={commit}");
    } else if let Some((commit, date)) = repository_commit() {
        println!("cargo::rustc-env=HAULAGE_COMMIT={commit}");
        println!("cargo::rustc-env=HAULAGE_COMMIT_DATE={date}");
    }
}

/// The commit that `cargo package` wrote down.
fn packaged_commit() -> Option<String> {
    let info = std::fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, after) = info.split_once("\"sha1\": \"")?;
    Some(after.get(..COMMIT_DIGITS)?.to_owned())
}

/// The commit of the repository, and its date. A source archive has none, and git may not be installed.
fn repository_commit() -> Option<(String, String)> {
    // Sources may have been unpacked inside a repository of something else.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    let digits = format!("--short={COMMIT_DIGITS}");
    let commit = git(&["rev-parse", &digits, "HEAD"])?;
    let date = git(&["show", "--no-patch", "--format=%cs", "HEAD"])?;
    // A commit moves the branch, and appends to its log.
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    Some((commit, date))
}

const COMMIT_DIGITS: usize = 12;

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
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
