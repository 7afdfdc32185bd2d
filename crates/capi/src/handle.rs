//! States that a program frees while a copy uses them, as in a callback: they live until the copy ends.

use std::sync::Arc;

/// Calls `copy` with the state, which lives until it returns.
///
/// # Safety
/// `state` is null or one of `Arc::into_raw` that was not freed before this call.
pub(crate) unsafe fn in_use<S, T>(state: *mut S, copy: impl FnOnce(Option<&Arc<S>>) -> T) -> T {
    if state.is_null() {
        return copy(None);
    }
    // SAFETY: the caller's promise.
    unsafe { Arc::increment_strong_count(state) };
    // SAFETY: as above. The reference is the one that was just counted.
    let used = unsafe { Arc::from_raw(state) };
    copy(Some(&used))
}

/// Frees a state, or leaves that to the copies that use it.
///
/// # Safety
/// As for [`in_use`].
pub(crate) unsafe fn free<S>(state: *mut S) {
    if !state.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Arc::from_raw(state) });
    }
}
