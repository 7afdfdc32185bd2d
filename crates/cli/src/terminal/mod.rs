//! What the commands of the lab share to write to a terminal.

pub(crate) mod live_lines;
pub(crate) mod output;
pub(crate) mod text;
