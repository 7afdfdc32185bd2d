//! What has to be looked at first of all, as it is covered up before any of the program runs: the
//! process is given the streams that are missing, and ignores SIGPIPE.

use std::sync::atomic::{AtomicBool, Ordering};

static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);
static SIGPIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);

/// Whether the process was started without a standard output. There is `/dev/null` in its place since,
/// so that no file opened later gets its number; what is written there is lost without an error.
#[must_use]
pub fn stdout_was_closed() -> bool {
    STDOUT_WAS_CLOSED.load(Ordering::Relaxed)
}

/// Whether the process was started to ignore SIGPIPE: it then hears of a pipe that nobody reads by
/// EPIPE, as it always does since, and is to say so. Otherwise it was to die without a word.
#[must_use]
pub fn sigpipe_was_ignored() -> bool {
    SIGPIPE_WAS_IGNORED.load(Ordering::Relaxed)
}

// SAFETY: the C library calls what this section lists once, before `main`, in the only thread there
// is. What stands there has the signature that it calls, whose arguments C lets it leave unread,
// and needs nothing of the standard library.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: asks for the flags of a number, which may stand for nothing.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    STDOUT_WAS_CLOSED.store(flags == -1, Ordering::Relaxed);
    SIGPIPE_WAS_IGNORED.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
}

/// Whether the process ignores `signal` at the moment; false for what is no signal.
#[must_use]
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: all zeros is a valid sigaction, to be overwritten.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: changes nothing, and writes to the structure above.
    let result = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
    result == 0 && action.sa_sigaction == libc::SIG_IGN
}
