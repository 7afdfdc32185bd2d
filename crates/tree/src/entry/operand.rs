//! An operand that is a source.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use crate::fs::trim_slashes;
use crate::request::Options;

/// A source operand and the destination of its copy.
#[derive(Debug)]
pub(crate) struct Operand {
    pub(crate) src: PathBuf,
    pub(crate) dst: PathBuf,
    /// The destination is a name in a directory that the user named.
    pub(crate) into_directory: bool,
    /// It was reported that the operand would be copied into itself. That is reported once.
    pub(crate) into_itself: AtomicBool,
}

/// The name of a source operand that is copied into a directory.
pub(crate) fn source_name<'s>(options: &Options, source: &'s OsStr) -> &'s [u8] {
    let bytes = source.as_bytes();
    if options.strip_trailing_slashes { trim_slashes(bytes) } else { bytes }
}
