//! What the flag table generates: `--help`, the manual page, the table for completions.

pub(super) mod help;
pub(super) mod man;
pub(crate) mod table;
