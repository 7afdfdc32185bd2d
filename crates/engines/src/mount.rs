//! Mounts, as the kernel lists them for this process.

use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, StatxFlags, statx};

/// A row of the kernel's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The mount ID.
    pub id: u64,
    /// The type of its file system: `ext4`, `fuse.sshfs`.
    pub fs_type: String,
    /// Where it is mounted.
    pub mount_point: String,
    /// The options of the mount, then a semicolon and those of the file system.
    pub options: String,
    /// The device or share that is mounted, or a word that stands for none.
    pub source: String,
}

impl Mount {
    /// The mount through which `fd` was opened; `None` before Linux 5.8, and without /proc.
    #[must_use]
    pub fn of(fd: BorrowedFd<'_>) -> Option<Mount> {
        let id = mount_id(fd)?;
        table().lines().find_map(|line| Mount::parse(line).filter(|mount| mount.id == id))
    }

    /// The kernel's list, in its order: a mount comes after the mount that it covers. Empty without
    /// /proc.
    #[must_use]
    pub fn all() -> Vec<Mount> {
        table().lines().filter_map(Mount::parse).collect()
    }

    /// Parses a line of /proc/self/mountinfo: proc_pid_mountinfo(5).
    fn parse(line: &str) -> Option<Mount> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ');
        let id = mount.next()?.parse().ok()?;
        let (mount_point, options) = (mount.nth(3)?, mount.next()?);
        let mut file_system = file_system.split(' ');
        let (fs_type, source) = (file_system.next()?, file_system.next()?);
        let super_options = file_system.next()?;
        Some(Mount {
            id,
            fs_type: unescaped(fs_type),
            mount_point: unescaped(mount_point),
            options: format!("{options};{super_options}"),
            source: unescaped(source),
        })
    }
}

/// The kernel's list as text; empty without /proc.
fn table() -> String {
    let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    String::from_utf8_lossy(&table).into_owned()
}

/// The device number does not suffice: btrfs gives each subvolume one that is in no list.
fn mount_id(fd: BorrowedFd<'_>) -> Option<u64> {
    let wanted = StatxFlags::from_bits_retain(STATX_MNT_ID);
    let stat = statx(fd, c"", AtFlags::EMPTY_PATH, wanted).ok()?;
    (stat.stx_mask & STATX_MNT_ID != 0).then_some(stat.stx_mnt_id)
}

/// STATX_MNT_ID of linux/stat.h, Linux 5.8.
const STATX_MNT_ID: u32 = 0x1000;

/// Decodes the octal escapes of blanks, tabs, line ends, number signs and backslashes.
fn unescaped(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\043", "#"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |text, (escape, plain)| text.replace(escape, plain))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_line_of_the_list() {
        let line = "36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 - ext3 /dev/root rw,errors=x";
        let expected = Mount {
            id: 36,
            fs_type: String::from("ext3"),
            mount_point: String::from("/mnt 2"),
            options: String::from("rw,noatime;rw,errors=x"),
            source: String::from("/dev/root"),
        };
        assert_eq!(Mount::parse(line), Some(expected));
        for line in ["", "nonsense", "36 35 98:0 / /mnt rw - ext3", "x 35 98:0 / /mnt rw - a b c"] {
            assert_eq!(Mount::parse(line), None, "{line}");
        }
    }

    #[test]
    fn the_proc_file_system_is_found() {
        let file = File::open("/proc/self/io").expect("proc is mounted");
        let mount = Mount::of(file.as_fd());
        assert!(mount.as_ref().is_some_and(|mount| mount.fs_type == "proc"), "{mount:?}");
    }
}
