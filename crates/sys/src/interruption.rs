//! For tests: runs code that signals interrupt repeatedly.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Runs `work` while this thread gets a signal every millisecond. The handler does nothing and is
/// installed without SA_RESTART, so blocking calls return EINTR.
pub fn interrupted<T>(work: impl FnOnce() -> T) -> T {
    extern "C" fn ignore(_: libc::c_int) {}
    // SAFETY: all zeros is a valid sigaction: no flags, an empty mask, the default action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = ignore as *const () as usize;
    // SAFETY: the handler has the signature of one without SA_SIGINFO, and does nothing.
    let result = unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()) };
    assert_eq!(result, 0, "sigaction takes a handler for SIGUSR1");
    // SAFETY: only returns the ID of the calling thread.
    let thread = unsafe { libc::pthread_self() };
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
                // SAFETY: that thread waits for this one at the end of the scope, so it is alive.
                unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
            }
        });
        let result = work();
        done.store(true, Ordering::Relaxed);
        result
    })
}
