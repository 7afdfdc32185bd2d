//! C programs against the headers and the library: compiled as C99 and C++17 by gcc and clang, run as
//! they are, with AddressSanitizer and under valgrind.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use testfs::{skip, test_name};

/// The directory of the library, which cargo builds before this test.
fn library_dir() -> PathBuf {
    let test = std::env::current_exe().expect("this program");
    let dir = test.parent().expect("it is in a directory").to_owned();
    assert!(dir.join("libhaulage_capi.so").is_file(), "no library in {}", dir.display());
    dir
}

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|out| out.status.success())
}

/// Compiles tests/c/NAME.c into `home`. `None` after a reported skip.
fn compile(home: &Path, name: &str, compiler: &str, flags: &[&str]) -> Option<PathBuf> {
    if !is_installed(compiler) {
        skip(&test_name(), &format!("no {compiler}"));
        return None;
    }
    let dir = library_dir();
    let program = home.join(format!("{name}-{}", flags.concat().replace([',', '/'], "")));
    let rpath = format!("-Wl,-rpath,{}", dir.display());
    let output = Command::new(compiler)
        .args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-g", "-D_GNU_SOURCE"])
        .args(flags)
        .arg(here(&format!("tests/c/{name}.c")))
        .arg("-I")
        .arg(here("include"))
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(&dir)
        .args(["-lhaulage_capi", "-lpthread", &rpath])
        .output()
        .expect("the compiler ran");
    assert!(output.status.success(), "{compiler} {flags:?}: {}", testfs::stderr(&output));
    Some(program)
}

/// Runs it in a fresh directory.
fn run(command: &[&str], program: &Path) -> Output {
    let dir = tempfile::tempdir().expect("created");
    let mut words = command.iter().map(|word| (*word).into()).collect::<Vec<std::ffi::OsString>>();
    words.extend([program.into(), dir.path().into()]);
    let mut run = Command::new(&words[0]);
    // cargo puts target/debug first, which has the library as cargo build has left it.
    run.args(&words[1..]).env("LD_LIBRARY_PATH", library_dir());
    run.output().expect("ran")
}

fn assert_passed(what: &str, output: &Output) {
    let passed = output.status.success() && testfs::stdout(output) == "passed\n";
    assert!(passed, "{what}: {}\n{}", output.status, testfs::stderr(output));
}

const PROGRAMS: [&str; 5] = ["interface", "copyfile", "mac_program", "hosts", "sigbus"];

#[test]
fn programs_compile_in_each_language_and_work() {
    let home = tempfile::tempdir().expect("created");
    for name in PROGRAMS {
        for (compiler, flags) in [
            ("gcc", &["-std=c99"][..]),
            ("clang", &["-std=c99"]),
            ("g++", &["-x", "c++", "-std=c++17"]),
            ("clang++", &["-x", "c++", "-std=c++17"]),
        ] {
            let program = compile(home.path(), name, compiler, flags);
            // That tries what a process does, whatever its language, and takes seconds.
            let runs = name != "hosts" || compiler == "gcc";
            if let Some(program) = program.filter(|_| runs) {
                assert_passed(&format!("{name} by {compiler}"), &run(&[], &program));
            }
        }
    }
}

#[test]
fn programs_work_with_address_sanitizer() {
    let home = tempfile::tempdir().expect("created");
    // The sanitizer's allocator may be locked in the child of a program with threads.
    for name in PROGRAMS.into_iter().filter(|name| *name != "hosts") {
        let flags = ["-std=c99", "-fsanitize=address,undefined"];
        if let Some(program) = compile(home.path(), name, "gcc", &flags) {
            assert_passed(name, &run(&[], &program));
        }
    }
}

#[test]
fn programs_work_under_valgrind() {
    if !is_installed("valgrind") {
        return skip(&test_name(), "no valgrind");
    }
    let home = tempfile::tempdir().expect("created");
    // The program with its own handler jumps out of it, and maps what valgrind does not follow.
    for name in ["interface", "copyfile", "mac_program"] {
        if let Some(program) = compile(home.path(), name, "gcc", &["-std=c99"]) {
            let valgrind = [
                "env",
                "ROUNDS=2",
                "valgrind",
                "--quiet",
                "--error-exitcode=9",
                "--leak-check=full",
                "--errors-for-leak-kinds=definite",
            ];
            assert_passed(name, &run(&valgrind, &program));
        }
    }
}
