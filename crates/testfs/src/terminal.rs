//! Pseudo-terminals, on which a program under test writes as it does for a person.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::session::lock;

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

/// What a terminal gets while a program runs.
#[derive(Debug)]
pub struct Screen {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Screen {
    /// Reads from `master`, the side of the person.
    ///
    /// # Panics
    /// If the descriptor cannot be duplicated.
    #[must_use]
    pub fn of(master: &OwnedFd) -> Screen {
        let mut master = File::from(master.try_clone().expect("a descriptor is left"));
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let sink = bytes.clone();
        let reader = std::thread::spawn(move || {
            let mut part = [0; 4096];
            // EIO is the end: no process has the terminal open any more.
            while let Ok(count @ 1..) = master.read(&mut part) {
                lock(&sink).extend_from_slice(&part[..count]);
            }
        });
        Screen { bytes, reader }
    }

    /// What came so far.
    #[must_use]
    pub fn seen(&self) -> String {
        String::from_utf8_lossy(&lock(&self.bytes)).into_owned()
    }

    /// Waits until `is_there` is true of what came so far.
    ///
    /// # Panics
    /// If it does not become true within a minute.
    pub fn wait_until(&self, is_there: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !is_there(&self.seen()) {
            assert!(Instant::now() < deadline, "not all that is expected: {:?}", self.seen());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits until no process has the terminal open, and returns all that came.
    ///
    /// # Panics
    /// If that is not UTF-8.
    #[must_use]
    pub fn end(self) -> String {
        self.reader.join().expect("joined");
        String::from_utf8(lock(&self.bytes).clone()).expect("a terminal gets UTF-8")
    }
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
    let mut child = command.stdout(terminal).spawn().expect("the program started");
    // The command would keep the terminal open.
    drop(command);
    let text = Screen::of(&master).end();
    (child.wait().expect("the program ended"), text.replace('\r', ""))
}

/// `text` without its control sequences, which end with a letter.
#[must_use]
pub fn without_control_sequences(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    let is_end = |c: char| c.is_ascii_alphabetic();
    parts.fold(first, |text, part| text + part.split_once(is_end).map_or("", |(_, rest)| rest))
}
