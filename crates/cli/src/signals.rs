//! The signals that ask a program to end.

use engines::sys::is_ignored;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Those of SIGINT, SIGTERM and SIGHUP that the process was not started to ignore: under nohup a
/// hangup is to be survived, and a shell's background jobs ignore the keyboard.
pub(crate) fn ending() -> Vec<i32> {
    not_ignored(&[SIGINT, SIGTERM, SIGHUP])
}

/// Those of `signals` that the process was not started to ignore.
pub(crate) fn not_ignored(signals: &[i32]) -> Vec<i32> {
    signals.iter().copied().filter(|&signal| !is_ignored(signal)).collect()
}
