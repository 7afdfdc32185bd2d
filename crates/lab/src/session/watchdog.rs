//! Kills what an experiment has started when the conductor itself was killed, by a signal or for
//! want of memory.
//!
//! Sessions, worker processes and peers ask the kernel to be killed with their parent
//! (PR_SET_PDEATHSIG(2const)). An outside command cannot be made to ask: a child does not inherit
//! the request, and a program in between would be timed with it. So one process does nothing but
//! wait for the end of a pipe whose other end only the conductor holds.

use std::io::BufRead;

use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

use crate::process::{Group, LabProcess, own_pid};

/// The watchdog process, as the conductor sees it.
#[derive(Debug)]
pub(crate) struct Watchdog(LabProcess);

/// The order of a watchdog.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Watch {
    /// The id of the process whose end it waits for.
    conductor: i32,
}

impl Watchdog {
    /// Starts one, in a process group of its own: a signal from the terminal that ends the
    /// conductor must not end the watchdog first.
    ///
    /// # Errors
    /// When no process can be started.
    pub(crate) fn start() -> std::io::Result<Watchdog> {
        let mut process = LabProcess::start(Group::Own)?;
        process.send(&Watch { conductor: own_pid() })?;
        Ok(Watchdog(process))
    }

    /// Names the process group to kill, 0 for none.
    pub(crate) fn watch_over(&mut self, group: i32) {
        // If the watchdog is gone, a killed experiment leaves processes behind; nothing else is
        // worse.
        let _ = self.0.send(&group);
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.watch_over(0);
        let _ = self.0.wait();
    }
}

/// The main function of a watchdog. `input` names process groups, one a line.
pub(crate) fn main(_: Watch, input: impl BufRead) -> bool {
    // It has to outlive the conductor by a moment.
    let _ = rustix::process::set_parent_process_death_signal(None);
    let mut group = None;
    // A conductor that was killed in the middle of a line had no session running.
    for line in input.lines().map_while(Result::ok) {
        group = line.parse().ok().and_then(Pid::from_raw);
    }
    if let Some(group) = group {
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
    true
}
