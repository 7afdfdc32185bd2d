//! `haulage tune` as a user runs it, and `haulage cp` with its results.

mod faults;
mod profile;
mod progress;
mod search;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

use engines::profile::Profile;

const HAULAGE: &str = env!("CARGO_BIN_EXE_haulage");

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
        self.command_of(HAULAGE, args)
    }

    /// A command that starts `program`, which is haulage or starts it.
    fn command_of(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.dir.path());
        command.env("XDG_CONFIG_HOME", self.dir.path()).env_remove("HAULAGE_PROFILE");
        command
    }

    fn tune(&self, args: &[&str]) -> Output {
        self.command(&["tune"]).args(args).output().expect("haulage ran")
    }

    /// The profile as it is now.
    fn read_profile(&self) -> Profile {
        Profile::read(&self.profile()).expect("read").expect("there").profile
    }
}

/// Searches disturb each other: a test that needs an answer waits for the other ones.
fn alone() -> MutexGuard<'static, ()> {
    static SEARCHING: Mutex<()> = Mutex::new(());
    SEARCHING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}
