//! Which engine moves the data of a file: that of a line of the user's profile (`profiles.rs`,
//! `profile_lines.rs`), else that of a row of the rule (`rule.rs`). `chains.rs` keeps the started
//! variants.

pub(crate) mod chains;
pub(crate) mod prediction;
pub(crate) mod profiles;
pub(crate) mod rule;
