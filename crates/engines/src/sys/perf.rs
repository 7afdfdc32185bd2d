//! Counters of the processor, or of the kernel in its place: perf_event_open(2).

use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use rustix::io::{self, Errno};

use super::last_errno;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Instructions carried out (PERF_COUNT_HW_INSTRUCTIONS).
    Instructions,
    /// Misses of the processor's last cache (PERF_COUNT_HW_CACHE_MISSES).
    CacheMisses,
    /// Page faults (PERF_COUNT_SW_PAGE_FAULTS), which the kernel counts without any hardware.
    PageFaults,
}

/// A running count for the thread that opened it, and for all threads and processes that come of it
/// later.
#[derive(Debug)]
pub struct PerfCounter {
    fd: OwnedFd,
    user_only: bool,
}

/// `struct perf_event_attr` of linux/perf_event.h as far as its first version reaches
/// (PERF_ATTR_SIZE_VER0), which every kernel takes.
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

/// Bits of the bit field: threads started later count too; the kernel, or the hypervisor, does not.
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;

/// With the count come the times for which it was wanted and for which it ran: a processor with too
/// few counters takes turns.
const READ_FORMAT: u64 = 1 | 2;

const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;

/// A count, and how much of the time it ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerfCount {
    /// Events counted while it ran.
    pub counted: u64,
    /// Time for which it was wanted, in nanoseconds, summed over threads.
    pub enabled_ns: u64,
    /// Time for which it ran.
    pub running_ns: u64,
}

impl PerfCount {
    /// Events since `earlier`, scaled up where the counter ran only for a part of the time. `None`
    /// when it did not run at all though it was wanted.
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
    /// Begins to count for this thread and what will come of it, in user mode and in the kernel; where
    /// the latter is forbidden (`/proc/sys/kernel/perf_event_paranoid`), in user mode only.
    ///
    /// # Errors
    /// `NOENT` and `OPNOTSUPP` where the processor, or whoever plays its part, has no such counter;
    /// `ACCESS` and `PERM` where counting is forbidden; `NOSYS` in a kernel without it.
    pub fn open(event: Event) -> io::Result<PerfCounter> {
        match open(event, INHERIT) {
            Ok(fd) => Ok(PerfCounter { fd, user_only: false }),
            Err(Errno::ACCESS | Errno::PERM) => {
                let fd = open(event, INHERIT | EXCLUDE_KERNEL | EXCLUDE_HV)?;
                Ok(PerfCounter { fd, user_only: true })
            }
            Err(errno) => Err(errno),
        }
    }

    /// Whether only what happens in user mode is counted.
    #[must_use]
    pub fn is_user_only(&self) -> bool {
        self.user_only
    }

    /// The count so far: one read(2).
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
    // SAFETY: the kernel reads one `struct perf_event_attr`, whose first version has the layout above
    // and the length that it states; the rest are numbers.
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
    // SAFETY: the call has just returned this descriptor, which nobody else knows of.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `None` where counting is forbidden altogether.
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
        let map = crate::sys::map::Map::untouched(bytes).expect("mapped");
        let mut dst = crate::sys::map::Map::untouched(bytes).expect("mapped");
        crate::sys::map::Map::copy_memory(&mut dst, &map, bytes);
    }

    #[test]
    fn faults_are_counted_here_and_in_threads_started_later() {
        let Some(counter) = opened(Event::PageFaults) else { return };
        let before = counter.read().expect("read");
        touch_pages(100);
        let here = counter.read().expect("read");
        // A page of zeros for what is read, and large pages, may make it fewer.
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
    fn what_the_hardware_does_not_offer_is_told() {
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
    fn counters_that_take_turns_are_scaled() {
        let at = |counted, enabled_ns, running_ns| PerfCount { counted, enabled_ns, running_ns };
        let start = at(100, 1000, 1000);
        assert_eq!(at(150, 2000, 2000).since(start), Some(50));
        assert_eq!(at(150, 2000, 1500).since(start), Some(100));
        assert_eq!(at(100, 2000, 1000).since(start), None);
        assert_eq!(start.since(start), Some(0));
    }
}
