//! Estimates with their intervals as text.

use lab::words::nanoseconds;

/// A time that may be less than nothing: the cost of a call that is too small to see.
pub(super) fn signed_ns(ns: f64) -> String {
    if ns < 0.0 { format!("−{}", nanoseconds(-ns)) } else { nanoseconds(ns) }
}
