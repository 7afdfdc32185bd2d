//! Makes a copy that does not end fail with its name, instead of blocking the test run.

use std::io::Write;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Long even for a loaded machine: the guarded work takes well under a second.
const PATIENCE: Duration = Duration::from_secs(180);

/// Runs `work`, and ends the whole program if it does not return in time: a thread cannot be
/// stopped.
pub(crate) fn watched<T>(context: &str, work: impl FnOnce() -> T) -> T {
    let (done, ended) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let line = format!("{context}: not done after {} s\n", PATIENCE.as_secs());
                let _ = std::io::stderr().write_all(line.as_bytes());
                std::process::abort();
            }
        });
        let result = work();
        drop(done);
        result
    })
}
