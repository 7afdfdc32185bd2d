//! Ends what an experiment has started when the experiment itself is gone without a word: killed, or for
//! want of memory.
//!
//! Sessions, worker processes and peers ask the kernel to be ended with their parent. An outside command cannot be
//! made to ask, since that wish does not outlast its being started, and a program between the two
//! would be timed with it. So there is one process that does nothing but wait for the end of a pipe
//! of which the conductor alone has the other end.

use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

use crate::process::{SUBCOMMAND, own_pid};

/// The process, seen from the conductor.
#[derive(Debug)]
pub(crate) struct Watchdog {
    child: Child,
    /// Closed to end it.
    words: Option<ChildStdin>,
}

/// What a watchdog is to do.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Watch {
    /// The number of the process whose end it waits for.
    guards: i32,
}

impl Watchdog {
    /// Starts one.
    ///
    /// # Errors
    /// When no process can be started.
    pub(crate) fn start() -> std::io::Result<Watchdog> {
        let program = std::env::current_exe()?;
        // Away from the keyboard, so that what ends the conductor does not end it first.
        let mut child = Command::new(program)
            .arg(SUBCOMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()?;
        let mut words = child.stdin.take().expect("it is piped");
        let watch = Watch { guards: own_pid() };
        let mut line = serde_json::to_vec(&watch).expect("plain data");
        line.push(b'\n');
        words.write_all(&line)?;
        Ok(Watchdog { child, words: Some(words) })
    }

    /// Says which process group to end, 0 for none.
    pub(crate) fn watch_over(&mut self, group: i32) {
        if let Some(words) = &mut self.words {
            // Without a watchdog a killed experiment leaves more behind, and is none the worse meanwhile.
            let _ = words.write_all(format!("{group}\n").as_bytes());
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.watch_over(0);
        drop(self.words.take());
        let _ = self.child.wait();
    }
}

/// The whole work of a watchdog, which hears of groups on `input`.
pub(crate) fn main(_: Watch, input: impl BufRead) -> bool {
    // It has to outlive the conductor by a moment.
    let _ = rustix::process::set_parent_process_death_signal(None);
    let mut group = None;
    for line in input.lines() {
        // What is cut short was said by a conductor that is gone, and the group before is, too.
        let Ok(line) = line else { break };
        group = line.parse().ok().and_then(Pid::from_raw);
    }
    if let Some(group) = group {
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
    true
}
