//! Which engine moves the data of a file: the user's profile, else the built-in one, else a rule.

pub(crate) mod chains;
pub(crate) mod context;
pub(crate) mod endpoint;
pub(crate) mod prediction;
pub(crate) mod profile_lines;
pub(crate) mod profiles;
pub(crate) mod rule;
