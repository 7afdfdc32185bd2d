//! The block device under a file system, from sysfs.

use std::path::{Path, PathBuf};

use rustix::fs::{FileType, major, minor, stat};

/// Sectors of /sys/block statistics have this length whatever the device's own is.
const SECTOR_BYTES: u64 = 512;

/// A disk or a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    /// The directory of the device below /sys/dev/block.
    sys: PathBuf,
}

impl BlockDevice {
    /// The device that is called so; `None` where no device is.
    pub(super) fn named(device: &str) -> Option<BlockDevice> {
        let found = stat(device).ok()?;
        if FileType::from_raw_mode(found.st_mode) != FileType::BlockDevice {
            return None;
        }
        let number = format!("{}:{}", major(found.st_rdev), minor(found.st_rdev));
        let sys = Path::new("/sys/dev/block").join(number);
        sys.exists().then_some(BlockDevice { sys })
    }

    /// Bytes that were read from it since it was attached, by any program: the third number of its
    /// `stat`, the kernel's Documentation/block/stat.rst.
    pub fn read_bytes(&self) -> Option<u64> {
        let text = self.read("stat")?;
        let sectors: u64 = text.split_ascii_whitespace().nth(2)?.parse().ok()?;
        Some(sectors * SECTOR_BYTES)
    }

    /// The text of a file of its directory.
    pub(super) fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.sys.join(name)).ok()
    }
}
