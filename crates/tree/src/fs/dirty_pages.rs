//! What the kernel has taken from programs and not yet written to a medium.

use std::fs::read_to_string;

use engines::fs_types::{CIFS, NFS, OVERLAY, SMB2, Storage, storage_of};

use super::{TMPFS, VFAT};

const EXFAT: u64 = 0x2011_bab0;
const NTFS3: u64 = 0x7366_746e;
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
