//! Variables of the environment.

use std::fs::read_dir;

/// setenv(3), if this thread is the only one of the process. Returns whether it is set.
///
/// # Panics
/// If `name` is empty or has a `=`, or one of them has a zero byte.
pub fn set_variable(name: &str, value: &str) -> bool {
    let threads = read_dir("/proc/self/task").map_or(0, Iterator::count);
    if threads != 1 {
        return false;
    }
    // SAFETY: there is no other thread that could read the environment meanwhile, and only this one could
    // start another.
    unsafe { std::env::set_var(name, value) };
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_other_threads_nothing_is_set() {
        // The test harness has a thread besides this one, at least.
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || stopped.recv());
        assert!(!set_variable("HAULAGE_TEST_VARIABLE", "x"));
        assert_eq!(std::env::var_os("HAULAGE_TEST_VARIABLE"), None);
        drop(stop);
        assert!(other.join().expect("joined").is_err());
    }
}
