//! Runs the program within limits.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::limits::{MEMORY_BYTES_MAX, TIME_MAX};
use crate::scratch;

/// The program in `dir` without the user's configuration.
pub(super) fn command(dir: &Path) -> Command {
    let mut command = testfs::command(scratch::program());
    command
        .current_dir(dir)
        .env("HOME", dir)
        .env("XDG_STATE_HOME", dir)
        .env_remove("XDG_CONFIG_HOME");
    command
}

/// Runs `command` with `input` on its standard input.
///
/// # Panics
/// If it panics, ends by a signal, needs more processor time or memory than allowed, or waits for
/// something.
pub(super) fn run(mut command: Command, input: &[u8]) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    limit(Pid::from_child(&child));
    let mut stdin = child.stdin.take().expect("a pipe");
    // A program that does not read makes this fail, which is right.
    let _ = stdin.write_all(input);
    drop(stdin);
    let ended =
        rustix::process::pidfd_open(Pid::from_child(&child), rustix::process::PidfdFlags::empty())
            .expect("a descriptor of the program");
    let reader = std::thread::spawn(move || child.wait_with_output());
    if !testfs::ends_within(&ended, PATIENCE).expect("poll") {
        let _ = rustix::process::pidfd_send_signal(&ended, rustix::process::Signal::KILL);
        let _ = reader.join();
        panic!("it had not ended after {} s", PATIENCE.as_secs());
    }
    let output = reader.join().expect("no panic").expect("its output");
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        None => panic!("it ended by {}: {said}", output.status),
        Some(101) => panic!("it panicked: {said}"),
        Some(_) => {}
    }
    let line = said
        .lines()
        .find(|line| line.contains(": internal error: ") || line.ends_with(": memory exhausted"));
    if let Some(line) = line {
        panic!("{line}");
    }
    output
}

/// How long the program may take by the clock: other programs may have the processors.
const PATIENCE: Duration = Duration::from_secs(20);

/// SIGXCPU ends it after the time, and an allocation beyond the memory fails.
fn limit(pid: Pid) {
    let seconds = TIME_MAX.as_secs();
    for (resource, most) in
        [(Resource::Cpu, seconds), (Resource::Data, MEMORY_BYTES_MAX), (Resource::Core, 0)]
    {
        let limit = Rlimit { current: Some(most), maximum: Some(most.saturating_add(1)) };
        // A program that has ended already was within its limits.
        let _ = prlimit(Some(pid), resource, limit);
    }
}
