//! `sendfile`: the kernel copies to the destination's cursor.
//!
//! Calls `sendfile(2)`, which is a splice through a pipe inside the kernel. Needs a source in the
//! page cache (a regular file). The destination may be any file, in particular a socket. Bypasses
//! user memory, shares the page cache. It has no destination offset, so it moves the destination's
//! cursor, and workers cannot share a file. Loses where extents could be shared.

use std::io;

use rustix::fs::{SeekFrom, seek};

use crate::contract::{Copier, Ends, Engine, Facts, Kind};
use crate::probe::probe_by_copy;
use crate::span::Pos;
use crate::support::until_done::{Errors, Step, until_done};
use crate::tuning::{Param, ParamKind};
use crate::{CALL_BYTES_MAX, Moved, Pair, Side, Span, Tuning};

/// The table row.
pub(crate) static SENDFILE: Engine = Engine {
    name: "sendfile",
    about: "the kernel copies from a file to the destination's cursor",
    shares: "page cache on both sides; no user memory",
    facts: Facts { positions: false, dst: Ends::STREAMS, ..Facts::REGULAR },
    params: &[Param {
        name: "chunk",
        kind: ParamKind::Bytes { default: CALL_BYTES_MAX, min: 1, max: CALL_BYTES_MAX },
        about: "bytes asked of one call",
    }],
    lab_variants: &["sendfile"],
    kind: Kind::Copier { probe: |pair| probe_by_copy(&SENDFILE, pair), start },
};

struct Sendfile {
    chunk_bytes: usize,
}

fn start(tuning: &Tuning) -> io::Result<Box<dyn Copier>> {
    Ok(Box::new(Sendfile { chunk_bytes: tuning.bytes("chunk") }))
}

impl Copier for Sendfile {
    fn copy(&mut self, pair: Pair<'_>, span: Span) -> Moved {
        if let Pos::At(dst_at) = span.dst
            && let Err(errno) = seek(pair.dst, SeekFrom::Start(dst_at))
        {
            return Moved::refused(errno);
        }
        until_done(pair, span, self.chunk_bytes, Errors::MayRefuse, |src, _, want| {
            let sent = rustix::fs::sendfile(pair.dst, pair.src, src.offset().as_mut(), want);
            Step::of_one_call(sent, Side::Pair)
        })
    }
}
