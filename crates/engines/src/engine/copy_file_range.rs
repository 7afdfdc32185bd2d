//! `copy_file_range`: copies between two files inside the kernel, or delegates to the file system.
//!
//! Calls `copy_file_range(2)`. Needs two regular files: on one file system before Linux 5.3, of one
//! file system type since 5.19. Bypasses user memory. Shares the page cache; shares the extents
//! where the file system clones (xfs, btrfs); transfers nothing over the network where a server
//! copies (NFS, SMB). Loses where the copy of one file could use two cores.

use std::io;

use rustix::io::Errno;

use crate::contract::{Copier, Engine, Facts, Kind};
use crate::fs_types::fs_type_of;
use crate::probe::probe_by_copy;
use crate::span::Pos;
use crate::support::until_done::{Errors, Step, until_done};
use crate::tuning::{Param, ParamKind};
use crate::{CALL_BYTES_MAX, Moved, Pair, Side, Span, Tuning};

/// The table row.
pub(crate) static COPY_FILE_RANGE: Engine = Engine {
    name: "copy_file_range",
    about: "the kernel copies from file to file, or has the file system clone or the server copy",
    shares: "page cache on both sides, or the extents themselves; no user memory",
    facts: Facts {
        // Overlay and network file systems return these although plain reads and writes work.
        first_call_excuses: &[Errno::ACCESS, Errno::NOENT, Errno::IO],
        ..Facts::REGULAR
    },
    params: &[
        Param {
            name: "chunk",
            kind: ParamKind::Bytes { default: CALL_BYTES_MAX, min: 1, max: CALL_BYTES_MAX },
            about: "bytes asked of one call",
        },
        Param {
            name: "unshared",
            kind: ParamKind::Flag,
            about: "refused where the file system might share extents",
        },
    ],
    lab_variants: &["copy_file_range", "copy_file_range@2"],
    kind: Kind::Copier { probe: |pair| probe_by_copy(&COPY_FILE_RANGE, pair), start },
};

/// File systems that cannot share extents, by the numbers of linux/magic.h: ext2 to ext4, tmpfs,
/// ramfs, f2fs, vfat and exfat.
const UNSHARED: &[u64] = &[0xef53, 0x0102_1994, 0x8584_58f6, 0xf2f5_2010, 0x4d44, 0x2011_bab0];

struct CopyFileRange {
    chunk_bytes: usize,
    /// The copy must not share extents.
    unshared: bool,
}

fn start(tuning: &Tuning) -> io::Result<Box<dyn Copier>> {
    let (chunk_bytes, unshared) = (tuning.bytes("chunk"), tuning.flag("unshared"));
    Ok(Box::new(CopyFileRange { chunk_bytes, unshared }))
}

impl Copier for CopyFileRange {
    fn copy(&mut self, pair: Pair<'_>, span: Span) -> Moved {
        if self.unshared && might_share(pair) {
            return Moved::refused(Errno::OPNOTSUPP);
        }
        until_done(pair, span, self.chunk_bytes, Errors::MayRefuse, |src, dst, want| {
            Step::of_one_call(call(pair, src, dst, want), Side::Pair)
        })
    }
}

/// Whether the two files might share extents after the call. Between file systems of two types the
/// kernel copies. A server's file system is unknown.
fn might_share(pair: Pair<'_>) -> bool {
    let (src, dst) = (fs_type_of(pair.src), fs_type_of(pair.dst));
    src == dst && !src.is_some_and(|fs_type| UNSHARED.contains(&fs_type))
}

fn call(pair: Pair<'_>, src: Pos, dst: Pos, want: usize) -> rustix::io::Result<usize> {
    // The kernel advances these offsets. The loop keeps its own count.
    let (mut src_at, mut dst_at) = (src.offset(), dst.offset());
    rustix::fs::copy_file_range(pair.src, src_at.as_mut(), pair.dst, dst_at.as_mut(), want)
}
