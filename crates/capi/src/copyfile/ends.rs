//! How a call ends, unless it returns a result.

use std::ffi::c_int;

/// How a call ends without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    Errno(c_int),
    /// The callback has ended it. errno is not changed.
    Quit,
}
