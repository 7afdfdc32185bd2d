//! Times of files, and how finely a file system may keep them.

use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds, of an interval or since 1970.
pub(crate) type Nanoseconds = i128;

const SECOND: Nanoseconds = 1_000_000_000;

/// The coarsest resolution of times: that of vfat.
pub(crate) const RESOLUTION_MAX: Nanoseconds = 2 * SECOND;

pub(crate) fn since_1970((seconds, nanoseconds): (i64, i64)) -> Nanoseconds {
    Nanoseconds::from(seconds) * SECOND + Nanoseconds::from(nanoseconds)
}

/// How long ago that was, by the clock of this host.
pub(crate) fn elapsed_since(time: (i64, i64)) -> Nanoseconds {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_nanos().try_into().unwrap_or(Nanoseconds::MAX) - since_1970(time)
}

/// The coarsest resolution that a file system may have on which a file has this time.
pub(crate) fn coarsest_resolution(time: (i64, i64)) -> Nanoseconds {
    match since_1970(time) % RESOLUTION_MAX {
        0 => RESOLUTION_MAX,
        _ => grain(time.1).into(),
    }
}

/// The coarsest power of ten, from 1 ns to 1 s, to which a timestamp with these nanoseconds may have been cut.
pub(crate) fn grain(nanoseconds: i64) -> i64 {
    let mut grain = 1;
    while grain < 1_000_000_000 && nanoseconds % (grain * 10) == 0 {
        grain *= 10;
    }
    grain
}
