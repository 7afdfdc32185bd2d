//! The progress on a terminal.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, WaitOptions, kill_process};
use testfs::{Screen, names_in, open_terminal, resize_terminal, without_control_sequences};

use crate::{Home, text};

/// A line without its control sequences.
fn plain(line: &str) -> String {
    without_control_sequences(line.trim_end_matches('\r'))
}

/// Begins a search in `work` that draws on a terminal of 24 rows and 80 columns. Returns both sides of the
/// terminal too.
fn watched(home: &Home, work: &Path) -> (Killed, (OwnedFd, File), Screen) {
    let (master, terminal) = open_terminal(24, 80);
    let others = File::from(terminal.try_clone().expect("a descriptor is left"));
    let mut command = home.command(&["tune", text(work), "--time", "60"]);
    let child = command.stdout(Stdio::null()).stderr(terminal).spawn().expect("haulage started");
    let screen = Screen::of(&master);
    (Killed(child), (master, others), screen)
}

/// Whether each drawing from `start` on replaced the one before.
fn drawings_over(seen: &str, start: usize) -> Vec<bool> {
    let headlines = seen.match_indices("\x1b[1mhaulage tune: within ");
    let from_start = headlines.filter(|(at, _)| *at >= start);
    from_start.map(|(at, _)| seen[..at].ends_with('A')).collect()
}

/// Waits for two drawings from `start` on. Returns whether each of them replaced the one before.
fn wait_for_two(screen: &Screen, start: usize) -> [bool; 2] {
    screen.wait_until(|seen| drawings_over(seen, start).len() >= 2);
    let drawings = drawings_over(&screen.seen(), start);
    [drawings[0], drawings[1]]
}

#[test]
fn the_progress_fits_the_terminal_and_an_interrupt_prints_the_last_line() {
    let home = Home::new();
    let work = home.work();
    let (mut child, (master, others), screen) = watched(&home, &work);
    drop(others);
    // The time that is left, and the leading variants.
    let expected = [" s left: ", " MB/s ", "elimination round 1"];
    screen.wait_until(|seen| {
        let drawn = without_control_sequences(seen);
        expected.iter().all(|what| drawn.contains(what))
    });
    let resized_at = screen.seen().len();
    resize_terminal(&master, 10, 40);
    // The first may have begun before.
    wait_for_two(&screen, resized_at);
    kill_process(Pid::from_child(&child.0), Signal::INT).expect("sent");
    child.0.wait().expect("haulage ended");
    let text = screen.end();

    let message =
        "\rhaulage tune: interrupted; its scratch files are removed; the profile is unchanged\r\n";
    let lines: Vec<String> = text.lines().map(plain).collect();
    let last = &lines[lines.len().saturating_sub(12)..];
    let drawn =
        text.strip_suffix(message).unwrap_or_else(|| panic!("no message at the end: {last:?}"));
    let lines: Vec<String> = drawn.lines().map(plain).collect();
    assert!(lines.iter().all(|line| line.chars().count() < 80), "{lines:?}");
    let headline = drawn.rfind("haulage tune: within ").expect("a drawing");
    let narrow: Vec<String> = drawn[headline..].lines().map(plain).collect();
    assert!(narrow.len() <= 10, "{narrow:?}");
    assert!(narrow.iter().all(|line| line.chars().count() < 40), "{narrow:?}");
    assert!(names_in(&work).is_empty());
}

/// While the process is stopped, the shell writes to the terminal.
#[test]
fn after_a_stop_nothing_is_overwritten() {
    let home = Home::new();
    let work = home.work();
    let (mut child, (_master, mut others), screen) = watched(&home, &work);
    let pid = Pid::from_child(&child.0);
    let signal = |signal| kill_process(pid, signal).expect("sent");
    assert_eq!(wait_for_two(&screen, 0), [false, true]);
    signal(Signal::STOP);
    rustix::process::waitpid(Some(pid), WaitOptions::UNTRACED).expect("haulage stops");
    others.write_all(b"the shell's words").expect("written to the terminal");
    screen.wait_until(|seen| seen.ends_with("the shell's words"));
    let stopped_at = screen.seen().len();
    signal(Signal::CONT);
    assert_eq!(wait_for_two(&screen, stopped_at), [false, true]);
    signal(Signal::INT);
    child.0.wait().expect("haulage ended");
}

/// A child that is killed if its test fails.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
