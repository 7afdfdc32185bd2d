//! Copies one entry: `entry.rs` has the steps that all kinds share, and each kind has a file.
//!
//! | question | file |
//! |---|---|
//! | order of the steps for a file's data and attributes | `regular.rs` |
//! | what a single file without attributes does not need | `one_file.rs` |
//! | which large files partners help with | `range_owner.rs` |
//! | when the attributes of a directory are set | `directory.rs` |
//! | where `--parents` creates directories | `parents.rs` |
//! | where a receipt is made | `entry.rs`; `context.rs` for skipped entries, `directory.rs` for directories |

pub(crate) mod context;
pub(crate) mod directory;
pub(crate) mod directory_pair;
pub(crate) mod entry;
pub(crate) mod one_file;
pub(crate) mod parents;
pub(crate) mod range_owner;
pub(crate) mod regular;
mod special;
