//! What every exported function needs: no panic leaves it, its thread is not cancelled in it, and it sets
//! errno.

use std::ffi::{CStr, CString, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

unsafe extern "C" {
    /// `int pthread_setcancelstate(int state, int *oldstate)`: whether this thread may be cancelled.
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// The state in which a thread cannot be cancelled: 1 in glibc and in musl.
const PTHREAD_CANCEL_DISABLE: c_int = 1;

/// This thread cannot be cancelled until this is dropped. pthread_cancel(3) ends a thread by unwinding its
/// stack from a call such as openat(2), and to unwind functions of Rust so ends the process.
struct Uncancelled {
    state_before: c_int,
}

impl Uncancelled {
    fn new() -> Uncancelled {
        let mut state_before = 0;
        // SAFETY: the call stores the old state in a variable that lives, and cannot fail for this value.
        unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut state_before) };
        Uncancelled { state_before }
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        // SAFETY: it is the state that the call returned.
        unsafe { pthread_setcancelstate(self.state_before, std::ptr::null_mut()) };
    }
}

/// Calls `work`. `failed` is the result after a panic, which is a mistake in this library.
pub(crate) fn guarded<T>(failed: T, work: impl FnOnce() -> T) -> T {
    let _uncancelled = Uncancelled::new();
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result,
        Err(payload) => {
            // To drop it could panic again.
            std::mem::forget(payload);
            set_errno(libc::EIO);
            failed
        }
    }
}

/// 0, or -1 with errno.
pub(crate) fn status(result: Result<(), c_int>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(errno) => {
            set_errno(errno);
            -1
        }
    }
}

/// errno of this thread.
pub(crate) fn errno() -> c_int {
    // SAFETY: the call returns the address of this thread's errno, which is always valid.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    unsafe { place.read() }
}

pub(crate) fn set_errno(errno: c_int) {
    // SAFETY: as above.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    unsafe { place.write(errno) };
}

/// The bytes of a string that C passes; EINVAL for a null pointer.
///
/// # Safety
/// `text` is null or ends with a zero byte, and does not change while the result is used.
pub(crate) unsafe fn text<'t>(text: *const c_char) -> Result<&'t OsStr, c_int> {
    if text.is_null() {
        return Err(libc::EINVAL);
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    Ok(OsStr::from_bytes(text.to_bytes()))
}

/// The path that C passes; EINVAL for a null pointer.
///
/// # Safety
/// As for [`text`].
pub(crate) unsafe fn path<'t>(path: *const c_char) -> Result<&'t Path, c_int> {
    // SAFETY: the caller's promise.
    unsafe { text(path) }.map(Path::new)
}

/// A string for C. A zero byte, which no path contains, ends it.
pub(crate) fn c_text(text: impl AsRef<OsStr>) -> CString {
    let bytes = text.as_ref().as_bytes();
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    CString::new(&bytes[..end]).unwrap_or_default()
}
