//! The signals that ask a program to end.

use engines::sys::is_ignored;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Those of SIGINT, SIGTERM and SIGHUP that the process was not started to ignore: under nohup a
/// hangup is to be survived, and a shell's background jobs ignore the keyboard.
pub(crate) fn ending() -> Vec<i32> {
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| !is_ignored(signal)).collect()
}
