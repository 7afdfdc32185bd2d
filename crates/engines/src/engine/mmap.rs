//! `mmap`: maps a window of the source and writes it, as Solaris cp does. With `dst` it also maps
//! the destination and copies memory.
//!
//! Calls `mmap(2)` and `write(2)` (or memcpy). Needs a regular source, and with `dst` a destination
//! that is also open for reading. Shares the page cache: user memory is the page cache itself, so
//! each byte is copied once. Costs one page fault per sixteen pages or so, and a TLB shootdown for
//! each unmap. Loses on cold files without `populate`, and with small windows.
//!
//! A source that shrinks under a mapping does not crash the process: the kernel's own access
//! returns EFAULT, and a SIGBUS handler protects the memory copy.

use std::io;

use rustix::io::Errno;

use crate::contract::{Copier, Ends, Engine, Facts, Kind};
use crate::probe::probe_by_copy;
use crate::span::Pos;
use crate::support::cursor::{with_both_at, with_src_at};
use crate::support::presized::{Presized, src_bytes_from};
use crate::support::until_done::{Errors, Halt, Step, doubt_zero, until_done};
use crate::tuning::{Param, ParamKind};
use crate::{Moved, Pair, Side, Span, Stop, Tuning};
use sys::{Map, Missing, copy_guarded};

/// The table row.
pub(crate) static MMAP: Engine = Engine {
    name: "mmap",
    about: "map a window of the source and write it out, or map both files and copy memory",
    shares: "page cache: the mapping is the cache itself, copied once",
    facts: Facts { dst: Ends::STREAMS, dst_readable: true, ..Facts::REGULAR },
    params: &[
        Param {
            name: "window",
            kind: ParamKind::Bytes { default: 8 << 20, min: 1, max: 1 << 36 },
            about: "bytes mapped at a time",
        },
        Param {
            name: "populate",
            kind: ParamKind::Flag,
            about: "map all pages of a window at once instead of one fault after another",
        },
        Param {
            name: "sequential",
            kind: ParamKind::Flag,
            about: "advise the kernel that the window is read in order",
        },
        Param {
            name: "dst",
            kind: ParamKind::Flag,
            about: "map the destination too and copy from memory to memory",
        },
    ],
    lab_variants: &["mmap:8M", "mmap:8M,populate", "mmap:256K,sequential", "mmap:8M,populate,dst"],
    kind: Kind::Copier { probe: |pair| probe_by_copy(&MMAP, pair), start },
};

struct Mmap {
    window_bytes: usize,
    populate: bool,
    sequential: bool,
    map_dst: bool,
}

fn start(tuning: &Tuning) -> io::Result<Box<dyn Copier>> {
    Ok(Box::new(Mmap {
        window_bytes: tuning.bytes("window"),
        populate: tuning.flag("populate"),
        sequential: tuning.flag("sequential"),
        map_dst: tuning.flag("dst"),
    }))
}

impl Copier for Mmap {
    fn copy(&mut self, pair: Pair<'_>, span: Span) -> Moved {
        if self.map_dst {
            return with_both_at(pair, span, |span, src_at, dst_at| {
                self.copy_to_mapped(pair, span, src_at, dst_at)
            });
        }
        with_src_at(pair, span, |span, _| {
            until_done(pair, span, self.window_bytes, Errors::MayRefuse, |src, dst, want| {
                let Pos::At(src_at) = src else { unreachable!("with_src_at gives an offset") };
                match self.window(pair, src_at, want) {
                    Ok(Some(window)) => write_out(pair, &window, src_at, dst),
                    Ok(None) => Step::halted(Halt::Zero),
                    Err(errno) => not_mapped(Side::Src, errno),
                }
            })
        })
    }
}

/// A mapped range of a file. A mapping begins on a page boundary; a span may begin anywhere.
struct Window {
    map: Map,
    /// Where the range begins in the mapping.
    from: usize,
    len: usize,
}

impl Mmap {
    fn copy_to_mapped(&self, pair: Pair<'_>, span: Span, src_at: u64, dst_at: u64) -> Moved {
        let available = match src_bytes_from(pair, src_at) {
            Ok(available) => available.min(span.len),
            Err(errno) => return Moved::failed(Side::Src, errno),
        };
        if available == 0 {
            // Nothing can be mapped. The zero makes the loop check with `read` whether there is
            // anything to read.
            return until_done(pair, span, 1, Errors::MayRefuse, |_, _, _| {
                Step::halted(Halt::Zero)
            });
        }
        let presized = match Presized::new(pair, dst_at, available) {
            Ok(presized) => presized,
            Err(moved) => return moved,
        };
        let mapped = Span { len: available, ..span };
        let mut moved =
            until_done(pair, mapped, self.window_bytes, Errors::MayRefuse, |src, dst, want| {
                let (Pos::At(src_at), Pos::At(dst_at)) = (src, dst) else {
                    unreachable!("with_both_at gives offsets")
                };
                match self.window(pair, src_at, want) {
                    Ok(Some(window)) => self.copy_window(pair, &window, src_at, dst_at),
                    Ok(None) => Step::halted(Halt::Zero),
                    Err(errno) => not_mapped(Side::Src, errno),
                }
            });
        if moved.stop == Stop::Done && available < span.len {
            // Bytes appended to the source since then have no pages in the destination's mapping.
            let tail = doubt_zero(pair, span.after(available));
            moved = Moved { bytes: available + tail.bytes, stop: tail.stop };
        }
        presized.shrink_after(pair, moved.bytes);
        moved
    }

    /// Maps up to `want` bytes of the source from `src_at`. Returns `None` at or beyond its end.
    fn window(&self, pair: Pair<'_>, src_at: u64, want: usize) -> Result<Option<Window>, Errno> {
        let available = src_bytes_from(pair, src_at)?;
        let len = want.min(usize::try_from(available).unwrap_or(usize::MAX));
        if len == 0 {
            return Ok(None);
        }
        let from = offset_in_page(src_at);
        let map = Map::readable(pair.src, src_at - from as u64, from + len, self.populate)?;
        if self.sequential {
            map.advise_sequential()?;
        }
        Ok(Some(Window { map, from, len }))
    }

    fn copy_window(&self, pair: Pair<'_>, window: &Window, src_at: u64, dst_at: u64) -> Step {
        let dst_from = offset_in_page(dst_at);
        let dst_map_at = dst_at - dst_from as u64;
        let dst_map = Map::writable(pair.dst, dst_map_at, dst_from + window.len, self.populate);
        let mut dst_map = match dst_map {
            Ok(map) => map,
            Err(errno) => return not_mapped(Side::Dst, errno),
        };
        let copied = copy_guarded(&mut dst_map, dst_from, &window.map, window.from, window.len);
        drop(dst_map);
        match copied {
            Ok(()) => cut_at_src_end(pair, src_at, window.len),
            Err(Missing::Dst(reached)) => {
                // The page could not be allocated. A write there returns the errno.
                let halt = match rustix::io::pwrite(pair.dst, &[0], dst_at + reached as u64) {
                    Ok(_) => Halt::Error { side: Side::Dst, errno: Errno::IO },
                    Err(errno) => Halt::Error { side: Side::Dst, errno },
                };
                Step { bytes: reached, halt: Some(halt) }
            }
            Err(Missing::Src(reached)) => {
                let step = cut_at_src_end(pair, src_at, reached);
                Step { halt: step.halt.or(Some(Halt::Zero)), ..step }
            }
        }
    }
}

/// One write of the rest of the window. The loop calls again after a short write.
fn write_out(pair: Pair<'_>, window: &Window, src_at: u64, dst: Pos) -> Step {
    let mut written = 0;
    while written < window.len {
        let (from, len) = (window.from + written, window.len - written);
        match window.map.write_to(from, len, pair.dst, dst.advanced(written as u64).offset()) {
            Ok(0) => {
                let halt = Halt::Error { side: Side::Dst, errno: Errno::IO };
                return Step { bytes: written, halt: Some(halt) };
            }
            Ok(count) => written += count,
            Err(Errno::INTR) => {}
            // The source lost these pages, or its device cannot read them. A `read` returns the
            // errno.
            Err(Errno::FAULT) => {
                let step = cut_if_offset(pair, src_at, dst, written);
                return Step { halt: step.halt.or(Some(Halt::Zero)), ..step };
            }
            Err(errno) => {
                let halt = Halt::Error { side: Side::Dst, errno };
                return Step { bytes: written, halt: Some(halt) };
            }
        }
    }
    cut_if_offset(pair, src_at, dst, written)
}

/// Bytes written to a stream cannot be taken back, so the count stays as it is.
fn cut_if_offset(pair: Pair<'_>, src_at: u64, dst: Pos, bytes: usize) -> Step {
    match dst {
        Pos::At(_) => cut_at_src_end(pair, src_at, bytes),
        Pos::Here => Step::moved(bytes),
    }
}

/// A page that contains the end of a file reads as zeros beyond that end. If the source became so
/// short that some of the `bytes` just copied were such zeros, they do not count.
fn cut_at_src_end(pair: Pair<'_>, src_at: u64, bytes: usize) -> Step {
    match src_bytes_from(pair, src_at) {
        Ok(available) if available < bytes as u64 => {
            Step { bytes: usize::try_from(available).unwrap_or(bytes), halt: Some(Halt::Zero) }
        }
        _ => Step::moved(bytes),
    }
}

fn offset_in_page(offset: u64) -> usize {
    let page_bytes = rustix::param::page_size() as u64;
    usize::try_from(offset % page_bytes).expect("less than a page")
}

/// ENODEV: the file cannot be mapped. EACCES: it is not open for what the mapping needs. ENOMEM: no
/// memory for the mapping. In each case another engine may work.
fn not_mapped(side: Side, errno: Errno) -> Step {
    Step::halted(match errno {
        Errno::NODEV | Errno::ACCESS | Errno::NOMEM => Halt::Unfit(errno),
        errno => Halt::Error { side, errno },
    })
}
