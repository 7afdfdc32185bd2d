//! When a run began, by the clock that the kernel stamps changes with.

use rustix::fs::{MemfdFlags, Mode, fchmod, fstat, memfd_create};
use rustix::io;
use rustix::time::{ClockId, clock_gettime};

use crate::fs::ctime;

/// The beginning of a run. Whatever is changed later bears a later stamp, or this very one.
///
/// The stamp of a change lags behind the clock by up to a tick of 1 to 10 ms, so that to compare it
/// with the time of day would make what an attacker does in that tick older than the run. Since
/// Linux 6.13 stamps are finer, and no later change has an earlier stamp than one that was looked
/// at: there, what was changed just before the run is told apart from what is changed in it.
/// Earlier kernels cannot tell within the tick, and all of it counts as later.
///
/// A file system that is served by another machine stamps by the clock of that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartTime {
    seconds: i64,
    nanoseconds: i64,
}

impl StartTime {
    pub(crate) fn now() -> StartTime {
        let coarse = clock_gettime(ClockId::RealtimeCoarse);
        let coarse = (coarse.tv_sec, coarse.tv_nsec);
        // Where stamps are coarse, this one is of the same tick, or of one that began meanwhile.
        let (seconds, nanoseconds) = stamp_of_a_change().unwrap_or(coarse).max(coarse);
        StartTime { seconds, nanoseconds }
    }

    /// Whether a change that is stamped so, in seconds and nanoseconds, came after this.
    pub(crate) fn is_before(self, (seconds, nanoseconds): (i64, i64)) -> bool {
        // A file system that keeps fewer digits has cut the others off.
        let grain = grain(nanoseconds);
        (seconds, nanoseconds) >= (self.seconds, self.nanoseconds / grain * grain)
    }
}

/// The coarsest unit of 1 ns to 1 s, in powers of ten, that a stamp can have been cut to.
fn grain(nanoseconds: i64) -> i64 {
    let mut grain = 1;
    while grain < 1_000_000_000 && nanoseconds % (grain * 10) == 0 {
        grain *= 10;
    }
    grain
}

/// Changes a file of our own and returns the stamp of that. Its old stamp is looked at first: a
/// change after that gets a fine one.
fn stamp_of_a_change() -> io::Result<(i64, i64)> {
    let file = memfd_create(c"start", MemfdFlags::CLOEXEC)?;
    fstat(&file)?;
    fchmod(&file, Mode::RUSR)?;
    Ok(ctime(&fstat(&file)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_compared_with_the_digits_that_they_have() {
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
            let stamp = (seconds, nanoseconds);
            assert_eq!(start.is_before(stamp), later, "{seconds}.{nanoseconds:09}");
        }
    }

    #[test]
    fn what_is_changed_at_once_is_later() {
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
