//! The clock, and the counters that are read before and after the timed part of a run.

pub mod device_bytes;
pub mod hardware_counters;
pub(crate) mod proc_file;
pub(crate) mod speed_probe;

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::time::{ClockId, clock_gettime};
use sys::{Usage, Whose, usage};

use crate::sample::measurement::Measurement;
use device_bytes::{DeviceBytes, device_bytes};
use proc_file::ProcFile;

/// Starts the timed part. Reading the counters costs more than a short run, so they are read
/// outside the two readings of the clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock<'c> {
    /// Waits until all that are to run at once are ready; called once, before the first look.
    pub barrier: Option<&'c dyn Barrier>,
    /// The share of its own time by which each timed part is made longer, by a loop that does
    /// nothing: the certificate's known slowdown. 0 in every true measurement.
    pub slowed_by: f64,
}

/// Where several processes or threads wait for each other.
pub trait Barrier: std::fmt::Debug {
    /// Returns when all of them are ready, and at once when they have been before.
    fn wait(&self);

    /// Called once behind the timed parts and before anything else is done: returns when all have
    /// come as far, where what follows would disturb the others.
    fn wait_behind(&self) {}
}

impl Clock<'_> {
    /// Runs `work` under the clock and adds what it took to `measured`.
    pub fn time<T>(&self, measured: &mut Measurement, work: impl FnOnce() -> T) -> T {
        if let Some(barrier) = self.barrier {
            barrier.wait();
        }
        let before_ns = undisturbed_ns(measured);
        let result = add(measured, |_| work());
        if self.slowed_by > 0.0 {
            // What other programs took is no part of what is to take longer.
            let own_ns = undisturbed_ns(measured) - before_ns;
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A time, positive.
            let longer_ns = (own_ns as f64 * self.slowed_by) as u64;
            add(measured, |started_ns| spin(started_ns, longer_ns));
        }
        result
    }
}

/// Runs `work`, which is told when it began, and adds what it took to `measured`.
fn add<T>(measured: &mut Measurement, work: impl FnOnce(u64) -> T) -> T {
    let usage_before = used();
    let waited_before = processor_wait_ns();
    let counts_before = hardware_counters::look();
    let started_ns = now_ns();
    let result = work(started_ns);
    let ended_ns = now_ns();
    let [instructions, cache_misses] = hardware_counters::look().since(counts_before);
    let waited_after = processor_wait_ns();
    let elapsed_ns = ended_ns - started_ns;
    let waited = waited_after.zip(waited_before).map(|(after, before)| after - before);
    // What does not fit between the two readings of the clock fell beside them.
    let waited = waited.map(|waited| if waited < elapsed_ns { waited } else { 0 });
    let usage = used().since(usage_before);
    let is_first = measured.started_ns == 0;
    // A sum is unknown when a part of it is.
    let add = |sum: &mut Option<u64>, more: Option<u64>| {
        *sum = if is_first { more } else { sum.zip(more).map(|(sum, more)| sum + more) };
    };
    add(&mut measured.processor_wait_ns, waited);
    add(&mut measured.instructions, instructions);
    add(&mut measured.cache_misses, cache_misses);
    measured.user_ns += usage.user_ns;
    measured.system_ns += usage.system_ns;
    measured.minor_faults += usage.minor_faults;
    measured.major_faults += usage.major_faults;
    measured.voluntary_switches += usage.voluntary_switches;
    measured.involuntary_switches += usage.involuntary_switches;
    measured.elapsed_ns += elapsed_ns;
    measured.durable_ns = measured.durable_ns.map(|durable_ns| durable_ns + elapsed_ns);
    measured.ended_ns = ended_ns;
    if is_first {
        measured.started_ns = started_ns;
    }
    result
}

/// Adds to `measured` that what was made is on the medium now, or has reached its receiver.
pub(crate) fn note_durable(measured: &mut Measurement) {
    *measured.durable_ns.get_or_insert(measured.elapsed_ns) += now_ns() - measured.ended_ns;
}

/// The time so far without the waiting for a processor.
fn undisturbed_ns(measured: &Measurement) -> u64 {
    measured.elapsed_ns - measured.processor_wait_ns.unwrap_or(0)
}

/// This process, and the children that it has waited for: an outside command is such a child.
fn used() -> Usage {
    let own = usage(Whose::Process).unwrap_or_default();
    own.plus(usage(Whose::Children).unwrap_or_default())
}

/// Time in which this thread was ready to run and waited for a processor, since it began: the
/// second number of /proc/thread-self/schedstat (the kernel's
/// Documentation/scheduler/sched-stats.rst). `None` where the kernel does not count it.
fn processor_wait_ns() -> Option<u64> {
    thread_local! {
        // Opened once: the file of a thread goes on telling of that thread.
        static SCHEDSTAT: Option<File> = File::open("/proc/thread-self/schedstat").ok();
    }
    let mut text = [0; 64];
    let got = SCHEDSTAT.with(|file| file.as_ref()?.read_at(&mut text, 0).ok())?;
    std::str::from_utf8(&text[..got]).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Does nothing for `ns` after `started_ns`, now. The clock of the processor's time costs a system
/// call, which is more than a short run may be made longer by; in so short a time no other
/// thread is likely to get the processor.
fn spin(started_ns: u64, ns: u64) {
    if ns < SHORT_NS {
        while now_ns() < started_ns + ns {}
    } else {
        let until_ns = processor_ns() + ns;
        while processor_ns() < until_ns {}
    }
}

const SHORT_NS: u64 = 200_000;

/// Processor time of this thread in nanoseconds.
fn processor_ns() -> u64 {
    as_ns(clock_gettime(ClockId::ThreadCPUTime))
}

/// CLOCK_MONOTONIC in nanoseconds.
pub fn now_ns() -> u64 {
    as_ns(clock_gettime(ClockId::Monotonic))
}

fn as_ns(time: rustix::time::Timespec) -> u64 {
    let unsigned = |value: i64| u64::try_from(value).unwrap_or(0);
    unsigned(time.tv_sec) * 1_000_000_000 + unsigned(time.tv_nsec)
}

/// Looks of which [`reading_ns`] takes the median.
const READINGS: usize = 1001;

/// What one reading of the clock costs, in nanoseconds: the median distance of many, one after
/// another.
pub fn reading_ns() -> u64 {
    let readings: Vec<u64> = (0..=READINGS).map(|_| now_ns()).collect();
    let mut distances: Vec<u64> = readings.windows(2).map(|pair| pair[1] - pair[0]).collect();
    distances.sort_unstable();
    distances[READINGS / 2]
}

/// Counters of the process and the machine, read before and after the timed part.
#[derive(Clone, Copy, Debug)]
pub struct Counters {
    device: Option<DeviceBytes>,
    memory: Option<Reclaim>,
}

/// What /proc/vmstat says of the search for memory.
#[derive(Clone, Copy, Debug, Default)]
struct Reclaim {
    scanned: u64,
    reclaimed: u64,
    swapped: u64,
}

impl Counters {
    /// Reads them.
    pub fn read() -> Counters {
        Counters { device: device_bytes(), memory: Reclaim::read() }
    }

    /// Fills in how far they have moved since.
    pub fn fill_since(&self, measured: &mut Measurement) {
        let after = Counters::read();
        let device = after.device.zip(self.device);
        measured.device_read_bytes = device.map(|(after, before)| after.read - before.read);
        measured.device_written_bytes =
            device.map(|(after, before)| after.written - before.written);
        let memory = after.memory.zip(self.memory);
        let moved = |field: fn(&Reclaim) -> u64| {
            memory.map(|(after, before)| field(&after).saturating_sub(field(&before)))
        };
        measured.pages_scanned = moved(|memory| memory.scanned);
        measured.pages_reclaimed = moved(|memory| memory.reclaimed);
        measured.pages_swapped = moved(|memory| memory.swapped);
    }
}

impl Reclaim {
    fn read() -> Option<Reclaim> {
        static VMSTAT: ProcFile = ProcFile::new("/proc/vmstat");
        VMSTAT.read(Reclaim::of)
    }

    fn of(vmstat: &str) -> Reclaim {
        let mut sums = Reclaim::default();
        for line in vmstat.lines().filter(|line| line.starts_with('p')) {
            let Some((name, value)) = line.split_once(' ') else { continue };
            let sum = match name {
                "pgscan_kswapd" | "pgscan_direct" | "pgscan_khugepaged" => &mut sums.scanned,
                "pgsteal_kswapd" | "pgsteal_direct" | "pgsteal_khugepaged" => &mut sums.reclaimed,
                "pswpin" | "pswpout" => &mut sums.swapped,
                _ => continue,
            };
            *sum += value.parse().unwrap_or(0);
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_for_memory_is_added_up() {
        let vmstat = "nr_free_pages 5\npswpin 1\npswpout 2\npgscan_kswapd 10\npgscan_direct 20\n\
                      pgscan_direct_throttle 7\npgscan_anon 99\npgsteal_kswapd 3\n\
                      pgsteal_direct 4\npgsteal_file 99\n";
        let sums = Reclaim::of(vmstat);
        assert_eq!((sums.scanned, sums.reclaimed, sums.swapped), (30, 7, 3));
        assert!(Reclaim::read().is_some());
    }

    #[test]
    fn the_timed_part_is_the_work_alone() {
        let mut measured = Measurement::default();
        let sleep = || std::thread::sleep(std::time::Duration::from_millis(10));
        Clock::default().time(&mut measured, sleep);
        let once = measured.elapsed_ns;
        assert!((10_000_000..200_000_000).contains(&once), "{once}");
        measured.cache_misses = None;
        Clock { slowed_by: 1.0, ..Clock::default() }.time(&mut measured, sleep);
        assert!(measured.elapsed_ns - once >= 20_000_000, "{measured:?}");
        assert!(measured.ended_ns - measured.started_ns >= measured.elapsed_ns);
        assert_eq!(measured.durable_ns, None);
        assert_eq!(measured.cache_misses, None, "of the first part they are unknown");
    }

    #[test]
    fn the_clock_makes_runs_longer_by_the_share_asked_for() {
        let time = |slowed_by| {
            let mut measured = Measurement::default();
            let clock = Clock { slowed_by, ..Clock::default() };
            clock.time(&mut measured, || spin(now_ns(), 3_000_000));
            undisturbed_ns(&measured) as f64
        };
        // A host that takes the processor may make any single run longer.
        let typical = |slowed_by| {
            let times: Vec<f64> = (0..15).map(|_| time(slowed_by)).collect();
            crate::stats::median(&times).expect("times")
        };
        let ratio = typical(0.5) / typical(0.0);
        assert!((1.3..1.75).contains(&ratio), "{ratio}");
    }

    #[test]
    fn waiting_for_a_processor_is_told_from_work_and_from_sleep() {
        let mut slept = Measurement::default();
        Clock::default()
            .time(&mut slept, || std::thread::sleep(std::time::Duration::from_millis(20)));
        assert!(slept.elapsed_ns >= 20_000_000);
        let Some(waited) = slept.processor_wait_ns else {
            testfs::skip(
                &testfs::test_name(),
                "this kernel does not count waiting for a processor",
            );
            return;
        };
        assert!(waited < slept.elapsed_ns, "a sleeper does not wait: {slept:?}");
        // More threads than processors, all at work: each of them has to wait.
        let threads = 2 * std::thread::available_parallelism().map_or(1, usize::from) + 1;
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| spin(now_ns(), 60_000_000));
            }
            let mut crowded = Measurement::default();
            Clock::default().time(&mut crowded, || spin(now_ns(), 60_000_000));
            let waited = crowded.processor_wait_ns.expect("it was told before");
            assert!(waited > 5_000_000, "{crowded:?}");
            let own = crowded.elapsed_ns - waited;
            assert!((55_000_000..200_000_000).contains(&own), "{crowded:?}");
        });
    }
}
