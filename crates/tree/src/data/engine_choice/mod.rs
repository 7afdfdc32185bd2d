//! Which engine moves the data of a file: that of a line of the user's profile (`profile.rs`), else that of a row of
//! the rule (`rule.rs`). `chains.rs` keeps the started variants, `prediction.rs` says beforehand what is used.

pub(crate) mod chains;
pub(crate) mod prediction;
pub(crate) mod profile;
pub(crate) mod rule;
