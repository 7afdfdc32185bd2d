//! File systems whose data a server or another process keeps.

use std::os::fd::BorrowedFd;

/// By the number that statfs(2) gives them: linux/magic.h, and the modules' own sources.
const SERVED: &[u64] = &[
    0x6969,      // nfs
    0x6573_5546, // fuse, virtiofs too
    0xff53_4d42, // cifs
    0xfe53_4d42, // smb2
    0x0102_1997, // 9p
    0x00c3_6400, // ceph
    0x5346_414f, // afs
    0x0bd0_0bd0, // lustre
    0x4750_4653, // gpfs
    0x786f_4256, // vboxsf
];

/// Whether a server or another process keeps the data of `fd`: what it writes, and where, cannot be
/// seen from here.
pub(crate) fn is_served(fd: BorrowedFd<'_>) -> bool {
    #[expect(clippy::cast_sign_loss, reason = "the numbers are unsigned and 32 bits wide")]
    rustix::fs::fstatfs(fd).is_ok_and(|it| SERVED.contains(&(it.f_type as u64 & 0xffff_ffff)))
}
