//! A signal that is held back until somebody can attend to it.

use std::mem::MaybeUninit;

/// Holds `signal` back from this thread and those that it makes later. Returns whether it was not
/// before.
#[must_use]
pub fn block_signal(signal: i32) -> bool {
    change(libc::SIG_BLOCK, signal)
}

/// Lets `signal` come to this thread, at once if it has been sent.
pub fn unblock_signal(signal: i32) {
    change(libc::SIG_UNBLOCK, signal);
}

/// Returns whether the signal was not held back so far; false for what is no signal.
fn change(how: i32, signal: i32) -> bool {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: makes the set empty, whatever it was.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: the line above has initialised it.
    let mut set = unsafe { set.assume_init() };
    // SAFETY: the set is initialised; what is no signal is refused.
    if unsafe { libc::sigaddset(&raw mut set, signal) } != 0 {
        return false;
    }
    let mut before = set;
    // SAFETY: reads one set and writes the other, both of which are initialised.
    let changed = unsafe { libc::pthread_sigmask(how, &raw const set, &raw mut before) };
    // SAFETY: only asks.
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
