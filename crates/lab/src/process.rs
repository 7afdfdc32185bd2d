//! The processes of the lab: this program again, with a subcommand of its own.

use std::io::Write;

use serde::Serialize;

/// The subcommand by which this program becomes a session or a hand.
pub const SUBCOMMAND: &str = "bench-session";

/// The number of this process, for those that it starts.
pub(crate) fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Writes an event as a line. When nobody reads any more, the process has no purpose.
pub(crate) fn write_message(event: &impl Serialize) {
    let mut line = serde_json::to_vec(event).expect("events are plain data");
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    if out.write_all(&line).and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}
