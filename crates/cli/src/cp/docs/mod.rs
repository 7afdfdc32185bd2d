//! What the flag table generates: `--help`, the manual page, what completions read.

pub(crate) mod clap_command;
pub(super) mod help;
pub(crate) mod man;
