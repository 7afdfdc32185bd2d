//! Which system calls a program makes, and one of them made to fail.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};

use super::process::{self, Ended};

/// Calls without a meaning if they fail: the program begins, ends, or returns from a signal.
const NEVER: &[&str] =
    &["execve", "exit", "exit_group", "rt_sigreturn", "restart_syscall", "arch_prctl"];

/// How often a call is made. strace counts calls for each thread by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Occurrences {
    /// By the loader, before `main`.
    pub(crate) before_main: usize,
    /// By the thread that makes the most of them.
    pub(crate) most: usize,
}

/// A rule of strace's `inject=`.
pub(crate) struct Injection<'a> {
    pub(crate) call: &'a str,
    /// As after `inject=CALL:`, for example `error=EIO:when=3`.
    pub(crate) rule: String,
}

/// The system calls of `command`, which must succeed, by name. Those that this strace has no name for, and so
/// cannot inject, are left out.
pub(crate) fn occurrences(
    command: &Command,
    trace: &Path,
    limit: Duration,
) -> anyhow::Result<BTreeMap<String, Occurrences>> {
    let mut traced = strace(command, trace, &[]);
    let ended = process::run(&mut traced, limit)?;
    ensure!(ended.success(), "without a fault: {}", ended.crash().unwrap_or_else(|| ended.said()));
    let text = std::fs::read(trace).with_context(|| trace.display().to_string())?;
    Ok(counted(&String::from_utf8_lossy(&text)))
}

/// Runs `command` with one `injection`. The second value is whether it took effect.
pub(crate) fn inject(
    command: &Command,
    injection: &Injection<'_>,
    trace: &Path,
    limit: Duration,
) -> anyhow::Result<(Ended, bool)> {
    let Injection { call, rule } = injection;
    let mut options = vec![format!("--trace={call}"), format!("--inject={call}:{rule}")];
    // With it other calls are not slowed down, but strace sends no signal.
    if !rule.contains("signal=") {
        options.push("--seccomp-bpf".to_owned());
    }
    let ended = process::run(&mut strace(command, trace, &options), limit)?;
    ensure!(!ended.stderr.starts_with("strace: "), "{}", ended.said());
    let text = std::fs::read(trace).with_context(|| trace.display().to_string())?;
    let text = String::from_utf8_lossy(&text);
    Ok((ended, text.contains("(INJECTED)") || text.contains("+++ killed by")))
}

/// `command` under strace, which writes to `trace`.
fn strace(command: &Command, trace: &Path, options: &[String]) -> Command {
    let mut traced = Command::new("strace");
    traced.args(["-f", "-qq", "-e", "signal=none", "-o"]).arg(trace).args(options);
    traced.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => traced.env(name, value),
            None => traced.env_remove(name),
        };
    }
    if let Some(dir) = command.get_current_dir() {
        traced.current_dir(dir);
    }
    traced
}

/// Where strace is to write its trace: beside the copies, in memory if there is a tmpfs.
pub(crate) fn trace_in(dir: &Path) -> PathBuf {
    dir.join("trace")
}

/// Counts the calls in a trace.
fn counted(trace: &str) -> BTreeMap<String, Occurrences> {
    let mut by_thread: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut before_main: BTreeMap<&str, usize> = BTreeMap::new();
    let main = trace.lines().next().and_then(|line| line.split_whitespace().next());
    // The loader reads this limit, then unmaps its cache.
    let in_main = trace.find("RLIMIT_STACK").unwrap_or(0);
    let first_own = trace[in_main..].find('\n').map_or(trace.len(), |end| in_main + end);
    for line in trace.lines() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let Some((call, _)) = rest.trim_start().split_once('(') else { continue };
        // `<... resumed>` and `+++ exited` are no calls.
        if !call.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            continue;
        }
        *by_thread.entry((thread, call)).or_default() += 1;
        let at = line.as_ptr() as usize - trace.as_ptr() as usize;
        if Some(thread) == main && at < first_own {
            *before_main.entry(call).or_default() += 1;
        }
    }
    let mut counts: BTreeMap<String, Occurrences> = BTreeMap::new();
    for ((_, call), count) in by_thread {
        if NEVER.contains(&call) || call.starts_with("syscall_0x") {
            continue;
        }
        let known = counts.entry(call.to_owned()).or_default();
        known.before_main = before_main.get(call).copied().unwrap_or(0);
        known.most = known.most.max(count);
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_for_each_thread() {
        let trace = "\
7 execve(\"/h\", [\"h\"], 0x1 /* 2 vars */) = 0
7 openat(AT_FDCWD, \"/etc/ld.so.cache\", O_RDONLY) = 3
7 prlimit64(0, RLIMIT_STACK, NULL, {}) = 0
7 openat(AT_FDCWD, \"a\", O_RDONLY) = 3
8 read(3,  <unfinished ...>
7 syscall_0x1d1(0x3) = 0
8 <... read resumed>\"x\", 1) = 1
8 openat(3, \"b\", O_RDONLY) = 4
7 +++ exited with 0 +++
";
        let counts = counted(trace);
        let of = |call: &str| counts.get(call).map(|known| (known.before_main, known.most));
        assert_eq!(of("openat"), Some((1, 2)));
        assert_eq!(of("read"), Some((0, 1)));
        assert_eq!(of("prlimit64"), Some((1, 1)));
        assert_eq!((of("execve"), of("syscall_0x1d1")), (None, None));
    }
}
