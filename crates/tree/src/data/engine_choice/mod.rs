//! Which engine moves the data of a file: that of a line of the user's profile (`choice.rs`,
//! which keeps the started variants), else that of a row of the rule (`rule.rs`).

pub(crate) mod choice;
pub(crate) mod rule;
