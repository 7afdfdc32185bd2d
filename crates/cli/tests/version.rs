//! What `--version` says.

use std::process::Command;

use testfs::{skip, test_name};

use crate::man::in_repository;

/// The lines that `--version` prints.
fn version_lines(args: &[&str]) -> Vec<String> {
    let output = crate::haulage(args);
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

#[test]
fn version_names_commit_profile_target_and_kernel() {
    for (args, name) in [
        (&["--version"][..], "haulage"),
        (&["-V"], "haulage"),
        (&["cp", "--version"], "cp (haulage)"),
    ] {
        let lines = version_lines(args);
        assert_eq!(lines[0], format!("{name} {}", env!("CARGO_PKG_VERSION")));
        let [commit, profile, target] = lines[1].split(", ").collect::<Vec<_>>()[..] else {
            panic!("three facts: {lines:?}");
        };
        assert!(commit.starts_with("commit "), "{commit}");
        // The directory of the program is that of its profile.
        let path = std::path::Path::new(env!("CARGO_BIN_EXE_haulage"));
        let dir = path.parent().and_then(|dir| dir.file_name()).expect("a directory");
        let expected = dir.to_str().expect("text").replace("debug", "dev");
        assert_eq!(profile, format!("profile {expected}"));
        assert!(target.starts_with(&format!("target {}-", std::env::consts::ARCH)), "{target}");
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        let found = lines[2].strip_prefix(&format!("kernel {release}: ")).expect("the kernel");
        assert!(found.split(", ").any(|call| call == "splice"), "{found}");
        assert_eq!(lines.len(), 3);
    }
}

#[test]
fn the_commit_is_that_of_the_repository() {
    if !in_repository() {
        return skip(&test_name(), "this is not in its git repository");
    }
    let mut git = Command::new("git");
    git.args(["rev-parse", "--short=12", "HEAD"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    let commit = testfs::stdout(&git.output().expect("git ran"));
    let expected = format!("commit {}, ", commit.trim());
    let lines = version_lines(&["--version"]);
    assert!(lines[1].starts_with(&expected), "{lines:?}, not {expected}");
}

/// The loader lists the libraries instead of starting the program if this variable is set, ld.so(8). Each costs a
/// small copy time (docs/design/start-up.md).
#[test]
#[cfg(target_env = "gnu")]
fn the_program_loads_no_library_but_that_of_c() {
    let program = env!("CARGO_BIN_EXE_haulage");
    let output = testfs::command(program)
        .env("LD_TRACE_LOADED_OBJECTS", "1")
        .output()
        .expect("the loader ran");
    let listed = String::from_utf8(output.stdout).expect("text");
    if !listed.contains("libc.so") {
        return skip(&test_name(), "the loader lists no libraries");
    }
    let libraries = listed.lines().filter_map(|line| line.split_whitespace().next());
    // The kernel's own library and the loader are listed too.
    let known = ["linux-vdso", "libc.so", "ld-linux"];
    let others: Vec<_> =
        libraries.filter(|name| !known.iter().any(|it| name.contains(it))).collect();
    assert!(others.is_empty(), "{others:?}");
}
