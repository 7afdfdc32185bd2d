//! The signal mask of a thread.

use std::mem::MaybeUninit;

/// Blocks a signal in this thread and in threads that it creates later. Returns whether it was
/// unblocked before.
#[must_use]
pub fn block_signal(signal: i32) -> bool {
    change(libc::SIG_BLOCK, signal)
}

/// Unblocks `signal` in this thread. A pending signal is delivered at once.
pub fn unblock_signal(signal: i32) {
    change(libc::SIG_UNBLOCK, signal);
}

/// Returns whether the signal was unblocked before; false for an invalid number.
fn change(how: i32, signal: i32) -> bool {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: empties the set, whatever it contains.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: the line above initialised it.
    let mut set = unsafe { set.assume_init() };
    // SAFETY: the set is initialised. sigaddset refuses an invalid number.
    if unsafe { libc::sigaddset(&raw mut set, signal) } != 0 {
        return false;
    }
    let mut before = set;
    // SAFETY: reads one set and writes the other; both are initialised.
    let changed = unsafe { libc::pthread_sigmask(how, &raw const set, &raw mut before) };
    // SAFETY: only reads the set, which is initialised.
    changed == 0 && unsafe { libc::sigismember(&raw const before, signal) } == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_blocked_and_unblocked() {
        std::thread::spawn(|| {
            assert!(block_signal(libc::SIGUSR2));
            assert!(!block_signal(libc::SIGUSR2));
            unblock_signal(libc::SIGUSR2);
            assert!(block_signal(libc::SIGUSR2));
            assert!(!block_signal(-1));
        })
        .join()
        .expect("no more than that");
    }
}
