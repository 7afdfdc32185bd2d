//! What has to be looked at before `main`, as the standard library covers it up.

use std::sync::atomic::{AtomicBool, Ordering};

static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether the process was started without a standard output. The standard library puts
/// `/dev/null` in its place before `main`, so that no file opened later gets its number; what is
/// written there is lost without an error.
#[must_use]
pub fn stdout_was_closed() -> bool {
    STDOUT_WAS_CLOSED.load(Ordering::Relaxed)
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
}
