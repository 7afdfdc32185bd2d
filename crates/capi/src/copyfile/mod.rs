//! The interface of copyfile(3), as the public manual page of macOS describes it, on Linux.
//!
//! | question | file |
//! |---|---|
//! | what a flag means here, and which have no meaning | `flags.rs` |
//! | what a program sets and gets | `state.rs` |
//! | the copy, and the stages of the callback | `run.rs` |
//!
//! Safety of each function: a pointer is null, or that of what its type and the header say.

mod ends;
mod flags;
mod run;
mod state;

use std::ffi::{CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use crate::border::{c_text, errno, guarded, path, set_errno, status};
use crate::handle::{free, in_use};
use ends::Ends;
use flags::{CHECK, Flags};

pub use state::CopyfileState;
use state::Place;

/// A new state; NULL after an error inside the library.
#[unsafe(no_mangle)]
pub extern "C" fn copyfile_state_alloc() -> *mut CopyfileState {
    guarded(ptr::null_mut(), || Arc::into_raw(Arc::<CopyfileState>::default()).cast_mut())
}

/// Frees a state; NULL is ignored. Descriptors stay open. A copy that uses it, as in a callback, goes on and
/// frees it at its end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn copyfile_state_free(state: *mut CopyfileState) -> c_int {
    // SAFETY: the caller's promise.
    guarded((), || unsafe { free(state) });
    0
}

/// Stores a value of the state in `*value`; EINVAL for an unknown one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn copyfile_state_get(
    state: *mut CopyfileState,
    flag: u32,
    value: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    let state = unsafe { state.as_ref() };
    guarded(-1, || {
        status(state.filter(|_| !value.is_null()).ok_or(libc::EINVAL).and_then(|state| {
            // SAFETY: `value` is not null, and the caller's promise.
            state.get(flag, unsafe { Place::new(value) })
        }))
    })
}

/// Sets a value of the state: what `value` points to, or the callback or context itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn copyfile_state_set(
    state: *mut CopyfileState,
    flag: u32,
    value: *const c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    let state = unsafe { state.as_ref() };
    guarded(-1, || {
        status(state.ok_or(libc::EINVAL).and_then(|state| {
            // SAFETY: the caller's promise.
            unsafe { state.set(flag, value) }
        }))
    })
}

/// Copies the file `from` to the name `to`, as the flags say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn copyfile(
    from: *const c_char,
    to: *const c_char,
    state: *mut CopyfileState,
    flags: u32,
) -> c_int {
    // SAFETY: the caller's promise.
    let from = unsafe { path(from) }.ok();
    // SAFETY: the caller's promise.
    let to = unsafe { path(to) }.ok();
    let copy = |state: &Arc<CopyfileState>, flags: Flags| {
        let named = |given: Option<&Path>, kept: Option<CString>| {
            let kept = kept.map(|kept| OsStr::from_bytes(kept.as_bytes()).into());
            given.map(Path::to_owned).or(kept)
        };
        let [kept_from, kept_to] = match state.fds() {
            // The names of the state are only told: they are those of what is open.
            (0.., 0..) if from.is_none() && to.is_none() => [None, None],
            _ => state.names(),
        };
        match (named(from, kept_from), named(to, kept_to)) {
            (Some(from), Some(to)) => {
                state.set_names([&c_text(&from), &c_text(&to)]);
                run::copy(&from, &to, state, flags)
            }
            (Some(from), None) if flags.has(CHECK) => run::check(&from, flags),
            // The descriptors that the program has set.
            (None, None) => run::copy_open(state.fds(), state, flags),
            _ => Err(Ends::Errno(libc::EINVAL)),
        }
    };
    // SAFETY: the caller's promise.
    unsafe { copy_with(state, flags, copy) }
}

/// Copies what is open as `from` to what is open as `to`, as the flags say. Flags about names have no
/// effect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcopyfile(
    from: c_int,
    to: c_int,
    state: *mut CopyfileState,
    flags: u32,
) -> c_int {
    let copy = |state: &Arc<CopyfileState>, flags: Flags| {
        state.set_fds(from, to);
        run::copy_open((from, to), state, flags)
    };
    // SAFETY: the caller's promise.
    unsafe { copy_with(state, flags, copy) }
}

/// Calls `copy` with the flags and a state, which lives until it returns. After a callback has ended the copy, errno
/// is as it was.
///
/// # Safety
/// As for [`in_use`].
unsafe fn copy_with(
    state: *mut CopyfileState,
    flags: u32,
    copy: impl FnOnce(&Arc<CopyfileState>, Flags) -> Result<c_int, Ends>,
) -> c_int {
    let errno_before = errno();
    let copy = |given: Option<&Arc<CopyfileState>>| {
        let own = Arc::default();
        let state = given.unwrap_or(&own);
        state.start();
        match Flags::of(flags).and_then(|flags| copy(state, flags)) {
            Ok(value) => value,
            Err(Ends::Errno(errno)) => status(Err(errno)),
            Err(Ends::Quit) => {
                set_errno(errno_before);
                -1
            }
        }
    };
    // SAFETY: the caller's promise.
    guarded(-1, || unsafe { in_use(state, copy) })
}
