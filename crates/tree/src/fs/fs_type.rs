//! What is known of a file system by its type: [`engines::fs_types`].

use std::fs::read_to_string;
use std::os::fd::BorrowedFd;

use engines::fs_types::{Storage, fs_type_of, storage_of};
use rustix::fs::Stat;

use super::stat::FileId;
use super::{TMPFS, VFAT};

/// Whether the file system of `fd` is reliable, see [`Storage::Reliable`].
pub(crate) fn is_on_reliable_fs(fd: BorrowedFd<'_>) -> bool {
    fs_type_of(fd).is_some_and(is_reliable)
}

/// Whether the file system of this type is reliable.
pub(crate) fn is_reliable(fs_type: u64) -> bool {
    storage_of(fs_type) == Some(Storage::Reliable)
}

/// Whether the file system of `fd` is one that only one host mounts. `false` where statfs(2) fails.
pub(crate) fn is_on_fs_of_one_host(fd: BorrowedFd<'_>) -> bool {
    let storage = fs_type_of(fd).and_then(storage_of);
    matches!(storage, Some(Storage::Reliable | Storage::Local))
}

/// Whether a server or another process keeps the data of this type of file system.
pub(crate) fn is_served(fs_type: u64) -> bool {
    storage_of(fs_type) == Some(Storage::Served)
}

/// Whether the files of this type of file system are variables of the kernel.
pub(crate) fn is_pseudo(fs_type: u64) -> bool {
    storage_of(fs_type) == Some(Storage::Pseudo)
}

/// An open file and its file system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoint<'f> {
    pub(crate) fd: BorrowedFd<'f>,
    pub(crate) dev: u64,
    /// The number that statfs(2) gives its file system.
    pub(crate) fs_type: Option<u64>,
}

/// Source and destination of a copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoints<'f> {
    pub(crate) src: Endpoint<'f>,
    pub(crate) dst: Endpoint<'f>,
}

/// The types of the file systems that a worker has used, by device number: a handful at most.
#[derive(Debug, Default)]
pub(crate) struct FsTypes(Vec<(u64, Option<u64>)>);

impl FsTypes {
    /// The type of the file system of `fd`, which is on the device `dev`. `None` where statfs(2)
    /// fails.
    pub(crate) fn of(&mut self, fd: BorrowedFd<'_>, dev: u64) -> Option<u64> {
        self.known(dev).unwrap_or_else(|| {
            let fs_type = fs_type_of(fd);
            self.0.push((dev, fs_type));
            fs_type
        })
    }

    /// Whether the file system of `fd`, which is on the device `dev`, is reliable.
    pub(crate) fn is_reliable(&mut self, fd: BorrowedFd<'_>, dev: u64) -> bool {
        self.of(fd, dev).is_some_and(is_reliable)
    }

    /// The type of the file system of the file that `stat` describes, if it was asked for before. No call.
    pub(crate) fn known_of(&self, stat: &Stat) -> Option<u64> {
        self.known(FileId::of(stat).dev).flatten()
    }

    fn known(&self, dev: u64) -> Option<Option<u64>> {
        self.0.iter().find(|(known, _)| *known == dev).map(|(_, fs_type)| *fs_type)
    }
}

// What the kernel has taken from programs and not yet written to a medium.

const OVERLAY: u64 = 0x794c_7630;
const EXFAT: u64 = 0x2011_bab0;
const NTFS3: u64 = 0x7366_746e;
const NFS: u64 = 0x6969;
const CIFS: u64 = 0xff53_4d42;
const SMB2: u64 = 0xfe53_4d42;
const FUSE: u64 = 0x6573_5546;

/// Whether the data of files of this type of file system is in pages that [`dirty_bytes`] counts
/// until it is on the medium. tmpfs has none, ZFS has a cache of its own, and FUSE passes data on to a
/// process at once. If that process is the driver of a block device (ntfs-3g), its pages count.
pub(crate) fn has_dirty_pages(fs_type: u64, dev: u64) -> bool {
    match fs_type {
        TMPFS => false,
        OVERLAY | VFAT | EXFAT | NTFS3 | NFS | CIFS | SMB2 => true,
        FUSE => rustix::fs::major(dev) != 0,
        other => storage_of(other) == Some(Storage::Reliable),
    }
}

/// Bytes that are dirty or under writeback in the whole system. `None` if /proc does not tell.
pub(crate) fn dirty_bytes() -> Option<u64> {
    dirty_pages(&read_to_string("/proc/vmstat").ok()?)
        .map(|pages| pages * rustix::param::page_size() as u64)
}

/// Bytes that were written to the device of a file system with this device number, by all programs. `None` if
/// it is no block device.
pub(crate) fn device_bytes(dev: u64) -> Option<u64> {
    let (major, minor) = (rustix::fs::major(dev), rustix::fs::minor(dev));
    bytes_written(&read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).ok()?)
}

/// The seventh number of a block device's statistics is in units of 512 bytes.
fn bytes_written(stat: &str) -> Option<u64> {
    stat.split_ascii_whitespace().nth(6)?.parse::<u64>().ok().map(|sectors| sectors * 512)
}

/// The sum of two counts of /proc/vmstat.
fn dirty_pages(vmstat: &str) -> Option<u64> {
    let count = |name| {
        let mut lines = vmstat.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(found, _)| *found == name)?.1.parse::<u64>().ok()
    };
    Some(count("nr_dirty")? + count("nr_writeback")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_dirty_until_they_are_written() {
        let vmstat = "nr_free_pages 9\nnr_dirty 5\nnr_writeback 7\nnr_dirty_threshold 11\n";
        assert_eq!(dirty_pages(vmstat), Some(12));
        assert_eq!(dirty_pages("nr_dirty 5\n"), None);
        assert_eq!(dirty_pages("nr_dirty -5\nnr_writeback 7\n"), None);
    }

    #[test]
    fn a_device_counts_sectors() {
        let stat =
            "  216   1  5066  70  83  86  68504  27975  0  6836  28061  2  0  819202  0  6  14\n";
        assert_eq!(bytes_written(stat), Some(68504 * 512));
        assert_eq!(bytes_written("1 2 3\n"), None);
    }

    #[test]
    fn the_driver_of_a_block_device_dirties_its_pages() {
        let usb_stick = rustix::fs::makedev(8, 17);
        let without_device = rustix::fs::makedev(0, 40);
        assert!(has_dirty_pages(FUSE, usb_stick));
        assert!(!has_dirty_pages(FUSE, without_device));
        assert!(!has_dirty_pages(TMPFS, without_device));
        assert!(has_dirty_pages(VFAT, usb_stick));
    }
}
