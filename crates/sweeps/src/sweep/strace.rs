//! Which system calls a program makes, and one of them made to fail.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::process::Command;

use anyhow::{Context, ensure};

use super::process::{self, Ended, PATIENCE};

/// Calls without a meaning if they fail: the program begins, ends, or returns from a signal.
const NEVER: &[&str] =
    &["execve", "exit", "exit_group", "rt_sigreturn", "restart_syscall", "arch_prctl"];

/// The numbers of the calls of one name, as strace counts them: for each thread by itself, from 1. They are those of the
/// thread that makes the most of them, without those of the loader, before `main`.
pub(crate) type Numbers = RangeInclusive<usize>;

/// The system calls of `command`, which must succeed, by name. Those that this strace has no name for, and so
/// cannot inject, are left out.
pub(crate) fn calls_of(command: &Command) -> anyhow::Result<BTreeMap<String, Numbers>> {
    let (ended, trace) = run(command, &[])?;
    ensure!(ended.success(), "without a fault: {}", ended.crash().unwrap_or_else(|| ended.said()));
    Ok(counted(&trace))
}

/// Runs `command` while `rule` is in force for `call`, in the form after strace's `inject=CALL:`, for example
/// `error=EIO:when=3`. The second value is whether it took effect.
pub(crate) fn inject(command: &Command, call: &str, rule: &str) -> anyhow::Result<(Ended, bool)> {
    let mut options = vec![format!("--trace={call}"), format!("--inject={call}:{rule}")];
    // With it other calls are not slowed down, but strace sends no signal.
    if !rule.contains("signal=") {
        options.push("--seccomp-bpf".to_owned());
    }
    let (ended, trace) = run(command, &options)?;
    ensure!(!ended.stderr.starts_with("strace: "), "{}", ended.said());
    Ok((ended, trace.contains("(INJECTED)") || trace.contains("+++ killed by")))
}

/// Runs `command` under strace. The second value is the trace.
fn run(command: &Command, options: &[String]) -> anyhow::Result<(Ended, String)> {
    // Where copies are made: in memory if there is a tmpfs.
    let trace = command.get_current_dir().context("a directory")?.join("trace");
    let mut args = vec!["-f", "-qq", "-e", "signal=none", "-o", "trace"];
    args.extend(options.iter().map(String::as_str));
    let ended = process::run(&mut process::through(command, "strace", &args), PATIENCE)?;
    let text = std::fs::read(&trace).with_context(|| trace.display().to_string())?;
    Ok((ended, String::from_utf8_lossy(&text).into_owned()))
}

/// Counts the calls in a trace.
fn counted(trace: &str) -> BTreeMap<String, Numbers> {
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
    let mut numbers: BTreeMap<String, Numbers> = BTreeMap::new();
    for ((_, call), count) in by_thread {
        if NEVER.contains(&call) || call.starts_with("syscall_0x") {
            continue;
        }
        let first = before_main.get(call).map_or(1, |count| count + 1);
        let known = numbers.entry(call.to_owned()).or_insert(first..=count);
        *known = first..=count.max(*known.end());
    }
    numbers
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
        let of = |call: &str| counts.get(call).cloned();
        assert_eq!(of("openat"), Some(2..=2));
        assert_eq!(of("read"), Some(1..=1));
        assert!(of("prlimit64").expect("it is called").is_empty(), "all by the loader");
        assert_eq!((of("execve"), of("syscall_0x1d1")), (None, None));
    }
}
