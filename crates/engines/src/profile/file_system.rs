//! The file system on which a choice was measured.

use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::{FileType, fstat};
use serde::Deserialize;

use crate::fs_types::{fs_type_of, name_of, number_of};
use crate::mount::Mount;
use sys::fs_uuid;

/// The identity of a file system. A line of a profile without a key fits any value of that key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSystem {
    /// The type of the file system, by the number that statfs(2) returns: `ext4`; `fuse` for all
    /// FUSE file systems. `*` is any type.
    #[serde(rename = "type")]
    pub fs_type: Option<String>,
    /// The UUID of the file system. It stays the same if the device name or the mount point
    /// changes.
    pub uuid: Option<String>,
    /// The device or share of the file system.
    pub source: Option<String>,
    /// Where it is mounted.
    pub mount_point: Option<String>,
    /// The options of the mount, then a semicolon and those of the file system. They do not select
    /// a line. If they changed, the measurement is stale.
    pub options: Option<String>,
}

/// The file systems of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The file system of the source.
    pub src: FileSystem,
    /// The file system of the destination.
    pub dst: FileSystem,
    /// Both are the same file system.
    pub same: bool,
}

impl Pair {
    /// The file systems of two open files, identified as precisely as possible.
    #[must_use]
    pub fn of(src: BorrowedFd<'_>, dst: BorrowedFd<'_>) -> Pair {
        let dev = |fd| fstat(fd).ok().map(|stat| stat.st_dev);
        let same_dev = dev(src).is_some_and(|src| dev(dst) == Some(src));
        let (src, dst) = (FileSystem::of(src), FileSystem::of(dst));
        // Subvolumes of one file system have different device numbers.
        let same = same_dev || src.shares_device_with(&dst);
        Pair { src, dst, same }
    }

    /// Both as text: `ext4 /data to xfs /backup`, or `within ext4 /data`.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self.same {
            true => format!("within {}", self.dst.in_words()),
            false => format!("{} to {}", self.src.in_words(), self.dst.in_words()),
        }
    }
}

impl FileSystem {
    /// The file system of the open file `fd`. Takes about 50 µs, because it reads the list of
    /// mounts.
    #[must_use]
    pub fn of(fd: BorrowedFd<'_>) -> FileSystem {
        let fs_type = fs_type_of(fd).map(name_of);
        let keeps = fs_type.as_deref().is_some_and(|fs_type| KEEP_UUID.contains(&fs_type));
        // tune2fs(8) can clear the UUID. Then all its bytes are zero.
        let uuid = if keeps { fs_uuid(fd).ok().filter(|bytes| *bytes != [0; 16]) } else { None };
        let uuid = uuid.map(|bytes| uuid_text(&bytes));
        let Some(mount) = Mount::of(fd) else {
            return FileSystem { fs_type, uuid, ..Self::default() };
        };
        FileSystem {
            fs_type,
            uuid: uuid.or_else(|| uuid_of_device(&mount.source)),
            source: Some(mount.source),
            mount_point: Some(mount.mount_point),
            options: Some(mount.options),
        }
    }

    /// The number that statfs(2) returns for its type; `None` if that is any type.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        number_of(self.fs_type.as_deref()?)
    }

    /// Whether a measurement on this file system holds for `found`. If both have a UUID, only the
    /// UUIDs are compared, whatever the device names and mount points.
    #[must_use]
    pub fn fits(&self, found: &FileSystem) -> bool {
        let any_type = self.fs_type.as_deref().is_none_or(|fs_type| fs_type == "*");
        if !any_type && self.fs_type != found.fs_type {
            return false;
        }
        if self.uuid.is_some() && found.uuid.is_some() {
            return self.uuid == found.uuid;
        }
        let fits =
            |wanted: &Option<String>, there: &Option<String>| wanted.is_none() || wanted == there;
        fits(&self.source, &found.source) && fits(&self.mount_point, &found.mount_point)
    }

    /// Whether this is one file system, rather than all of a type or any.
    #[must_use]
    pub fn is_one(&self) -> bool {
        [&self.uuid, &self.source, &self.mount_point].into_iter().any(Option::is_some)
    }

    /// The file system as text: `ext4 /data`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let fs_type = self.fs_type.as_deref().unwrap_or("*");
        match self.mount_point.as_ref().or(self.source.as_ref()) {
            Some(place) => format!("{fs_type} {place}"),
            None => fs_type.to_owned(),
        }
    }

    /// The file system with its current options, if `mounts` lists it in the same place. Makes no
    /// call on the file system, because a network file system whose server is unreachable would not
    /// return.
    pub(super) fn as_listed(&self, mounts: &[Mount]) -> FileSystem {
        // A mount that covers another one comes later in the list.
        let mounted =
            mounts.iter().rfind(|mount| Some(&mount.mount_point) == self.mount_point.as_ref());
        let same = mounted.filter(|mount| Some(&mount.source) == self.source.as_ref());
        FileSystem { options: same.map(|mount| mount.options.clone()), ..self.clone() }
    }

    /// Whether both identify one file system, as far as they identify any.
    pub(super) fn is_same_place(&self, other: &FileSystem) -> bool {
        let FileSystem { fs_type, uuid, source, mount_point, options: _ } = self;
        if *fs_type != other.fs_type {
            return false;
        }
        if uuid.is_some() && other.uuid.is_some() {
            return *uuid == other.uuid;
        }
        (source, mount_point) == (&other.source, &other.mount_point)
    }

    fn shares_device_with(&self, other: &FileSystem) -> bool {
        let device = self.source.as_ref().filter(|source| source.starts_with('/'));
        self.fs_type == other.fs_type
            && (self.uuid.is_some() && self.uuid == other.uuid
                || device.is_some() && device == other.source.as_ref())
    }
}

/// Types whose UUID is stored on the medium. The kernel may also report a UUID for other types,
/// such as tmpfs, that lasts only while they are mounted.
const KEEP_UUID: &[&str] = &["ext4", "xfs", "btrfs", "f2fs", "bcachefs"];

/// The UUID in the format of /dev/disk/by-uuid.
fn uuid_text(bytes: &[u8; 16]) -> String {
    let digits = |range: Range<usize>| {
        bytes[range].iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    [0..4, 4..6, 6..8, 8..10, 10..16].map(digits).join("-")
}

/// The UUID of the file system on the device `source`, as udev found it. For kernels that do not
/// report it themselves.
fn uuid_of_device(source: &str) -> Option<String> {
    let device = |path: &Path| {
        let stat = rustix::fs::stat(path).ok()?;
        let is_block = FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice;
        is_block.then_some(stat.st_rdev)
    };
    let wanted = device(Path::new(source))?;
    std::fs::read_dir("/dev/disk/by-uuid").ok()?.flatten().find_map(|link| {
        (device(&link.path()) == Some(wanted)).then(|| link.file_name().into_string().ok())?
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    fn text(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn a_missing_key_fits_any_value() {
        let found = FileSystem {
            fs_type: text("ext4"),
            uuid: text("1234"),
            source: text("/dev/vdb"),
            mount_point: text("/data"),
            options: text("rw;rw"),
        };
        let by_uuid = FileSystem { uuid: text("1234"), ..FileSystem::default() };
        let nameless = FileSystem { uuid: None, ..found.clone() };
        for (what, line, expected) in [
            ("itself", found.clone(), true),
            ("nothing", FileSystem::default(), true),
            ("any type", FileSystem { fs_type: text("*"), ..FileSystem::default() }, true),
            ("type", FileSystem { fs_type: text("ext4"), ..FileSystem::default() }, true),
            ("another type", FileSystem { fs_type: text("xfs"), ..found.clone() }, false),
            ("UUID alone", by_uuid, true),
            ("another UUID", FileSystem { uuid: text("5"), ..found.clone() }, false),
            ("elsewhere", FileSystem { mount_point: text("/mnt"), ..found.clone() }, true),
            ("a new name", FileSystem { source: text("/dev/vdc"), ..found.clone() }, true),
            ("options", FileSystem { options: text("ro;ro"), ..found.clone() }, true),
            ("no UUID", nameless.clone(), true),
            (
                "no UUID, elsewhere",
                FileSystem { mount_point: text("/"), ..nameless.clone() },
                false,
            ),
            ("no UUID, another", FileSystem { source: text("/dev/sd"), ..nameless }, false),
        ] {
            assert_eq!(line.fits(&found), expected, "{what}");
        }
    }

    #[test]
    fn options_are_those_of_the_topmost_mount() {
        let mount = |source: &str, options: &str| Mount {
            id: 1,
            fs_type: String::from("ext4"),
            mount_point: String::from("/data"),
            options: options.to_owned(),
            source: source.to_owned(),
        };
        let known = FileSystem {
            source: text("/dev/vdb"),
            mount_point: text("/data"),
            options: text("rw;rw"),
            ..FileSystem::default()
        };
        let mounts = [mount("/dev/vdc", "1"), mount("/dev/vdb", "2"), mount("/dev/vdb", "3")];
        assert_eq!(known.as_listed(&mounts).options, text("3"));
        assert_eq!(known.as_listed(&mounts[..1]).options, None, "another one is there");
        assert_eq!(known.as_listed(&[]).options, None);
        assert_eq!(FileSystem::default().as_listed(&mounts).options, None);
    }

    #[test]
    fn a_uuid_has_the_usual_text() {
        let bytes =
            [0x0a, 0x34, 7, 0xde, 1, 0x4b, 0x45, 0x8b, 0xb5, 0xc1, 0x84, 0x8e, 9, 0xa3, 0x27, 0xff];
        assert_eq!(uuid_text(&bytes), "0a3407de-014b-458b-b5c1-848e09a327ff");
    }

    #[test]
    fn a_real_file_system_is_identified_and_fits_itself() {
        let proc = File::open("/proc/self/io").expect("proc is mounted");
        let found = FileSystem::of(proc.as_fd());
        assert_eq!(found.fs_type.as_deref(), Some("0x9fa0"));
        assert!(found.mount_point.is_some() && found.options.is_some(), "{found:?}");
        assert!(found.fits(&found));
        let by_type = FileSystem { fs_type: found.fs_type.clone(), ..FileSystem::default() };
        let pair = Pair { src: by_type, dst: FileSystem::default(), same: false };
        assert_eq!(pair.in_words(), "0x9fa0 to *");
        let numbers = ["ext4", "0x9fa0", "*", "0xfrob"]
            .map(|name| FileSystem { fs_type: text(name), ..FileSystem::default() }.number());
        assert_eq!(numbers, [Some(0xef53), Some(0x9fa0), None, None]);
        let pair = Pair::of(proc.as_fd(), proc.as_fd());
        assert!(pair.same);
        let file = tempfile::tempfile().expect("created");
        assert!(!Pair::of(proc.as_fd(), file.as_fd()).same);
    }
}
