//! The signals that ask a program to end, and how a thread waits for signals.

use std::io::{ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::backend::{Handle, SignalDelivery};
use signal_hook::iterator::exfiltrator::SignalOnly;
use sys::is_ignored;

/// SIGINT, SIGTERM and SIGHUP, except those that were ignored when the process started: nohup(1)
/// ignores SIGHUP, and a shell ignores SIGINT for background jobs.
pub(crate) fn ending() -> Vec<i32> {
    not_ignored(&[SIGINT, SIGTERM, SIGHUP])
}

/// The signals among `signals` that were not ignored when the process started.
pub(crate) fn not_ignored(signals: &[i32]) -> Vec<i32> {
    signals.iter().copied().filter(|&signal| !is_ignored(signal)).collect()
}

/// Signals that have arrived, for the thread that waits for them.
pub(crate) struct SignalQueue(SignalDelivery<UnixStream, SignalOnly>);

impl SignalQueue {
    /// Handles `signals` from now on. Until they are waited for, they are kept.
    ///
    /// # Errors
    /// Those of socketpair(2) and sigaction(2).
    pub(crate) fn of(signals: &[i32]) -> std::io::Result<SignalQueue> {
        let (read, write) = UnixStream::pair()?;
        SignalDelivery::with_pipe(read, write, SignalOnly, signals).map(SignalQueue)
    }

    /// Waits until signals arrive, and returns those that have. It may return none.
    pub(crate) fn wait(&mut self) -> impl Iterator<Item = i32> + use<> {
        /// A delay that a user does not notice.
        const POLL_EVERY: Duration = Duration::from_millis(50);
        if self.0.poll_pending(&mut has_some).is_err() {
            // The handlers keep signals in memory too, where they are found without the socket.
            std::thread::sleep(POLL_EVERY);
        }
        self.0.pending()
    }

    /// The signals that have arrived.
    pub(crate) fn pending(&mut self) -> impl Iterator<Item = i32> + use<> {
        self.0.pending()
    }

    pub(crate) fn handle(&self) -> Handle {
        self.0.handle()
    }
}

/// Waits for the byte that a handler writes.
fn has_some(read: &mut UnixStream) -> std::io::Result<bool> {
    loop {
        match read.read(&mut [0]) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Only a process that ends closes the other side.
            result => return result.map(|bytes| bytes > 0),
        }
    }
}
