//! The way into a program past what the standard library does before its `main`.
//!
//! To be able to say that a stack has overflowed, rather than only die of it, the standard library reads
//! `/proc/self/maps` and gives each thread a second stack. For a process that copies one small file that is
//! a tenth of its time. The rest of what it does there is done here: nothing that is opened later gets
//! the number of a standard stream, and who writes to a pipe that nobody reads hears of it by EPIPE.

use std::ffi::{c_char, c_int};
use std::panic::catch_unwind;
use std::process::{ExitCode, exit};

/// What a program exits with that has panicked, as under the standard library.
const PANICKED: u8 = 101;

/// Makes a function of the type `fn() -> ExitCode` what the program does. The crate has to have the
/// attribute `#![cfg_attr(all(target_env = "gnu", not(test)), no_main)]`. Where the C library is not
/// glibc, which is the one that tells the standard library of the arguments by itself, the program
/// begins as any other does.
#[macro_export]
macro_rules! program {
    ($main:path) => {
        // SAFETY: it is the only function of its name in the program, and of the type that C demands.
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

/// Does before `main` what has to be done, and exits with what it returns. For [`program!`](crate::program).
pub fn enter(main: fn() -> ExitCode) -> ! {
    provide_streams();
    // SAFETY: the process has one thread, and no handler is taken away that any code relies on.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    let status = catch_unwind(main).map_or(PANICKED, status_of);
    exit(c_int::from(status))
}

/// The standard library tells nobody the number of an exit code, but compares them.
fn status_of(code: ExitCode) -> u8 {
    (0..=u8::MAX).find(|status| ExitCode::from(*status) == code).unwrap_or(PANICKED)
}

/// Puts `/dev/null` in the place of each standard stream that is missing.
fn provide_streams() {
    for stream in [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: asks for the flags of a number, which may stand for nothing.
        let flags = unsafe { libc::fcntl(stream, libc::F_GETFD) };
        if flags == -1 {
            let null: *const c_char = c"/dev/null".as_ptr();
            // SAFETY: the name ends with a zero. The lowest free number is given out, which is this one,
            // as those below it are taken.
            let opened = unsafe { libc::open(null, libc::O_RDWR) };
            // What is opened next would be taken for this stream, and written over.
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
