//! Runs the program to try, with an end to waiting, and tells a crash from an error.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::counts::Verdict;

/// How long a copy may take on a busy machine. It takes a fraction of a second alone, or some seconds where strace or a
/// server slows it down.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What is said where a program ends that should not.
const CRASHES: &[&str] =
    &["panicked at", "internal error", "memory allocation of", "stack backtrace", "fatal runtime"];

/// How a process ended.
pub(crate) struct Ended {
    /// `None` if it had to be killed at the time limit.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// The time limit.
    limit: Duration,
}

/// Runs `command` for at most `limit`, in a process group of its own, which is killed then. Standard input is empty.
pub(crate) fn run(command: &mut Command, limit: Duration) -> anyhow::Result<Ended> {
    let program = command.get_program().display().to_string();
    // Files rather than pipes: nobody has to read while the process runs.
    let [mut stdout, mut stderr] = [tempfile::tempfile()?, tempfile::tempfile()?];
    let mut child = command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(stdout.try_clone()?)
        .stderr(stderr.try_clone()?)
        .spawn()
        .with_context(|| program.clone())?;
    let pid = Pid::from_child(&child);
    let ended = pidfd_open(pid, PidfdFlags::empty())
        .map_err(std::io::Error::from)
        .and_then(|pidfd| testfs::ends_within(&pidfd, limit));
    // The group may have members that outlive its leader.
    let _ = kill_process_group(pid, Signal::KILL);
    let status = child.wait().with_context(|| program.clone())?;
    let ended = ended.with_context(|| format!("waiting for {program}"))?;
    let (stdout, stderr) = (text_of(&mut stdout)?, text_of(&mut stderr)?);
    Ok(Ended { status: ended.then_some(status), stdout, stderr, limit })
}

/// `program ARGS... COMMAND`, with the environment and the directory of `command`.
pub(crate) fn through(command: &Command, program: &str, args: &[&str]) -> Command {
    let mut outer = Command::new(program);
    outer.args(args).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    if let Some(dir) = command.get_current_dir() {
        outer.current_dir(dir);
    }
    outer
}

impl Ended {
    /// Right or loud by the exit status, unless it crashed or something wrong was found.
    pub(crate) fn verdict(&self, found: &[String]) -> Verdict {
        if let Some(crash) = self.crash() {
            return Verdict::Wrong(crash);
        }
        match self.success() {
            true => Verdict::unless(found, Verdict::Right).after("exit status 0"),
            false => Verdict::unless(found, Verdict::Loud),
        }
    }

    /// Whether it ended with exit status 0.
    pub(crate) fn success(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// The exit status; -1 after a signal.
    pub(crate) fn code(&self) -> i32 {
        self.status.and_then(|status| status.code()).unwrap_or(-1)
    }

    /// What is wrong if it should end with `code`, and with a message unless that is 0.
    pub(crate) fn unless(&self, code: i32) -> Option<String> {
        let is_silent = code != 0 && self.stderr.is_empty();
        let is_right = self.code() == code && !is_silent;
        (!is_right).then(|| format!("exit status {}: {}", self.code(), self.stderr.trim()))
    }

    /// What no program may do, whatever goes wrong: hang, be killed by a signal, or panic. In words.
    pub(crate) fn crash(&self) -> Option<String> {
        let Some(status) = self.status else {
            return Some(format!("hangs: it has not ended after {} s", self.limit.as_secs()));
        };
        if let Some(signal) = status.signal() {
            return Some(format!("was killed by signal {signal}: {}", self.said()));
        }
        let crash = CRASHES.iter().find(|crash| self.stderr.contains(*crash));
        crash.map(|_| format!("panicked: {}", self.said()))
    }

    /// The first lines of standard error, or that it is empty.
    pub(crate) fn said(&self) -> String {
        let lines: Vec<&str> = self.stderr.lines().take(3).collect();
        if lines.is_empty() { "it said nothing".to_owned() } else { lines.join(" | ") }
    }
}

fn text_of(file: &mut File) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn shell(script: &str, limit: Duration) -> Ended {
        run(Command::new("sh").args(["-c", script]), limit).expect("a shell")
    }

    #[test]
    fn the_ways_to_end_are_told_apart() {
        const LIMIT: Duration = Duration::from_secs(10);
        for (script, crash) in [
            ("exit 0", ""),
            ("echo cp: no >&2; exit 1", ""),
            ("kill -ABRT $$", "was killed by signal 6"),
            ("echo \"thread 'main' panicked at x.rs\" >&2; exit 101", "panicked: "),
            ("echo 'cp: internal error: index' >&2; exit 1", "panicked: "),
        ] {
            let found = shell(script, LIMIT).crash().unwrap_or_default();
            assert!(found.starts_with(crash) && found.is_empty() == crash.is_empty(), "{found}");
        }
        let begun = Instant::now();
        let hangs = shell("sleep 60 & sleep 60", Duration::from_millis(200));
        assert!(hangs.crash().expect("it hangs").starts_with("hangs"));
        assert!(begun.elapsed() < LIMIT);
    }
}
