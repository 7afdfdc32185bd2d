//! `haulage tune` as a user runs it, and `haulage cp` with its results.

mod faults;
mod profile;
mod progress;
mod search;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A home directory for each test, so that no profile of a user is read or written.
struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    fn new() -> Home {
        // In memory, where the time does not depend on other uses of a disk.
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        Home { dir: dir.expect("a directory") }
    }

    fn profile(&self) -> PathBuf {
        self.dir.path().join("haulage/profile.toml")
    }

    /// A directory to measure in.
    fn work(&self) -> PathBuf {
        let path = self.dir.path().join("work");
        fs::create_dir_all(&path).expect("made");
        path
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_haulage"));
        command.args(args).current_dir(self.dir.path());
        command.env("XDG_CONFIG_HOME", self.dir.path()).env_remove("HAULAGE_PROFILE");
        command
    }

    fn tune(&self, args: &[&str]) -> Output {
        self.command(&["tune"]).args(args).output().expect("haulage runs")
    }
}

/// Searches disturb each other: a test that needs an answer waits for the other ones.
fn alone() -> MutexGuard<'static, ()> {
    static SEARCHING: Mutex<()> = Mutex::new(());
    SEARCHING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

/// Lines of a table that a terminal of 80 columns would break.
fn too_long(table: &str) -> Vec<&str> {
    // Escape sequences take no columns.
    let is_long = |line: &&str| {
        let mut parts = line.split('\x1b');
        let plain: usize = parts.next().unwrap_or_default().chars().count();
        let rest =
            parts.map(|part| part.split_once('m').map_or(0, |(_, text)| text.chars().count()));
        plain + rest.sum::<usize>() > 80
    };
    table.lines().filter(is_long).collect()
}
