//! Runs one command line on one program in one fresh tree.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use rustix::process::{Gid, Pid, PidfdFlags, Uid, pidfd_open};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use tempfile::TempDir;
use testfs::{Tree, ends_within, fixture};

use super::number_from;

/// A run that takes longer is ended: a copier blocked on a fifo would never. On a busy machine GNU cp takes many
/// seconds to copy a directory into itself until the names are too long.
const PATIENCE: Duration = Duration::from_secs(60);

/// Times of the run are set to this one, as those of two runs differ. Times of the fixtures lie before.
pub(crate) const RECENT_NS: i128 = 1_600_000_000_000_000_000;

/// User and group of the ordinary user; nobody's on every Linux.
pub(crate) const NOBODY: u32 = 65534;

/// A cp to be run.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// The file to execute.
    pub(crate) path: PathBuf,
    /// Words before cp's own.
    pub(crate) before: Vec<OsString>,
}

/// Who runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persona {
    /// Whoever runs the tests.
    Oneself,
    /// Nobody, in a tree that is nobody's; root alone can become that.
    Nobody,
}

/// A tree and what is run in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Case {
    /// In the language of [`fixture`].
    pub(crate) tree: String,
    /// Words between blanks with the escapes of [`fixture::word`]. `NAME=value` before the first
    /// option or operand sets a variable, `UMASK=077` the umask; a last word `<y\n` is standard
    /// input; `&&` parts commands that run one after another whatever their status.
    pub(crate) line: String,
}

/// All that came of it.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// Of each command.
    pub(crate) said: Vec<Said>,
    /// Afterwards.
    pub(crate) tree: Tree,
}

/// What one command said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    /// `None` when it was ended by a signal, as is one that takes too long.
    pub(crate) status: Option<i32>,
}

/// A directory in which one tree after another is made under the same name, so that absolute names
/// are the same for both programs.
pub(crate) struct Ground {
    directory: TempDir,
}

impl Ground {
    /// An empty one, open to everybody: in memory, where a case takes four fifths of the time, or in `TMPDIR` if
    /// `HAULAGE_CASES` asks for many.
    pub(crate) fn new() -> Ground {
        let in_memory = Path::new("/dev/shm");
        let is_there = number_from::<u32>("HAULAGE_CASES").is_none() && in_memory.is_dir();
        let parent = if is_there { in_memory.to_owned() } else { std::env::temp_dir() };
        let directory =
            TempDir::with_prefix_in("haulage-cp-", parent).expect("a temporary directory");
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("mode set");
        Ground { directory }
    }

    /// Runs `case` on `program`.
    pub(crate) fn run(&self, case: &Case, program: &Program, persona: Persona) -> Outcome {
        let root = self.directory.path().join("w");
        fs::create_dir(&root).expect("the last tree is gone");
        fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).expect("mode set");
        let owner = (persona == Persona::Nobody).then_some(NOBODY);
        fixture::build(&case.tree, &root, owner);
        let commands = case.line.split("&&");
        let said = commands.map(|line| self.run_one(line, &root, program, persona)).collect();
        let mut tree = Tree::read_permitted(&root).expect("the tree is there");
        for entry in tree.entries.values_mut() {
            entry.mtime_ns = entry.mtime_ns.min(RECENT_NS);
            entry.atime_ns = entry.atime_ns.min(RECENT_NS);
        }
        remove(&root);
        Outcome { said, tree }
    }

    fn run_one(&self, line: &str, root: &Path, program: &Program, persona: Persona) -> Said {
        let line = Line::new(line, root);
        let place = |name: &str| self.directory.path().join(name);
        fs::write(place("in"), &line.stdin).expect("a file in a directory of ours");
        let create = |name| fs::File::create(place(name)).expect("a file in a directory of ours");
        let mut command = line.command(program);
        command
            .current_dir(root)
            .stdin(fs::File::open(place("in")).expect("opened"))
            .stdout(create("out"))
            .stderr(create("err"));
        let child = match persona {
            Persona::Oneself => command.spawn(),
            Persona::Nobody => spawn_as_nobody(command),
        };
        let status = wait(child.expect("the program can be run"));
        let read = |name| fs::read(place(name)).expect("a file of ours can be read");
        Said { stdout: read("out"), stderr: read("err"), status }
    }
}

/// A command line taken apart.
struct Line {
    variables: Vec<(OsString, OsString)>,
    umask: Option<String>,
    words: Vec<OsString>,
    stdin: Vec<u8>,
}

impl Line {
    fn new(text: &str, root: &Path) -> Line {
        let mut line =
            Line { variables: Vec::new(), umask: None, words: Vec::new(), stdin: Vec::new() };
        for text in text.split(' ').filter(|word| !word.is_empty()) {
            let is_variable = line.words.is_empty() && text.starts_with(|c: char| c.is_uppercase());
            match text.split_once('=') {
                Some(("UMASK", mask)) if is_variable => line.umask = Some(mask.to_owned()),
                Some((name, value)) if is_variable => {
                    line.variables.push((name.into(), fixture::word(value, root)));
                }
                _ => match text.strip_prefix('<') {
                    Some(stdin) => line.stdin = fixture::word(stdin, root).into_vec(),
                    None => line.words.push(fixture::word(text, root)),
                },
            }
        }
        line
    }

    fn command(&self, program: &Program) -> Command {
        // Without a shell unless the umask is to be changed, which only a process can for itself.
        let mut command = match &self.umask {
            None => Command::new(&program.path),
            Some(mask) => {
                let mut shell = Command::new("/bin/bash");
                let name = if program.before.is_empty() { "-a cp " } else { "" };
                let script = format!("umask {mask}; exec {name}\"$@\"");
                shell.args(["-c", &script, "bash"]).arg(&program.path);
                shell
            }
        };
        if self.umask.is_none() && program.before.is_empty() {
            command.arg0("cp");
        }
        command.args(&program.before).args(&self.words).env_clear().env("LC_ALL", "C");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// Starts `command` in a thread that is nobody's. `Command::uid` would copy the page tables of this process, which takes
/// longer than a copy.
pub(crate) fn spawn_as_nobody(mut command: Command) -> io::Result<Child> {
    let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    let spawn = move || {
        set_thread_groups(&[])?;
        set_thread_res_gid(group, group, group)?;
        set_thread_res_uid(user, user, user)?;
        command.spawn()
    };
    thread::spawn(spawn).join().expect("joined")
}

fn wait(mut child: Child) -> Option<i32> {
    let pid = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).expect("the child is ours");
    if !ends_within(&pid, PATIENCE).expect("a descriptor can be waited for") {
        child.kill().expect("signalled");
        child.wait().expect("ended");
        return None;
    }
    child.wait().expect("ended").code()
}

/// Removes a tree whose directories may lack permissions, or be so deep that no path leads there.
fn remove(root: &Path) {
    if fs::remove_dir_all(root).is_err() {
        let run =
            |program: &str, words: &[&str]| Command::new(program).args(words).arg(root).status();
        run("chmod", &["-R", "u+rwx"]).expect("chmod can be run");
        let removed = run("rm", &["-rf"]).expect("rm can be run");
        assert!(removed.success(), "every directory is open now");
    }
}
