//! Runs a session in a process of its own: sends its order, and passes its events on.

use std::sync::atomic::{AtomicI32, Ordering};

use rustix::process::{Pid, Signal};

use crate::process::{Group, LabProcess};
use crate::run_dir::files::RunError;
use crate::session::protocol::{Event, Order};
use crate::session::watchdog::Watchdog;

/// What can end an experiment.
#[derive(Debug, thiserror::Error)]
pub enum ConductError {
    /// The run directory cannot be written.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A session, or the process that is to end sessions after the conductor's own end, failed or
    /// cannot be started; in words.
    #[error("{0}")]
    Failed(String),
}

/// Runs a session and passes its events to `take`. While it runs, `running` holds its process
/// group.
///
/// # Errors
/// When it cannot be started, fails or reports no event, and what `take` returns.
pub(crate) fn run_session(
    order: &Order,
    running: &AtomicI32,
    watchdog: &mut Watchdog,
    mut take: impl FnMut(Event) -> Result<(), ConductError>,
) -> Result<(), ConductError> {
    let failed = |why: String| ConductError::Failed(format!("{}: {why}", order.cell.id()));
    let mut session = LabProcess::start(Group::Own)
        .map_err(|error| failed(format!("cannot start a session: {error}")))?;
    let group = i32::try_from(session.id()).unwrap_or(0);
    running.store(group, Ordering::SeqCst);
    watchdog.watch_over(group);
    let mut result = session
        .send(order)
        .map_err(|error| failed(format!("cannot send the session its order: {error}")));
    while result.is_ok() {
        result = match session.receive() {
            Ok(Some(event)) => take(event),
            Ok(None) => break,
            Err(error) => Err(failed(format!("the session sent no event: {error}"))),
        };
    }
    if result.is_err() {
        end_session(running);
    }
    let status = session.wait();
    watchdog.watch_over(0);
    running.store(0, Ordering::SeqCst);
    result?;
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed(format!("the session ended with {status}"))),
        Err(error) => Err(failed(format!("cannot wait for the session: {error}"))),
    }
}

/// Kills the session that runs and all that it started.
pub fn end_session(running: &AtomicI32) {
    if let Some(group) = Pid::from_raw(running.load(Ordering::SeqCst)) {
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
}
