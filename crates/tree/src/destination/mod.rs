//! What exists at a destination, and how it is replaced.
//!
//! | question | file |
//! |---|---|
//! | what exists, and which symbolic link is written through | `found.rs`, then [`crate::security`] |
//! | whether it is kept, written into, replaced, backed up or refused | `decide.rs`, `found.rs` |
//! | whether it is the source on another mount | `alias.rs` |
//! | what is removed and backed up before the copy | `prepare.rs` |
//! | how the name of a backup is chosen | `backup/` |
//! | how a stale temporary is recognised | `temporary.rs`; partial files: `partial.rs`; their names: `own_names.rs` |
//! | how a file gets its name with `--atomic` | `atomic.rs` |

pub(crate) mod alias;
pub(crate) mod atomic;
pub(crate) mod backup;
pub(crate) mod context;
pub(crate) mod decide;
pub(crate) mod dry_run;
pub(crate) mod found;
pub(crate) mod open;
pub(crate) mod own_names;
pub(crate) mod partial;
pub(crate) mod prepare;
pub(crate) mod temporary;
pub(crate) mod time_resolution;
