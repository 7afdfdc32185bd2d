//! The constants and structures of haulage.h.

use std::ffi::{c_char, c_int, c_void};

/// What a callback returns: go on.
pub const HAULAGE_CONTINUE: c_int = 0;
/// Go on; the error does not make the copy fail.
pub const HAULAGE_SKIP: c_int = 1;
/// Stop. The copy fails with ECANCELED, if with nothing else.
pub const HAULAGE_QUIT: c_int = 2;

/// Symbolic links as links, hard links as links, and every attribute, as cp -a.
pub const HAULAGE_ARCHIVE: u64 = 1 << 0;
/// Follow every symbolic link of the source.
pub const HAULAGE_FOLLOW: u64 = 1 << 1;
/// Read each copy back and compare it with its source.
pub const HAULAGE_VERIFY: u64 = 1 << 2;
/// A name stands for the old file or for the complete new one at every moment.
pub const HAULAGE_ATOMIC: u64 = 1 << 3;
/// Sync every copy and every name before the call returns.
pub const HAULAGE_DURABLE: u64 = 1 << 4;
/// Continue a copy of the same names that was killed. Implies HAULAGE_ATOMIC, and keeps times.
pub const HAULAGE_RESUME: u64 = 1 << 5;
/// Leave the page cache as it was.
pub const HAULAGE_NO_CACHE: u64 = 1 << 6;
/// Do not enter other file systems.
pub const HAULAGE_ONE_FILE_SYSTEM: u64 = 1 << 7;
/// Change nothing, and report what would fail.
pub const HAULAGE_DRY_RUN: u64 = 1 << 8;
/// Fail with EEXIST for an existing file.
pub const HAULAGE_EXCL: u64 = 1 << 9;
/// Leave an existing file as it is, without an error.
pub const HAULAGE_KEEP_EXISTING: u64 = 1 << 10;
/// Remove an existing file before its copy is created.
pub const HAULAGE_REMOVE_DESTINATION: u64 = 1 << 11;
/// Share blocks, or fail.
pub const HAULAGE_CLONE_ALWAYS: u64 = 1 << 12;
/// Do not share blocks.
pub const HAULAGE_CLONE_NEVER: u64 = 1 << 13;
/// Count how much there is to copy, on a thread of its own, for the progress callback.
pub const HAULAGE_COUNT_FIRST: u64 = 1 << 14;
/// Allow engines that handle SIGBUS for the whole process. Another SIGBUS is passed to the handler
/// that was there before.
pub const HAULAGE_ALLOW_SIGBUS_HANDLER: u64 = 1 << 15;

pub(crate) const ALL_FLAGS: u64 = (1 << 16) - 1;

/// For haulage_set_number: threads that copy; 0 for as many as help.
pub const HAULAGE_JOBS: c_int = 1;
/// Bytes of data a second, at most; 0 for no limit.
pub const HAULAGE_LIMIT_RATE: c_int = 2;
/// Calls of the progress callback a second, at most; 0 for ten.
pub const HAULAGE_PROGRESS_PER_SECOND: c_int = 3;

/// For haulage_set_text: the variant of an engine, such as "splice:1M"; "" for the fastest.
pub const HAULAGE_ENGINE: c_int = 1;
/// The file of a profile; "" for none, which is the default.
pub const HAULAGE_PROFILE: c_int = 2;
/// One more pattern of gitignore(5): what it matches in a tree is not copied. The first pattern that
/// matches decides.
pub const HAULAGE_EXCLUDE: c_int = 3;
/// One more pattern: what it matches is copied.
pub const HAULAGE_INCLUDE: c_int = 4;
/// One more file of patterns.
pub const HAULAGE_IGNORE_FILE: c_int = 5;

/// For haulage_count, of the last copy of a tree: regular files that were copied.
pub const HAULAGE_FILES: c_int = 1;
/// Directories that were copied.
pub const HAULAGE_DIRECTORIES: c_int = 2;
/// Symbolic links that were copied.
pub const HAULAGE_SYMLINKS: c_int = 3;
/// Fifos, sockets and devices that were copied.
pub const HAULAGE_SPECIAL: c_int = 4;
/// Entries that were made hard links.
pub const HAULAGE_LINKED: c_int = 5;
/// Entries whose destination was left as it was.
pub const HAULAGE_SKIPPED: c_int = 6;
/// Entries that failed.
pub const HAULAGE_FAILED: c_int = 7;
/// Bytes of data that were moved or shared, of a file too.
pub const HAULAGE_DATA_BYTES: c_int = 8;
/// Those of them that are shared.
pub const HAULAGE_SHARED_BYTES: c_int = 9;
/// Bytes of holes.
pub const HAULAGE_HOLE_BYTES: c_int = 10;
/// Errors, of which an entry may have two.
pub const HAULAGE_ERRORS: c_int = 11;
/// Nanoseconds that it took.
pub const HAULAGE_ELAPSED_NS: c_int = 12;
/// Bytes that are not on the medium now, at most: the kernel counts dirty pages of all programs together.
pub const HAULAGE_UNWRITTEN_BYTES: c_int = 13;

/// The progress of a copy.
#[repr(C)]
pub struct Progress {
    /// Finished entries, copied or not, without directories.
    pub entries: u64,
    /// Bytes of regular files and streams that were copied, holes included.
    pub bytes: u64,
    /// Bytes of regular files that are not copied.
    pub skipped_bytes: u64,
    /// How many entries there are, if total_known is not 0.
    pub total_entries: u64,
    /// How many bytes there are, if total_known is not 0.
    pub total_bytes: u64,
    /// Everything is counted. Only with HAULAGE_COUNT_FIRST, and without patterns.
    pub total_known: c_int,
    /// Nanoseconds since the start.
    pub elapsed_ns: u64,
    /// Bytes that were copied and are not on the medium yet, at most.
    pub unwritten_bytes: u64,
}

/// An error. It and its strings are valid during the call.
#[repr(C)]
pub struct Failure {
    /// The errno.
    pub errnum: c_int,
    /// The file; NULL if there is none.
    pub path: *const c_char,
    /// The whole error in one line.
    pub text: *const c_char,
}

/// Is told the progress, and returns HAULAGE_CONTINUE or HAULAGE_QUIT. It is called by the thread that
/// copies a tree or a file, and may not use longjmp(3) or throw.
pub type ProgressFn =
    Option<unsafe extern "C" fn(progress: *const Progress, context: *mut c_void) -> c_int>;

/// Is told an error when it occurs, and returns what to do.
pub type ErrorFn =
    Option<unsafe extern "C" fn(error: *const Failure, context: *mut c_void) -> c_int>;
