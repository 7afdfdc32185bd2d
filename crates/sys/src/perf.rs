//! Counters of the processor or of the kernel: perf_event_open(2).

use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use rustix::io::{self, Errno};

use super::last_errno;

/// The event that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Retired instructions (PERF_COUNT_HW_INSTRUCTIONS).
    Instructions,
    /// Misses of the last-level cache (PERF_COUNT_HW_CACHE_MISSES).
    CacheMisses,
    /// Page faults (PERF_COUNT_SW_PAGE_FAULTS). The kernel counts them without hardware.
    PageFaults,
}

/// A running count for the thread that opened it, and for all threads and processes that it creates
/// later.
#[derive(Debug)]
pub struct PerfCounter {
    fd: OwnedFd,
}

/// The first version of `struct perf_event_attr` of linux/perf_event.h (PERF_ATTR_SIZE_VER0), which
/// every kernel accepts.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
}

const PERF_TYPE_HARDWARE: u32 = 0;
const PERF_TYPE_SOFTWARE: u32 = 1;
const PERF_COUNT_HW_INSTRUCTIONS: u64 = 1;
const PERF_COUNT_HW_CACHE_MISSES: u64 = 3;
const PERF_COUNT_SW_PAGE_FAULTS: u64 = 2;

/// Bits of the bit field. Threads created later are counted. The kernel and the hypervisor are
/// excluded.
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;

/// The count is followed by the times for which it was enabled and for which it ran: a processor
/// with too few counters multiplexes them.
const READ_FORMAT: u64 = 1 | 2;

const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;

/// A count, and the part of the time for which it ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerfCount {
    /// Events counted while it ran.
    pub counted: u64,
    /// Time for which it was enabled, in nanoseconds, summed over threads.
    pub enabled_ns: u64,
    /// Time for which it ran, in nanoseconds.
    pub running_ns: u64,
}

impl PerfCount {
    /// Events since `earlier`, scaled up if the counter ran only for a part of the time. `None` if
    /// it was enabled and did not run.
    #[must_use]
    pub fn since(self, earlier: PerfCount) -> Option<u64> {
        let counted = self.counted.saturating_sub(earlier.counted);
        let enabled_ns = self.enabled_ns.saturating_sub(earlier.enabled_ns);
        let running_ns = self.running_ns.saturating_sub(earlier.running_ns);
        if running_ns >= enabled_ns {
            return Some(counted);
        }
        if running_ns == 0 {
            return None;
        }
        let scaled = u128::from(counted) * u128::from(enabled_ns) / u128::from(running_ns);
        u64::try_from(scaled).ok()
    }
}

impl PerfCounter {
    /// `int perf_event_open(struct perf_event_attr *, pid_t, int cpu, int group_fd, unsigned long)`
    ///
    /// Starts to count for this thread and for threads and processes that it creates later, in user
    /// mode and in the kernel. If counting in the kernel is forbidden
    /// (`/proc/sys/kernel/perf_event_paranoid`), counts in user mode only.
    ///
    /// # Errors
    /// `NOENT`, `OPNOTSUPP`: the processor or the hypervisor has no such counter. `ACCESS`, `PERM`:
    /// counting is forbidden. `NOSYS`: the kernel lacks the call.
    pub fn open(event: Event) -> io::Result<PerfCounter> {
        match open(event, INHERIT) {
            Err(Errno::ACCESS | Errno::PERM) => open(event, INHERIT | EXCLUDE_KERNEL | EXCLUDE_HV),
            opened => opened,
        }
        .map(|fd| PerfCounter { fd })
    }

    /// The count so far, by one read(2).
    ///
    /// # Errors
    /// Those of read(2).
    pub fn read(&self) -> io::Result<PerfCount> {
        let mut bytes = [0; 24];
        let got = io::read(self.fd.as_fd(), &mut bytes)?;
        if got != bytes.len() {
            return Err(Errno::IO);
        }
        let word = |index: usize| {
            let bytes = &bytes[index * 8..index * 8 + 8];
            u64::from_ne_bytes(bytes.try_into().expect("8 bytes"))
        };
        Ok(PerfCount { counted: word(0), enabled_ns: word(1), running_ns: word(2) })
    }
}

fn open(event: Event, flags: u64) -> io::Result<OwnedFd> {
    let (kind, config) = match event {
        Event::Instructions => (PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS),
        Event::CacheMisses => (PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES),
        Event::PageFaults => (PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS),
    };
    let attributes = Attributes {
        kind,
        size: u32::try_from(size_of::<Attributes>()).expect("64"),
        config,
        read_format: READ_FORMAT,
        flags,
        ..Attributes::default()
    };
    let (this_thread, any_cpu, no_group): (libc::pid_t, libc::c_int, libc::c_int) = (0, -1, -1);
    // SAFETY: the kernel reads one `struct perf_event_attr`, whose first version has the layout
    // above and the length that it states. The other arguments are numbers.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            this_thread,
            any_cpu,
            no_group,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    let fd = i32::try_from(fd).expect("a descriptor or -1");
    if fd < 0 {
        return Err(last_errno());
    }
    // SAFETY: the call just returned this descriptor, which no other code owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens a counter; `None` if counting is forbidden.
    fn opened(event: Event) -> Option<PerfCounter> {
        match PerfCounter::open(event) {
            Ok(counter) => Some(counter),
            Err(errno @ (Errno::ACCESS | Errno::PERM | Errno::NOSYS)) => {
                testfs::skip(&testfs::test_name(), &format!("no perf_event_open here: {errno}"));
                None
            }
            Err(errno) => panic!("{errno}"),
        }
    }

    fn touch_pages(pages: usize) {
        let bytes = pages * rustix::param::page_size();
        let map = crate::map::Map::untouched(bytes).expect("mapped");
        let mut dst = crate::map::Map::untouched(bytes).expect("mapped");
        crate::map::Map::copy_memory(&mut dst, &map, bytes);
    }

    #[test]
    fn faults_are_counted_in_this_thread_and_in_later_threads() {
        let Some(counter) = opened(Event::PageFaults) else { return };
        let before = counter.read().expect("read");
        touch_pages(100);
        let here = counter.read().expect("read");
        // The shared zero page and large pages may reduce the count.
        assert!(here.since(before).expect("it ran") >= 1, "{here:?}");
        std::thread::spawn(|| {
            for _ in 0..50 {
                touch_pages(1);
            }
        })
        .join()
        .expect("joined");
        let there = counter.read().expect("read").since(here).expect("it ran");
        assert!(there >= 100, "{there} faults, two a page");
    }

    #[test]
    fn a_missing_hardware_counter_is_reported() {
        for event in [Event::Instructions, Event::CacheMisses] {
            match PerfCounter::open(event) {
                Ok(counter) => {
                    let before = counter.read().expect("read");
                    touch_pages(100);
                    let count = counter.read().expect("read").since(before);
                    assert!(event == Event::CacheMisses || count > Some(100), "{count:?}");
                }
                Err(errno) => {
                    let told = [Errno::NOENT, Errno::OPNOTSUPP, Errno::ACCESS, Errno::PERM]
                        .contains(&errno)
                        || errno == Errno::NOSYS;
                    assert!(told, "{event:?}: {errno}");
                }
            }
        }
    }

    #[test]
    fn multiplexed_counters_are_scaled() {
        let at = |counted, enabled_ns, running_ns| PerfCount { counted, enabled_ns, running_ns };
        let start = at(100, 1000, 1000);
        assert_eq!(at(150, 2000, 2000).since(start), Some(50));
        assert_eq!(at(150, 2000, 1500).since(start), Some(100));
        assert_eq!(at(100, 2000, 1000).since(start), None);
        assert_eq!(start.since(start), Some(0));
    }
}
