//! Signals to a copy under way.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process};
use testfs::{FuseFs, Lies, stderr};

use crate::{HAULAGE, begin, check_content, check_success, dir_with, fixture, haulage_cp, shell};

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("signalled");
}

fn len(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Sends `signal` once `ready` holds, and returns the exit status and standard error.
fn interrupt(child: Child, by: Signal, ready: impl Fn() -> bool) -> (ExitStatus, String) {
    testfs::wait_until(ready);
    signal(&child, by);
    let output = child.wait_with_output().expect("ended");
    (output.status, stderr(&output))
}

/// A copy in `dir` that writes its messages to the file `said` there.
fn start_to_file(dir: &Path, line: &str) -> Child {
    let said = std::fs::File::create(dir.join("said")).expect("created");
    haulage_cp(dir, line).stderr(said).spawn().expect("haulage started")
}

fn said(dir: &Path) -> String {
    std::fs::read_to_string(dir.join("said")).expect("read")
}

/// Sends a signal, and waits until there are `count` lines.
fn signal_and_wait(child: &Child, by: Signal, dir: &Path, count: usize) {
    signal(child, by);
    testfs::wait_until(|| said(dir).matches('\n').count() >= count);
}

#[test]
fn names_the_partial_file_and_gives_directories_their_attributes_and_the_run_a_summary() {
    // All hole, written as data: long to copy and quick to make.
    let dir = dir_with("src/big~8192M; src/ mode=555");
    let child = begin(&dir, "-a --sparse=never --limit-rate=200M --receipt=r --stats src dst");
    let dst_big = dir.path().join("dst/big");
    let (status, words) = interrupt(child, Signal::TERM, || len(&dst_big) > 0);
    assert_eq!(status.signal(), Some(15), "{words}");
    assert!(words.starts_with("cp: interrupted: 'dst/big' is incomplete, "), "{words}");
    let copied = len(&dst_big);
    assert!((1..8 << 30).contains(&copied), "the partial file stays");
    assert!(words.contains(&format!(" {copied} bytes written")), "{words}: {copied}");
    assert!(words.contains("\nelapsed "), "{words}");
    let lines = testfs::json_lines(&dir.path().join("r"));
    let entry = lines.iter().find(|line| line["src"] == "src/big").expect("found");
    assert_eq!((&entry["method"], &entry["data_bytes"]), (&"failed".into(), &copied.into()));
    let summary = lines.last().expect("found");
    assert_eq!((&summary["signal"], &summary["complete"]), (&"SIGTERM".into(), &false.into()));
    let mode = std::fs::metadata(dir.path().join("dst")).expect("looked at").permissions().mode();
    assert_eq!(mode & 0o7777, 0o555);
}

#[test]
fn a_read_that_never_returns_is_not_waited_for() {
    let dir = dir_with("fifo|");
    // With both ends open here, the copy's read waits for ever.
    let held = std::fs::File::options().read(true).write(true).open(dir.path().join("fifo"));
    let child = begin(&dir, "fifo copy");
    let copy = dir.path().join("copy");
    let (status, words) = interrupt(child, Signal::INT, || copy.exists());
    assert_eq!(status.signal(), Some(2), "{words}");
    assert_eq!(words, "cp: interrupted: 'copy' is incomplete, 0 bytes written\n");
    // Until here the read could have waited.
    drop(held);
}

/// The last words: that the read fails after them is not told.
const INCOMPLETE: &str = "cp: interrupted: 'dst/source' is incomplete, 262144 bytes written\n";

/// As with a server that has gone away.
#[test]
fn a_file_that_hangs_is_named() {
    if let Some(last) = words_of_a_hanging_copy(&[Signal::INT]) {
        assert_eq!(last, INCOMPLETE);
    }
    let Some(words) = words_of_a_hanging_copy(&[Signal::USR1, Signal::INT]) else { return };
    let (status, last) = words.split_once('\n').expect("lines");
    assert!(status.starts_with("cp: 256 KiB, 0 files, "), "{words}");
    assert!(status.ends_with(": 'dst/source'"), "{words}");
    assert_eq!(last, INCOMPLETE);
}

/// What a copy says to `signals` while it reads from a file system that no longer answers; `None` after
/// a skip that said so.
fn words_of_a_hanging_copy(signals: &[Signal]) -> Option<String> {
    let faults = Lies { read_hangs_at: Some(256 << 10), ..Lies::default() };
    let content = testfs::random_bytes(1 << 20, 1);
    let faulty = FuseFs::with_source(content, faults)?;
    let dir = dir_with("dst/");
    let src = faulty.source();
    // Bytes are counted when a call has returned, and sendfile moves all of them in one call.
    let mut child =
        start_to_file(dir.path(), &format!("-r --engine=read_write:256K {} dst", src.display()));
    let copy = dir.path().join("dst/source");
    testfs::wait_until(|| len(&copy) == 256 << 10 && faulty.hangs());
    // A process cannot die within a read that the file system has begun; its last words come first.
    for (count, by) in (1..).zip(signals) {
        signal_and_wait(&child, *by, dir.path(), count);
    }
    drop(faulty);
    let status = child.wait().expect("ended");
    let words = said(dir.path());
    assert_eq!(status.signal(), Some(2), "{words}");
    Some(words)
}

#[test]
fn an_ignored_signal_stays_ignored() {
    let dir = dir_with("big~32M");
    let script = format!("trap '' HUP; exec {HAULAGE} cp --sparse=never --limit-rate=64M big copy");
    let child = shell(&dir, &script).stderr(Stdio::piped()).spawn().expect("started");
    let copy = dir.path().join("copy");
    let (status, words) = interrupt(child, Signal::HUP, || copy.exists());
    assert!(status.success(), "{status}: {words}");
    assert_eq!(len(&copy), 32 << 20);
}

#[test]
fn the_status_signal_does_not_end_a_copy_that_is_starting() {
    use std::io::{Read, Write};
    let dir = dir_with("a=new; b=old");
    let mut command = haulage_cp(&dir, "-i a b");
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("haulage started");
    // The question is there before anything makes it worth watching for signals.
    let mut question = [0; 13];
    child.stderr.as_mut().expect("piped").read_exact(&mut question).expect("read");
    signal(&child, Signal::USR1);
    child.stdin.take().expect("piped").write_all(b"y\n").expect("written");
    let output = child.wait_with_output().expect("ended");
    check_success(&output, "");
    check_content(dir.path().join("b"), "new", "");
}

/// Such a file is copied in no time otherwise, and nobody waits for signals then.
#[test]
fn a_small_file_that_goes_slowly_can_be_asked_for_and_interrupted() {
    let dir = dir_with("a#200000:1");
    let mut child = start_to_file(dir.path(), "--limit-rate=10K --reflink=never a b");
    testfs::wait_until(|| len(&dir.path().join("b")) > 0);
    signal_and_wait(&child, Signal::USR1, dir.path(), 1);
    signal(&child, Signal::INT);
    let status = child.wait().expect("ended");
    let words = said(dir.path());
    assert_eq!(status.signal(), Some(2), "{words}");
    let lines: Vec<&str> = words.lines().collect();
    assert_eq!(lines.len(), 2, "{words}");
    assert!(lines[0].starts_with("cp: ") && lines[0].ends_with(": 'b'"), "{words}");
    assert!(lines[1].starts_with("cp: interrupted: 'b' is incomplete, "), "{words}");
}

/// The backup has its own name again.
#[test]
fn a_copy_that_failed_after_a_backup_leaves_the_old_file() {
    let dir = dir_with("a#200000:1; b=old");
    let child = begin(&dir, "-b --limit-rate=10K --reflink=never a b");
    let (status, words) = interrupt(child, Signal::TERM, || len(&dir.path().join("b")) > 3);
    assert_eq!(status.signal(), Some(15), "{words}");
    assert_eq!(words, "cp: interrupted: 'b' is as it was before\n");
    check_content(dir.path().join("b"), "old", "an interrupted copy");
    let script = "trap '' XFSZ; ulimit -f 100; exec \"$0\" cp -b a b";
    let output = shell(&dir, script).output().expect("ran");
    crate::check(&output, 1, "cp: error writing 'b': File too large\n", script);
    check_content(dir.path().join("b"), "old", "a copy that was too large");
}

/// The rate in the status line is that of the time in which the copy was not stopped.
#[test]
fn the_status_line_knows_nothing_of_a_stop() {
    let dir = dir_with("a#16M:1");
    let begun = Instant::now();
    let mut child = start_to_file(dir.path(), "--limit-rate=1M --engine=read_write:64K a b");
    let copied = || len(&dir.path().join("b"));
    testfs::wait_until(|| copied() >= 512 << 10);
    signal(&child, Signal::STOP);
    rustix::process::waitpid(Some(Pid::from_child(&child)), WaitOptions::UNTRACED)
        .expect("the copy stops");
    let stopped = Instant::now();
    std::thread::sleep(Duration::from_millis(2000));
    let stopped = stopped.elapsed();
    let before = copied();
    signal(&child, Signal::CONT);
    testfs::wait_until(|| copied() >= before + (512 << 10));
    signal_and_wait(&child, Signal::USR1, dir.path(), 1);
    let seconds = (begun.elapsed() - stopped).as_secs_f64();
    signal(&child, Signal::INT);
    child.wait().expect("ended");
    let words = said(dir.path());
    // cp: 600 KiB, 0 files, 1020 KiB/s: 'b'
    let mib = |figure: &str| {
        let (number, unit) = figure.split_once(' ').expect("a number and its unit");
        let number = number.parse::<f64>().expect("parsed");
        if unit.starts_with('K') { number / 1024.0 } else { number }
    };
    let mut figures = words.strip_prefix("cp: ").unwrap_or_else(|| panic!("{words}")).split(", ");
    let copied = mib(figures.next().expect("found"));
    let rate = mib(figures.nth(1).unwrap_or_else(|| panic!("no rate: {words}")));
    // However slow the machine is, the copy took no more time than this. The first piece waits for nothing.
    let least = 0.6 * copied / seconds;
    assert!(rate >= least, "less than {least} MiB/s: {words}");
}

/// Each of them is over in an instant, and all of them are not.
#[test]
fn many_files_in_order_can_be_asked_for_like_a_long_one() {
    const FILES: usize = 80;
    let dir = dir_with("f0#4M:7; dst/");
    for number in 1..FILES {
        fixture::add(&format!("f{number}==f0"), &dir);
    }
    let dst = dir.path().join("dst");
    let copied = || testfs::names_in(&dst).len();
    let names: String = (0..FILES).map(|number| format!("f{number} ")).collect();
    // On a busy machine this process may get no time until all files are copied. Then it asks again.
    for _ in 0..10 {
        let mut command = haulage_cp(&dir, &format!("-v --reflink=never {names} dst"));
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().expect("haulage started");
        // They have taken tens of milliseconds by then.
        testfs::wait_until(|| copied() > FILES / 4);
        signal(&child, Signal::USR1);
        let in_time = copied() < FILES * 3 / 4;
        let output = child.wait_with_output().expect("ended");
        check_success(&output, "");
        let words = stderr(&output);
        assert_eq!(copied(), FILES);
        if in_time {
            assert!(words.starts_with("cp: ") && words.contains(" files"), "{words:?}");
            return;
        }
        std::fs::remove_dir_all(&dst).expect("removed");
        std::fs::create_dir(&dst).expect("created");
    }
    panic!("the signal never came before the last quarter of the files");
}
