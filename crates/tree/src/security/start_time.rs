//! The start time of a run, by the clock of the kernel's timestamps.

use rustix::fs::{MemfdFlags, Mode, fchmod, fstat, memfd_create};
use rustix::io;
use rustix::time::{ClockId, DynamicClockId, clock_gettime_dynamic};

use crate::fs::ctime;
use crate::fs::time::grain;

/// The start of a run. Every later change has this timestamp or a later one.
///
/// Timestamps lag behind the clock by up to a tick of 1 to 10 ms: compared with the time of day, a
/// change by an attacker in that tick would be older than the run. Since Linux 6.13 timestamps are
/// finer, and no later change has an earlier timestamp than one that was read. Older kernels cannot
/// order changes within a tick, and all of them count as later.
///
/// A network file system uses the clock of its server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartTime {
    seconds: i64,
    nanoseconds: i64,
}

impl StartTime {
    pub(crate) fn now() -> StartTime {
        let coarse = clock_gettime_dynamic(DynamicClockId::Known(ClockId::RealtimeCoarse))
            .map(|time| (time.tv_sec, time.tv_nsec));
        StartTime::latest([coarse, ctime_of_a_change()])
    }

    /// The latest of `times` that are known: where timestamps are coarse, that of a change is of the
    /// same tick as the clock or of the next one. If none is known, every change counts as later.
    fn latest(times: [io::Result<(i64, i64)>; 2]) -> StartTime {
        let known = times.into_iter().filter_map(Result::ok).max();
        let (seconds, nanoseconds) = known.unwrap_or((i64::MIN, 0));
        StartTime { seconds, nanoseconds }
    }

    /// Whether a change with this timestamp, in seconds and nanoseconds, came later.
    pub(crate) fn is_before(self, (seconds, nanoseconds): (i64, i64)) -> bool {
        // Some file systems store fewer digits.
        let grain = grain(nanoseconds);
        (seconds, nanoseconds) >= (self.seconds, self.nanoseconds / grain * grain)
    }
}

/// Changes a new file and returns the timestamp. Reading the old timestamp first makes the kernel
/// use a fine one for the change.
fn ctime_of_a_change() -> io::Result<(i64, i64)> {
    let file = memfd_create(c"start", MemfdFlags::CLOEXEC)?;
    fstat(&file)?;
    fchmod(&file, Mode::RUSR)?;
    Ok(ctime(&fstat(&file)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_compared_to_the_digits_that_they_have() {
        let start = StartTime { seconds: 7, nanoseconds: 123_456_789 };
        for (seconds, nanoseconds, later) in [
            (7, 123_456_789, true),
            (7, 123_456_788, false),
            (7, 123_456_790, true),
            (7, 123_456_780, true),
            (7, 123_456_700, true),
            (7, 123_456_600, false),
            (7, 123_000_000, true),
            (7, 122_000_000, false),
            (7, 0, true),
            (6, 0, false),
            (6, 999_999_999, false),
            (8, 1, true),
        ] {
            let time = (seconds, nanoseconds);
            assert_eq!(start.is_before(time), later, "{seconds}.{nanoseconds:09}");
        }
    }

    #[test]
    fn a_change_right_after_the_start_is_later() {
        let dir = tempfile::tempdir().expect("a directory");
        for number in 0..1000 {
            let start = StartTime::now();
            let link = dir.path().join(number.to_string());
            rustix::fs::symlink("nowhere", &link).expect("a link");
            let stat = rustix::fs::lstat(&link).expect("the link");
            assert!(start.is_before(ctime(&stat)), "{number}");
        }
    }
}
