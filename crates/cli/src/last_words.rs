//! What is said if the program cannot go on as it should: one line of what failed, and the files
//! that are incomplete.

use std::io::IoSlice;
use std::panic::PanicHookInfo;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// What names the files that are incomplete.
type Incomplete = Box<dyn Fn() -> Vec<u8> + Send + Sync>;

/// The command that runs, for the start of the line, and its files.
struct Running {
    command: &'static str,
    incomplete: Incomplete,
}

static RUNNING: OnceLock<Running> = OnceLock::new();

/// Replaces the abort where there is no memory, and the report of a panic, which is for programmers,
/// by one line. A panic is a mistake in
/// this program, or the way in which the standard library reports an error that it cannot return.
pub fn install() {
    std::panic::set_hook(Box::new(report_panic));
    sys::when_memory_is_exhausted(report_exhaustion);
}

/// `command` runs from now on; `incomplete` returns lines with the files that it has not
/// completed. It may be called by a thread that holds any lock.
pub(crate) fn set_command(
    command: &'static str,
    incomplete: impl Fn() -> Vec<u8> + Send + Sync + 'static,
) {
    let _ = RUNNING.set(Running { command, incomplete: Box::new(incomplete) });
}

fn report_exhaustion() {
    // The line needs no memory. The names of files do.
    let line = [command(), ": memory exhausted\n"].map(|part| IoSlice::new(part.as_bytes()));
    let _ = rustix::io::writev(rustix::stdio::stderr(), &line);
    put_stderr(&incomplete());
}

fn report_panic(info: &PanicHookInfo<'_>) {
    static REPORTED: AtomicBool = AtomicBool::new(false);
    // Further panics follow from the first, as in the thread that waits for this one.
    if REPORTED.swap(true, Ordering::Relaxed) {
        return;
    }
    let what = info.payload_as_str().unwrap_or("unknown");
    let at = info.location().map(|at| (at.file(), at.line()));
    put_stderr(line_of(what, at).as_bytes());
    put_stderr(&incomplete());
}

fn line_of(what: &str, at: Option<(&str, u32)>) -> String {
    let at = at.map(|(file, line)| format!(" ({file}:{line})")).unwrap_or_default();
    format!("{}: internal error: {}{at}\n", command(), what.replace('\n', " "))
}

fn command() -> &'static str {
    RUNNING.get().map_or("haulage", |running| running.command)
}

fn incomplete() -> Vec<u8> {
    RUNNING.get().map(|running| (running.incomplete)()).unwrap_or_default()
}

/// Writes to standard error, past the lock that this thread may hold.
fn put_stderr(bytes: &[u8]) {
    let _ = rustix::io::write(rustix::stdio::stderr(), bytes);
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_panic_is_one_line_and_the_files_of_the_command() {
        let said = super::line_of("first\nsecond", Some(("src/a.rs", 7)));
        assert_eq!(said, "haulage: internal error: first second (src/a.rs:7)\n");
        assert_eq!(super::line_of("no place", None), "haulage: internal error: no place\n");
    }
}
