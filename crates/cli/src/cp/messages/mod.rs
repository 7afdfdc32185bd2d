//! The texts of `cp`: diagnostics, questions and announcements, usage errors, quoting.

pub(crate) mod engine_line;
pub(crate) mod errno_name;
pub(crate) mod quote;
pub(crate) mod sink;
pub(crate) mod usage_error;
pub(crate) mod wording;
