//! listxattrat, which lists extended attributes by directory and name.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::last_errno;

/// `listxattrat` has this number on every architecture with the common table. The libc crate does
/// not define it.
const SYS_LISTXATTRAT: libc::c_long = 465;

/// `ssize_t listxattrat(int, const char *, unsigned int, char *, size_t)`
///
/// The length in bytes of the names of all extended attributes of `name` in `dir`, with their
/// terminating zeros. Does not follow a symbolic link. Linux 6.13; see listxattr(2) for the result.
///
/// # Errors
/// `NOSYS` on older kernels, `NOSYS` or `PERM` under seccomp filters that do not know the call, and
/// those of listxattr(2).
pub fn xattr_names_len(dir: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<usize> {
    // SAFETY: `name` ends in a zero byte and outlives the call. With a size of 0 the kernel writes
    // no memory.
    let result = unsafe {
        libc::syscall(
            SYS_LISTXATTRAT,
            dir.as_raw_fd(),
            name.as_ptr(),
            libc::AT_SYMLINK_NOFOLLOW,
            std::ptr::null_mut::<libc::c_char>(),
            0_usize,
        )
    };
    usize::try_from(result).map_err(|_| last_errno())
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::fd::AsFd;
    use std::os::unix::ffi::OsStrExt;

    use rustix::fs::{XattrFlags, lsetxattr};
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn names_are_counted_and_a_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink("file", dir.path().join("link")).unwrap();
        let open = std::fs::File::open(dir.path()).unwrap();
        let len = |name| xattr_names_len(open.as_fd(), name);
        let before = match len(c"file") {
            Err(errno @ (Errno::NOSYS | Errno::PERM)) => {
                return testfs::skip(&testfs::test_name(), &format!("listxattrat: {errno}"));
            }
            before => before.unwrap(),
        };
        if let Err(errno) = lsetxattr(&file, c"user.haulage", b"1", XattrFlags::empty()) {
            return testfs::skip(&testfs::test_name(), &format!("user attributes: {errno}"));
        }
        assert_eq!(len(c"file"), Ok(before + b"user.haulage\0".len()));
        assert_eq!(len(c"link"), Ok(before));
        assert_eq!(len(c"none"), Err(Errno::NOENT));
        let path = CString::new(file.as_os_str().as_bytes()).unwrap();
        let anywhere = xattr_names_len(rustix::fs::CWD, &path);
        assert_eq!(anywhere, Ok(before + b"user.haulage\0".len()));
    }
}
