//! uname(2) with its error. rustix takes for granted that it succeeds, but a filter of system calls may
//! refuse it.

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;

use rustix::io::Result;

/// What the kernel tells about itself and its machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uname {
    /// The name of the kernel: `Linux`.
    pub sysname: String,
    /// The host name.
    pub nodename: String,
    /// The release of the kernel, such as `6.18.44`.
    pub release: String,
    /// The version of the kernel: the number and time of its build.
    pub version: String,
    /// The architecture, such as `x86_64`.
    pub machine: String,
}

/// `int uname(struct utsname *buf)`: the names of the kernel and its machine.
///
/// # Errors
/// Those of the call.
pub fn uname() -> Result<Uname> {
    let mut names = MaybeUninit::<libc::utsname>::uninit();
    // SAFETY: the kernel writes one struct, for which there is room.
    let status = unsafe { libc::uname(names.as_mut_ptr()) };
    if status != 0 {
        return Err(super::last_errno());
    }
    // SAFETY: the call succeeded and has written it.
    let names = unsafe { names.assume_init() };
    Ok(Uname {
        sysname: text(&names.sysname),
        nodename: text(&names.nodename),
        release: text(&names.release),
        version: text(&names.version),
        machine: text(&names.machine),
    })
}

fn text(field: &[c_char]) -> String {
    // The type has a sign on some architectures and none on others. Both have this method.
    let bytes: Vec<u8> = field.iter().flat_map(|byte| byte.to_ne_bytes()).collect();
    let ended = CStr::from_bytes_until_nul(&bytes).map(CStr::to_bytes);
    String::from_utf8_lossy(ended.unwrap_or(&bytes)).into_owned()
}

impl Uname {
    /// The strings of [`uname`], or `unknown` for each.
    #[must_use]
    pub fn or_unknown() -> Uname {
        uname().unwrap_or_else(|_| {
            let [sysname, nodename, release, version, machine] =
                [(); 5].map(|()| "unknown".to_owned());
            Uname { sysname, nodename, release, version, machine }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_that_rustix_reads() {
        let (found, known) = (uname().expect("no filter"), rustix::system::uname());
        let known =
            [known.sysname(), known.nodename(), known.release(), known.version(), known.machine()]
                .map(|name| name.to_string_lossy().into_owned());
        let Uname { sysname, nodename, release, version, machine } = found.clone();
        assert_eq!([sysname, nodename, release, version, machine], known);
        assert_eq!(Uname::or_unknown(), found);
    }
}
