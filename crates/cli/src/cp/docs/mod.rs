//! What the flag table generates: `--help`, the manual page, completion scripts.

pub(super) mod completions;
pub(super) mod help;
pub(super) mod man;
