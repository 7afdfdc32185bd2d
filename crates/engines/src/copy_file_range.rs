//! `copy_file_range`: copies between two files inside the kernel, or delegates to the file system.
//!
//! Calls `copy_file_range(2)`. Needs two regular files: on one file system before Linux 5.3, of one
//! file system type since 5.19. Bypasses user memory. Shares the page cache; shares the extents
//! where the file system clones (xfs, btrfs); transfers nothing over the network where a server
//! copies (NFS, SMB). Loses where the copy of one file could use two cores.

use std::io;

use rustix::io::Errno;

use crate::engine::{Copier, Engine, Facts, Kind};
use crate::probe::probe_by_copy;
use crate::span::Pos;
use crate::tuning::{Param, ParamKind};
use crate::until_done::{Errors, Step, until_done};
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
    params: &[Param {
        name: "chunk",
        kind: ParamKind::Bytes { default: CALL_BYTES_MAX, min: 1, max: CALL_BYTES_MAX },
        about: "bytes asked of one call",
    }],
    lab_variants: &["copy_file_range", "copy_file_range@2"],
    kind: Kind::Copier { probe: |pair| probe_by_copy(&COPY_FILE_RANGE, pair), start },
};

struct CopyFileRange {
    chunk_bytes: usize,
}

fn start(tuning: &Tuning) -> io::Result<Box<dyn Copier>> {
    Ok(Box::new(CopyFileRange { chunk_bytes: tuning.bytes("chunk") }))
}

impl Copier for CopyFileRange {
    fn copy(&mut self, pair: Pair<'_>, span: Span) -> Moved {
        until_done(pair, span, self.chunk_bytes, Errors::MayRefuse, |src, dst, want| {
            Step::of_one_call(call(pair, src, dst, want), Side::Pair)
        })
    }
}

fn call(pair: Pair<'_>, src: Pos, dst: Pos, want: usize) -> rustix::io::Result<usize> {
    // The kernel advances these offsets. The loop keeps its own count.
    let (mut src_at, mut dst_at) = (offset(src), offset(dst));
    rustix::fs::copy_file_range(pair.src, src_at.as_mut(), pair.dst, dst_at.as_mut(), want)
}

fn offset(pos: Pos) -> Option<u64> {
    match pos {
        Pos::At(offset) => Some(offset),
        Pos::Here => None,
    }
}
