//! One timed copy: sets and proves the page cache state, times the copy, verifies it, and removes
//! its files.
//!
//! Only the copy is timed, with what close(2) writes on network file systems and FUSE. Opening,
//! creating, counting pages, comparing and removing are not. The copy runs the same variants
//! through the same chain as `haulage cp`.

pub(crate) mod at_once;
pub(crate) mod attribution;
pub(crate) mod digest;

use std::os::fd::{AsFd, OwnedFd};

use engines::fs_types::{Storage, fs_type_of, storage_of};
use engines::{Chain, Floor, Kind, Meter, Moved, Pair, Side, Span, Stop, Variant, words_of_error};
use rustix::fs::OFlags;

use crate::clock::{Clock, Counters, note_durable};
use crate::definition::cell::Destination;
use crate::error::Error;
use crate::page_cache::prover::{self, Prover};
use crate::page_cache::state::State;
use crate::sample::measurement::Measurement;
use crate::scratch::WorkDir;
use crate::source::{Load, Part, Source};
use attribution::Attribution;
use digest::Digests;

/// What stays the same from run to run.
#[derive(Clone, Copy, Debug)]
pub struct Bench<'b> {
    /// Where the bytes come from.
    pub source: &'b Source,
    /// Where the copies go.
    pub dst: &'b WorkDir,
    /// Sets and proves the state.
    pub prover: &'b Prover,
    /// The state wanted.
    pub state: State,
    /// What a copy is written to.
    pub destination: Destination,
    /// Whether a fresh copy stays until the next run to the same directory removes all that is there.
    pub stays: bool,
    /// Whether the time until the copy is on the medium is wanted too.
    pub durable: bool,
}

/// The bytes that a run copies, and what its copy must be.
#[derive(Debug)]
pub struct Task {
    /// What to copy.
    pub load: Load,
    /// The digests of that.
    pub digests: Digests,
}

/// Why a variant was not started, or a run of it not measured.
#[derive(Debug, thiserror::Error)]
pub enum NotRun {
    /// The variant does not work here; why, in words.
    #[error("{0}")]
    Refused(String),
    /// Something other than the variant failed, or what the run made is wrong.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl NotRun {
    /// Why the variant does not work here, in words.
    ///
    /// # Errors
    /// What failed, if the variant did not refuse.
    pub fn refusal(self) -> Result<String, Error> {
        match self {
            NotRun::Refused(why) => Ok(why),
            NotRun::Failed(error) => Err(error),
        }
    }
}

impl From<String> for NotRun {
    fn from(why: String) -> NotRun {
        NotRun::Refused(why)
    }
}

/// A variant with its buffers, ring or pipe allocated.
pub struct Runner {
    /// The variant that it is started as; for another copier, the one that messages name.
    variant: Variant,
    kind: RunnerKind,
}

enum RunnerKind {
    Copier(Copier),
    Floor(Box<dyn Floor>),
}

struct Copier {
    /// What it does, in the order in which it is tried.
    tried: Vec<Variant>,
    chain: Chain,
    /// Whether each file tries again what was refused for another file.
    asks_again: bool,
}

impl Runner {
    /// Starts `variant`.
    ///
    /// # Errors
    /// Why it cannot be started here, in words.
    pub fn start(variant: &Variant) -> Result<Runner, String> {
        let kind = match variant.engine.kind {
            Kind::Copier { .. } => {
                let mut chain = Chain::with_last_resort([variant.clone()]);
                chain.start_first().map_err(|error| words_of_error(&error))?;
                RunnerKind::Copier(Copier {
                    tried: vec![variant.clone()],
                    chain,
                    asks_again: false,
                })
            }
            Kind::Floor { start } => {
                RunnerKind::Floor(start(&variant.tuning).map_err(|error| words_of_error(&error))?)
            }
        };
        Ok(Runner { variant: variant.clone(), kind })
    }

    /// Another copier, which tries `variants` one after another with each file and remembers no
    /// refusal. `named` names it.
    pub fn of_variants(named: &Variant, variants: &[Variant]) -> Runner {
        let chain = Chain::exactly(variants.iter().cloned());
        let copier = Copier { tried: variants.to_vec(), chain, asks_again: true };
        Runner { variant: named.clone(), kind: RunnerKind::Copier(copier) }
    }

    /// Moves all of `span` under the clock, where one end is a socket, after `first`, which runs with
    /// the clock running. Says how much of it the variant itself did.
    ///
    /// # Errors
    /// When `first` or the copy fails, or the source ends early.
    ///
    /// # Panics
    /// When the variant is a floor.
    pub(crate) fn stream(
        &mut self,
        pair: Pair<'_>,
        span: Span,
        first: impl FnOnce() -> Result<(), Error>,
        clock: Clock<'_>,
        measured: &mut Measurement,
    ) -> Result<Attribution, Error> {
        let RunnerKind::Copier(copier) = &mut self.kind else { panic!("a floor has no ends") };
        let mut share = Attribution::default();
        let moved = copier.copy(pair, span, (first, || Ok(())), &clock, (measured, &mut share))?;
        check_stop(&self.variant, moved, || {
            let how = format!("it found an end after {} of {} bytes", moved.bytes, span.len);
            Error::Wrong { variant: self.variant.to_string(), how }
        })?;
        Ok(share)
    }
}

impl Copier {
    /// Moves `span` under the clock, between `first` and `last`, and adds to the share what the variant did.
    fn copy(
        &mut self,
        pair: Pair<'_>,
        span: Span,
        (first, last): (impl FnOnce() -> Result<(), Error>, impl FnOnce() -> Result<(), Error>),
        clock: &Clock<'_>,
        (measured, share): (&mut Measurement, &mut Attribution),
    ) -> Result<Moved, Error> {
        let mut file = self.chain.file(pair);
        let tried = &self.tried;
        let moved = clock.time(measured, || {
            first()?;
            let moved = file.copy(span, &mut |by, _, moved| share.note(tried.contains(by), moved));
            last().map(|()| moved)
        })?;
        share.end_span();
        Ok(moved)
    }
}

/// The error of a copy that has not moved all; `at_end` is that of a source which ended early.
fn check_stop(
    variant: &Variant,
    moved: Moved,
    at_end: impl FnOnce() -> Error,
) -> Result<(), Error> {
    let failed = |side, errno| Err(Error::CopyFailed { variant: variant.to_string(), side, errno });
    match moved.stop {
        Stop::Done => Ok(()),
        Stop::Eof => Err(at_end()),
        Stop::Refused(errno) => failed(Side::Pair, errno),
        Stop::Failed { side, errno } => failed(side, errno),
    }
}

impl Bench<'_> {
    /// Runs a started variant on `task`, timed by `clock`.
    ///
    /// # Errors
    /// When the variant refuses to move a single byte here, the source cannot be read or has
    /// changed, the destination cannot be written, the copy failed, or is not equal to the source:
    /// none of these is a sample.
    pub fn run(
        &self,
        runner: &mut Runner,
        task: &Task,
        clock: Clock<'_>,
    ) -> Result<Measurement, NotRun> {
        match &mut runner.kind {
            RunnerKind::Copier(copier) => self.copy(&runner.variant, copier, task, clock),
            RunnerKind::Floor(floor) => {
                let mut measured = Measurement::without_source();
                let result = clock.time(&mut measured, || floor.run(task.load.bytes));
                result.map_err(|error| words_of_error(&error))?;
                Ok(measured)
            }
        }
    }

    /// Copies `task` once without a clock and counts the calls that hand bytes to the destination;
    /// `None` for a floor, which makes none.
    ///
    /// # Errors
    /// When the source cannot be opened or the destination not written.
    pub fn count_calls(&self, runner: &mut Runner, task: &Task) -> Result<Option<u64>, Error> {
        let RunnerKind::Copier(Copier { chain, .. }) = &mut runner.kind else { return Ok(None) };
        let meter = Meter::default();
        for part in &task.load.parts {
            let src = self.source.open_file(part.file)?;
            let dst = self.dst.create_file(COUNTING)?;
            let pair = Pair::new(src.as_fd(), dst.as_fd()).with_meter(Some(&meter));
            // The timed runs verify their copies; this one does not.
            let _ = chain.file(pair).copy(Span::whole(part.bytes), &mut |_, _, _| {});
            self.dst.remove_file(COUNTING)?;
        }
        Ok(Some(meter.calls()))
    }

    fn copy(
        &self,
        variant: &Variant,
        copier: &mut Copier,
        task: &Task,
        clock: Clock<'_>,
    ) -> Result<Measurement, NotRun> {
        if self.stays {
            self.dst.remove_files()?;
        }
        // Destinations first: writing them might push pages of the source out that were counted.
        let mut copies = self.destinations(&task.load)?;
        let dst_before = match self.destination {
            Destination::Fresh => Some(0),
            Destination::Overwritten => self.dst_resident_bytes(&task.load, &copies)?,
        };
        let reached = self.prover.reach(self.state, self.source, &task.load)?;
        let counters = Counters::read();
        let mut measured = Measurement::default();
        let mut share = Attribution::default();
        for (index, part) in task.load.parts.iter().enumerate() {
            let src = self.source.open_file(part.file)?;
            let made = match (copies.get(index), self.destination) {
                (Some(_), _) => None,
                (None, Destination::Fresh) => Some(self.dst.create_file(&index.to_string())?),
                (None, Destination::Overwritten) => {
                    Some(self.dst.open_or_create(&index.to_string())?)
                }
            };
            let dst = made.as_ref().unwrap_or_else(|| &copies[index]);
            let taken = (&mut measured, &mut share);
            self.copy_part(variant, copier, *part, (&src, dst), clock, taken)?;
            // The page cache keeps what is closed; the descriptors would run out.
            copies.extend(made.filter(|_| task.load.parts.len() <= OPEN_COPIES_MAX));
        }
        counters.fill_since(&mut measured);
        if let Some(barrier) = clock.barrier {
            barrier.wait_behind();
        }
        let alone = variant.workers == 1 && !variant.engine.facts.delegates;
        if !alone || self.state != State::Warm {
            // It may have waited for another worker, or for a kernel thread that works for it. That
            // is no disturbance and is not subtracted.
            measured.processor_wait_ns = None;
        }
        let src_after = self.prover.resident_bytes(self.source, &task.load)?;
        let mut dst_after = self.dst_resident_bytes(&task.load, &copies)?;
        if share.own_bytes == 0 {
            self.remove(&task.load)?;
            return Err(share.refusals().into());
        }
        self.verify(variant, task, &copies)?;
        // All of the copy has just been read. Where it is still said to have no page in the cache
        // (overlayfs), nothing was counted before either.
        if dst_after == Some(0) && self.dst_resident_bytes(&task.load, &copies)? == Some(0) {
            dst_after = None;
        }
        drop(copies);
        if self.destination == Destination::Fresh && !self.stays {
            self.remove(&task.load)?;
        }

        measured.src_resident_bytes_before = reached.resident_bytes;
        measured.src_resident_bytes_after = src_after;
        measured.dst_resident_bytes_before = dst_after.and(dst_before);
        measured.dst_resident_bytes_after = dst_after;
        measured.verified = true;
        share.fill(&mut measured)?;
        measured.shares_extents = match dst_after {
            // Bytes that were written are dirty in the page cache, or were sent to the device. But
            // a server that copies by itself leaves no trace here.
            Some(resident) if !self.is_served() => {
                let written = measured.device_written_bytes;
                resident == 0 && written.is_some_and(|bytes| bytes < task.load.bytes / 2)
            }
            // Where it cannot be seen, the engine decides: `reflink` does nothing else.
            _ => variant.engine.name == "reflink",
        };
        let bypasses_cache = copier.tried.first().is_some_and(Variant::reads_past_cache);
        let on_medium_bytes = self.source.allocated_bytes(&task.load);
        self.prover.judge(&mut measured, reached, on_medium_bytes, bypasses_cache);
        Ok(measured)
    }

    /// Makes the files to be overwritten, with bytes that no source has. Few of them stay open; many, and fresh ones,
    /// are opened one by one.
    fn destinations(&self, load: &Load) -> Result<Vec<OwnedFd>, Error> {
        if self.destination == Destination::Fresh {
            return Ok(Vec::new());
        }
        let fill = |(index, part): (usize, &Part)| {
            let name = index.to_string();
            let fd = self.dst.open_or_create(&name)?;
            self.dst.fill_zeros(&name, &fd, part.bytes)?;
            Ok((load.parts.len() <= OPEN_COPIES_MAX).then_some(fd))
        };
        load.parts.iter().enumerate().map(fill).filter_map(Result::transpose).collect()
    }

    /// Copies one file under the clock.
    fn copy_part(
        &self,
        variant: &Variant,
        copier: &mut Copier,
        part: Part,
        (src, dst): (&OwnedFd, &OwnedFd),
        clock: Clock<'_>,
        (measured, share): (&mut Measurement, &mut Attribution),
    ) -> Result<(), Error> {
        if copier.asks_again {
            copier.chain.forget_refusals();
        }
        let (pair, span) = (Pair::new(src.as_fd(), dst.as_fd()), Span::whole(part.bytes));
        let is_served = self.is_served();
        let last = || if is_served { self.flush(dst) } else { Ok(()) };
        let moved = copier.copy(pair, span, (|| Ok(()), last), &clock, (&mut *measured, share))?;
        if self.durable {
            // The clock continues.
            rustix::fs::fsync(dst)
                .map_err(Error::path("cannot sync a copy in", self.dst.path()))?;
            note_durable(measured);
        }
        check_stop(variant, moved, || Error::SourceChanged(self.source.path_of(part.file)))
    }

    /// Whether a server or another process keeps the copies.
    fn is_served(&self) -> bool {
        fs_type_of(self.dst.dir().as_fd()).and_then(storage_of) == Some(Storage::Served)
    }

    /// Does what close(2) does, for which `cp` waits.
    fn flush(&self, dst: &OwnedFd) -> Result<(), Error> {
        sys::flush_as_close(dst).map_err(Error::path("cannot close a copy in", self.dst.path()))
    }

    fn dst_resident_bytes(&self, load: &Load, copies: &[OwnedFd]) -> Result<Option<u64>, Error> {
        let counted = load.parts.iter().enumerate().map(|(index, part)| {
            let counted = match copies.get(index) {
                Some(fd) => prover::resident_bytes(fd.as_fd(), part.bytes),
                None => prover::resident_bytes(self.reopen(index)?.as_fd(), part.bytes),
            };
            Ok(counted.ok())
        });
        counted.sum()
    }

    fn verify(&self, variant: &Variant, task: &Task, copies: &[OwnedFd]) -> Result<(), Error> {
        for (index, part) in task.load.parts.iter().enumerate() {
            let reading = Error::path("cannot read the copy of", self.source.path_of(part.file));
            let difference = match copies.get(index) {
                Some(fd) => task.digests.difference(index, part.bytes, fd.as_fd()),
                None => task.digests.difference(index, part.bytes, self.reopen(index)?.as_fd()),
            };
            if let Some(how) = difference.map_err(reading)? {
                // The engine is not to blame when another process wrote to the source meanwhile.
                self.source.open_file(part.file)?;
                let path = self.source.path_of(part.file);
                return Err(Error::WrongCopy { variant: variant.to_string(), path, how });
            }
        }
        Ok(())
    }

    fn reopen(&self, index: usize) -> Result<OwnedFd, Error> {
        let name = index.to_string();
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        rustix::fs::openat(self.dst.dir(), &name, flags, rustix::fs::Mode::empty())
            .map_err(Error::path("cannot open", self.dst.path().join(&name)))
    }

    /// Removing a copy takes its dirty pages with it, so that nothing of it is left to be written
    /// during the next run. It waits for pages that are already being written to the device.
    fn remove(&self, load: &Load) -> Result<(), Error> {
        (0..load.parts.len()).try_for_each(|index| self.dst.remove_file(&index.to_string()))
    }
}

/// The copy that is made for counting.
const COUNTING: &str = "counting";

/// Copies kept open until they are compared. More files than these are opened a second time.
const OPEN_COPIES_MAX: usize = 256;
