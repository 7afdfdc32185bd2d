//! The data of one file: holes, clones, engines, verification and syncing.

mod clone;
mod clone_over;
mod completion;
pub(crate) mod context;
pub(crate) mod copy;
pub(crate) mod engine_choice;
mod file_copy;
pub(crate) mod files;
mod holes;
pub(crate) mod journal;
mod overwrite;
pub(crate) mod page_cache;
pub(crate) mod sync;
mod transfer;
pub(crate) mod verify;
pub(crate) mod worker;
mod zeros;
