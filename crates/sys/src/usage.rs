//! Resource usage of a process, a thread or the children: processor time, page faults, context
//! switches.

use rustix::io;

use super::last_errno;

/// Whose usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// All threads of this process, including those that have ended.
    Process,
    /// The calling thread.
    Thread,
    /// Children that have ended and been waited for, and their descendants.
    Children,
}

/// Resources used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time in user mode, in nanoseconds (the kernel counts microseconds).
    pub user_ns: u64,
    /// Processor time in the kernel, in nanoseconds (the kernel counts microseconds).
    pub system_ns: u64,
    /// Page faults that needed no I/O.
    pub minor_faults: u64,
    /// Page faults that needed I/O.
    pub major_faults: u64,
    /// Voluntary context switches: the thread waited.
    pub voluntary_switches: u64,
    /// Involuntary context switches: the kernel preempted the thread.
    pub involuntary_switches: u64,
}

impl Usage {
    /// The usage between `earlier` and `self`.
    #[must_use]
    pub fn since(self, earlier: Usage) -> Usage {
        // The kernel scales user and system time so that each may decrease by a microsecond.
        let difference = |field: fn(&Usage) -> u64| field(&self).saturating_sub(field(&earlier));
        Usage {
            user_ns: difference(|usage| usage.user_ns),
            system_ns: difference(|usage| usage.system_ns),
            minor_faults: difference(|usage| usage.minor_faults),
            major_faults: difference(|usage| usage.major_faults),
            voluntary_switches: difference(|usage| usage.voluntary_switches),
            involuntary_switches: difference(|usage| usage.involuntary_switches),
        }
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Usage) -> Usage {
        Usage {
            user_ns: self.user_ns + other.user_ns,
            system_ns: self.system_ns + other.system_ns,
            minor_faults: self.minor_faults + other.minor_faults,
            major_faults: self.major_faults + other.major_faults,
            voluntary_switches: self.voluntary_switches + other.voluntary_switches,
            involuntary_switches: self.involuntary_switches + other.involuntary_switches,
        }
    }
}

/// `int getrusage(int who, struct rusage *usage)`
///
/// The usage of `whose` so far; see getrusage(2).
///
/// # Errors
/// None that Linux documents for these arguments.
pub fn usage(whose: Whose) -> io::Result<Usage> {
    let who = match whose {
        Whose::Process => libc::RUSAGE_SELF,
        Whose::Thread => libc::RUSAGE_THREAD,
        Whose::Children => libc::RUSAGE_CHILDREN,
    };
    let mut raw = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one `struct rusage` to the address, which has space for it.
    let result = unsafe { libc::getrusage(who, raw.as_mut_ptr()) };
    if result != 0 {
        return Err(last_errno());
    }
    // SAFETY: all bytes of `raw` were zeroed, which is a valid `struct rusage`, and the call filled
    // it in.
    let raw = unsafe { raw.assume_init() };
    Ok(Usage {
        user_ns: nanoseconds(raw.ru_utime),
        system_ns: nanoseconds(raw.ru_stime),
        minor_faults: count(raw.ru_minflt),
        major_faults: count(raw.ru_majflt),
        voluntary_switches: count(raw.ru_nvcsw),
        involuntary_switches: count(raw.ru_nivcsw),
    })
}

fn nanoseconds(time: libc::timeval) -> u64 {
    count(time.tv_sec) * 1_000_000_000 + count(time.tv_usec) * 1000
}

/// The kernel's counts are never negative.
fn count(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_of_an_ended_thread_counts_for_the_process() {
        let before = usage(Whose::Process).expect("usage");
        let thread_before = usage(Whose::Thread).expect("usage");
        std::thread::spawn(|| {
            let begun = std::time::Instant::now();
            while begun.elapsed().as_millis() < 40 {
                std::hint::black_box(begun);
            }
        })
        .join()
        .expect("joined");
        let used = usage(Whose::Process).expect("usage").since(before);
        assert!(used.user_ns + used.system_ns > 10_000_000, "{used:?}");
        let here = usage(Whose::Thread).expect("usage").since(thread_before);
        assert!(here.user_ns + here.system_ns < 30_000_000, "{here:?}");
        assert!(usage(Whose::Children).is_ok());
    }

    #[test]
    fn differences_and_sums_agree() {
        let early = Usage { user_ns: 5, minor_faults: 2, ..Usage::default() };
        let late = Usage { user_ns: 9, minor_faults: 2, major_faults: 1, ..Usage::default() };
        assert_eq!(early.plus(late.since(early)), late);
    }
}
