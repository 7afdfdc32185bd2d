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
            $crate::sys::enter($main)
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

/// Opens `/dev/null` for each standard stream that is missing.
fn provide_streams() {
    for stream in [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: reads the flags of a descriptor number, which need not be open.
        let flags = unsafe { libc::fcntl(stream, libc::F_GETFD) };
        if flags == -1 {
            let null: *const c_char = c"/dev/null".as_ptr();
            // SAFETY: the name ends with a zero byte. open(2) returns the lowest free number, which
            // is this one, because all lower ones are in use.
            let opened = unsafe { libc::open(null, libc::O_RDWR) };
            // Otherwise the next file opened would get this descriptor, and output would overwrite
            // it.
            assert!(opened == stream, "no /dev/null for the missing stream {stream}");
        }
    }
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
