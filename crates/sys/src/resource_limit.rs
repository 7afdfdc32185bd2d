//! getrlimit(2) with its error. rustix takes for granted that it succeeds, but a filter of system calls may
//! refuse it.

use std::mem::MaybeUninit;

use rustix::io::{Errno, Result};
use rustix::process::{Resource, Rlimit};

/// `int getrlimit(int resource, struct rlimit *rlim)`: the limits of this process.
///
/// # Errors
/// Those of the call.
pub fn resource_limit(resource: Resource) -> Result<Rlimit> {
    let mut limit = MaybeUninit::<libc::rlimit>::uninit();
    // SAFETY: the kernel writes one struct, for which there is room.
    let status = unsafe { libc::getrlimit(resource as _, limit.as_mut_ptr()) };
    if status != 0 {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL));
    }
    // SAFETY: the call succeeded and has written it.
    let limit = unsafe { limit.assume_init() };
    let bytes = |value: libc::rlim_t| (value != libc::RLIM_INFINITY).then_some(value);
    Ok(Rlimit { current: bytes(limit.rlim_cur), maximum: bytes(limit.rlim_max) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_that_rustix_reads() {
        for resource in [Resource::Nofile, Resource::As, Resource::Stack, Resource::Core] {
            let found = resource_limit(resource).expect("a limit");
            let known = rustix::process::getrlimit(resource);
            assert_eq!((found.current, found.maximum), (known.current, known.maximum));
        }
    }
}
