//! What exists at a destination, and how it is replaced.
//!
//! | question | file |
//! |---|---|
//! | what exists, and which symbolic link is written through | `state.rs`, then [`crate::security`] |
//! | whether it is kept, backed up, removed or refused | `existing.rs`, `same_file.rs` |
//! | how the name of a backup is chosen | `backup/` |
//! | how a stale temporary is recognised | `temporary.rs`; partial files: `stale_files.rs` |
//! | how a file gets its name with `--atomic` | `atomic.rs` |

pub(crate) mod atomic;
pub(crate) mod backup;
pub(crate) mod context;
pub(crate) mod dry_run;
pub(crate) mod existing;
pub(crate) mod open;
mod own_file;
pub(crate) mod partial;
mod same_file;
pub(crate) mod stale_files;
pub(crate) mod state;
pub(crate) mod temporary;
pub(crate) mod time_resolution;
