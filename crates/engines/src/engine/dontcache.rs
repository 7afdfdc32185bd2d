//! `dontcache`: reads and writes that do not leave their pages in the page cache.
//!
//! Calls `preadv2`/`pwritev2` with RWF_DONTCACHE: the bytes pass through the page cache, which
//! drops them after the read or the writeback. Needs Linux 6.14 and a file system that accepts the
//! flag (ext4, xfs; not btrfs or tmpfs). Needs no alignment, unlike `direct`. Loses to plain writes
//! if the copy would have fitted in the page cache, because writeback starts at once.

use std::io::{self, IoSlice, IoSliceMut};

use rustix::io::{ReadWriteFlags, preadv2, pwritev2};

use crate::contract::{Copier, Engine, Facts, Kind};
use crate::probe::probe_by_copy;
use crate::span::Pos;
use crate::support::until_done::{Errors, Halt, Step, pass_on, until_done};
use crate::tuning::{Param, ParamKind};
use crate::{Moved, Pair, Side, Span, Tuning};
use sys::Buffer;

/// The table row.
pub(crate) static DONTCACHE: Engine = Engine {
    name: "dontcache",
    about: "reads and writes that leave the page cache as it was",
    shares: "page cache in passing, dropped once read or written back",
    facts: Facts { delegates: true, ..Facts::REGULAR },
    params: &[Param {
        name: "buffer",
        kind: ParamKind::Bytes { default: 1 << 20, min: 1, max: 1 << 30 },
        about: "bytes moved by one read and one write",
    }],
    lab_variants: &["dontcache", "dontcache@2"],
    kind: Kind::Copier { probe: |pair| probe_by_copy(&DONTCACHE, pair), start },
};

/// RWF_DONTCACHE of linux/fs.h.
const RWF_DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

/// The offset -1 makes preadv2 and pwritev2 use the cursor.
const AT_CURSOR: u64 = u64::MAX;

pub(super) struct Dontcache {
    pub(super) buffer: Buffer,
}

fn start(tuning: &Tuning) -> io::Result<Box<dyn Copier>> {
    Ok(Box::new(Dontcache::new(tuning)?))
}

impl Dontcache {
    pub(super) fn new(tuning: &Tuning) -> io::Result<Dontcache> {
        Ok(Dontcache { buffer: Buffer::page_aligned(tuning.bytes("buffer"))? })
    }
}

impl Copier for Dontcache {
    fn copy(&mut self, pair: Pair<'_>, span: Span) -> Moved {
        let buffer = self.buffer.as_mut_slice();
        until_done(pair, span, buffer.len(), Errors::MayRefuse, |src, dst, want| {
            step(pair, src, dst, &mut buffer[..want])
        })
    }

    fn touch(&mut self) {
        self.buffer.touch();
    }
}

fn step(pair: Pair<'_>, src: Pos, dst: Pos, buffer: &mut [u8]) -> Step {
    let read = preadv2(pair.src, &mut [IoSliceMut::new(buffer)], offset(src), RWF_DONTCACHE);
    match read {
        Ok(0) => Step::halted(Halt::Eof),
        Ok(got) => pass_on(pair, src, dst, &buffer[..got], |bytes, dst| {
            pwritev2(pair.dst, &[IoSlice::new(bytes)], offset(dst), RWF_DONTCACHE)
        }),
        Err(errno) => Step::halted(Halt::Error { side: Side::Src, errno }),
    }
}

fn offset(pos: Pos) -> u64 {
    pos.offset().unwrap_or(AT_CURSOR)
}
