//! `--progress` as a terminal gets it.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process};
use tempfile::TempDir;
use testfs::{Costs, FsKind, FuseFs, Lies, Screen, each_fs, open_terminal, random_bytes, stderr};

use crate::{check, copy, cp, dir_with, fixture, haulage_cp};

/// What comes before each drawing of the bar, and after the last.
const ERASE_BELOW: &str = "\x1b[J";

/// A copy whose standard error is a terminal of 80 columns.
struct Watched {
    child: Child,
    /// For others who write to the terminal.
    terminal: File,
    begun: Instant,
    screen: Screen,
}

impl Watched {
    fn start(dir: impl AsRef<Path>, line: &str) -> Watched {
        let (master, terminal) = open_terminal(24, 80);
        let others = terminal.try_clone().expect("a descriptor");
        let mut command = haulage_cp(dir, &format!("--progress {line}"));
        command.env("LC_ALL", "C.UTF-8").stderr(terminal);
        let child = command.spawn().expect("haulage started");
        let screen = Screen::of(&master);
        Watched { child, terminal: others.into(), begun: Instant::now(), screen }
    }

    /// One of a slow source to `copy`, once the bar is there; with the source, and the directory of the copy.
    fn start_slow() -> Option<(Watched, FuseFs, TempDir)> {
        let source = slow_source()?;
        let dir = tempfile::tempdir().expect("created");
        let watched = Watched::start(&dir, &format!("{} copy", path_of(&source)));
        watched.wait_for_bar();
        Some((watched, source, dir))
    }

    /// Waits until the bar says how much of the source is copied.
    fn wait_for_bar(&self) {
        self.wait_for(" of 6.00 MiB");
    }

    fn wait_for(&self, text: &str) {
        self.screen.wait_until(|seen| seen.contains(text));
    }

    /// Waits until the bar is drawn twice more. The first drawing may have begun before the call.
    fn wait_for_redrawing(&self) {
        let drawings = |seen: &str| seen.matches(ERASE_BELOW).count();
        let before = drawings(&self.screen.seen());
        self.screen.wait_until(|seen| drawings(seen) >= before + 2);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("signalled");
    }

    /// Whether it succeeded, how long it took, and all that the terminal got.
    fn wait(mut self) -> (bool, Duration, String) {
        let succeeded = self.child.wait().expect("ended").success();
        let elapsed = self.begun.elapsed();
        drop(self.terminal);
        (succeeded, elapsed, self.screen.end())
    }
}

/// The terminal's rows when all of `text` was written. It knows what the bar uses, and no more.
fn rows_at_end(text: &str) -> Vec<String> {
    let mut rows = vec![String::new()];
    let (mut row, mut column) = (0, 0);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\r' => column = 0,
            '\n' => {
                row += 1;
                if row == rows.len() {
                    rows.push(String::new());
                }
            }
            '\x1b' => {
                let end = rest.find(|c: char| c.is_ascii_alphabetic()).expect("found");
                let (sequence, after) = rest.split_at(end + 1);
                rest = after;
                match sequence {
                    "[K" => rows[row].truncate(column),
                    "[J" => {
                        rows[row].truncate(column);
                        rows.truncate(row + 1);
                    }
                    up => {
                        let up = up.strip_prefix('[').and_then(|up| up.strip_suffix('A'));
                        let up: usize = up.and_then(|up| up.parse().ok()).expect("up");
                        row -= up;
                    }
                }
            }
            c => {
                // The tests' names are ASCII.
                if column < rows[row].len() {
                    rows[row].replace_range(column..=column, &c.to_string());
                } else {
                    rows[row].push(c);
                }
                column += 1;
            }
        }
    }
    rows
}

/// A source of 6 MiB that takes many seconds to read until the file system lies no more, within one piece of
/// the copier's.
fn slow_source() -> Option<FuseFs> {
    let source = FuseFs::mount(Costs { direct_io: true, ..Costs::default() })?;
    fixture::add("source#6M:1", source.path());
    source.lie(Lies { read_time: Duration::from_millis(200), ..Lies::default() });
    Some(source)
}

fn path_of(source: &FuseFs) -> String {
    format!("{}/source", source.path().display())
}

/// The amounts in the drawings of the bar.
fn amounts(text: &str) -> Vec<f64> {
    let before = text.split(" of 6.00 MiB");
    before.filter_map(|before| before.rsplit([' ', '\r']).next()?.parse().ok()).collect()
}

#[test]
fn the_bar_moves_within_a_file_and_goes_away() {
    let Some(source) = slow_source() else { return };
    let dir = tempfile::tempdir().expect("created");
    // Whatever is built in: one that moves a MiB at a time has less to tell.
    let line = format!("--engine=read_write:256K {} copy", path_of(&source));
    let watched = Watched::start(&dir, &line);
    watched.screen.wait_until(|seen| {
        let mut distinct = amounts(seen);
        distinct.dedup();
        distinct.len() >= 5 && seen.contains(" 0:0") && seen.contains(" left")
    });
    source.lie(Lies::default());
    let (succeeded, elapsed, text) = watched.wait();
    assert!(succeeded, "{text}");
    assert!(amounts(&text).is_sorted(), "{:?}", amounts(&text));
    assert!(text.contains("  'copy'"), "{text:?}");
    // Once in a tenth of a second, and the erasing at the end.
    let drawn = text.matches(ERASE_BELOW).count() - 1;
    assert!(drawn as f64 <= elapsed.as_secs_f64() * 10.0 + 1.0, "{drawn} in {elapsed:?}");
    assert_eq!(rows_at_end(&text), [""], "{text:?}");
}

#[test]
fn messages_stand_above_the_bar_and_whole() {
    let Some(source) = slow_source() else { return };
    let dir = dir_with("dst/");
    let watched = Watched::start(&dir, &format!("--stats no1 {} no2 dst", path_of(&source)));
    watched.wait_for_bar();
    watched.signal(Signal::USR1);
    // After the message on `no1`.
    watched.screen.wait_until(|seen| seen.matches("cp: ").count() == 2);
    source.lie(Lies::default());
    let (succeeded, _, text) = watched.wait();
    assert!(!succeeded);
    let rows = rows_at_end(&text);
    assert_eq!(rows[0], "cp: cannot stat 'no1': No such file or directory", "{text:?}");
    assert!(rows[1].starts_with("cp: ") && rows[1].contains(" of 6.00 MiB, "), "{rows:?}");
    assert_eq!(rows[2], "cp: cannot stat 'no2': No such file or directory", "{text:?}");
    assert_eq!(rows[3].split_whitespace().next(), Some("copied"), "{rows:?}");
    assert!(rows.iter().all(|row| !row.contains(" left") || row.starts_with("cp: ")), "{rows:?}");
}

#[test]
fn an_interrupted_copy_leaves_the_terminal_clean() {
    let Some((watched, _source, _dir)) = Watched::start_slow() else { return };
    watched.signal(Signal::INT);
    let (succeeded, _, text) = watched.wait();
    assert!(!succeeded);
    let rows = rows_at_end(&text);
    assert!(rows[0].starts_with("cp: interrupted: 'copy' is incomplete, "), "{rows:?}");
    assert_eq!(rows[1..], [""], "{text:?}");
}

#[test]
fn sigcont_without_a_stop_redraws_the_progress_in_place() {
    const SIGNALS: usize = 6;
    let Some((watched, source, _dir)) = Watched::start_slow() else { return };
    for _ in 0..SIGNALS {
        watched.signal(Signal::CONT);
        watched.wait_for_redrawing();
    }
    source.lie(Lies::default());
    let (succeeded, _, text) = watched.wait();
    assert!(succeeded, "{text}");
    let rows = rows_at_end(&text);
    let (last, bars) = rows.split_last().expect("a row");
    assert_eq!(last, "", "{text:?}");
    // On a busy machine a process may get no processor for so long that it seems to have been stopped, and a bar stays.
    assert!(bars.len() < SIGNALS / 2, "{text:?}");
    assert!(bars.iter().all(|bar| bar.contains(" of 6.00 MiB")), "{rows:?}");
}

#[test]
fn what_others_wrote_during_a_stop_stays() {
    let Some((mut watched, source, _dir)) = Watched::start_slow() else { return };
    watched.signal(Signal::STOP);
    let pid = Pid::from_child(&watched.child);
    rustix::process::waitpid(Some(pid), WaitOptions::UNTRACED).expect("the copy stops");
    // A shorter stop is no stop.
    std::thread::sleep(Duration::from_millis(1000));
    watched.terminal.write_all(b"\nsomebody's\nwords\n").expect("written");
    watched.signal(Signal::CONT);
    watched.wait_for_redrawing();
    source.lie(Lies::default());
    let (succeeded, _, text) = watched.wait();
    assert!(succeeded, "{text}");
    let rows = rows_at_end(&text);
    assert!(rows[0].contains(" of 6.00 MiB"), "{rows:?}");
    assert_eq!(rows[2..], ["somebody's", "words", ""], "{text:?}");
}

#[test]
fn without_a_terminal_no_progress_is_drawn() {
    let Some(source) = slow_source() else { return };
    // A second in all.
    source.lie(Lies { read_time: Duration::from_millis(20), ..Lies::default() });
    let dir = tempfile::tempdir().expect("created");
    let output = cp(&dir, &format!("--progress {} copy", path_of(&source)));
    check(&output, 0, "", "");
    assert_eq!(output.stdout, b"");
}

/// A file system whose fsync(2) takes as long as the test wants.
#[test]
fn a_copy_is_complete_when_the_medium_has_it() {
    for (option, shown) in [("--durable", "waiting for the medium"), ("--verify", " 83 % ")] {
        let Some(served) = FuseFs::mount(Costs::default()) else { return };
        served.lie(Lies { holds_fsync: true, ..Lies::default() });
        let dir = dir_with("src#6M:1");
        let dst = served.path().join("copy");
        let copy = Watched::start(&dir, &format!("{option} src {}", dst.display()));
        copy.wait_for(shown);
        let seen = copy.screen.seen();
        assert!(!seen.contains("100 %"), "{seen}");
        served.lie(Lies::default());
        let (succeeded, _, text) = copy.wait();
        assert!(succeeded, "{text}");
        let copied = served.contents().into_values().flatten().next();
        assert!(copied.is_some_and(|copied| copied == random_bytes(6 << 20, 1)), "{option}");
    }
}

#[test]
fn the_end_says_what_is_not_on_the_medium() {
    const MESSAGE: &str = "are still being written to";
    each_fs(|kind, dir| {
        fixture::add("src#32M:1", dir);
        let unwritten = |option: &str| {
            let line = format!("--stats --reflink=never --receipt=receipt {option} src copy");
            let said = stderr(&copy(dir, &line));
            std::fs::remove_file(dir.join("copy")).expect("removed");
            let summary = testfs::json_lines(&dir.join("receipt")).pop().expect("found");
            let unwritten = summary["unwritten_bytes"].as_u64().expect("a number");
            assert!(unwritten <= 32 << 20, "{unwritten}");
            assert_eq!(said.contains("not written yet"), unwritten > 0, "{said}");
            assert_eq!(said.contains(MESSAGE), unwritten >= 8 << 20, "{said}");
            unwritten
        };
        for option in ["--durable", "--verify", "--no-cache"] {
            assert_eq!(unwritten(option), 0, "{kind} {option}");
        }
        if kind == FsKind::Tmpfs {
            assert_eq!(unwritten(""), 0);
        } else {
            // Another program may call sync(2) at the same moment, but not each time.
            assert!((0..20).any(|_| unwritten("") > 0), "{kind}");
        }
    });
}
