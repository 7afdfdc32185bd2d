//! The signals that ask a program to end.

use engines::sys::is_ignored;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// SIGINT, SIGTERM and SIGHUP, except those that were ignored when the process started: nohup(1)
/// ignores SIGHUP, and a shell ignores SIGINT for background jobs.
pub(crate) fn ending() -> Vec<i32> {
    not_ignored(&[SIGINT, SIGTERM, SIGHUP])
}

/// Those of `signals` that were not ignored when the process started.
pub(crate) fn not_ignored(signals: &[i32]) -> Vec<i32> {
    signals.iter().copied().filter(|&signal| !is_ignored(signal)).collect()
}
