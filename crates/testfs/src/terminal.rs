//! Pseudo-terminals, on which a program under test writes as it does for a person.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Command, ExitStatus};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// A terminal of `rows` and `columns`: the side of the person, and that of the program.
///
/// # Panics
/// If the system has no pseudo-terminal left.
#[must_use]
pub fn open_terminal(rows: u16, columns: u16) -> (OwnedFd, OwnedFd) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
    grantpt(&master).and_then(|()| unlockpt(&master)).expect("its other side");
    resize_terminal(&master, rows, columns);
    let name = ptsname(&master, Vec::new()).expect("its name");
    let terminal = rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty());
    (master, terminal.expect("a terminal"))
}

/// Gives the terminal another size.
///
/// # Panics
/// If `master` is no terminal.
pub fn resize_terminal(master: &OwnedFd, rows: u16, columns: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(master, size).expect("a size");
}

/// Runs `command` with its standard output on a terminal of `columns` columns. Returns how it ended, and what
/// it wrote, with its control sequences.
///
/// # Panics
/// If the command cannot be started, or writes what is not UTF-8.
pub fn on_terminal(mut command: Command, columns: u16) -> (ExitStatus, String) {
    let (master, terminal) = open_terminal(24, columns);
    command.env("TERM", "xterm");
    let mut child = command.stdout(terminal).spawn().expect("the program starts");
    // The command would keep the terminal open.
    drop(command);
    let mut bytes = Vec::new();
    // EIO is the end: no process has the terminal open any more.
    let _ = File::from(master).read_to_end(&mut bytes);
    let status = child.wait().expect("it ends");
    (status, String::from_utf8(bytes).expect("text").replace('\r', ""))
}

/// `text` without its control sequences, which end with a letter.
#[must_use]
pub fn without_control_sequences(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    let is_end = |c: char| c.is_ascii_alphabetic();
    parts.fold(first, |text, part| text + part.split_once(is_end).map_or("", |(_, rest)| rest))
}
