//! Signals to a copy under way.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

fn cp(dir: &Path, args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_haulage"))
        .arg("cp")
        .args(args)
        .current_dir(dir)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts")
}

/// Sends `signal` once `ready` holds, and returns the exit status and standard error.
fn interrupt(child: Child, signal: Signal, ready: impl Fn() -> bool) -> (ExitStatus, String) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !ready() {
        assert!(Instant::now() < deadline, "the copy never began");
        std::thread::sleep(Duration::from_millis(2));
    }
    kill_process(Pid::from_child(&child), signal).expect("it is running");
    let output = child.wait_with_output().expect("it ends");
    (output.status, String::from_utf8(output.stderr).expect("words"))
}

#[test]
fn names_the_partial_file_and_gives_directories_their_attributes() {
    let dir = tempfile::tempdir().expect("a directory");
    let src = dir.path().join("src");
    std::fs::create_dir(&src).expect("a source");
    // All hole, written as data: long to copy and quick to make.
    let big = std::fs::File::create(src.join("big")).expect("a file");
    big.set_len(8 << 30).expect("a length");
    std::fs::set_permissions(&src, PermissionsExt::from_mode(0o555)).expect("a mode");
    let child = cp(dir.path(), &["-a", "--sparse=never", "src", "dst"]);
    let dst_big = dir.path().join("dst/big");
    let written = || std::fs::metadata(&dst_big).is_ok_and(|metadata| metadata.len() > 0);
    let (status, words) = interrupt(child, Signal::TERM, written);
    assert_eq!(status.signal(), Some(15), "{words}");
    assert!(words.starts_with("cp: interrupted: 'dst/big' is incomplete, "), "{words}");
    let copied = std::fs::metadata(&dst_big).expect("the partial file stays").len();
    assert!(copied < 8 << 30);
    assert!(words.contains(&format!(" {copied} bytes written")), "{words}: {copied}");
    let mode = std::fs::metadata(dir.path().join("dst")).expect("a directory").permissions().mode();
    assert_eq!(mode & 0o7777, 0o555);
}

#[test]
fn a_read_that_never_returns_is_not_waited_for() {
    let dir = tempfile::tempdir().expect("a directory");
    rustix::fs::mkfifoat(rustix::fs::CWD, dir.path().join("fifo"), 0o600.into()).expect("a fifo");
    // With both ends open here, the copy's read waits for ever.
    let held = std::fs::File::options().read(true).write(true).open(dir.path().join("fifo"));
    let child = cp(dir.path(), &["fifo", "copy"]);
    let copy = dir.path().join("copy");
    let begun = Instant::now();
    let (status, words) = interrupt(child, Signal::INT, || copy.exists());
    assert_eq!(status.signal(), Some(2), "{words}");
    // The signal may come before the read.
    let before = "cp: interrupted: 'copy' is incomplete, 0 bytes written\n";
    assert!(["cp: interrupted\n", before].contains(&&*words), "{words}");
    assert!(begun.elapsed() < Duration::from_secs(10));
    drop(held);
}

#[test]
fn an_ignored_signal_stays_ignored() {
    let dir = tempfile::tempdir().expect("a directory");
    let big = std::fs::File::create(dir.path().join("big")).expect("a file");
    big.set_len(256 << 20).expect("a length");
    let program = env!("CARGO_BIN_EXE_haulage");
    let script = format!("trap '' HUP; exec {program} cp --sparse=never big copy");
    let child = Command::new("sh")
        .args(["-c", &script])
        .current_dir(dir.path())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a shell");
    let copy = dir.path().join("copy");
    let (status, words) = interrupt(child, Signal::HUP, || copy.exists());
    assert!(status.success(), "{status}: {words}");
    assert_eq!(std::fs::metadata(copy).expect("a copy").len(), 256 << 20);
}
