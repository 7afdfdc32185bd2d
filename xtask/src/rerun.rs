//! Runs tests, and those that failed once more.
//!
//! Tests measure real file systems on machines that other users share. So a test that fails is run
//! again, alone. If it passes then, the run passes too, and its summary names the test as unstable:
//! that is a fault of the test or of the program, to be mended. A test program that crashes, or that
//! has more failures than [`RERUN_MAX`], is not run again.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;

/// Failures of which each test is run once more. More have one cause, which is not chance.
const RERUN_MAX: usize = 3;

/// How long the output is read after cargo has ended: a process that a test left may keep it open.
const OUTPUT_GRACE: Duration = Duration::from_secs(5);

/// The outcome of the tests.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: ExitStatus,
    /// The tests that failed first and passed when they were run again, with their programs.
    pub(crate) unstable: Vec<String>,
    /// Test programs with the seconds that each took, the slowest first.
    pub(crate) times: Vec<(String, f64)>,
}

/// What the output of `cargo test` says so far.
#[derive(Debug, Default)]
struct Log {
    /// The test program that runs, as cargo names it.
    program: String,
    /// Its tests that failed.
    failed: Vec<String>,
    /// The programs with failures: the arguments that cargo prints for running each again, and the
    /// tests that failed. No tests if the program crashed.
    failures: Vec<(String, Vec<String>)>,
    times: Vec<(String, f64)>,
}

impl Log {
    fn read(&mut self, line: &str) {
        let line = line.trim();
        if let Some((_, program)) = line.split_once("Running ") {
            self.program = program.to_owned();
            self.failed.clear();
        } else if let Some(test) = line.strip_suffix(" ... FAILED") {
            self.failed.push(test.strip_prefix("test ").unwrap_or(test).to_owned());
        } else if let Some((_, rest)) = line.split_once("test failed, to rerun pass `") {
            let args = rest.trim_end_matches('`').to_owned();
            self.failures.push((args, std::mem::take(&mut self.failed)));
        } else if let Some((_, time)) = line.rsplit_once("; finished in ") {
            let seconds = time.trim_end_matches('s').parse();
            self.times.extend(seconds.ok().map(|seconds| (self.program.clone(), seconds)));
        }
    }

    /// Whether the failures are few, and of known tests.
    fn can_rerun(&self) -> bool {
        let count: usize = self.failures.iter().map(|(_, tests)| tests.len()).sum();
        let all_known = self.failures.iter().all(|(_, tests)| !tests.is_empty());
        count > 0 && count <= RERUN_MAX && all_known
    }
}

/// Runs `cargo test` with `args`, and with `cargo` the tests that failed. Every line of the output
/// is given to `show`.
pub(crate) fn test(
    cargo: impl Fn() -> Command,
    args: &[&str],
    show: fn(&[u8]),
) -> anyhow::Result<Outcome> {
    let (mut status, mut log) = run(cargo().args(args), show)?;
    log.times.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let mut unstable = Vec::new();
    if !status.success() && log.can_rerun() {
        for (program, tests) in &log.failures {
            eprintln!("xtask: {} of {program} FAILED; once more, alone", tests.join(", "));
            let mut command = cargo();
            command.args(args).args(target_options(program));
            command.args(["--", "--exact", "--test-threads=1"]);
            let (second, _) = run(command.args(tests), show)?;
            if !second.success() {
                return Ok(Outcome { status, unstable: Vec::new(), times: log.times });
            }
            status = second;
            unstable.extend(tests.iter().map(|test| format!("{test} ({program})")));
        }
    }
    Ok(Outcome { status, unstable, times: log.times })
}

/// The options for running a test program again, of those that cargo prints: all but the package. The
/// packages of the first run stay selected, since cargo would compile their dependencies again with
/// the features of one package.
fn target_options(printed: &str) -> Vec<&str> {
    let mut words = printed.split(' ');
    let mut options = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "-p" => drop(words.next()),
            _ => options.push(word),
        }
    }
    options
}

/// Shows a line on the standard output.
pub(crate) fn print(line: &[u8]) {
    let mut output = std::io::stdout().lock();
    // Nobody may read it.
    let _ = output.write_all(line).and_then(|()| output.flush());
}

/// Runs a command whose output is shown and read.
fn run(command: &mut Command, show: fn(&[u8])) -> anyhow::Result<(ExitStatus, Log)> {
    let (output, input) = std::io::pipe().context("a pipe for the output of tests")?;
    let mut child = command
        .stdout(input.try_clone().context("a pipe for the output of tests")?)
        .stderr(input)
        .spawn()
        .with_context(|| command.get_program().display().to_string())?;
    // The command has the end of the pipe that this process writes to, which would keep it open.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let log = Arc::new(Mutex::new(Log::default()));
    let read = log.clone();
    let reader = thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while output.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            show(&line);
            lock(&read).read(&String::from_utf8_lossy(&line));
            line.clear();
        }
    });
    let status = child.wait().context("cargo test")?;
    let ended = Instant::now();
    while !reader.is_finished() && ended.elapsed() < OUTPUT_GRACE {
        thread::sleep(Duration::from_millis(10));
    }
    let log = std::mem::take(&mut *lock(&log));
    Ok((status, log))
}

fn lock(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::command::cargo;

    /// A package whose tests fail as often as a test's name says.
    fn package(dir: &Path, tests: &[(&str, u32)]) {
        let manifest = "[package]\nname = \"unstable\"\nedition = \"2021\"\n[workspace]\n";
        fs::write(dir.join("Cargo.toml"), manifest).expect("written");
        fs::create_dir(dir.join("tests")).expect("created");
        fs::create_dir(dir.join("src")).expect("created");
        fs::write(dir.join("src/lib.rs"), "").expect("written");
        let mut text = String::new();
        for (name, failures) in tests {
            let counter = dir.join(name);
            text += &format!(
                "#[test]\nfn {name}() {{\n    let runs = std::fs::read({counter:?}).map_or(0, |runs| runs.len());\n    \
                 std::fs::write({counter:?}, vec![b'.'; runs + 1]).unwrap();\n    \
                 assert!(runs >= {failures});\n}}\n"
            );
        }
        fs::write(dir.join("tests/all.rs"), text).expect("written");
    }

    fn outcome(tests: &[(&str, u32)]) -> (bool, Vec<String>, Vec<usize>) {
        let dir = tempfile::tempdir().expect("a directory");
        package(dir.path(), tests);
        let cargo = || {
            let mut command = cargo();
            command.current_dir(dir.path()).env("CARGO_TARGET_DIR", dir.path().join("target"));
            command
        };
        // A run of these tests by this task would read their output too.
        let outcome = test(cargo, &["test", "--no-fail-fast", "--offline"], |_| ());
        let outcome = outcome.expect("cargo runs");
        assert!(outcome.times.iter().any(|(program, _)| program.contains("tests/all.rs")));
        let runs = |(name, _): &(&str, u32)| fs::read(dir.path().join(name)).expect("it ran").len();
        (outcome.status.success(), outcome.unstable, tests.iter().map(runs).collect())
    }

    #[test]
    fn a_test_that_fails_once_is_run_again_and_named() {
        let (passed, unstable, runs) = outcome(&[("fails_once", 1), ("passes", 0)]);
        assert!(passed);
        assert_eq!(unstable, ["fails_once (--test all)"]);
        assert_eq!(runs, [2, 1], "only the test that failed is run again");
    }

    #[test]
    fn a_test_that_fails_twice_fails() {
        let (passed, unstable, runs) = outcome(&[("fails_once", 1), ("fails_twice", 2)]);
        assert!(!passed && unstable.is_empty());
        assert_eq!(runs, [2, 2]);
    }

    #[test]
    fn the_package_of_a_test_is_not_selected() {
        assert_eq!(target_options("-p haulage-tree --lib"), ["--lib"]);
        assert_eq!(target_options("--test all"), ["--test", "all"]);
    }

    #[test]
    fn many_failures_and_a_crash_are_not_run_again() {
        let mut log = Log::default();
        log.read("     Running tests/all.rs (target/debug/deps/all-1)\n");
        log.read("error: test failed, to rerun pass `--test all`\n");
        assert!(!log.can_rerun(), "the program crashed");
        let mut log = Log::default();
        for test in 0..=RERUN_MAX {
            log.read(&format!("test name_{test} ... FAILED\n"));
        }
        log.read("error: test failed, to rerun pass `-p tree --lib`\n");
        assert_eq!(log.failures.len(), 1);
        assert!(!log.can_rerun(), "{} tests failed", RERUN_MAX + 1);
    }
}
