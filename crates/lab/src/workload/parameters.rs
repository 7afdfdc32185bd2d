//! What several workloads share: checks of the text of a variant and of the cell.

use engines::{ParseError, Side, Variant};
use sys::Buffer;

use crate::definition::cell::Cell;

/// The engine that a text names, with its parameters; otherwise why it names none.
pub(super) fn variant_of(text: &str) -> Result<Variant, String> {
    text.parse().map_err(|error: ParseError| error.to_string())
}

/// An engine that copies from a socket, or to one, if that is its `end`.
pub(super) fn stream_variant_of(text: &str, end: Side) -> Result<Variant, String> {
    let variant = variant_of(text)?;
    let facts = &variant.engine.facts;
    let (works, does, who) = match end {
        Side::Src => (facts.src.socket, "read from", "reader"),
        _ => (facts.dst.socket, "write to", "writer"),
    };
    if !variant.is_copier() || !works {
        return Err(format!("{} does not {does} sockets", variant.engine.name));
    }
    match variant.workers {
        0 | 1 => Ok(variant),
        _ => Err(format!("a stream has one {who} at a time")),
    }
}

/// A number of bytes of a variant's text, at least 1 and at most `max`; otherwise why it is none.
pub(super) fn bytes_of(text: &str, max: u64) -> Result<usize, String> {
    let bytes = text.parse::<engines::Bytes>().ok().filter(|bytes| (1..=max).contains(&bytes.0));
    bytes.and_then(|bytes| usize::try_from(bytes.0).ok()).ok_or_else(|| {
        let max = engines::Bytes(max);
        format!("'{text}' is no number of bytes from 1 to {max}, as 4096, 64K or 8M")
    })
}

/// A buffer at the start of a page, as those of the engines. It is written once, so that its first use causes
/// no page faults.
pub(super) fn touched(buffer_bytes: usize) -> Result<Buffer, String> {
    let buffer = Buffer::page_aligned(buffer_bytes);
    let mut buffer = buffer.map_err(|_| "there is no memory for the buffer".to_owned())?;
    buffer.touch();
    Ok(buffer)
}

/// A window that is mapped: bytes of a variant's text, as many as pages have.
pub(super) fn window_bytes_of(text: &str, max: u64) -> Result<usize, String> {
    let window_bytes = bytes_of(text, max)?;
    match window_bytes % rustix::param::page_size() {
        0 => Ok(window_bytes),
        _ => Err(format!("'{text}' is no multiple of a page")),
    }
}

/// Refuses a cell of several files where a workload is about one.
pub(super) fn one_file(cell: &Cell) -> Result<(), String> {
    match cell.shape {
        crate::definition::cell::Shape::File => Ok(()),
        _ => Err(format!("the workload {} is about one file at a time", cell.workload)),
    }
}
