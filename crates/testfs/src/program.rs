//! Runs the program under test without the user's profile and certificates, and reads its output.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A command that starts `program`, which is haulage or starts it, without the profile of this
/// machine: the chosen variants would depend on it.
#[must_use]
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env("HAULAGE_PROFILE", "");
    command
}

/// A command that starts `program` with `args` in `dir` for a measurement. It does not use the
/// certificates of this machine, and keeps its own in `state` below `dir`.
#[must_use]
pub fn measuring(program: impl AsRef<OsStr>, args: &[&str], dir: &Path) -> Command {
    let mut command = command(program);
    command.args(args).current_dir(dir).env("XDG_STATE_HOME", dir.join("state"));
    command
}

/// Whether the process has a handler for the signal of this number, as /proc/PID/status says.
#[must_use]
pub fn handles(child: &Child, signal: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
    let status = status.unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Copies a program that this process is to start, by another process. A child of another thread would
/// inherit a descriptor that writes to the copy, and the copy could not be executed while the child has it: ETXTBSY.
///
/// # Panics
/// If it cannot be copied.
pub fn copy_program(program: &str, copy: &Path) {
    let status = Command::new("cp").arg(program).arg(copy).status();
    assert!(status.is_ok_and(|status| status.success()), "{program} is not copied");
}

/// Waits until `is_so`, for what other processes and threads do.
///
/// # Panics
/// If it is not so after a minute and a half.
#[track_caller]
pub fn wait_until(is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(90);
    while !is_so() {
        assert!(Instant::now() < deadline, "what is waited for does not happen");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until the process of `pidfd` has ended. False at the limit.
///
/// # Errors
/// Those of poll(2).
pub fn ends_within(pidfd: &impl AsFd, limit: Duration) -> std::io::Result<bool> {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(std::io::Error::other)?;
        match poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&left)) {
            Err(rustix::io::Errno::INTR) => {}
            result => return Ok(result? > 0),
        }
    }
}

/// The standard output of a program.
///
/// # Panics
/// If it is not UTF-8.
#[must_use]
pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// The standard error of a program. Bytes that are not UTF-8 are replaced.
#[must_use]
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Asserts that a command refused `what`: it ended with `status`, printed nothing, and said in one line that
/// starts with `start` what is wrong, in `words`.
///
/// # Panics
/// If it did not.
pub fn assert_refused(what: &str, output: &Output, status: i32, start: &str, words: &str) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(status), "{what}: {said}");
    assert!(said.starts_with(start) && said.contains(words), "{what}: {said}");
    assert_eq!(said.lines().count(), 1, "{what}: {said}");
    assert!(output.stdout.is_empty(), "{what}: {}", stdout(output));
}

/// The value in a JSON file.
///
/// # Panics
/// If it cannot be read, or is not JSON.
#[must_use]
pub fn json(path: &Path) -> serde_json::Value {
    let text = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The values in the lines of a JSON file.
///
/// # Panics
/// If it cannot be read, or a line is not whole or not JSON.
#[must_use]
pub fn json_lines(path: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path);
    let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(text.ends_with('\n'), "{}: the last line is not whole", path.display());
    text.lines().map(|line| serde_json::from_str(line).expect("parsed")).collect()
}

/// Gives a file the modification time of another.
///
/// # Panics
/// If that fails.
pub fn set_time_of(path: &Path, like: &Path) {
    let time = std::fs::metadata(like).and_then(|like| like.modified()).expect("the other file");
    let file = std::fs::File::options().write(true).open(path).expect("opened");
    file.set_modified(time).expect("time set");
}

/// The fields that the tables of a document describe, by section: the names in marks in the first column. `.name`
/// has the parent of the first name of its row.
///
/// # Panics
/// If a section has a field twice.
#[must_use]
pub fn documented_fields(document: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut sections: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut section = String::new();
    for line in document.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            section = heading.to_owned();
        } else if let Some(row) = line.strip_prefix("| `") {
            let (names, _) = row.split_once(" | ").expect("a row has columns");
            let fields = sections.entry(section.clone()).or_default();
            let names = names.trim_end_matches('`');
            let first = names.split('`').next().expect("found");
            let parent = first.rsplit_once('.').map_or("", |(parent, _)| parent);
            for name in names.split("`, `") {
                let name =
                    if name.starts_with('.') { format!("{parent}{name}") } else { name.to_owned() };
                assert!(fields.insert(name.clone()), "{section}: {name} is there twice");
            }
        }
    }
    sections
}

/// The fields that `value` has, by the names of [`documented_fields`]: `[]` marks a list of objects. A name that is no
/// UTF-8 is one field.
#[must_use]
pub fn fields_of(value: &serde_json::Value) -> BTreeSet<String> {
    let mut fields = BTreeSet::new();
    collect_fields("", value, &mut fields);
    fields
}

fn collect_fields(path: &str, value: &serde_json::Value, fields: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(object) if !object.is_empty() && !object.keys().eq(["bytes"]) => {
            for (name, value) in object {
                let dot = if path.is_empty() { "" } else { "." };
                collect_fields(&format!("{path}{dot}{name}"), value, fields);
            }
        }
        serde_json::Value::Array(items) if items.iter().any(|item| item.is_object()) => {
            items.iter().for_each(|item| collect_fields(&format!("{path}[]"), item, fields));
        }
        _ => {
            fields.insert(path.to_owned());
        }
    }
}

/// The names in a directory, sorted.
///
/// # Panics
/// If it cannot be listed.
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
/// If there is none, or more than one.
#[must_use]
pub fn only(dir: &Path) -> PathBuf {
    let names = names_in(dir);
    let [one] = names.as_slice() else { panic!("{} has {names:?}", dir.display()) };
    dir.join(one)
}
