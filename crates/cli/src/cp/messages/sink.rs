//! Where messages go: to standard error, unless this process is a rank of a job.

use std::sync::OnceLock;

use crate::terminal::live_lines::put_stderr;

/// What writes messages.
type Sink = Box<dyn Fn(&[u8]) + Send + Sync>;

static SINK: OnceLock<Sink> = OnceLock::new();

/// Messages go to `sink` from now on. The first call counts.
pub(crate) fn set(sink: impl Fn(&[u8]) + Send + Sync + 'static) {
    let _ = SINK.set(Box::new(sink));
}

/// Writes a message of whole lines.
pub(crate) fn put(lines: &[u8]) {
    match SINK.get() {
        Some(sink) => sink(lines),
        None => put_stderr(lines),
    }
}
