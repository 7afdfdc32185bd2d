//! States that a program frees while a copy uses them, as in a callback: they live until the copy ends.

use std::sync::atomic::{AtomicUsize, Ordering};

/// How many copies use a state, and whether the program has freed it.
#[derive(Debug, Default)]
pub(crate) struct Uses(AtomicUsize);

/// The program has freed the state. The other bits are the number of copies.
const FREED: usize = 1 << (usize::BITS - 1);

impl Uses {
    fn begin(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns whether this was the last use of a freed state. Nobody else has it then.
    fn end(&self) -> bool {
        self.0.fetch_sub(1, Ordering::AcqRel) == FREED | 1
    }

    /// Returns whether no copy uses the state. Nobody else has it then.
    fn free(&self) -> bool {
        self.0.fetch_or(FREED, Ordering::AcqRel) == 0
    }
}

/// A state that a program has a pointer to, from a `Box`.
pub(crate) trait Handle {
    fn uses(&self) -> &Uses;
}

/// Calls `copy` with the state, which lives until it returns.
///
/// # Safety
/// `state` is null or one of `Box::into_raw` that was not freed before this call.
pub(crate) unsafe fn in_use<S: Handle, T>(state: *mut S, copy: impl FnOnce(Option<&S>) -> T) -> T {
    // SAFETY: the caller's promise.
    let Some(used) = (unsafe { state.as_ref() }) else { return copy(None) };
    used.uses().begin();
    let result = copy(Some(used));
    if used.uses().end() {
        // SAFETY: it is of `Box::into_raw`, and no reference to it is used any more.
        drop(unsafe { Box::from_raw(state) });
    }
    result
}

/// Frees a state, or leaves that to the copies that use it.
///
/// # Safety
/// As for [`in_use`].
pub(crate) unsafe fn free<S: Handle>(state: *mut S) {
    // SAFETY: the caller's promise.
    let Some(freed) = (unsafe { state.as_ref() }) else { return };
    if freed.uses().free() {
        // SAFETY: as above.
        drop(unsafe { Box::from_raw(state) });
    }
}
