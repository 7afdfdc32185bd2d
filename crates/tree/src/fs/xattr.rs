//! Extended attributes, and the access control lists that are stored in them.

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{
    Mode, XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr, getxattr, lgetxattr,
    listxattr, llistxattr, lremovexattr, lsetxattr, removexattr, setxattr,
};
use rustix::io::{self, Errno};
use sys::xattr_names_len;

/// A file whose attributes are read or set.
#[derive(Clone, Copy)]
pub(crate) enum Handle<'fd> {
    /// Open for reading or writing.
    Open(BorrowedFd<'fd>),
    /// Open with O_PATH, as symbolic links, fifos and devices are: opening them otherwise has
    /// effects or is impossible. Calls use `/proc/self/fd/N`, which leads to the open inode and not
    /// through its name.
    Path(BorrowedFd<'fd>),
    /// A symbolic link, by its name in a private directory. The calls do not follow links.
    Link(BorrowedFd<'fd>, &'fd CStr),
}

/// The access control list of a file.
pub(crate) const ACL_ACCESS: &CStr = c"system.posix_acl_access";
/// The default access control list of a directory, which new files in it get.
pub(crate) const ACL_DEFAULT: &CStr = c"system.posix_acl_default";
/// The SELinux label.
pub(crate) const CONTEXT: &CStr = c"security.selinux";

/// The kind of an extended attribute, which decides about the option that copies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Access control lists.
    Acl,
    /// The security context.
    Context,
    /// Attributes of users and administrators.
    Plain,
    /// Meaningful only to the file system or kernel that created it.
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

impl Handle<'_> {
    pub(crate) fn proc_path(fd: BorrowedFd<'_>) -> String {
        format!("/proc/self/fd/{}", fd.as_raw_fd())
    }

    /// The names of all attributes.
    pub(crate) fn list(self) -> io::Result<Vec<CString>> {
        let bytes = read_grown(|buffer| match self {
            Handle::Open(fd) => flistxattr(fd, buffer),
            Handle::Path(fd) => listxattr(Handle::proc_path(fd), buffer),
            Handle::Link(dir, name) => llistxattr(path_in(dir, name), buffer),
        })?;
        let names = bytes.split(|&byte| byte == 0).filter(|name| !name.is_empty());
        Ok(names.filter_map(|name| CString::new(name).ok()).collect())
    }

    pub(crate) fn get(self, name: &CStr) -> io::Result<Vec<u8>> {
        read_grown(|buffer| match self {
            Handle::Open(fd) => fgetxattr(fd, name, buffer),
            Handle::Path(fd) => getxattr(Handle::proc_path(fd), name, buffer),
            Handle::Link(dir, file) => lgetxattr(path_in(dir, file), name, buffer),
        })
    }

    pub(crate) fn set(self, name: &CStr, value: &[u8]) -> io::Result<()> {
        let flags = XattrFlags::empty();
        match self {
            Handle::Open(fd) => fsetxattr(fd, name, value, flags),
            Handle::Path(fd) => setxattr(Handle::proc_path(fd), name, value, flags),
            Handle::Link(dir, file) => lsetxattr(path_in(dir, file), name, value, flags),
        }
    }

    /// Removes `name`. No error if it does not exist or is not supported.
    pub(crate) fn remove(self, name: &CStr) -> io::Result<()> {
        let removed = match self {
            Handle::Open(fd) => fremovexattr(fd, name),
            Handle::Path(fd) => removexattr(Handle::proc_path(fd), name),
            Handle::Link(dir, file) => lremovexattr(path_in(dir, file), name),
        };
        match removed {
            Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(()),
            result => result,
        }
    }
}

/// The permission bits of a file with the access control list `list`, see acl(5). `list` has the
/// kernel's form: a version, then tag, permissions and id of each entry.
pub(crate) fn acl_mode(list: &[u8]) -> Mode {
    let entries = list.get(4..).unwrap_or_default().chunks_exact(8);
    let of = |wanted: u16| {
        let mut found = entries.clone().filter(|e| u16::from_le_bytes([e[0], e[1]]) == wanted);
        found.next().map(|e| u32::from(e[2] & 7))
    };
    let [owner, group, mask, other] = [0x01, 0x04, 0x10, 0x20].map(of);
    let bits = [owner, mask.or(group), other].map(Option::unwrap_or_default);
    Mode::from_raw_mode(bits[0] << 6 | bits[1] << 3 | bits[2])
}

/// Whether the access control list of NFSv4 in the attribute `name` says no more than a mode can: its entries allow
/// or deny the owner, the group and everyone, no new file inherits them, and only the owner changes the list. A server
/// has such a list for each file (RFC 8881, sections 6.2.1 and 6.3.2).
pub(crate) fn is_mode_as_nfs4_acl(name: &CStr, list: &[u8]) -> bool {
    /// Add data to a file, and append data; also files and directories to a directory.
    const WRITE: u32 = 0x2 | 0x4;
    /// Change the list, and the owner.
    const CONTROL: u32 = 0x4_0000 | 0x8_0000;
    const IS_GROUP: u32 = 0x40;
    const ALLOW: u32 = 0;
    const DENY: u32 = 1;
    let mut rest = list;
    let word = |rest: &mut &[u8]| {
        let (word, after) = rest.split_first_chunk()?;
        *rest = after;
        Some(u32::from_be_bytes(*word))
    };
    let mut is_mode = || {
        if name != c"system.nfs4_acl" {
            // nfs4_dacl and nfs4_sacl begin with flags.
            word(&mut rest)?;
        }
        for _ in 0..word(&mut rest)? {
            let (kind, flags, mask) = (word(&mut rest)?, word(&mut rest)?, word(&mut rest)?);
            let len = usize::try_from(word(&mut rest)?).ok()?;
            let who = rest.get(..len)?;
            rest = rest.get(len.next_multiple_of(4)..)?;
            let is_owner = who == b"OWNER@";
            let is_class = is_owner || who == b"GROUP@" || who == b"EVERYONE@";
            let is_control = kind == ALLOW && !is_owner && mask & CONTROL != 0;
            let is_whole = mask & WRITE == 0 || mask & WRITE == WRITE;
            if kind > DENY || flags & !IS_GROUP != 0 || !is_class || is_control || !is_whole {
                return None;
            }
        }
        Some(())
    };
    is_mode().is_some()
}

/// False if the entry `name` of `dir`, itself, is known to have no attributes.
pub(crate) fn may_have_any(dir: BorrowedFd<'_>, name: &CStr) -> bool {
    /// The kernel has no listxattrat(2).
    static CANNOT: AtomicBool = AtomicBool::new(false);
    if !CANNOT.load(Ordering::Relaxed) {
        match xattr_names_len(dir, name) {
            Err(Errno::NOSYS | Errno::PERM) => CANNOT.store(true, Ordering::Relaxed),
            listed => return listed != Ok(0),
        }
    }
    llistxattr(path_in(dir, name), &mut [0; 0]) != Ok(0)
}

/// `name` in `dir` for calls without a directory descriptor. `dir` must not be AT_FDCWD.
fn path_in(dir: BorrowedFd<'_>, name: &CStr) -> Vec<u8> {
    [Handle::proc_path(dir).as_bytes(), b"/", name.to_bytes()].concat()
}

/// Calls `read` with a small buffer, then with one of the kernel's limit.
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
    fn a_list_of_nfs4_is_a_mode_if_it_names_classes_only() {
        let list = |entries: &[(u32, u32, u32, &str)]| {
            let mut list = u32::try_from(entries.len()).unwrap().to_be_bytes().to_vec();
            for (kind, flags, mask, who) in entries {
                let len = u32::try_from(who.len()).unwrap();
                list.extend([*kind, *flags, *mask, len].map(u32::to_be_bytes).concat());
                list.extend(who.bytes());
                list.resize(list.len().next_multiple_of(4), 0);
            }
            list
        };
        // As Linux 7.2 serves a file of mode 0604.
        let mode = [
            (0, 0, 0x16_0187, "OWNER@"),
            (1, 0x40, 0x2_0087, "GROUP@"),
            (0, 0x40, 0x12_0080, "GROUP@"),
            (0, 0, 0x12_0081, "EVERYONE@"),
        ];
        let acl = c"system.nfs4_acl";
        assert!(is_mode_as_nfs4_acl(acl, &list(&mode)));
        assert!(is_mode_as_nfs4_acl(c"system.nfs4_dacl", &[&[0; 4][..], &list(&mode)].concat()));
        assert!(is_mode_as_nfs4_acl(acl, &list(&[])));
        for other in [
            (0, 0, 0x1, "user@domain"),
            (0, 0, 0x1, "OWNER@x"),
            (0, 0x1, 0x1, "OWNER@"),
            (2, 0, 0x1, "EVERYONE@"),
            (0, 0, 0x4, "EVERYONE@"),
            (0, 0x40, 0x4_0001, "GROUP@"),
        ] {
            assert!(!is_mode_as_nfs4_acl(acl, &list(&[mode[0], other])), "{other:?}");
        }
        assert!(!is_mode_as_nfs4_acl(acl, &list(&mode)[..30]), "it is not whole");
    }

    #[test]
    fn an_acl_grants_what_its_mask_allows() {
        let list = |entries: &[(u8, u8)]| {
            let entries = entries.iter().flat_map(|&(tag, bits)| [tag, 0, bits, 0, 9, 9, 9, 9]);
            [2, 0, 0, 0].into_iter().chain(entries).collect::<Vec<u8>>()
        };
        for (entries, mode) in [
            (&[(0x01, 7), (0x04, 5), (0x20, 0)][..], 0o750),
            (&[(0x01, 7), (0x02, 7), (0x04, 5), (0x10, 6), (0x20, 1)], 0o761),
            (&[(0x01, 6), (0x04, 7), (0x08, 7), (0x10, 0), (0x20, 4)], 0o604),
            (&[], 0),
        ] {
            assert_eq!(acl_mode(&list(entries)).as_raw_mode(), mode, "{entries:?}");
        }
    }
}
