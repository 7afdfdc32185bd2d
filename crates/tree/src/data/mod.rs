//! The data of one file.
//!
//! | question | file |
//! |---|---|
//! | the order: clone, extents, blocks of zeros, plain copy | `copy.rs` |
//! | when a hole is trusted | `transfer.rs` (`copy_by_options`), `holes.rs`, [`crate::fs::fs_type`] |
//! | which engine is used | `engine_choice/` |
//! | what partners copy of a large file | `ranges.rs` |
//! | what an engine's stop means | `transfer.rs`; short counts and EINTR: `engines::until_done` |
//! | when old contents are truncated, and when cloned over | `clone.rs` |
//! | what `--durable`, `--verify`, `--no-cache` do | `sync.rs`, `verify.rs`, `page_cache.rs` |

mod clone;
pub(crate) mod context;
pub(crate) mod copy;
mod data_copy;
pub(crate) mod engine_choice;
mod holes;
pub(crate) mod journal;
pub(crate) mod page_cache;
pub(crate) mod ranges;
pub(crate) mod sync;
mod transfer;
pub(crate) mod verify;
pub(crate) mod worker;
