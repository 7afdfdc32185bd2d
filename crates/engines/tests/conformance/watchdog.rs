//! A copy that never ends has to fail by name, not to hang the run.

use std::io::Write;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Long even for a busy machine: what it guards takes well under a second.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs `work`, and ends the whole program when that takes for ever: a thread cannot be stopped.
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
