//! One run: the state is set and proved, the copy timed and then verified, and its files removed.
//!
//! The clock runs around the copy alone. Opening, creating, counting pages, comparing and removing
//! lie outside. The copy itself is the copier's own: the same variants through the same chain.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use engines::sys::{Usage, Whose, usage};
use engines::{Chain, Kind, Moved, Pair, Span, Stop, Variant};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::digest::Digests;
use crate::error::Error;
use crate::fixture::Scratch;
use crate::sample::{Sample, Stage};
use crate::source::{Load, Part, Source};
use crate::state::{self, Proof, Prover, Reached, State};

/// What stays the same from run to run.
#[derive(Debug)]
pub struct Bench<'b> {
    /// Where the bytes come from.
    pub source: &'b Source,
    /// Where the copies go.
    pub scratch: &'b Scratch,
    /// Sets and proves the state.
    pub prover: &'b Prover,
    /// The state wanted.
    pub state: State,
}

/// The bytes that a run copies, and what its copy must be.
#[derive(Debug)]
pub struct Task {
    /// What to copy.
    pub load: Load,
    /// The digests of that.
    pub digests: Digests,
}

/// Where in the race a run takes place.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The part of the race.
    pub stage: Stage,
    /// The round, from 1.
    pub round: u32,
    /// The place in the round's order, from 1.
    pub order_in_round: u32,
}

/// How a run ended.
#[derive(Debug)]
pub enum Outcome {
    /// It was measured, and the copy is right.
    Measured(Box<Sample>),
    /// The variant refused to move a single byte here; in words.
    Refused(String),
}

/// Time and resources of the timed part, summed over the files.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    elapsed_ns: u64,
    usage: Usage,
}

/// What the variant itself did, as opposed to the last resort behind it.
#[derive(Debug, Default)]
struct Share {
    own_bytes: u64,
    last_resort_bytes: u64,
    refusals: Vec<String>,
}

impl Bench<'_> {
    /// Runs `variant` on `task` once.
    ///
    /// # Errors
    /// When the source cannot be read or has changed, the destination cannot be written, the copy
    /// failed, or is not equal to the source: none of these is a sample.
    pub fn run(&self, variant: &Variant, task: &Task, place: Place) -> Result<Outcome, Error> {
        match variant.engine.kind {
            Kind::Copier { .. } => self.copy(variant, task, place),
            Kind::Floor { start } => {
                let mut floor = match start(&variant.tuning) {
                    Ok(floor) => floor,
                    Err(error) => return Ok(Outcome::Refused(words_of(&error))),
                };
                let mut spent = Spent::default();
                let result = spent.time(|| floor.run(task.load.bytes));
                Ok(match result {
                    Ok(()) => {
                        Outcome::Measured(Box::new(self.floor_sample(variant, task, place, spent)))
                    }
                    Err(error) => Outcome::Refused(words_of(&error)),
                })
            }
        }
    }

    fn copy(&self, variant: &Variant, task: &Task, place: Place) -> Result<Outcome, Error> {
        let mut chain = Chain::with_last_resort([variant.clone()]);
        if let Err(error) = chain.start_first() {
            return Ok(Outcome::Refused(words_of(&error)));
        }
        let reached = self.prover.reach(self.state, self.source, &task.load)?;
        let device_before = state::device_bytes();
        let mut spent = Spent::default();
        let mut share = Share::default();
        let mut copies = Vec::with_capacity(task.load.parts.len());
        for (index, part) in task.load.parts.iter().enumerate() {
            let src = self.source.open_file(part.file)?;
            let dst = self.scratch.create_file(&index.to_string())?;
            self.copy_part(variant, &mut chain, *part, (&src, &dst), &mut spent, &mut share)?;
            if task.load.parts.len() > OPEN_COPIES_MAX {
                // The page cache keeps it; the descriptors would run out.
                drop(dst);
            } else {
                copies.push(dst);
            }
        }
        let device_after = state::device_bytes();
        let src_after = self.prover.resident_bytes(self.source, &task.load)?;
        let mut dst_after = self.dst_resident_bytes(&task.load, &copies)?;
        let bypasses_cache = chain.first_status_flags().contains(OFlags::DIRECT);
        if share.own_bytes == 0 {
            self.remove(&task.load)?;
            return Ok(Outcome::Refused(share.refusals.join("; ")));
        }
        self.verify(variant, task, &copies)?;
        // All of the copy has just been read. Where it is still said to have no page in the cache
        // (overlayfs), nothing was counted before either.
        if dst_after == Some(0) && self.dst_resident_bytes(&task.load, &copies)? == Some(0) {
            dst_after = None;
        }
        drop(copies);
        self.remove(&task.load)?;

        let mut sample = self.blank_sample(variant, task, place, spent);
        let device = device_after.zip(device_before);
        sample.device_read_bytes = device.map(|(after, before)| after.read - before.read);
        sample.device_written_bytes = device.map(|(after, before)| after.written - before.written);
        sample.src_resident_bytes_before = reached.resident_bytes;
        sample.src_resident_bytes_after = src_after;
        sample.dst_resident_bytes_before = dst_after.map(|_| 0);
        sample.dst_resident_bytes_after = dst_after;
        sample.verified = true;
        sample.refusals = share.refusals.join("; ");
        sample.last_resort_bytes = share.last_resort_bytes;
        sample.shares_extents = match dst_after {
            // Bytes that were written are dirty in the page cache, or were sent to the device.
            Some(resident) => {
                let written = sample.device_written_bytes;
                resident == 0 && written.is_some_and(|bytes| bytes < task.load.bytes / 2)
            }
            // What cannot be seen is known of the one engine that does nothing else.
            None => variant.engine.name == "reflink",
        };
        self.judge(&mut sample, reached, task, bypasses_cache);
        Ok(Outcome::Measured(Box::new(sample)))
    }

    /// Copies one file under the clock.
    fn copy_part(
        &self,
        variant: &Variant,
        chain: &mut Chain,
        part: Part,
        (src, dst): (&OwnedFd, &OwnedFd),
        spent: &mut Spent,
        share: &mut Share,
    ) -> Result<(), Error> {
        let mut file = chain.file(Pair::new(src.as_fd(), dst.as_fd()));
        let mut attempts = [None; 2];
        let mut observe = |tried: &Variant, _: Span, moved: Moved| {
            attempts[usize::from(tried != variant)] = Some(moved);
        };
        let moved = spent.time(|| file.copy(Span::whole(part.bytes), &mut observe));
        if let Some(own) = attempts[0] {
            share.own_bytes += own.bytes;
            match own.stop {
                // One refusal of a kind is enough said.
                Stop::Refused(errno) | Stop::Failed { errno, .. } => share.refused(own, errno),
                Stop::Done | Stop::Eof => {}
            }
        }
        share.last_resort_bytes += attempts[1].map_or(0, |moved| moved.bytes);
        match moved.stop {
            Stop::Done => Ok(()),
            Stop::Eof => Err(Error::SourceChanged(self.source.path_of(part.file))),
            Stop::Refused(errno) => Err(self.failed(variant, engines::Side::Pair, errno)),
            Stop::Failed { side, errno } => Err(self.failed(variant, side, errno)),
        }
    }

    fn failed(&self, variant: &Variant, side: engines::Side, errno: Errno) -> Error {
        Error::CopyFailed { variant: variant.to_string(), side, errno }
    }

    fn dst_resident_bytes(&self, load: &Load, copies: &[OwnedFd]) -> Result<Option<u64>, Error> {
        let mut sum = 0;
        for (index, part) in load.parts.iter().enumerate() {
            let counted = match copies.get(index) {
                Some(fd) => state::resident_bytes(fd.as_fd(), part.bytes),
                None => state::resident_bytes(self.reopen(index)?.as_fd(), part.bytes),
            };
            match counted {
                Ok(bytes) => sum += bytes,
                Err(_) => return Ok(None),
            }
        }
        Ok(Some(sum))
    }

    fn verify(&self, variant: &Variant, task: &Task, copies: &[OwnedFd]) -> Result<(), Error> {
        for (index, part) in task.load.parts.iter().enumerate() {
            let reading = Error::path("cannot read the copy of", self.source.path_of(part.file));
            let difference = match copies.get(index) {
                Some(fd) => task.digests.difference(index, part.bytes, fd.as_fd()),
                None => task.digests.difference(index, part.bytes, self.reopen(index)?.as_fd()),
            };
            if let Some(how) = difference.map_err(reading)? {
                // The engine is not to blame when somebody wrote to the source meanwhile.
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
        rustix::fs::openat(self.scratch.dir(), &name, flags, rustix::fs::Mode::empty())
            .map_err(Error::path("cannot open", self.scratch.path().join(&name)))
    }

    /// Removing a copy takes its dirty pages with it, so that nothing of it is left to be written
    /// during the next run. It waits for pages that are on their way to the device already.
    fn remove(&self, load: &Load) -> Result<(), Error> {
        (0..load.parts.len()).try_for_each(|index| self.scratch.remove_file(&index.to_string()))
    }

    /// Sets down which state the run really had, and whether it counts.
    fn judge(&self, sample: &mut Sample, reached: Reached, task: &Task, bypasses_cache: bool) {
        sample.state_proved = reached.proof;
        sample.state_note = reached.note;
        let disagreement = self.prover.disagrees(
            reached.proof,
            sample.device_read_bytes,
            self.source.allocated_bytes(&task.load),
            bypasses_cache,
            sample.shares_extents,
        );
        if let Some(why) = disagreement {
            sample.state_proved = Proof::NotReached;
            sample.state_note = why;
        }
        sample.counted = sample.state_proved != Proof::NotReached;
    }

    fn floor_sample(&self, variant: &Variant, task: &Task, place: Place, spent: Spent) -> Sample {
        let mut sample = self.blank_sample(variant, task, place, spent);
        sample.counted = true;
        "no file is read, so the page cache plays no part".clone_into(&mut sample.state_note);
        sample
    }

    fn blank_sample(&self, variant: &Variant, task: &Task, place: Place, spent: Spent) -> Sample {
        let Spent { elapsed_ns, usage } = spent;
        Sample {
            variant: variant.to_string(),
            engine: variant.engine.name,
            workers: variant.workers,
            stage: place.stage,
            round: place.round,
            order_in_round: place.order_in_round,
            bytes: task.load.bytes,
            elapsed_ns,
            user_ns: usage.user_ns,
            system_ns: usage.system_ns,
            minor_faults: usage.minor_faults,
            major_faults: usage.major_faults,
            voluntary_switches: usage.voluntary_switches,
            involuntary_switches: usage.involuntary_switches,
            device_read_bytes: None,
            device_written_bytes: None,
            src_resident_bytes_before: None,
            src_resident_bytes_after: None,
            dst_resident_bytes_before: None,
            dst_resident_bytes_after: None,
            state_wanted: self.state,
            state_proved: Proof::Unverified,
            state_note: String::new(),
            verified: false,
            counted: false,
            refusals: String::new(),
            last_resort_bytes: 0,
            shares_extents: false,
        }
    }
}

/// Copies kept open until they are compared. More files than these are opened a second time.
const OPEN_COPIES_MAX: usize = 256;

impl Spent {
    /// Runs `work` under the clock and adds what it took.
    fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let now = || usage(Whose::Process).unwrap_or_default();
        let usage_before = now();
        let begun = Instant::now();
        let result = work();
        let elapsed = begun.elapsed();
        self.usage = self.usage.plus(now().since(usage_before));
        self.elapsed_ns += u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        result
    }
}

impl Share {
    fn refused(&mut self, moved: Moved, errno: Errno) {
        let words = engines::describe(errno);
        let text = match moved.bytes {
            0 => words,
            bytes => format!("{words} after {bytes} bytes"),
        };
        if self.refusals.len() < 3 && !self.refusals.contains(&text) {
            self.refusals.push(text);
        }
    }
}

/// The words of an error without its number.
fn words_of(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => engines::describe(Errno::from_raw_os_error(number)),
        None => error.to_string(),
    }
}
