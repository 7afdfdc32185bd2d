//! The function getrandom(3) of the program itself, for the standard library.
//!
//! That library takes the seed of each thread's hash maps from it, and panics if it fails and /dev/urandom cannot
//! be read. A filter of system calls may choose any errno, and a container may have no /dev.

use std::ffi::{c_int, c_uint, c_void};
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};

use super::process_random;

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

/// `ssize_t getrandom(void *buf, size_t buflen, unsigned int flags)`: the system call. If it fails in an unusual way,
/// the bytes come from /dev/urandom, or are made of those of the process ([`process_random`]). That is enough for
/// the seeds of hash maps, and for nothing that has to be secret for longer than the program runs. For
/// [`random_numbers!`](crate::random_numbers).
///
/// # Safety
/// There is room for `len` bytes at `buffer`.
pub unsafe fn get(buffer: *mut c_void, len: size_t, flags: c_uint) -> ssize_t {
    // SAFETY: the kernel writes at most `len` bytes, for which there is room.
    let count = unsafe { libc::syscall(libc::SYS_getrandom, buffer, len, flags) };
    // SAFETY: the C library returns the address of this thread's errno.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: it is valid as long as the thread, which alone uses it.
    let errno = unsafe { *errno };
    // It is -1 or at most `len`, which fits.
    if count >= 0 || is_told(errno, flags) || buffer.is_null() {
        return ssize_t::try_from(count).unwrap_or(-1);
    }
    // SAFETY: there is room for that many bytes.
    unsafe { buffer.write_bytes(0, len) };
    // SAFETY: they were just written, and the caller does not use them meanwhile.
    let bytes = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), len) };
    let read = File::open("/dev/urandom").and_then(|mut device| device.read_exact(bytes));
    if read.is_err() {
        fill(bytes);
    }
    ssize_t::try_from(len).unwrap_or(-1)
}

/// Whether the caller knows what to do about this error.
fn is_told(errno: c_int, flags: c_uint) -> bool {
    // A kernel before Linux 5.6 does not know the flag.
    errno == libc::EINTR || errno == libc::EINVAL && flags == libc::GRND_INSECURE
}

/// Makes other bytes at each call of those that the kernel gave the process.
fn fill(bytes: &mut [u8]) {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    for chunk in bytes.chunks_mut(size_of::<u64>()) {
        // Its own keys are fixed, and need no random numbers.
        let mut hasher = DefaultHasher::new();
        hasher.write(&process_random().unwrap_or_default());
        // Where this is in memory differs from process to process as well.
        hasher.write_usize((&raw const COUNT).addr());
        hasher.write_u64(COUNT.fetch_add(1, Ordering::Relaxed));
        chunk.copy_from_slice(&hasher.finish().to_ne_bytes()[..chunk.len()]);
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
    fn errors_that_the_standard_library_handles_are_told() {
        for flags in [0, libc::GRND_NONBLOCK, libc::GRND_INSECURE] {
            assert!(is_told(libc::EINTR, flags));
            assert_eq!(is_told(libc::EINVAL, flags), flags == libc::GRND_INSECURE);
            assert!(!is_told(libc::EIO, flags));
        }
    }

    #[test]
    fn bytes_of_the_process_differ_at_each_call() {
        let mut made = [[0_u8; 19]; 3];
        made.iter_mut().for_each(|bytes| fill(bytes));
        assert_ne!(made[0], made[1]);
        assert_ne!(made[1], made[2]);
        assert!(made.iter().all(|bytes| bytes[8..] != [0; 11]));
    }
}
