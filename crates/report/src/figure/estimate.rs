//! Estimates with their intervals as text.

use lab::words::{bytes, nanoseconds};

/// A length, in whole bytes.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Lengths are not negative.
pub(super) fn whole_bytes(length: f64) -> String {
    bytes(length.round().max(0.0) as u64)
}

/// A time that may be less than nothing: the cost of a call that is too small to see.
pub(super) fn signed_ns(ns: f64) -> String {
    if ns < 0.0 { format!("−{}", nanoseconds(-ns)) } else { nanoseconds(ns) }
}
