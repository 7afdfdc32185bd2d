//! fchmodat2, which sets the mode of a file that is open with O_PATH.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::Mode;

use super::last_errno;

/// `fchmodat2` has this number on every architecture with the common table. The libc crate does not
/// define it on all of them.
const SYS_FCHMODAT2: libc::c_long = 452;

/// `int fchmodat2(int, const char *, mode_t, unsigned int)`
///
/// Sets the mode of the open file `fd`, which may be open with O_PATH. Linux 6.6; see fchmodat(2).
///
/// # Errors
/// `NOSYS` on older kernels, `NOSYS` or `PERM` under seccomp filters that do not know the call, and
/// those of fchmod(2).
pub fn chmod_path_fd(fd: BorrowedFd<'_>, mode: Mode) -> rustix::io::Result<()> {
    // SAFETY: the empty path ends in a zero byte and is static. The kernel writes no memory. `fd` is
    // open while it is borrowed.
    let result = unsafe {
        libc::syscall(
            SYS_FCHMODAT2,
            fd.as_raw_fd(),
            c"".as_ptr(),
            mode.as_raw_mode(),
            libc::AT_EMPTY_PATH,
        )
    };
    if result == 0 { Ok(()) } else { Err(last_errno()) }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::fs::PermissionsExt;

    use rustix::fs::{CWD, OFlags, openat};
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn the_mode_is_that_of_the_open_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let held = openat(CWD, &file, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        match chmod_path_fd(held.as_fd(), Mode::from_raw_mode(0o4710)) {
            Err(errno @ (Errno::NOSYS | Errno::PERM)) => {
                return testfs::skip(&testfs::test_name(), &format!("fchmodat2: {errno}"));
            }
            changed => changed.unwrap(),
        }
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o4710);
    }
}
