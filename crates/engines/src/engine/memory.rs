//! `memory`: a floor, not a copier between descriptors.
//!
//! Calls memcpy between two buffers, window after window, until it has moved as many bytes as the
//! file has. Touches neither files nor the page cache. With `untouched` each window is memory that
//! was never used, so the measurement includes its page faults. They often explain a sudden
//! increase of copy time at some size. With `offset` both buffers start that many bytes past a
//! page; malloc has 16 bytes.

use std::io;

use crate::Tuning;
use crate::contract::{Ends, Engine, Facts, Floor, Kind};
use crate::tuning::{OFFSET_BYTES_MAX, Param, ParamKind};
use sys::Buffer;
use sys::Map;

/// The table row.
pub(crate) static MEMORY: Engine = Engine {
    name: "memory",
    about: "the floor: memcpy between two buffers, no files at all",
    shares: "nothing: user memory only",
    facts: Facts { positions: false, src: Ends::REGULAR_ONLY, ..Facts::REGULAR },
    params: &[
        Param {
            name: "window",
            kind: ParamKind::Bytes { default: 64 << 20, min: 1, max: 1 << 36 },
            about: "bytes of each buffer; the default exceeds the processor's caches",
        },
        Param {
            name: "untouched",
            kind: ParamKind::Flag,
            about: "fresh memory for each window, so that its page faults are in the time",
        },
        Param {
            name: "offset",
            kind: ParamKind::Offset { max: OFFSET_BYTES_MAX },
            about: "bytes from the start of a page to each buffer; malloc has 16",
        },
    ],
    lab_variants: &["memory", "memory:untouched"],
    kind: Kind::Floor { start },
};

fn start(tuning: &Tuning) -> io::Result<Box<dyn Floor>> {
    let window_bytes = tuning.bytes("window");
    let offset_bytes = tuning.bytes("offset");
    if tuning.flag("untouched") {
        if offset_bytes != 0 {
            let message = "untouched memory comes in whole pages and cannot have an offset";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        return Ok(Box::new(Untouched { window_bytes }));
    }
    let buffer = || {
        let mut buffer = Buffer::at_offset(window_bytes, offset_bytes)?;
        buffer.touch();
        io::Result::Ok(buffer)
    };
    Ok(Box::new(Touched { src: buffer()?, dst: buffer()? }))
}

struct Touched {
    src: Buffer,
    dst: Buffer,
}

impl Floor for Touched {
    fn run(&mut self, len: u64) -> io::Result<()> {
        let (src, dst) = (self.src.as_mut_slice(), self.dst.as_mut_slice());
        for_each_window(len, src.len(), |window_bytes| {
            dst[..window_bytes].copy_from_slice(&src[..window_bytes]);
            // Keeps the optimiser from dropping a copy whose result is not read.
            std::hint::black_box(&mut *dst);
            Ok(())
        })
    }
}

struct Untouched {
    window_bytes: usize,
}

impl Floor for Untouched {
    fn run(&mut self, len: u64) -> io::Result<()> {
        for_each_window(len, self.window_bytes, |window_bytes| {
            let src = Map::untouched(window_bytes)?;
            let mut dst = Map::untouched(window_bytes)?;
            Map::copy_memory(&mut dst, &src, window_bytes);
            Ok(())
        })
    }
}

fn for_each_window(
    len: u64,
    window_bytes: usize,
    mut copy: impl FnMut(usize) -> io::Result<()>,
) -> io::Result<()> {
    let mut left = len;
    while left > 0 {
        let window_bytes = usize::try_from(left).unwrap_or(usize::MAX).min(window_bytes);
        copy(window_bytes)?;
        left -= window_bytes as u64;
    }
    Ok(())
}
