//! The flags of copyfile.h, and what they mean for a copy on Linux.

use std::path::Path;

use haulage::options::{Existing, Follow, Keep, Make, ModeRule, Options, Preserve, Reflink};

use super::ends::Ends;

const ACL: u32 = 1 << 0;
const STAT: u32 = 1 << 1;
const XATTR: u32 = 1 << 2;
const DATA: u32 = 1 << 3;
pub(super) const RECURSIVE: u32 = 1 << 15;
pub(super) const CHECK: u32 = 1 << 16;
pub(super) const EXCL: u32 = 1 << 17;
pub(super) const NOFOLLOW_SRC: u32 = 1 << 18;
pub(super) const NOFOLLOW_DST: u32 = 1 << 19;
pub(super) const MOVE: u32 = 1 << 20;
const UNLINK: u32 = 1 << 21;
pub(super) const CLONE: u32 = 1 << 24;
pub(super) const CLONE_FORCE: u32 = 1 << 25;
const DATA_SPARSE: u32 = 1 << 27;

/// The flags that have a meaning here. The others are those about AppleDouble files, tracked files and
/// copies in place, which Linux does not have.
const KNOWN: u32 = OF_NAMES | ACL | STAT | XATTR | DATA | CHECK | CLONE | CLONE_FORCE | DATA_SPARSE;

/// What both flags for clones imply.
const OF_CLONE: u32 = EXCL | ACL | STAT | XATTR | DATA | NOFOLLOW_SRC;

/// What is about names.
const OF_NAMES: u32 = RECURSIVE | EXCL | NOFOLLOW_SRC | NOFOLLOW_DST | MOVE | UNLINK;

/// The flags of one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flags(u32);

impl Flags {
    /// ENOTSUP for a flag without a meaning on Linux.
    pub(super) fn of(flags: u32) -> Result<Flags, Ends> {
        if flags & !KNOWN != 0 {
            return Err(Ends::Errno(libc::ENOTSUP));
        }
        let clones = flags & (CLONE | CLONE_FORCE) != 0;
        Ok(Flags(if clones { flags | OF_CLONE } else { flags }))
    }

    /// Those that have an effect between descriptors, which have no names.
    pub(super) fn of_open(self) -> Flags {
        Flags(self.0 & !OF_NAMES)
    }

    /// Whether one of the flags `any` is set.
    pub(super) fn has(self, any: u32) -> bool {
        self.0 & any != 0
    }

    /// The options of the copy.
    pub(super) fn options(self) -> Options {
        let make = match self.has(DATA | DATA_SPARSE) {
            true => Make::Copy,
            false => Make::AttributesOnly,
        };
        let preserve = Preserve {
            // An access control list contains the permission bits.
            mode: if self.has(ACL | STAT) { ModeRule::Preserve } else { ModeRule::Umask },
            ownership: self.has(STAT),
            timestamps: self.has(STAT),
            xattr: if self.has(XATTR) { Keep::IfPossible } else { Keep::No },
            quiet: true,
            ..Preserve::default()
        };
        Options {
            make,
            preserve,
            follow: match (self.has(NOFOLLOW_SRC), self.has(RECURSIVE)) {
                (true, _) => Follow::Never,
                (false, true) => Follow::CommandLine,
                (false, false) => Follow::Always,
            },
            existing: if self.has(EXCL) { Existing::Fail } else { Existing::Replace },
            // A file that is removed first is not followed, if it is a symbolic link.
            remove_destination: self.has(UNLINK | NOFOLLOW_DST),
            reflink: if self.has(CLONE_FORCE) { Reflink::Always } else { Reflink::Auto },
            ..Options::default()
        }
    }

    /// For COPYFILE_CHECK: those of the flags for which `from` has something to copy. That every file has a
    /// mode and times is not told, as in the example of the manual page.
    pub(super) fn present(self, from: &Path) -> Result<u32, Ends> {
        let mut names = vec![0_u8; 64 << 10];
        let listed = match self.has(NOFOLLOW_SRC) {
            true => rustix::fs::llistxattr(from, &mut names[..]),
            false => rustix::fs::listxattr(from, &mut names[..]),
        };
        let bytes = match listed {
            Ok(bytes) => bytes,
            // The file system has none.
            Err(rustix::io::Errno::OPNOTSUPP) => 0,
            Err(errno) => return Err(Ends::Errno(errno.raw_os_error())),
        };
        let mut present = DATA;
        for name in names[..bytes].split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
            present |= if name.starts_with(b"system.posix_acl_") { ACL } else { XATTR };
        }
        Ok(self.0 & present)
    }
}
