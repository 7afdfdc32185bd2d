//! Which engine moves the data of a file: by the user's profile (`profiles.rs`,
//! `profile_lines.rs`), else the built-in one, else the rule (`rule.rs`). `chains.rs` keeps the
//! started variants.

pub(crate) mod candidates;
pub(crate) mod chains;
pub(crate) mod prediction;
mod profile_lines;
pub(crate) mod profiles;
pub(crate) mod rule;
