//! `read_write`: reads and writes through one buffer, which it reuses.
//!
//! Calls `pread`/`pwrite` (or `read`/`write` at a cursor). Has no requirements: it works between
//! any two descriptors and is the last resort of every chain. Shares the page cache on both sides,
//! and copies each byte twice. Loses where a copy inside the kernel avoids those copies. Loses by
//! far with a small buffer, whose calls cost more than the bytes: a 1-byte buffer is the naive
//! copy. On some processors it is slower by a factor of two if the buffer does not start on a page
//! boundary, as buffers of malloc do not: `offset=16` measures that.

use std::io;

use crate::contract::{Copier, Ends, Engine, Facts, Kind};
use crate::moved::errno_of;
use crate::probe::probe_by_copy;
use crate::support::until_done::{Errors, read_then_write, until_done};
use crate::tuning::{OFFSET_BYTES_MAX, Param, ParamKind};
use crate::{Moved, Pair, Span, Tuning};
use sys::{Buffer, PAGE_BYTES, Page};

/// The table row.
pub(crate) static READ_WRITE: Engine = Engine {
    name: "read_write",
    about: "read and write through one buffer in user memory",
    shares: "page cache on both sides; every byte is copied twice",
    facts: Facts { src: Ends::STREAMS, dst: Ends::STREAMS, ..Facts::REGULAR },
    params: &[
        Param {
            name: "buffer",
            kind: ParamKind::Bytes { default: 256 << 10, min: 1, max: 1 << 30 },
            about: "bytes moved by one read and one write",
        },
        Param {
            name: "offset",
            kind: ParamKind::Offset { max: OFFSET_BYTES_MAX },
            about: "bytes from the start of a page to the buffer; malloc has 16",
        },
    ],
    lab_variants: &[
        "read_write:4K",
        "read_write:64K",
        "read_write:256K",
        "read_write:256K,offset=16",
        "read_write:1M",
        "read_write:8M",
        "read_write:256K@2",
        "read_write:512K@2",
        "read_write:1M@2",
    ],
    kind: Kind::Copier { probe: |pair| probe_by_copy(&READ_WRITE, pair), start },
};

pub(super) struct ReadWrite {
    buffer_bytes: usize,
    offset_bytes: usize,
    /// Allocated when it is first used. A mapping and its first page take longer than to copy a file of
    /// some bytes.
    buffer: Option<Buffer>,
}

fn start(tuning: &Tuning) -> io::Result<Box<dyn Copier>> {
    Ok(Box::new(ReadWrite::new(tuning)))
}

impl ReadWrite {
    pub(super) fn new(tuning: &Tuning) -> ReadWrite {
        let (buffer_bytes, offset_bytes) = (tuning.bytes("buffer"), tuning.bytes("offset"));
        ReadWrite { buffer_bytes, offset_bytes, buffer: None }
    }

    pub(super) fn buffer(&mut self) -> io::Result<&mut Buffer> {
        if self.buffer.is_none() {
            self.buffer = Some(Buffer::at_offset(self.buffer_bytes, self.offset_bytes)?);
        }
        Ok(self.buffer.as_mut().expect("it was just allocated"))
    }

    /// Whether a page on the stack, from its start, takes the place of the buffer.
    fn fits_page(&self, span: Span) -> bool {
        let page_bytes = PAGE_BYTES as u64;
        self.offset_bytes == 0 && self.buffer_bytes >= PAGE_BYTES && span.len <= page_bytes
    }
}

fn copy_through(pair: Pair<'_>, span: Span, buffer: &mut [u8]) -> Moved {
    until_done(pair, span, buffer.len(), Errors::AlwaysFail, |src, dst, want| {
        read_then_write(pair, src, dst, &mut buffer[..want])
    })
}

impl Copier for ReadWrite {
    fn copy(&mut self, pair: Pair<'_>, span: Span) -> Moved {
        if self.buffer.is_none() && self.fits_page(span) {
            return copy_through(pair, span, &mut Page::zeros().0);
        }
        match self.buffer() {
            Ok(buffer) => copy_through(pair, span, buffer.as_mut_slice()),
            Err(error) => Moved::refused(errno_of(&error)),
        }
    }

    fn touch(&mut self) {
        // Without memory the copy is refused.
        if let Ok(buffer) = self.buffer() {
            buffer.touch();
        }
    }
}
