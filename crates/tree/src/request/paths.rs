//! The names that a copy is asked for.

use std::ffi::OsString;

/// What to copy, and where to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Names of sources, as the user wrote them.
    pub sources: Vec<OsString>,
    /// The destination.
    pub destination: Destination,
}

/// The destination of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Into this directory.
    Directory(OsString),
    /// Into it if it is a directory; otherwise the only source is copied to this name.
    Last(OsString),
    /// The only source is copied to this name.
    Exact(OsString),
}
