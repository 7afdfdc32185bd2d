//! Extended attributes and the access control lists that are kept in them.

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::{
    Mode, XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr, getxattr, listxattr,
    removexattr, setxattr,
};
use rustix::io::{self, Errno};

/// A file whose attributes are read or set, held by a descriptor.
#[derive(Clone, Copy)]
pub(crate) enum Handle<'fd> {
    /// Open for reading or writing.
    Open(BorrowedFd<'fd>),
    /// Open with O_PATH, as links, fifos and devices are: opening them otherwise has effects, or is
    /// impossible. Calls go through `/proc/self/fd/N`, which leads to the very inode that is open
    /// and not through its name.
    Path(BorrowedFd<'fd>),
}

/// The list that decides about access.
pub(crate) const ACL_ACCESS: &CStr = c"system.posix_acl_access";
/// The list that a directory gives to what is made in it.
pub(crate) const ACL_DEFAULT: &CStr = c"system.posix_acl_default";
/// The SELinux label.
pub(crate) const CONTEXT: &CStr = c"security.selinux";

/// What an attribute belongs to, which decides with which option it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Permissions.
    Acl,
    /// The security context.
    Context,
    /// Everything that is the user's or an administrator's.
    Plain,
    /// Only meaningful on the file system or to the kernel that made it.
    Private,
}

impl Class {
    pub(crate) fn of(name: &CStr) -> Class {
        let bytes = name.to_bytes();
        let begins = |prefix: &[u8]| bytes.starts_with(prefix);
        if name == ACL_ACCESS || name == ACL_DEFAULT || begins(b"system.nfs4") {
            Class::Acl
        } else if name == CONTEXT {
            Class::Context
        } else if bytes == b"security.evm" || begins(b"trusted.SGI_") || begins(b"afs.") {
            Class::Private
        } else {
            Class::Plain
        }
    }
}

/// The version that the kernel gives and takes lists in; all numbers are little-endian.
const ACL_VERSION: u32 = 2;
const ACL_OWNER: u16 = 0x01;
const ACL_OWNING_GROUP: u16 = 0x04;
const ACL_MASK: u16 = 0x10;
const ACL_OTHERS: u16 = 0x20;

/// What `list` lets the owning group do, as group bits of a mode. The group bits of the file's own
/// mode are the mask, the most that anybody named in the list may do.
pub(crate) fn owning_group(list: &[u8]) -> Option<Mode> {
    let entries = list.strip_prefix(&ACL_VERSION.to_le_bytes())?.as_chunks::<8>().0;
    let permissions = |wanted: u16| {
        let entry = entries.iter().find(|entry| entry[..2] == wanted.to_le_bytes())?;
        Some(u32::from(u16::from_le_bytes([entry[2], entry[3]])))
    };
    let group = permissions(ACL_OWNING_GROUP)? & permissions(ACL_MASK).unwrap_or(0o7);
    Some(Mode::from_raw_mode((group & 0o7) << 3))
}

/// The list that says what the permissions of `mode` say. To set it is to set those and to take
/// any other list away, in one.
pub(crate) fn list_of(mode: Mode) -> Vec<u8> {
    let mut list = ACL_VERSION.to_le_bytes().to_vec();
    for (tag, shift) in [(ACL_OWNER, 6), (ACL_OWNING_GROUP, 3), (ACL_OTHERS, 0)] {
        let permissions = (mode.as_raw_mode() >> shift) & 0o7;
        list.extend(tag.to_le_bytes());
        list.extend(&permissions.to_le_bytes()[..2]);
        // Nobody in particular.
        list.extend(u32::MAX.to_le_bytes());
    }
    list
}

impl Handle<'_> {
    pub(crate) fn proc_path(fd: BorrowedFd<'_>) -> String {
        format!("/proc/self/fd/{}", fd.as_raw_fd())
    }

    /// The names of all attributes.
    pub(crate) fn list(self) -> io::Result<Vec<CString>> {
        let bytes = read_grown(|buffer| match self {
            Handle::Open(fd) => flistxattr(fd, buffer),
            Handle::Path(fd) => listxattr(Handle::proc_path(fd), buffer),
        })?;
        let names = bytes.split(|&byte| byte == 0).filter(|name| !name.is_empty());
        Ok(names.filter_map(|name| CString::new(name).ok()).collect())
    }

    pub(crate) fn get(self, name: &CStr) -> io::Result<Vec<u8>> {
        read_grown(|buffer| match self {
            Handle::Open(fd) => fgetxattr(fd, name, buffer),
            Handle::Path(fd) => getxattr(Handle::proc_path(fd), name, buffer),
        })
    }

    pub(crate) fn set(self, name: &CStr, value: &[u8]) -> io::Result<()> {
        match self {
            Handle::Open(fd) => fsetxattr(fd, name, value, XattrFlags::empty()),
            Handle::Path(fd) => setxattr(Handle::proc_path(fd), name, value, XattrFlags::empty()),
        }
    }

    /// Removes `name`; that it is not there, or cannot be, is as good.
    pub(crate) fn remove(self, name: &CStr) -> io::Result<()> {
        let removed = match self {
            Handle::Open(fd) => fremovexattr(fd, name),
            Handle::Path(fd) => removexattr(Handle::proc_path(fd), name),
        };
        match removed {
            Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(()),
            result => result,
        }
    }
}

/// Calls `read` with a buffer that grows until all fits: the length may change between asking for
/// it and reading.
fn read_grown(mut read: impl FnMut(&mut [u8]) -> io::Result<usize>) -> io::Result<Vec<u8>> {
    let mut stack = [0; 512];
    match read(&mut stack) {
        Ok(len) => return Ok(stack[..len].to_vec()),
        Err(Errno::RANGE) => {}
        Err(errno) => return Err(errno),
    }
    // The kernel's limits on a list and on a value are 64 KiB.
    let mut buffer = vec![0; 64 << 10];
    let len = read(&mut buffer)?;
    buffer.truncate(len);
    Ok(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_has_what_its_entry_and_the_mask_have_in_common() {
        let list = |entries: &[(u16, u16)]| {
            let entry = |&(tag, permissions): &(u16, u16)| {
                [tag.to_le_bytes(), permissions.to_le_bytes(), [0xff; 2], [0xff; 2]].concat()
            };
            let entries: Vec<u8> = entries.iter().flat_map(entry).collect();
            [&ACL_VERSION.to_le_bytes()[..], &entries].concat()
        };
        for (entries, group) in [
            (&[(1, 6), (2, 6), (4, 0), (16, 6), (32, 0)][..], Some(0o000)),
            (&[(1, 6), (2, 6), (4, 5), (16, 6), (32, 7)], Some(0o040)),
            (&[(1, 7), (4, 5), (32, 4)], Some(0o050)),
            (&[(1, 7), (32, 4)], None),
            (&[], None),
        ] {
            let found = owning_group(&list(entries));
            assert_eq!(found, group.map(Mode::from_raw_mode), "{entries:?}");
        }
        assert_eq!(owning_group(b"\x01\0\0\0"), None);
        let mode = Mode::from_raw_mode(0o754);
        assert_eq!(list_of(mode), list(&[(1, 7), (4, 5), (32, 4)]));
    }
}
