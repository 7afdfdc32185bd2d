//! The function getrandom(3) of the program itself, for the standard library.
//!
//! That library takes the seed of each thread's hash maps from it, and panics if it fails, unless the errno says
//! that there is no such call: then it reads /dev/urandom. A filter of system calls may choose any errno.

use std::ffi::{c_int, c_uint, c_void};

#[doc(hidden)]
pub use libc::{size_t, ssize_t};

/// Defines the function. For a program only: a library would give it to the programs that load it.
#[macro_export]
macro_rules! random_numbers {
    () => {
        // SAFETY: it is the only function of its name in the program, and has the type that C requires. The
        // caller passes room for the bytes.
        #[cfg(all(target_env = "gnu", not(test)))]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn getrandom(
            buffer: *mut ::std::ffi::c_void,
            len: $crate::sys::random_numbers::size_t,
            flags: ::std::ffi::c_uint,
        ) -> $crate::sys::random_numbers::ssize_t {
            // SAFETY: as the caller promises.
            unsafe { $crate::sys::random_numbers::get(buffer, len, flags) }
        }
    };
}

/// `ssize_t getrandom(void *buf, size_t buflen, unsigned int flags)`: the system call, whose unusual errors become
/// ENOSYS. For [`random_numbers!`](crate::random_numbers).
///
/// # Safety
/// There is room for `len` bytes at `buffer`.
pub unsafe fn get(buffer: *mut c_void, len: size_t, flags: c_uint) -> ssize_t {
    // SAFETY: the kernel writes at most `len` bytes, for which there is room.
    let count = unsafe { libc::syscall(libc::SYS_getrandom, buffer, len, flags) };
    if count < 0 {
        // SAFETY: the C library returns the address of this thread's errno.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: it is valid as long as the thread, which alone uses it.
        let errno = unsafe { &mut *errno };
        *errno = told(*errno);
    }
    // It is -1 or at most `len`, which fits.
    ssize_t::try_from(count).unwrap_or(-1)
}

/// The errno that the caller gets for one of the kernel.
fn told(errno: c_int) -> c_int {
    match errno {
        libc::EINTR | libc::EAGAIN | libc::EINVAL | libc::EFAULT | libc::EPERM => errno,
        _ => libc::ENOSYS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_gives_random_bytes() {
        let mut bytes = [0_u8; 32];
        // SAFETY: there is room for that many bytes.
        let count = unsafe { get(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        assert_eq!(count, 32);
        assert_ne!(bytes, [0; 32]);
    }

    #[test]
    fn an_unusual_error_sends_the_caller_to_the_device() {
        assert_eq!(told(libc::ETXTBSY), libc::ENOSYS);
        assert_eq!(told(libc::EIO), libc::ENOSYS);
        assert_eq!(told(libc::EINTR), libc::EINTR);
        assert_eq!(told(libc::EAGAIN), libc::EAGAIN);
    }
}
