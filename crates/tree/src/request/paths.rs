//! The names that a copy is asked for.

use std::ffi::OsString;

/// What to copy, and where to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Names of sources, as the user wrote them.
    pub sources: Vec<OsString>,
    /// Where they go.
    pub destination: Destination,
}

/// Where copies go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Into this directory.
    Directory(OsString),
    /// Into it when it is a directory; otherwise the only source goes to this very name.
    Last(OsString),
    /// The only source goes to this very name.
    Exact(OsString),
}
