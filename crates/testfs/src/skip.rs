//! Reports tests that cannot run here.

use std::fs::OpenOptions;
use std::io::Write;

/// Reports that `test` was skipped and `why`, on standard error and in the file that the
/// environment variable `HAULAGE_SKIPS` names.
///
/// # Panics
/// If one of them cannot be written: the skip would be silent.
pub fn skip(test: &str, why: &str) {
    let line = format!("SKIPPED {test}: {why}\n");
    // The harness captures `eprint!`, not the descriptor itself.
    std::io::stderr().write_all(line.as_bytes()).expect("a skip can be written to standard error");
    if let Some(list) = std::env::var_os("HAULAGE_SKIPS") {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&list)
            .expect("the file that HAULAGE_SKIPS names can be opened");
        // One write a line: tests on several threads and in several processes share the file.
        file.write_all(line.as_bytes()).expect("a skip can be added to the file of skips");
    }
}

/// Whether the test runs as root.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The name of the test that is running. The harness names the thread of each test after it. With a
/// single thread it does not; then it is the name of the program.
#[must_use]
pub fn test_name() -> String {
    let thread = std::thread::current();
    match thread.name() {
        Some(name) if name != "main" => name.to_owned(),
        _ => std::env::current_exe()
            .ok()
            .and_then(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
            .unwrap_or_else(|| "a test".to_owned()),
    }
}
