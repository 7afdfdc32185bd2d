//! A source whose page cache state is set before each run, and proved before and after it.

use std::os::fd::OwnedFd;

use engines::Errno;

use super::interface::Setting;
use super::source_facts;
use crate::clock::Counters;
use crate::error::Error;
use crate::page_cache::prover::{Prover, Reached};
use crate::page_cache::state::State;
use crate::sample::measurement::Measurement;
use crate::source::{Load, Part, Source};

/// The file, or the files, that a workload reads.
#[derive(Debug)]
pub(crate) struct CachedSource {
    pub(crate) source: Source,
    pub(crate) load: Load,
    pub(super) prover: Prover,
    state: State,
}

/// A run whose source has its state and whose counters were read.
#[derive(Debug)]
pub(crate) struct StartedRun {
    reached: Reached,
    counters: Counters,
}

impl CachedSource {
    /// The source of a cell, made if it does not exist.
    pub(crate) fn open(setting: &Setting<'_>) -> Result<CachedSource, Error> {
        let source = Source::open(&setting.dirs.source(setting.cell, setting.nth)?)?;
        let load = source.whole();
        let prover = source_facts::prover(&source, setting.cell.state)?;
        Ok(CachedSource { source, load, prover, state: setting.cell.state })
    }

    /// Sets the state and proves it.
    pub(crate) fn begin(&self) -> Result<StartedRun, Error> {
        let reached = self.prover.reach(self.state, &self.source, &self.load)?;
        Ok(StartedRun { reached, counters: Counters::read() })
    }

    /// Fills in what a run took beside its time, and its state. `verified` and what concerns a
    /// destination is the caller's.
    pub(crate) fn end(&self, run: StartedRun, measured: &mut Measurement) -> Result<(), Error> {
        self.took(&run, measured)?;
        self.judge(run, measured, false);
        Ok(())
    }

    /// Fills in what a run took beside its time, without its state.
    pub(crate) fn took(&self, run: &StartedRun, measured: &mut Measurement) -> Result<(), Error> {
        run.counters.fill_since(measured);
        if self.state != State::Warm {
            // Kernel threads may serve the device, and it may be they that the run waited for.
            measured.processor_wait_ns = None;
        }
        measured.src_resident_bytes_before = run.reached.resident_bytes;
        measured.src_resident_bytes_after = self.prover.resident_bytes(&self.source, &self.load)?;
        Ok(())
    }

    /// Fills in the state of a run. `measured` says whether extents were shared; for
    /// `bypasses_cache` see [`Prover::judge`].
    pub(crate) fn judge(
        &self,
        started: StartedRun,
        measured: &mut Measurement,
        bypasses_cache: bool,
    ) {
        let on_medium_bytes = self.source.allocated_bytes(&self.load);
        self.prover.judge(measured, started.reached, on_medium_bytes, bypasses_cache);
    }

    /// Reads a part of the source, whose bytes `take` gets.
    pub(super) fn read(&self, part: &Part, take: impl FnMut(&[u8])) -> Result<(), Error> {
        let fd = self.source.open_file(part.file)?;
        let path = self.source.path_of(part.file);
        let read = by_reading(&fd, &mut vec![1; 1 << 20], part.bytes, take);
        match read.map_err(Error::path("cannot read", &path))? {
            bytes if bytes == part.bytes => Ok(()),
            _ => Err(Error::SourceChanged(path)),
        }
    }

    /// An error when another process has written to the source.
    pub(crate) fn check_unchanged(&self) -> Result<(), Error> {
        self.load.parts.iter().try_for_each(|part| self.source.open_file(part.file).map(drop))
    }
}

/// Reads up to `bytes` of `fd` and returns how many there were.
pub(super) fn by_reading(
    fd: &OwnedFd,
    buffer: &mut [u8],
    bytes: u64,
    mut take: impl FnMut(&[u8]),
) -> rustix::io::Result<u64> {
    let mut done = 0;
    while done < bytes {
        match rustix::io::read(fd, &mut *buffer) {
            Ok(0) => break,
            Ok(got) => {
                take(&buffer[..got]);
                done += got as u64;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(done)
}
