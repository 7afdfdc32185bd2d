//! The entry point of a program, which bypasses the start-up code of the standard library.
//!
//! To report a stack overflow, the standard library reads `/proc/self/maps` and gives each thread a
//! second stack. This takes a tenth of the time of a process that copies one small file. The rest
//! of its start-up code is done here: missing standard streams are opened, so that no file opened
//! later gets their descriptors, and SIGPIPE is ignored, so that a write to a pipe without a reader
//! returns EPIPE.

use std::ffi::{c_char, c_int};
use std::panic::catch_unwind;
use std::process::{ExitCode, exit};

/// The exit status of a program that panicked: it has failed, as the commands that it stands in for
/// would have.
const PANICKED: u8 = 1;

/// Makes a function of the type `fn() -> ExitCode` the main function of the program. The crate must
/// have the attribute `#![cfg_attr(all(target_env = "gnu", not(test)), no_main)]`. Only glibc
/// passes the arguments to the standard library by itself. With another C library the program
/// starts as any other.
#[macro_export]
macro_rules! program {
    ($main:path) => {
        // SAFETY: it is the only function of its name in the program, and has the type that C
        // requires.
        #[cfg(all(target_env = "gnu", not(test)))]
        #[unsafe(no_mangle)]
        extern "C" fn main(
            _count: ::std::ffi::c_int,
            _arguments: *const *const ::std::ffi::c_char,
        ) -> ::std::ffi::c_int {
            $crate::enter($main)
        }

        #[cfg(not(all(target_env = "gnu", not(test))))]
        fn main() -> ::std::process::ExitCode {
            $main()
        }
    };
}

/// Prepares the process, calls `main`, and exits with its result. For [`program!`](crate::program).
pub fn enter(main: fn() -> ExitCode) -> ! {
    provide_streams();
    // SAFETY: the process has one thread, and no code relies on the handler that is replaced.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    let status = catch_unwind(main).map_or(PANICKED, status_of);
    exit(c_int::from(status))
}

/// The number of an exit code. The standard library does not return it, but compares exit codes.
fn status_of(code: ExitCode) -> u8 {
    (0..=u8::MAX).find(|status| ExitCode::from(*status) == code).unwrap_or(PANICKED)
}

/// Opens `/dev/null` for each standard stream that is missing, and where there is none the root directory,
/// which can be neither read nor written.
fn provide_streams() {
    for stream in [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        if !is_closed(stream) {
            continue;
        }
        // The next file opened would get this descriptor, and output would overwrite it.
        let opened =
            [(c"/dev/null", libc::O_RDWR), (c"/", libc::O_PATH)].iter().any(|&(name, flags)| {
                let name: *const c_char = name.as_ptr();
                // SAFETY: the name ends with a zero byte. open(2) returns the lowest free number, which
                // is this one, because all lower ones are in use.
                unsafe { libc::open(name, flags) == stream }
            });
        if !opened {
            let words =
                b"haulage: neither /dev/null nor / can be opened for a missing standard stream\n";
            // SAFETY: the bytes are valid. Without standard error they are lost.
            unsafe { libc::write(libc::STDERR_FILENO, words.as_ptr().cast(), words.len()) };
            exit(libc::EXIT_FAILURE);
        }
    }
}

/// Whether no file is open as `descriptor`. It may be open although its flags cannot be read.
pub(super) fn is_closed(descriptor: c_int) -> bool {
    // SAFETY: reads the flags of a descriptor number, which need not be open.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFD) };
    // SAFETY: the C library returns the address of this thread's errno.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: it is valid as long as the thread.
    flags == -1 && unsafe { *errno } == libc::EBADF
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_have_numbers() {
        for status in [0, 1, 2, 101, 255] {
            assert_eq!(status_of(ExitCode::from(status)), status);
        }
        assert_eq!(status_of(ExitCode::SUCCESS), 0);
        assert_eq!(status_of(ExitCode::FAILURE), 1);
    }
}
