//! What a terminal gets while it is measured.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use testfs::names_in;

use crate::{Home, text};

fn open_terminal(size: (u16, u16)) -> (OwnedFd, OwnedFd) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
    grantpt(&master).and_then(|()| unlockpt(&master)).expect("its other side");
    let name = ptsname(&master, Vec::new()).expect("its name");
    resize(&master, size);
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
    let terminal = rustix::fs::open(&name, flags, rustix::fs::Mode::empty());
    (master, terminal.expect("a terminal"))
}

fn resize(master: &OwnedFd, (rows, columns): (u16, u16)) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(master, size).expect("a size");
}

/// A line without its control sequences.
fn plain(line: &str) -> String {
    let mut parts = line.trim_end_matches('\r').split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    let is_end = |c: char| c.is_ascii_alphabetic();
    parts.fold(first, |line, part| line + part.split_once(is_end).map_or("", |(_, text)| text))
}

#[test]
fn it_fits_the_terminal_and_an_interrupt_has_the_last_word() {
    let home = Home::new();
    let work = home.work();
    let (master, terminal) = open_terminal((24, 80));
    let mut child = home
        .command(&["tune", text(&work), "--time", "60"])
        .stdout(Stdio::null())
        .stderr(terminal)
        .spawn()
        .expect("haulage runs");
    let reader = rustix::io::fcntl_dupfd_cloexec(&master, 0).expect("a second handle");
    let reader = std::thread::spawn(move || {
        let (mut reader, mut bytes) = (File::from(reader), Vec::new());
        // EIO is the end: the last who had the terminal open has gone.
        let _ = reader.read_to_end(&mut bytes);
        String::from_utf8(bytes).expect("text")
    });
    std::thread::sleep(Duration::from_secs(3));
    resize(&master, (10, 40));
    std::thread::sleep(Duration::from_secs(3));
    kill_process(Pid::from_child(&child), Signal::INT).expect("sent");
    child.wait().expect("it ends");
    let text = reader.join().expect("the reader ends");

    let message = "\rhaulage tune: interrupted; its scratch files are removed and the profile is as it \
                   was\r\n";
    let lines: Vec<String> = text.lines().map(plain).collect();
    let last = &lines[lines.len().saturating_sub(12)..];
    let drawn = text.strip_suffix(message).unwrap_or_else(|| panic!("no last word: {last:?}"));
    let lines: Vec<String> = drawn.lines().map(plain).collect();
    assert!(lines.iter().all(|line| line.chars().count() < 80), "{lines:?}");
    let narrow = &lines[lines.len() - 10..];
    assert!(narrow.iter().all(|line| line.chars().count() < 40), "{narrow:?}");
    let headline = "haulage tune: within ";
    assert!(narrow.iter().any(|line| line.starts_with(headline)), "{narrow:?}");
    // The time that is left, and who is in front.
    let shown = |what: &str| lines.iter().any(|line| line.contains(what));
    assert!(shown(" s left: ") && shown(" MB/s ") && shown("elimination round 1"), "{lines:?}");
    assert!(names_in(&work).is_empty());
}

/// Whoever stopped it has used the terminal meanwhile.
#[test]
fn after_a_stop_nothing_is_drawn_over() {
    let home = Home::new();
    let work = home.work();
    let (master, terminal) = open_terminal((24, 80));
    let child = home
        .command(&["tune", text(&work), "--time", "60"])
        .stdout(Stdio::null())
        .stderr(terminal)
        .spawn()
        .expect("haulage runs");
    let mut child = Killed(child);
    let seen = Arc::new(Mutex::new(String::new()));
    let sink = seen.clone();
    std::thread::spawn(move || {
        let mut reader = File::from(master);
        let mut bytes = [0; 4096];
        while let Ok(read @ 1..) = reader.read(&mut bytes) {
            sink.lock().expect("text").push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
    });
    // Whether each drawing from `start` on went over the one before.
    let drawings_over = |start: usize| -> Vec<bool> {
        let seen = seen.lock().expect("text");
        let headlines = seen.match_indices("\x1b[1mhaulage tune: within ");
        let from_start = headlines.filter(|(at, _)| *at >= start);
        from_start.map(|(at, _)| seen[..at].ends_with('A')).collect()
    };
    let wait_for_two = |start| {
        let begun = Instant::now();
        while drawings_over(start).len() < 2 {
            assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", drawings_over(start));
            std::thread::sleep(Duration::from_millis(20));
        }
        drawings_over(start)
    };
    let pid = Pid::from_child(&child.0);
    let signal = |signal| kill_process(pid, signal).expect("sent");
    assert_eq!(wait_for_two(0)[..2], [false, true]);
    signal(Signal::STOP);
    std::thread::sleep(Duration::from_millis(500));
    let stopped_at = seen.lock().expect("text").len();
    signal(Signal::CONT);
    assert_eq!(wait_for_two(stopped_at)[..2], [false, true]);
    signal(Signal::INT);
    child.0.wait().expect("it ends");
}

/// Does not outlive a test that fails.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
