//! Signals to a copy under way.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process};
use testfs::{FuseFs, Lies};

fn cp(dir: &Path, args: &[&str]) -> Child {
    testfs::command(env!("CARGO_BIN_EXE_haulage"))
        .arg("cp")
        .args(args)
        .current_dir(dir)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts")
}

/// Sends `signal` once `ready` holds, and returns the exit status and standard error.
fn interrupt(child: Child, signal: Signal, ready: impl Fn() -> bool) -> (ExitStatus, String) {
    testfs::wait_until(ready);
    kill_process(Pid::from_child(&child), signal).expect("it is running");
    let output = child.wait_with_output().expect("it ends");
    (output.status, String::from_utf8(output.stderr).expect("words"))
}

/// The lines that a copy writes to standard error, as they come.
struct Lines {
    text: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl Lines {
    fn of(child: &mut Child) -> Lines {
        let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
        let text = Arc::new(Mutex::new(String::new()));
        let sink = text.clone();
        let reader = std::thread::spawn(move || {
            let mut line = String::new();
            while stderr.read_line(&mut line).expect("words") > 0 {
                sink.lock().expect("text").push_str(&line);
                line.clear();
            }
        });
        Lines { text, reader }
    }

    /// Waits until there are `count` lines.
    fn wait_for(&self, count: usize) {
        testfs::wait_until(|| self.text.lock().expect("text").lines().count() >= count);
    }

    /// Waits until the copy has ended.
    fn all(self) -> String {
        self.reader.join().expect("the reader ends");
        self.text.lock().expect("text").clone()
    }
}

#[test]
fn names_the_partial_file_and_gives_directories_their_attributes_and_the_run_a_summary() {
    let dir = tempfile::tempdir().expect("created");
    let src = dir.path().join("src");
    std::fs::create_dir(&src).expect("a source");
    // All hole, written as data: long to copy and quick to make.
    let big = std::fs::File::create(src.join("big")).expect("created");
    big.set_len(8 << 30).expect("length set");
    std::fs::set_permissions(&src, PermissionsExt::from_mode(0o555)).expect("mode set");
    let options = ["-a", "--sparse=never", "--limit-rate=200M", "--receipt=r", "--stats"];
    let child = cp(dir.path(), &[&options[..], &["src", "dst"]].concat());
    let dst_big = dir.path().join("dst/big");
    let written = || std::fs::metadata(&dst_big).is_ok_and(|metadata| metadata.len() > 0);
    let (status, words) = interrupt(child, Signal::TERM, written);
    assert_eq!(status.signal(), Some(15), "{words}");
    assert!(words.starts_with("cp: interrupted: 'dst/big' is incomplete, "), "{words}");
    let copied = std::fs::metadata(&dst_big).expect("the partial file stays").len();
    assert!(copied < 8 << 30);
    assert!(words.contains(&format!(" {copied} bytes written")), "{words}: {copied}");
    assert!(words.contains("\nelapsed "), "{words}");
    let lines = testfs::json_lines(&dir.path().join("r"));
    let entry = lines.iter().find(|line| line["src"] == "src/big").expect("an entry");
    assert_eq!((&entry["method"], &entry["data_bytes"]), (&"failed".into(), &copied.into()));
    let summary = lines.last().expect("a summary");
    assert_eq!((&summary["signal"], &summary["complete"]), (&"SIGTERM".into(), &false.into()));
    let mode = std::fs::metadata(dir.path().join("dst")).expect("looked at").permissions().mode();
    assert_eq!(mode & 0o7777, 0o555);
}

#[test]
fn a_read_that_never_returns_is_not_waited_for() {
    let dir = tempfile::tempdir().expect("created");
    rustix::fs::mkfifoat(rustix::fs::CWD, dir.path().join("fifo"), 0o600.into()).expect("a fifo");
    // With both ends open here, the copy's read waits for ever.
    let held = std::fs::File::options().read(true).write(true).open(dir.path().join("fifo"));
    let child = cp(dir.path(), &["fifo", "copy"]);
    let copy = dir.path().join("copy");
    let (status, words) = interrupt(child, Signal::INT, || copy.exists());
    assert_eq!(status.signal(), Some(2), "{words}");
    assert_eq!(words, "cp: interrupted: 'copy' is incomplete, 0 bytes written\n");
    // Until here the read could have waited.
    drop(held);
}

/// As with a server that has gone away.
#[test]
fn a_file_that_hangs_is_named() {
    if let Some(last) = words_of_a_hanging_copy(&[Signal::INT]) {
        check_incomplete(&last);
    }
    let Some(words) = words_of_a_hanging_copy(&[Signal::USR1, Signal::INT]) else { return };
    let (status, last) = words.split_once('\n').expect("lines");
    assert!(status.starts_with("cp: 256 KiB, 0 files, "), "{words}");
    assert!(status.ends_with(": 'dst/source'"), "{words}");
    check_incomplete(last);
}

/// The read may fail before the process has ended. Nothing else is said.
fn check_incomplete(last: &str) {
    let incomplete = "cp: interrupted: 'dst/source' is incomplete, 262144 bytes written\n";
    let rest = last.strip_prefix(incomplete).unwrap_or_else(|| panic!("{last}"));
    let is_read_error = rest.starts_with("cp: error reading '")
        && rest.ends_with("/source': Input/output error\n")
        && rest.lines().count() == 1;
    assert!(rest.is_empty() || is_read_error, "{last}");
}

/// What a copy says to `signals` while it reads from a file system that no longer answers; `None` after
/// a skip that said so.
fn words_of_a_hanging_copy(signals: &[Signal]) -> Option<String> {
    let faults = Lies { read_hangs_at: Some(256 << 10), ..Lies::default() };
    let content = testfs::random_bytes(1 << 20, 1);
    let faulty = FuseFs::with_source(content, faults)?;
    let dir = tempfile::tempdir().expect("created");
    std::fs::create_dir(dir.path().join("dst")).expect("created");
    let src = faulty.source();
    // Bytes are counted when a call has returned, and sendfile moves all of them in one call.
    let words = ["-r", "--engine=read_write:256K", src.to_str().expect("a plain name"), "dst"];
    let mut child = cp(dir.path(), &words);
    let lines = Lines::of(&mut child);
    let copy = dir.path().join("dst/source");
    let held = || std::fs::metadata(&copy).is_ok_and(|metadata| metadata.len() == 256 << 10);
    testfs::wait_until(|| held() && faulty.hangs());
    // A process cannot die within a read that the file system has begun; its last words come first.
    for (count, signal) in (1..).zip(signals) {
        kill_process(Pid::from_child(&child), *signal).expect("it is running");
        lines.wait_for(count);
    }
    drop(faulty);
    let status = child.wait().expect("it ends");
    let words = lines.all();
    assert_eq!(status.signal(), Some(2), "{words}");
    Some(words)
}

/// GNU cp dies of it, and so did this.
#[test]
fn the_status_signal_ends_nothing() {
    let dir = tempfile::tempdir().expect("created");
    rustix::fs::mkfifoat(rustix::fs::CWD, dir.path().join("fifo"), 0o600.into()).expect("a fifo");
    let held = std::fs::File::options().read(true).write(true).open(dir.path().join("fifo"));
    let mut held = held.expect("both ends");
    std::io::Write::write_all(&mut held, &[b'x'; 5000]).expect("written");
    let mut child = cp(dir.path(), &["fifo", "copy"]);
    let lines = Lines::of(&mut child);
    let copy = dir.path().join("copy");
    let written = || std::fs::metadata(&copy).is_ok_and(|metadata| metadata.len() == 5000);
    testfs::wait_until(written);
    kill_process(Pid::from_child(&child), Signal::USR1).expect("it is running");
    lines.wait_for(1);
    drop(held);
    let status = child.wait().expect("it ends");
    let words = lines.all();
    assert!(status.success(), "{words}");
    assert!(
        words.starts_with("cp: 4.88 KiB, 0 files, ") && words.ends_with(": 'copy'\n"),
        "{words}"
    );
    assert_eq!(words.lines().count(), 1, "{words}");
}

#[test]
fn an_ignored_signal_stays_ignored() {
    let dir = tempfile::tempdir().expect("created");
    let big = std::fs::File::create(dir.path().join("big")).expect("created");
    big.set_len(256 << 20).expect("length set");
    let program = env!("CARGO_BIN_EXE_haulage");
    let script = format!("trap '' HUP; exec {program} cp --sparse=never big copy");
    let child = testfs::command("sh")
        .args(["-c", &script])
        .current_dir(dir.path())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a shell");
    let copy = dir.path().join("copy");
    let (status, words) = interrupt(child, Signal::HUP, || copy.exists());
    assert!(status.success(), "{status}: {words}");
    assert_eq!(std::fs::metadata(copy).expect("looked at").len(), 256 << 20);
}

#[test]
fn the_status_signal_does_not_end_a_copy_that_is_starting() {
    use std::io::{Read, Write};
    let dir = tempfile::tempdir().expect("created");
    std::fs::write(dir.path().join("a"), "new").expect("written");
    std::fs::write(dir.path().join("b"), "old").expect("written");
    let mut child = testfs::command(env!("CARGO_BIN_EXE_haulage"))
        .args(["cp", "-i", "a", "b"])
        .current_dir(dir.path())
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    // The question is there before anything makes it worth watching for signals.
    let mut question = [0; 13];
    child.stderr.as_mut().expect("piped").read_exact(&mut question).expect("a question");
    kill_process(Pid::from_child(&child), Signal::USR1).expect("it is running");
    child.stdin.take().expect("piped").write_all(b"y\n").expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(std::fs::read(dir.path().join("b")).expect("read"), b"new");
}

/// Such a file is copied in no time otherwise, and nobody waits for signals then.
#[test]
fn a_small_file_that_goes_slowly_can_be_asked_for_and_interrupted() {
    let dir = tempfile::tempdir().expect("created");
    std::fs::write(dir.path().join("a"), [b'x'; 200_000]).expect("written");
    let mut child = cp(dir.path(), &["--limit-rate=10K", "--reflink=never", "a", "b"]);
    let written = Lines::of(&mut child);
    let copy = dir.path().join("b");
    testfs::wait_until(|| std::fs::metadata(&copy).is_ok_and(|metadata| metadata.len() > 0));
    kill_process(Pid::from_child(&child), Signal::USR1).expect("it is running");
    written.wait_for(1);
    kill_process(Pid::from_child(&child), Signal::INT).expect("it is running");
    let status = child.wait().expect("it ends");
    let words = written.all();
    assert_eq!(status.signal(), Some(2), "{words}");
    let lines: Vec<&str> = words.lines().collect();
    assert_eq!(lines.len(), 2, "{words}");
    assert!(lines[0].starts_with("cp: ") && lines[0].ends_with(": 'b'"), "{words}");
    assert!(lines[1].starts_with("cp: interrupted: 'b' is incomplete, "), "{words}");
}

/// The rate in the status line is that of the time in which the copy was not stopped.
#[test]
fn the_status_line_knows_nothing_of_a_stop() {
    let dir = tempfile::tempdir().expect("created");
    std::fs::write(dir.path().join("a"), testfs::random_bytes(16 << 20, 1)).expect("written");
    let begun = Instant::now();
    let mut child = cp(dir.path(), &["--limit-rate=1M", "--engine=read_write:64K", "a", "b"]);
    let lines = Lines::of(&mut child);
    let pid = Pid::from_child(&child);
    let copy = dir.path().join("b");
    let copied = || std::fs::metadata(&copy).map_or(0, |metadata| metadata.len());
    testfs::wait_until(|| copied() >= 512 << 10);
    let signal = |signal| kill_process(pid, signal).expect("it is running");
    signal(Signal::STOP);
    rustix::process::waitpid(Some(pid), WaitOptions::UNTRACED).expect("the copy stops");
    let stopped = Instant::now();
    std::thread::sleep(Duration::from_millis(2000));
    let stopped = stopped.elapsed();
    let before = copied();
    signal(Signal::CONT);
    testfs::wait_until(|| copied() >= before + (512 << 10));
    signal(Signal::USR1);
    lines.wait_for(1);
    let seconds = (begun.elapsed() - stopped).as_secs_f64();
    signal(Signal::INT);
    child.wait().expect("it ends");
    let words = lines.all();
    // cp: 600 KiB, 0 files, 1020 KiB/s: 'b'
    let mib = |figure: &str| {
        let (number, unit) = figure.split_once(' ').expect("a number and its unit");
        let number = number.parse::<f64>().expect("a number");
        if unit.starts_with('K') { number / 1024.0 } else { number }
    };
    let mut figures = words.strip_prefix("cp: ").unwrap_or_else(|| panic!("{words}")).split(", ");
    let copied = mib(figures.next().expect("bytes"));
    let rate = mib(figures.nth(1).unwrap_or_else(|| panic!("no rate: {words}")));
    // However slow the machine is, the copy took no more time than this. The first piece waits for nothing.
    let least = 0.6 * copied / seconds;
    assert!(rate >= least, "less than {least} MiB/s: {words}");
}

/// Each of them is over in an instant, and all of them are not.
#[test]
fn many_files_in_order_can_be_asked_for_like_a_long_one() {
    const FILES: usize = 80;
    let dir = tempfile::tempdir().expect("created");
    let name = |number: usize| format!("f{number}");
    std::fs::write(dir.path().join(name(0)), vec![7; 4 << 20]).expect("written");
    for number in 1..FILES {
        std::fs::hard_link(dir.path().join(name(0)), dir.path().join(name(number)))
            .expect("linked");
    }
    let dst = dir.path().join("dst");
    std::fs::create_dir(&dst).expect("created");
    let copied = || testfs::names_in(&dst).len();
    let begin = || {
        testfs::command(env!("CARGO_BIN_EXE_haulage"))
            .args(["cp", "-v", "--reflink=never"])
            .args((0..FILES).map(name))
            .arg("dst")
            .current_dir(dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts")
    };
    // On a busy machine this process may get no time until all files are copied. Then it asks again.
    for _ in 0..10 {
        let child = begin();
        // They have taken tens of milliseconds by then.
        testfs::wait_until(|| copied() > FILES / 4);
        kill_process(Pid::from_child(&child), Signal::USR1).expect("it is running");
        let in_time = copied() < FILES * 3 / 4;
        let output = child.wait_with_output().expect("it ends");
        let words = String::from_utf8(output.stderr).expect("words");
        assert!(output.status.success(), "{words}");
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
