//! The signals that ask a program to end.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Those of SIGINT, SIGTERM and SIGHUP that the process was not started to ignore: under nohup a
/// hangup is to be survived, and a shell's background jobs ignore the keyboard.
pub(crate) fn ending() -> Vec<i32> {
    let ignored = ignored_mask();
    // Bit 0 of SigIgn, proc_pid_status(5), is signal 1.
    [SIGINT, SIGTERM, SIGHUP]
        .into_iter()
        .filter(|signal| ignored >> (signal - 1) & 1 == 0)
        .collect()
}

fn ignored_mask() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
