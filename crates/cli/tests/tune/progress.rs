//! The progress on a terminal.

use std::fs::File;
use std::io::Read;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use testfs::{names_in, open_terminal, resize_terminal, without_control_sequences};

use crate::{Home, text};

/// A line without its control sequences.
fn plain(line: &str) -> String {
    without_control_sequences(line.trim_end_matches('\r'))
}

#[test]
fn the_progress_fits_the_terminal_and_an_interrupt_prints_the_last_line() {
    let home = Home::new();
    let work = home.work();
    let (master, terminal) = open_terminal(24, 80);
    let mut child = home
        .command(&["tune", text(&work), "--time", "60"])
        .stdout(Stdio::null())
        .stderr(terminal)
        .spawn()
        .expect("haulage runs");
    let reader = rustix::io::fcntl_dupfd_cloexec(&master, 0).expect("a second handle");
    let reader = std::thread::spawn(move || {
        let (mut reader, mut bytes) = (File::from(reader), Vec::new());
        // EIO is the end: no process has the terminal open any more.
        let _ = reader.read_to_end(&mut bytes);
        String::from_utf8(bytes).expect("text")
    });
    std::thread::sleep(Duration::from_secs(3));
    resize_terminal(&master, 10, 40);
    std::thread::sleep(Duration::from_secs(3));
    kill_process(Pid::from_child(&child), Signal::INT).expect("sent");
    child.wait().expect("it ends");
    let text = reader.join().expect("the reader ends");

    let message =
        "\rhaulage tune: interrupted; its scratch files are removed; the profile is unchanged\r\n";
    let lines: Vec<String> = text.lines().map(plain).collect();
    let last = &lines[lines.len().saturating_sub(12)..];
    let drawn =
        text.strip_suffix(message).unwrap_or_else(|| panic!("no message at the end: {last:?}"));
    let lines: Vec<String> = drawn.lines().map(plain).collect();
    assert!(lines.iter().all(|line| line.chars().count() < 80), "{lines:?}");
    let narrow = &lines[lines.len() - 10..];
    assert!(narrow.iter().all(|line| line.chars().count() < 40), "{narrow:?}");
    let headline = "haulage tune: within ";
    assert!(narrow.iter().any(|line| line.starts_with(headline)), "{narrow:?}");
    // The time that is left, and the leading variants.
    let shown = |what: &str| lines.iter().any(|line| line.contains(what));
    assert!(shown(" s left: ") && shown(" MB/s ") && shown("elimination round 1"), "{lines:?}");
    assert!(names_in(&work).is_empty());
}

/// While the process is stopped, the shell writes to the terminal.
#[test]
fn after_a_stop_nothing_is_overwritten() {
    let home = Home::new();
    let work = home.work();
    let (master, terminal) = open_terminal(24, 80);
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
    // Whether each drawing from `start` on replaced the one before.
    let drawings_over = |start: usize| -> Vec<bool> {
        let seen = seen.lock().expect("text");
        let headlines = seen.match_indices("\x1b[1mhaulage tune: within ");
        let from_start = headlines.filter(|(at, _)| *at >= start);
        from_start.map(|(at, _)| seen[..at].ends_with('A')).collect()
    };
    let wait_for_two = |start| {
        let begun = Instant::now();
        while drawings_over(start).len() < 2 {
            assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", drawings_over(start));
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

/// A child that is killed if its test fails.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
