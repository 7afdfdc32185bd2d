//! The file systems of the matrix. `systems.sh` has the commands that make and mount them.

pub(crate) const SCRIPT: &str = include_str!("systems.sh");

#[derive(Clone, Copy, Debug)]
pub(crate) struct System {
    pub(crate) name: &'static str,
    pub(crate) role: Role,
}

/// What a file system is tried as.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    /// Source and destination.
    Local,
    /// The same, and the server's directory is looked at, too.
    Served,
    /// Mounted twice: the source is read through one mount, and the copy is looked at through both and on the server.
    Twice,
    /// A source only: it is made from a tree, or by the kernel.
    Source,
    /// Source and destination of device faults below it.
    Faulty,
}

impl Role {
    pub(crate) fn has_server(self) -> bool {
        matches!(self, Role::Served | Role::Twice)
    }
}

/// The rows of the table, in its order.
const NAMES: &[(Role, &str)] = &[
    (Role::Local, "vfat exfat ntfs ntfs-3g"),
    (Role::Served, "nfs-4.2 nfs-4.1 nfs-4.0 nfs-3 nfs-4.2-squash smb-samba smb-ksmbd"),
    (Role::Twice, "nfs-4.2-two"),
    (Role::Local, "ext4 ext4-casefold ext4-128 ext3-128 ext4-verity fscrypt"),
    (Role::Local, "xfs btrfs f2fs ext2 jfs udf overlayfs"),
    (Role::Local, "sshfs-fuse encfs-fuse gocryptfs-fuse"),
    (Role::Local, "bindfs-fuse mergerfs-fuse unionfs-fuse overlayfs-fuse tmpfs"),
    (Role::Source, "iso9660 squashfs fscrypt-locked proc sysfs cgroup"),
    (Role::Faulty, "faults-ext4 faults-xfs faults-btrfs faults-f2fs faults-vfat"),
];

pub(crate) fn systems() -> impl Iterator<Item = System> {
    let row = |&(role, names): &(Role, &'static str)| {
        names.split(' ').map(move |name| System { name, role })
    };
    NAMES.iter().flat_map(row)
}
