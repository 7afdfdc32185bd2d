//! Times every read(2) and every write(2) of a copy.
//!
//! The clock is read once between two calls: the end of one is the start of the next. The cost of
//! that read is part of the time of each call; it is measured and reported. Times are stored as
//! they come and counted after the run.

use std::os::fd::{AsFd, BorrowedFd};

use engines::Errno;
use sys::Buffer;

use super::cached_source::CachedSource;
use super::interface::{Needs, ReadyVariant, Setting, StartResult, Workload};
use super::output::Output;
use super::parameters;
use crate::clock::{Clock, now_ns, reading_ns};
use crate::definition::cell::Cell;
use crate::error::Error;
use crate::sample::call_times::{CallTimes, OpTimes};
use crate::sample::measurement::Measurement;
use crate::trial::NotRun;
use crate::trial::digest::Digests;

pub(crate) static CALLS: Workload = Workload {
    name: NAME,
    variants: "the bytes of a buffer, as 64K",
    check: |variant| parameters::bytes_of(variant, BUFFER_BYTES_MAX).map(drop),
    start,
    needs,
    has_state: true,
    can_be_durable: false,
    calls_of_run: None,
};

/// What experiments call it.
pub(crate) const NAME: &str = "calls";

/// The largest buffer.
const BUFFER_BYTES_MAX: u64 = 1 << 30;

/// The most calls of one kind that are recorded in a run: 256 MiB of times each.
const CALLS_MAX: u64 = 1 << 26;

fn needs(cell: &Cell) -> Needs {
    let bytes = cell.run_bytes();
    // Four bytes for the time of each read and of each write, for a buffer of 4 KiB. Smaller ones
    // take more, up to `CALLS_MAX`, but their runs are of small files or never end.
    Needs { src_bytes: bytes, dst_bytes: bytes, kept_bytes: 0, memory_bytes: bytes / 4096 * 8 }
}

struct Calls {
    cached: CachedSource,
    output: Output,
    /// Written once, like the two below: a page fault would be part of the time of a call.
    buffer: Buffer,
    reads: Times,
    writes: Times,
    last: Option<CallTimes>,
}

/// The times of calls in nanoseconds. Longer ones count as 4.2 seconds.
type Times = Vec<u32>;

/// No times, with room for those of `calls`. It is written to before, and so has no page faults later.
/// Short reads need more calls.
fn with_room_for(calls: usize) -> Times {
    let mut times = vec![u32::MAX; calls];
    times.clear();
    times
}

fn add(times: &mut Times, elapsed_ns: u64) {
    times.push(u32::try_from(elapsed_ns).unwrap_or(u32::MAX));
}

fn start(setting: &Setting<'_>, text: &str) -> StartResult {
    parameters::one_file(setting.cell)?;
    let buffer_bytes = parameters::bytes_of(text, BUFFER_BYTES_MAX)?;
    let calls = setting.cell.file_bytes.div_ceil(buffer_bytes as u64);
    if calls > CALLS_MAX {
        let why = format!("{calls} reads are more than the {CALLS_MAX} that are recorded");
        return Err(why.into());
    }
    let calls = usize::try_from(calls).expect("no more than CALLS_MAX");
    let buffer = parameters::touched(buffer_bytes)?;
    let cached = CachedSource::open(setting)?;
    let expected = Digests::of(&cached.source, &cached.load)?;
    Ok(Box::new(Calls {
        cached,
        output: Output::new(setting, text, expected)?,
        buffer,
        reads: with_room_for(calls),
        writes: with_room_for(calls),
        last: None,
    }))
}

/// Copies until the source ends and notes what each call took. An error comes with the word for its
/// side.
fn copy(
    (src, dst): (BorrowedFd<'_>, BorrowedFd<'_>),
    buffer: &mut [u8],
    (reads, writes): (&mut Times, &mut Times),
) -> Result<(), (&'static str, Errno)> {
    let mut before_ns = now_ns();
    loop {
        let got = rustix::io::read(src, &mut *buffer);
        let after_ns = now_ns();
        let got = match got {
            Ok(0) => return Ok(()),
            Ok(got) => got,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(("reading", errno)),
        };
        add(reads, after_ns - before_ns);
        before_ns = after_ns;
        let mut written = 0;
        while written < got {
            let result = rustix::io::write(dst, &buffer[written..got]);
            let after_ns = now_ns();
            match result {
                Ok(0) => return Err(("writing", Errno::IO)),
                Ok(count) => written += count,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(("writing", errno)),
            }
            add(writes, after_ns - before_ns);
            before_ns = after_ns;
        }
    }
}

impl ReadyVariant for Calls {
    fn run(&mut self, clock: Clock<'_>) -> Result<Measurement, NotRun> {
        let opened = self.output.open()?;
        let started = self.cached.begin()?;
        let src = self.cached.source.open_file(self.cached.load.parts[0].file)?;
        self.reads.clear();
        self.writes.clear();
        let clock_ns = reading_ns();
        let mut measured = Measurement::default();
        let copied = clock.time(&mut measured, || {
            let ends = (src.as_fd(), opened.fd.as_fd());
            copy(ends, self.buffer.as_mut_slice(), (&mut self.reads, &mut self.writes))
        });
        copied.map_err(|(side, errno)| {
            let why = engines::describe(errno);
            Error::Unknown(format!("buffer of {}: {side}: {why}", self.output.variant))
        })?;
        self.output.sync(&opened, &mut measured)?;
        self.cached.end(started, &mut measured)?;
        self.output.end(opened, &mut measured)?;
        let (read, write) = (OpTimes::of(&self.reads), OpTimes::of(&self.writes));
        measured.calls = Some(read.calls() + write.calls());
        self.last = Some(CallTimes { clock_ns, read, write });
        Ok(measured)
    }

    fn take_call_times(&mut self) -> Option<CallTimes> {
        self.last.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::measurement::Measurement;
    use crate::workload::tests::TestCell;

    const BYTES: u64 = (1 << 20) + 77;

    fn run(trial: &TestCell, variant: &str) -> (Measurement, CallTimes) {
        let mut started = trial.started(variant);
        for _ in 0..5 {
            let measured = started.run(Clock::default()).expect("it runs");
            let times = started.take_call_times().expect("they were taken");
            assert_eq!(started.take_call_times(), None, "once only");
            // What other tests of the process read from a device is counted with it.
            if measured.minor_faults < 50 && measured.counted {
                return (measured, times);
            }
        }
        panic!("{variant} faults or reads from a device in every run");
    }

    fn sum_ns(times: &OpTimes) -> u64 {
        times.buckets.iter().map(|bucket| bucket.sum_ns).sum()
    }

    #[test]
    fn all_calls_are_in_the_whole() {
        let trial = TestCell::new(&CALLS, BYTES);
        for (variant, calls) in [("4K", 257), ("64K", 17), ("8M", 1), ("1000", 1049)] {
            let (measured, times) = run(&trial, variant);
            assert_eq!((times.read.calls(), times.write.calls()), (calls, calls), "{variant}");
            assert_eq!(measured.calls, Some(2 * calls));
            assert_eq!(times.read.sequence_ns.len() as u64, calls);
            let parts_ns = sum_ns(&times.read) + sum_ns(&times.write);
            // The last read, which finds the end, is in the whole alone.
            assert!(parts_ns <= measured.elapsed_ns, "{parts_ns} {measured:?}");
            assert!(parts_ns * 10 > measured.elapsed_ns * 8, "{parts_ns} {measured:?}");
            assert!(measured.verified);
            assert!((1..10_000).contains(&times.clock_ns), "{}", times.clock_ns);
        }
    }

    #[test]
    fn too_many_calls_are_refused() {
        let mut trial = TestCell::new(&CALLS, 100 << 20);
        let why = trial.refusal("1");
        assert_eq!(why, "104857600 reads are more than the 67108864 that are recorded");
    }
}
