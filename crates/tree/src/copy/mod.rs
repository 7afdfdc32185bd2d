//! Makes the copy of one entry: the steps that all kinds share, and one file for each kind.

pub(crate) mod context;
pub(crate) mod directory;
pub(crate) mod directory_pair;
pub(crate) mod entry;
mod finish;
mod hard_link;
mod make_directory;
pub(crate) mod parents;
pub(crate) mod regular;
mod special;
