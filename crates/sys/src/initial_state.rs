//! The state of the process at its start: whether standard output was closed and SIGPIPE ignored.
//! It is read before any other code runs, because start-up code opens missing streams and ignores
//! SIGPIPE.

use std::sync::atomic::{AtomicBool, Ordering};

use super::program_entry::is_closed;

static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);
static SIGPIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);

/// Whether the process was started without a standard output. Start-up code opens `/dev/null` in
/// its place, so that no file opened later gets its descriptor. Data written there is lost without
/// an error.
#[must_use]
pub fn stdout_was_closed() -> bool {
    STDOUT_WAS_CLOSED.load(Ordering::Relaxed)
}

/// Whether the process was started with SIGPIPE ignored. A write to a pipe without a reader then
/// returns EPIPE, and the process must report the error. Otherwise it must end without a message,
/// as by SIGPIPE. Start-up code ignores SIGPIPE in both cases.
#[must_use]
pub fn sigpipe_was_ignored() -> bool {
    SIGPIPE_WAS_IGNORED.load(Ordering::Relaxed)
}

// SAFETY: the C library calls each function in this section once, before `main`, in the only
// thread. The function has the signature that the library calls; C lets it ignore its arguments. It
// needs nothing of the standard library.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    STDOUT_WAS_CLOSED.store(is_closed(libc::STDOUT_FILENO), Ordering::Relaxed);
    SIGPIPE_WAS_IGNORED.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
}

/// Whether the process ignores `signal` now; false for an invalid number.
#[must_use]
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: all zeros is a valid sigaction, which the call overwrites.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: changes no action, and writes to the structure above.
    let result = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
    result == 0 && action.sa_sigaction == libc::SIG_IGN
}
