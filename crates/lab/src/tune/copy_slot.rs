//! A copy slot: a source and a destination directory of its own, so that several copies can be in
//! flight.

use std::cell::Cell;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use engines::profile::Residency;
use rustix::fs::Mode;
use rustix::io::Errno;

use super::case::Case;
use super::heuristics::{LAST_RESORT_SHARE_MAX, LONG_BYTES, SHORT_BYTES};
use crate::clock::{Barrier, Clock};
use crate::definition::cell::Destination;
use crate::error::Error;
use crate::page_cache::prover::{Prover, read_anew};
use crate::sample::measurement::Measurement;
use crate::scratch::files::write_random;
use crate::scratch::{Scratch, WorkDir};
use crate::source::{Load, Source};
use crate::trial::digest::Digests;
use crate::trial::{Bench, Outcome, Runner, Task};

/// The files of one copier.
#[derive(Debug)]
pub(super) struct CopySlot {
    source: Source,
    task: Task,
    /// The start of it, where all of it is so long that a slow variant would take all the time.
    short: Option<Task>,
    /// Where its copies go, to one after another.
    dsts: Vec<WorkDir>,
    runs: AtomicUsize,
    /// The directories of its source and of its copies.
    paths: [PathBuf; 2],
}

/// What of a source is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// All, in all copy slots at once.
    Whole,
    /// The start, in the first copy slot alone.
    Short,
}

impl CopySlot {
    /// Makes the files of copy slot `nth` for a class of lengths: random bytes, which no file
    /// system can shorten or find twice, written to the medium.
    ///
    /// # Errors
    /// When they cannot be made.
    pub(super) fn make(
        case: &Case,
        nth: usize,
        (src, dst): (&Scratch, &Scratch),
        seed: u64,
    ) -> Result<CopySlot, Error> {
        let name = format!("{}-{}-{nth}", case.file_bytes, case.files);
        let path = src.path().join(&name);
        make_dir(src, &name)?;

        let mut rng = fastrand::Rng::with_seed(seed ^ case.file_bytes ^ (nth as u64) << 48);
        for file in 0..case.files {
            write_random(&path.join(format!("{file:04}")), case.file_bytes, &mut rng)?;
        }
        rustix::fs::syncfs(src.dir()).map_err(Error::path("cannot sync", &path))?;
        let source = Source::open(&path)?;
        let load = source.whole();
        if case.situation.residency == Residency::Resident {
            read_half_anew(&source, &load)?;
        }
        let task_of = |load: Load| -> Result<Task, Error> {
            Ok(Task { digests: Digests::of(&source, &load)?, load })
        };
        let long = load.bytes > LONG_BYTES;
        let short = long.then(|| task_of(source.first(SHORT_BYTES))).transpose()?;
        let task = task_of(load)?;
        let name = format!("copies-{name}");
        let copies = dst.path().join(&name);
        make_dir(dst, &name)?;
        let home = WorkDir::open(&copies)?;
        let dsts = (0..case.copies_kept()).map(|nth| {
            let name = nth.to_string();
            make_dir(&home, &name)?;
            WorkDir::open(&copies.join(name))
        });
        let dsts = dsts.collect::<Result<_, _>>()?;
        let paths = [path, copies];
        Ok(CopySlot { source, task, short, dsts, runs: AtomicUsize::new(0), paths })
    }

    /// Removes its files.
    ///
    /// # Errors
    /// When they cannot be removed.
    pub(super) fn remove(self) -> Result<(), Error> {
        let CopySlot { source, dsts, paths, .. } = self;
        drop((source, dsts));
        for dir in paths {
            std::fs::remove_dir_all(&dir).map_err(Error::path("cannot remove", dir))?;
        }
        Ok(())
    }

    /// Tries the prover on its source.
    ///
    /// # Errors
    /// When the source cannot be read.
    pub(super) fn prover(&self, case: &Case) -> Result<Prover, Error> {
        Prover::try_on(&self.source, case.state())
    }

    /// Whether its source is so long that the start of it can be copied alone.
    pub(super) fn has_start(&self) -> bool {
        self.short.is_some()
    }

    /// Puts its source into the state that `case` wants.
    fn reach(&self, case: &Case, prover: &Prover) -> Result<(), Error> {
        prover.reach(case.state(), &self.source, &self.task.load).map(|_| ())
    }

    fn run(
        &self,
        case: &Case,
        prover: &Prover,
        runner: &mut Runner,
        length: Length,
        gate: Option<&Gate<'_>>,
    ) -> Result<Outcome, Error> {
        let short = self.short.as_ref().filter(|_| length == Length::Short);
        let task = short.unwrap_or(&self.task);
        let clock = Clock { barrier: gate.map(|gate| gate as &dyn Barrier), ..Clock::default() };
        // Its copy takes the place of the oldest.
        let dst = &self.dsts[self.runs.fetch_add(1, Ordering::Relaxed) % self.dsts.len()];
        dst.remove_files()?;
        let bench = Bench {
            source: &self.source,
            dst,
            prover,
            state: case.state(),
            destination: Destination::Fresh,
            stays: self.dsts.len() > 1,
            // Pages leave the cache once they are written out, and not before.
            durable: case.situation.no_cache,
            clock,
        };
        let outcome = bench.run(runner, task);
        if outcome.is_err() {
            // As far as it can be; the scratch directory takes the rest with it.
            let _ = dst.remove_files();
        }
        outcome
    }
}

/// Runs a variant once, by a runner in each copy slot, all at the same time. The time is that of a
/// copy slot, the mean of all.
///
/// # Errors
/// When a source cannot be read or has changed, a destination cannot be written, or a copy is
/// wrong. A copy that failed is a refusal and not an error, since another variant may work; but a
/// full disk is an error.
pub(super) fn run(
    case: &Case,
    prover: &Prover,
    slots: &[CopySlot],
    runners: &mut [Runner],
    length: Length,
) -> Result<Outcome, Error> {
    let outcomes: Vec<Result<Outcome, Error>> = match (slots, &mut *runners) {
        ([slot, ..], [runner, ..]) if slots.len() == 1 || length == Length::Short => {
            vec![slot.run(case, prover, runner, length, None)]
        }
        _ => {
            // All sources before any copy: a copy slot that still reads its source would disturb
            // the others.
            slots.iter().try_for_each(|slot| slot.reach(case, prover))?;
            at_once(case, prover, slots, runners)
        }
    };
    let mut all: Vec<Measurement> = Vec::new();
    for outcome in outcomes {
        match outcome {
            Ok(Outcome::Measured(measured)) => all.push(*measured),
            Ok(refused) => return Ok(refused),
            // A full disk says nothing about the variant, which would otherwise count as refused.
            Err(failed @ Error::CopyFailed { errno, .. }) if !is_of_the_disk(errno) => {
                return Ok(Outcome::Refused(failed.to_string()));
            }
            Err(error) => return Err(error),
        }
    }
    let bytes = match length {
        Length::Whole => case.slot_bytes() as f64,
        Length::Short => SHORT_BYTES as f64,
    };
    let instead = all.iter().find(|m| m.last_resort_bytes as f64 > LAST_RESORT_SHARE_MAX * bytes);
    if let Some(measured) = instead {
        return Ok(Outcome::Refused(measured.refusals.clone()));
    }
    let time = |measured: &Measurement| match case.situation.no_cache {
        true => measured.durable_ns.unwrap_or(measured.elapsed_ns),
        false => measured.elapsed_ns,
    };
    let count = all.len() as u64;
    let mean_ns = (all.iter().map(time).sum::<u64>() / count).max(1);
    let shares_extents = all.iter().any(|measured| measured.shares_extents);
    let measured = Measurement::together(&all);
    Ok(Outcome::Measured(Box::new(Measurement { elapsed_ns: mean_ns, shares_extents, ..measured })))
}

/// Whether every other variant would have failed too.
fn is_of_the_disk(errno: Errno) -> bool {
    matches!(errno, Errno::NOSPC | Errno::DQUOT | Errno::ROFS)
}

fn at_once(
    case: &Case,
    prover: &Prover,
    slots: &[CopySlot],
    runners: &mut [Runner],
) -> Vec<Result<Outcome, Error>> {
    let all = std::sync::Barrier::new(slots.len());
    std::thread::scope(|scope| {
        let copying: Vec<_> = slots
            .iter()
            .zip(runners)
            .map(|(slot, runner)| {
                let all = &all;
                scope.spawn(move || {
                    let gate = Gate { all, passed: Cell::new(0) };
                    slot.run(case, prover, runner, Length::Whole, Some(&gate))
                })
            })
            .collect();
        let joined = copying.into_iter().map(|thread| thread.join());
        joined.map(|outcome| outcome.expect("a copy slot does not panic")).collect()
    })
}

/// A copy slot's way past the others: all wait for each other before and after their timed parts. One
/// that ends early, also by a panic, keeps no other waiting.
#[derive(Debug)]
struct Gate<'g> {
    all: &'g std::sync::Barrier,
    passed: Cell<u8>,
}

impl Gate<'_> {
    fn pass(&self, place: u8) {
        while self.passed.get() < place {
            self.passed.set(self.passed.get() + 1);
            self.all.wait();
        }
    }
}

impl Barrier for Gate<'_> {
    fn wait(&self) {
        self.pass(1);
    }

    fn wait_behind(&self) {
        self.pass(2);
    }
}

impl Drop for Gate<'_> {
    fn drop(&mut self) {
        self.pass(2);
    }
}

/// Has the first half of a source in the page cache because it was read, the second because it was
/// written. The kernel makes larger pages of what is written than of what it reads ahead, if there
/// are any in memory, and which variant is fastest depends on that: by 20 % between reading and
/// splicing 256 KiB from ext4. Which of both the files of a user are is unknown.
fn read_half_anew(source: &Source, load: &Load) -> Result<(), Error> {
    let mut left = load.bytes / 2;
    for part in &load.parts {
        let bytes = part.bytes.min(left);
        left -= bytes;
        let fd = source.open_file(part.file)?;
        let reading = Error::path("cannot read", source.path_of(part.file));
        read_anew(fd.as_fd(), bytes).map_err(reading)?;
        if left == 0 {
            break;
        }
    }
    Ok(())
}

fn make_dir(parent: &WorkDir, name: &str) -> Result<(), Error> {
    rustix::fs::mkdirat(parent.dir(), name, Mode::RWXU)
        .map_err(Error::path("cannot create", parent.path().join(name)))
}

#[cfg(test)]
mod tests {
    use engines::profile::{InFlight, Situation, SizeClass};

    use super::*;

    /// Three threads pass a gate, of which the last leaves after `last_passes` passes. No thread
    /// waits for ever, and none passes before the threads that still take part.
    fn check(last_passes: usize) {
        let all = std::sync::Barrier::new(3);
        let (ready, behind) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let least = |passed: usize| if last_passes >= passed { 3 } else { 2 };
        std::thread::scope(|scope| {
            for nth in 0..3 {
                let (all, ready, behind) = (&all, &ready, &behind);
                scope.spawn(move || {
                    let gate = Gate { all, passed: Cell::new(0) };
                    let passes = if nth == 2 { last_passes } else { 2 };
                    if passes >= 1 {
                        std::thread::sleep(std::time::Duration::from_millis(5 * nth));
                        ready.fetch_add(1, Ordering::SeqCst);
                        gate.wait();
                        assert!(ready.load(Ordering::SeqCst) >= least(1));
                        // Each file of a copy slot asks; only the first waits.
                        gate.wait();
                    }
                    if passes >= 2 {
                        behind.fetch_add(1, Ordering::SeqCst);
                        gate.wait_behind();
                        assert!(behind.load(Ordering::SeqCst) >= least(2));
                    }
                });
            }
        });
    }

    #[test]
    fn a_copy_stays_until_others_lie_behind_it() {
        let home = tempfile::tempdir().expect("a directory");
        let scratch = || Scratch::create(home.path(), "tune").expect("scratch");
        let (src, dst) = (scratch(), scratch());
        let situation = Situation {
            size: SizeClass::ALL[0],
            residency: Residency::Resident,
            in_flight: InFlight::One,
            no_cache: false,
        };
        let case = Case::of(situation);
        let slot = CopySlot::make(&case, 0, (&src, &dst), 1).expect("a copy slot");
        let prover = slot.prover(&case).expect("a prover");
        let variant = "read_write:256K".parse().expect("a variant");
        let mut runner = Runner::start(&variant).expect("it starts");
        let files = || -> usize {
            let dirs = std::fs::read_dir(&slot.paths[1]).expect("copies");
            let files = dirs.flatten().map(|dir| std::fs::read_dir(dir.path()).expect("a copy"));
            files.map(Iterator::count).sum()
        };
        for run in 1..=10 {
            let outcome = slot.run(&case, &prover, &mut runner, Length::Whole, None);
            assert!(matches!(outcome, Ok(Outcome::Measured(_))), "{outcome:?}");
            assert_eq!(files(), run.min(8) * case.files as usize);
        }
        slot.remove().expect("removed");
        for scratch in [src, dst] {
            assert_eq!(std::fs::read_dir(scratch.path()).expect("listed").count(), 0);
        }
    }

    #[test]
    fn a_slot_that_left_is_not_waited_for() {
        (0..=2).for_each(check);
    }
}
