//! The program under test, what it may know of whoever runs the tests, and what it says.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A command that starts `program`, which is haulage or starts it, and goes by no profile that somebody
/// has on this machine: which way a copy takes would depend on it.
#[must_use]
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env("HAULAGE_PROFILE", "");
    command
}

/// A command that starts `program` with `args` in `dir` to measure something: it goes by no certificate that
/// somebody has of this machine, and keeps those that it makes below `dir`, in `state`.
#[must_use]
pub fn measuring(program: impl AsRef<OsStr>, args: &[&str], dir: &Path) -> Command {
    let mut command = command(program);
    command.args(args).current_dir(dir).env("XDG_STATE_HOME", dir.join("state"));
    command
}

/// What a program said on its standard output.
///
/// # Panics
/// When that is no text.
#[must_use]
pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// What a program said on its standard error. Names that are no text may be in it.
#[must_use]
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a file of JSON holds.
///
/// # Panics
/// When it is none.
#[must_use]
pub fn json(path: &Path) -> serde_json::Value {
    let text = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names in a directory, sorted.
///
/// # Panics
/// When it cannot be listed.
#[must_use]
pub fn names_in(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.expect("listed").file_name().to_string_lossy().into_owned()
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

/// The one entry of a directory.
///
/// # Panics
/// When there is none, or another.
#[must_use]
pub fn only(dir: &Path) -> PathBuf {
    let names = names_in(dir);
    let [one] = names.as_slice() else { panic!("{} has {names:?}", dir.display()) };
    dir.join(one)
}
