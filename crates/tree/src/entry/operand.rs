//! An operand that is a source.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use crate::fs::trim_slashes;
use crate::request::Options;

/// An operand and where its copy goes, for messages about the whole.
#[derive(Debug)]
pub(crate) struct Operand {
    pub(crate) src: PathBuf,
    pub(crate) dst: PathBuf,
    /// It is one of those that go into a directory.
    pub(crate) into_directory: bool,
    /// It was reported that the operand is copied into itself, which is reported once.
    pub(crate) into_itself: AtomicBool,
}

/// A source's name as it is used when it goes into a directory.
pub(crate) fn source_name<'s>(options: &Options, source: &'s OsStr) -> &'s [u8] {
    let bytes = source.as_bytes();
    if options.strip_trailing_slashes { trim_slashes(bytes) } else { bytes }
}
