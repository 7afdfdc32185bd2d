//! The processes of the lab: this program again, with a subcommand of its own. A process reads its
//! order from its standard input and reports on its standard output, one JSON object a line.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The subcommand that makes this program a session, a worker process, a peer or a watchdog.
pub const SUBCOMMAND: &str = "bench-session";

/// A process of the lab, as its parent sees it. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct LabProcess {
    child: Child,
    reports: BufReader<ChildStdout>,
}

/// Which process group a process belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// That of its parent.
    Parents,
    /// A group of its own: the process and all that it starts can be killed together, and a signal
    /// from the terminal does not reach it.
    Own,
}

impl LabProcess {
    /// Starts one, which waits for its order.
    ///
    /// # Errors
    /// When no process can be started.
    pub(crate) fn start(group: Group) -> std::io::Result<LabProcess> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(SUBCOMMAND).stdin(Stdio::piped()).stdout(Stdio::piped());
        if group == Group::Own {
            command.process_group(0);
        }
        let mut child = command.spawn()?;
        let reports = BufReader::new(child.stdout.take().expect("it is piped"));
        Ok(LabProcess { child, reports })
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a message.
    ///
    /// # Errors
    /// When it no longer reads.
    pub(crate) fn send(&mut self, message: &impl Serialize) -> std::io::Result<()> {
        match &mut self.child.stdin {
            Some(orders) => write_line(orders, message),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// The next message of the process; `None` after the last one.
    ///
    /// # Errors
    /// When it cannot be read, or is no such message.
    pub(crate) fn receive<T: DeserializeOwned>(&mut self) -> std::io::Result<Option<T>> {
        let mut line = String::new();
        match self.reports.read_line(&mut line)? {
            0 => Ok(None),
            _ => Ok(serde_json::from_str(&line).map(Some)?),
        }
    }

    /// Closes its standard input, and waits for its end.
    ///
    /// # Errors
    /// As wait(2).
    pub(crate) fn wait(&mut self) -> std::io::Result<ExitStatus> {
        self.child.wait()
    }
}

impl Drop for LabProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The id of this process, for those that it starts.
pub(crate) fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Sends a message to the parent. A process whose parent no longer reads exits.
pub(crate) fn report(message: &impl Serialize) {
    if write_line(&mut std::io::stdout().lock(), message).is_err() {
        std::process::exit(1);
    }
}

fn write_line(to: &mut impl Write, message: &impl Serialize) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(message).expect("messages are plain data");
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}
