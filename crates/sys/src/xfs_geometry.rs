//! The ioctl XFS_IOC_FSGEOMETRY_V1.

use std::os::fd::BorrowedFd;

use rustix::ioctl::{Getter, ioctl, opcode};

/// What is needed to find the allocation group of an inode number on an XFS file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XfsGeometry {
    /// The number of low bits of an inode number that follow its allocation group.
    pub group_shift: u32,
    /// The number of allocation groups.
    pub groups: u32,
}

/// `struct xfs_fsop_geom_v1` of xfs/xfs_fs.h.
#[repr(C)]
#[derive(Clone, Copy)]
struct FsopGeomV1 {
    block_bytes: u32,
    rtextent_blocks: u32,
    group_blocks: u32,
    groups: u32,
    log_blocks: u32,
    sector_bytes: u32,
    inode_bytes: u32,
    inodes_max_percent: u32,
    data_blocks: u64,
    rt_blocks: u64,
    rt_extents: u64,
    log_start: u64,
    uuid: [u8; 16],
    stripe_unit: u32,
    stripe_width: u32,
    version: i32,
    flags: u32,
    log_sector_bytes: u32,
    rt_sector_bytes: u32,
    directory_block_bytes: u32,
}

/// XFS_IOC_FSGEOMETRY_V1 of xfs/xfs_fs.h: `_IOR('X', 100, struct xfs_fsop_geom_v1)`.
const XFS_IOC_FSGEOMETRY_V1: rustix::ioctl::Opcode = opcode::read::<FsopGeomV1>(b'X', 100);

/// `int ioctl(int fd, XFS_IOC_FSGEOMETRY_V1, struct xfs_fsop_geom_v1 *arg)`
///
/// The geometry of the XFS file system of `fd`; see ioctl_xfs_fsgeometry(2). An inode number
/// consists of its allocation group, the block in that group and the index in that block, from the
/// high bits to the low bits.
///
/// # Errors
/// ENOTTY on any other file system, and EINVAL if the kernel's values are inconsistent.
pub fn xfs_geometry(fd: BorrowedFd<'_>) -> rustix::io::Result<XfsGeometry> {
    // SAFETY: XFS_IOC_FSGEOMETRY_V1 writes one `struct xfs_fsop_geom_v1`, which has the layout of
    // the C header, and reads no memory. Every bit pattern is valid.
    let getter = unsafe { Getter::<XFS_IOC_FSGEOMETRY_V1, FsopGeomV1>::new() };
    // SAFETY: the opcode matches its argument, and `fd` is open while it is borrowed.
    let geometry = unsafe { ioctl(fd, getter) }?;
    shape(&geometry).ok_or(rustix::io::Errno::INVAL)
}

fn shape(geometry: &FsopGeomV1) -> Option<XfsGeometry> {
    let &FsopGeomV1 { block_bytes, group_blocks, groups, inode_bytes, .. } = geometry;
    let bits = |number: u32| number.checked_next_power_of_two().map(u32::trailing_zeros);
    let in_block = bits(block_bytes.checked_div(inode_bytes).filter(|&inodes| inodes > 0)?)?;
    let group_shift = bits(group_blocks)? + in_block;
    (groups > 0).then_some(XfsGeometry { group_shift, groups })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn directories_of_xfs_are_in_all_of_its_groups_and_in_no_other() {
        testfs::each_fs(|kind, dir| {
            let open = std::fs::File::open(dir).expect("opened");
            let found = xfs_geometry(open.as_fd());
            if kind != testfs::FsKind::Xfs {
                return assert!(found.is_err(), "{kind} is no xfs: {found:?}");
            }
            let geometry = found.expect("its geometry");
            // Each new directory is in another group than the one before.
            let groups = (0..4 * geometry.groups).map(|number| {
                let path = dir.join(number.to_string());
                std::fs::create_dir(&path).expect("created");
                path.metadata().expect("looked at").ino() >> geometry.group_shift
            });
            let groups = groups.collect::<std::collections::BTreeSet<_>>();
            let all = (0..u64::from(geometry.groups)).collect();
            assert_eq!(groups, all, "{geometry:?}");
        });
    }

    #[test]
    fn inconsistent_values_are_no_geometry() {
        let sound = FsopGeomV1 {
            block_bytes: 4096,
            group_blocks: 300_000,
            groups: 4,
            inode_bytes: 512,
            // SAFETY: every bit pattern is valid.
            ..unsafe { std::mem::zeroed() }
        };
        let expected = XfsGeometry { group_shift: 19 + 3, groups: 4 };
        assert_eq!(shape(&sound), Some(expected));
        for broken in [
            FsopGeomV1 { inode_bytes: 0, ..sound },
            FsopGeomV1 { inode_bytes: 8192, ..sound },
            FsopGeomV1 { group_blocks: u32::MAX, ..sound },
            FsopGeomV1 { groups: 0, ..sound },
        ] {
            assert_eq!(shape(&broken), None);
        }
    }
}
