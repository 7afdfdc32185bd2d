//! Talking with a session: a process of its own that is given an order and tells what comes of it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::process::{Pid, Signal};

use super::error::ConductError;
use crate::process::SUBCOMMAND;
use crate::session::protocol::{self, Event};
use crate::session::watchdog::Watchdog;

/// Runs a session in a process of its own and hands on what it tells.
pub(crate) fn run_session(
    order: &protocol::Order,
    running: &AtomicI32,
    watchdog: &mut Watchdog,
    mut take: impl FnMut(Event) -> Result<(), ConductError>,
) -> Result<(), ConductError> {
    let failed = |why: String| ConductError::Session { cell: order.cell.id(), why, wrong: false };
    let program = std::env::current_exe()
        .map_err(|error| failed(format!("cannot tell where this program lies: {error}")))?;
    // A process group, so that all that runs below it can be ended together.
    let mut child =
        std::os::unix::process::CommandExt::process_group(&mut Command::new(program), 0)
            .arg(SUBCOMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(format!("cannot start a session: {error}")))?;
    let group = i32::try_from(child.id()).unwrap_or(0);
    running.store(group, Ordering::SeqCst);
    watchdog.watch_over(group);
    let mut line = serde_json::to_vec(order).expect("plain data");
    line.push(b'\n');
    let mut input = child.stdin.take().expect("it is piped");
    let told = input.write_all(&line);
    let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut result = told.map_err(|error| failed(format!("cannot tell it what to do: {error}")));
    let mut text = String::new();
    while result.is_ok() {
        text.clear();
        match output.read_line(&mut text) {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        result = match serde_json::from_str(&text) {
            Ok(event) => take(event),
            Err(error) => Err(failed(format!("said what is no event: {error}"))),
        };
    }
    if result.is_err() {
        end(running);
    }
    let status = child.wait();
    watchdog.watch_over(0);
    running.store(0, Ordering::SeqCst);
    result?;
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed(format!("the session ended with {status}"))),
        Err(error) => Err(failed(format!("cannot wait for the session: {error}"))),
    }
}

/// Ends the session that runs, and all that it started.
pub fn end(running: &AtomicI32) {
    if let Some(group) = Pid::from_raw(running.load(Ordering::SeqCst)) {
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
}
