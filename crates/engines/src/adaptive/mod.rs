//! `adaptive`: copies by the candidate that is measured to be the fastest while it copies.
//!
//! Calls what its candidates call: copy_file_range(2), read(2) and write(2), splice(2), direct reads. It gives
//! each of them pieces of the file, which have to be copied anyway, and measures how long they take. The
//! [`selector`] decides from these rates which candidate copies the next piece. Shares the page cache, and
//! extents where copy_file_range(2) does. Loses on files of less than some 64 MiB, which are copied before
//! the trials pay.

use std::io;
use std::time::Instant;

use rustix::fs::{Advice, fstat};
use rustix::io::Errno;

use crate::cursor::with_both_at;
use crate::engine::{Copier, Engine, Facts, Kind};
use crate::moved::errno_of;
use crate::presized::{Presized, Presizer};
use crate::probe::probe_by_copy;
use crate::span::Pos;
use crate::sys::mincore;
use crate::tuning::{Param, ParamKind};
use crate::{Moved, Pair, Side, Span, Stop, Tuning, Variant};
pub use across_files::AcrossFiles;
use candidate::Candidate;
pub use candidates::CandidateSet;
use copiers::{WorkerCopiers, workers};
use selector::{Piece, Selector};
use team::Team;
use thresholds::PieceSizes;

mod across_files;
mod candidate;
mod candidates;
mod copiers;
mod selector;
#[cfg(test)]
mod simulation;
mod team;
#[cfg(test)]
mod tests;
mod thresholds;

/// The table row.
pub(crate) static ADAPTIVE: Engine = Engine {
    name: "adaptive",
    about: "measures copy_file_range, read_write, splice and direct_read while it copies",
    shares: "page cache on both sides; extents where copy_file_range shares them",
    facts: Facts { shares_spans: true, delegates: true, ..Facts::REGULAR },
    params: &[
        Param {
            name: "cold",
            kind: ParamKind::Flag,
            about: "the source is not in the page cache: direct_read takes part",
        },
        Param {
            name: "unshared",
            kind: ParamKind::Flag,
            about: "copy_file_range, which may share extents, does not take part",
        },
    ],
    lab_variants: &["adaptive", "adaptive@2"],
    kind: Kind::Copier { probe: |pair| probe_by_copy(&ADAPTIVE, pair), start },
};

fn start(tuning: &Tuning) -> io::Result<Box<dyn Copier>> {
    let candidates = CandidateSet {
        workers: tuning.workers,
        is_cold: tuning.flag("cold"),
        may_share: !tuning.flag("unshared"),
    };
    let seed = u64::from(std::process::id());
    Ok(Box::new(Adaptive::new(candidates.variants(), candidates.is_cold, seed)))
}

/// A shorter piece is copied by one worker.
const SHARED_BYTES_MIN: u64 = 512 << 10;

/// The readahead of most devices at first: advice gains nothing for a shorter span.
const READAHEAD_BYTES: u64 = 128 << 10;

/// How far ahead of a position pages are counted. The kernel reads two windows ahead, each of twice the readahead
/// of the device, which is 8 MiB on common virtual disks. Of a longer one a part counts.
const AHEAD_BYTES_MAX: usize = 32 << 20;

/// Candidates for one pair of file systems, and their rates so far. It serves one file after another.
pub struct Adaptive {
    candidates: Vec<Candidate>,
    sizes: PieceSizes,
    seed: u64,
    selector: Selector,
    /// The caller's copiers, then those of helpers.
    copiers: Vec<WorkerCopiers>,
    presizer: Presizer,
    /// The error of the last refusal.
    last_refusal: Option<Errno>,
    /// The sources are read from storage.
    is_cold: bool,
    /// The kernel was told that the source of this file is read from start to end.
    is_advised: bool,
}

impl Adaptive {
    /// With these candidates. The first copies the first piece: the one that loses least where nothing is
    /// known. `seed` decides the order of the others. A source that `is_cold` is read from storage.
    ///
    /// # Panics
    /// Without a candidate.
    #[must_use]
    pub fn new(variants: Vec<Variant>, is_cold: bool, seed: u64) -> Adaptive {
        let sizes = if is_cold { PieceSizes::COLD } else { PieceSizes::CACHED };
        let most_workers = variants.iter().map(workers).max().unwrap_or(1);
        let candidates: Vec<Candidate> = variants.into_iter().map(Candidate::new).collect();
        let selector = selector(&candidates, sizes, seed);
        Adaptive {
            candidates,
            sizes,
            seed,
            selector,
            copiers: (0..most_workers).map(|_| WorkerCopiers::default()).collect(),
            presizer: Presizer::default(),
            last_refusal: None,
            is_cold,
            is_advised: false,
        }
    }

    /// Starts the next file of this pair of file systems. A candidate that was refused for a reason that
    /// holds for the last file only is tried again.
    pub fn start_file(&mut self) {
        self.is_advised = false;
        self.selector.start_file();
        candidate::start_file(&mut self.candidates, &mut self.selector);
    }

    /// The candidate in use, or the best so far.
    #[must_use]
    pub fn best(&self) -> &Variant {
        &self.candidates[self.selector.best()].variant
    }

    /// All candidates, each with the rate of its last pieces, in bytes a second; `None` for one that was not
    /// tried or was refused.
    pub fn rates(&self) -> impl Iterator<Item = (Variant, Option<u64>)> {
        candidate::rates(&self.candidates, &self.selector)
    }

    /// Copies `span`, whose positions are offsets. `observe` is called after each piece. Where a candidate
    /// is refused, another one continues.
    pub fn copy(
        &mut self,
        pair: Pair<'_>,
        span: Span,
        observe: &mut dyn FnMut(&Variant, Span, Moved),
    ) -> Moved {
        let (Pos::At(src_at), Pos::At(dst_at)) = (span.src, span.dst) else {
            return Moved::refused(Errno::SPIPE);
        };
        let src_bytes = match fstat(pair.src) {
            Ok(stat) => u64::try_from(stat.st_size).unwrap_or(0),
            Err(errno) => return Moved::failed(Side::Src, errno),
        };
        // What is beyond the end that fstat saw is read by one worker: the file may have grown.
        let known_bytes = span.len.min(src_bytes.saturating_sub(src_at));
        let bytes_after = src_bytes.saturating_sub(src_at.saturating_add(span.len));
        self.advise(pair, span.len);
        // For all candidates, so that each writes to the same kind of extents, and outside of what is timed.
        let presized = match self.presize(pair, dst_at, known_bytes) {
            Ok(presized) => presized,
            Err(moved) => return moved,
        };
        let Adaptive { candidates, selector, copiers, last_refusal, is_cold, .. } = self;
        let variants: Vec<Variant> = candidates.iter().map(|it| it.variant.clone()).collect();
        let variants = &variants[..];
        let moved = std::thread::scope(|scope| {
            let (own, helpers) = copiers.split_first_mut().expect("the caller has copiers");
            let mut helpers = Some(helpers);
            let mut team: Option<Team> = None;
            let mut bytes = 0;
            while bytes < span.len {
                let left = span.after(bytes);
                let Some(Piece { candidate, bytes: piece_bytes }) =
                    selector.next(left.len.min(src_bytes) + bytes_after)
                else {
                    let errno = last_refusal.unwrap_or(Errno::NOSYS);
                    return Moved { bytes, stop: Stop::Refused(errno) };
                };
                let variant = &variants[candidate];
                let reads_ahead =
                    *is_cold && selector.compares() && variant.engine.facts.reads_ahead;
                let ahead_before = reads_ahead.then(|| ahead_bytes(pair, left.src)).flatten();
                let known_left = known_bytes.saturating_sub(bytes);
                let len =
                    if known_left > 0 { piece_length(piece_bytes, known_left) } else { left.len };
                let piece = Span { len, ..left };
                let workers = workers(variant);
                let is_shared = workers > 1 && known_left > 0 && len >= SHARED_BYTES_MIN;
                if is_shared && let Some(helpers) = helpers.take() {
                    team = Some(Team::start(scope, pair, variants, helpers));
                }
                let (moved, seconds) = match own.get(variant) {
                    Err(error) => (Moved::refused(errno_of(&error)), 0.0),
                    Ok(copier) => {
                        let start = Instant::now();
                        let moved = match &mut team {
                            Some(team) if is_shared => {
                                team.copy((candidate, workers), copier, pair, piece)
                            }
                            _ => copier.copy(pair, piece),
                        };
                        (moved, start.elapsed().as_secs_f64())
                    }
                };
                observe(variant, piece, moved);
                // The rate of one worker is not that of the variant.
                let measured = if is_shared || workers == 1 { moved.bytes } else { 0 };
                bytes += moved.bytes;
                let gained = ahead_before
                    .and_then(|before| Some(ahead_bytes(pair, span.after(bytes).src)? - before));
                let gained = gained.unwrap_or(0);
                selector.record_with_readahead(candidate, measured, seconds, gained);
                let is_first_call = !has_moved(candidates, candidate);
                candidates[candidate].has_moved |= moved.bytes > 0;
                if moved.stop == Stop::Done {
                    continue;
                }
                let has_moved = !is_first_call || moved.bytes > 0;
                let Some(errno) = variant.engine.facts.refusal(moved.stop, has_moved) else {
                    return Moved { bytes, stop: moved.stop };
                };
                *last_refusal = Some(errno);
                if moved.bytes == 0 {
                    refuse_engine(candidates, selector, candidate, errno);
                }
            }
            Moved { bytes, stop: Stop::Done }
        });
        if let Some(presized) = presized {
            presized.shrink_after(pair, moved.bytes);
        }
        moved
    }

    /// Tells the kernel once a file that the source is read from start to end: posix_fadvise(2) doubles the
    /// readahead.
    fn advise(&mut self, pair: Pair<'_>, bytes: u64) {
        if !self.is_advised && bytes > READAHEAD_BYTES {
            // Without the advice the kernel reads ahead as usual.
            let _ = rustix::fs::fadvise(pair.src, 0, None, Advice::Sequential);
            self.is_advised = true;
        }
    }

    /// Allocates what workers will share; `None` if no candidate is shared, or the destination cannot be
    /// allocated ahead.
    ///
    /// # Errors
    /// The outcome of a copy that ends here, such as ENOSPC.
    fn presize(&mut self, pair: Pair<'_>, at: u64, bytes: u64) -> Result<Option<Presized>, Moved> {
        let is_shared =
            |candidate: &Candidate| candidate.refused.is_none() && workers(&candidate.variant) > 1;
        if bytes <= SHARED_BYTES_MIN || !self.candidates.iter().any(is_shared) {
            return Ok(None);
        }
        match self.presizer.extend(pair, at, bytes) {
            Ok(presized) => Ok(Some(presized)),
            Err(Moved { stop: Stop::Refused(_), .. }) => Ok(None),
            Err(moved) => Err(moved),
        }
    }
}

/// A selector that knows which of the candidates call the same.
fn selector(candidates: &[Candidate], sizes: PieceSizes, seed: u64) -> Selector {
    let calls: Vec<Variant> = candidates.iter().map(|it| it.variant.shared_by(1)).collect();
    let siblings =
        (0..calls.len()).map(|index| calls[..index].iter().position(|it| *it == calls[index]));
    Selector::new(calls.len(), sizes, seed).with_siblings(siblings)
}

/// The length of a piece of which the selector wants `wanted` bytes, where `left` bytes are left of the span. A
/// rest of less than half a piece belongs to this one: workers wait for each other at the end of each piece.
fn piece_length(wanted: u64, left: u64) -> u64 {
    if left < wanted.saturating_add(wanted / 2) { left } else { wanted }
}

/// Bytes from `at` on that are in the page cache: what the kernel has read ahead, and what was there before. For a
/// file of another user the kernel counts all. `None` if it does not count.
fn ahead_bytes(pair: Pair<'_>, at: Pos) -> Option<i64> {
    let Pos::At(at) = at else { return None };
    let page_bytes = rustix::param::page_size() as u64;
    let pages = mincore(pair.src, at - at % page_bytes, AHEAD_BYTES_MAX).ok()?;
    i64::try_from(pages * page_bytes).ok()
}

/// Whether the engine of this candidate has copied a part of the file, with any of its variants.
fn has_moved(candidates: &[Candidate], candidate: usize) -> bool {
    let engine = candidates[candidate].variant.engine.name;
    candidates.iter().any(|other| other.variant.engine.name == engine && other.has_moved)
}

/// Refuses all variants of the candidate's engine: what refuses one refuses the others.
fn refuse_engine(
    candidates: &mut [Candidate],
    selector: &mut Selector,
    candidate: usize,
    errno: Errno,
) {
    let engine = candidates[candidate].variant.engine.name;
    for (index, other) in candidates.iter_mut().enumerate() {
        // read_write of another buffer may still work where one cannot be allocated.
        if index == candidate || other.variant.engine.name == engine && engine != "read_write" {
            other.refused = Some(errno);
            selector.refuse(index);
        }
    }
}

impl Copier for Adaptive {
    fn copy(&mut self, pair: Pair<'_>, span: Span) -> Moved {
        with_both_at(pair, span, |span, src_at, _| {
            if src_at == 0 {
                self.start_file();
            }
            Adaptive::copy(self, pair, span, &mut |_, _, _| {})
        })
    }

    fn forget(&mut self) {
        self.selector = selector(&self.candidates, self.sizes, self.seed);
        self.candidates.iter_mut().for_each(|candidate| candidate.refused = None);
        self.presizer = Presizer::default();
    }
}
