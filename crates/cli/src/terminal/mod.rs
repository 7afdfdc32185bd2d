//! What the commands of the lab share: arguments, errors, and text on a terminal.

pub(crate) mod command;
pub(crate) mod live_lines;
pub(crate) mod output;
pub(crate) mod screen;
pub(crate) mod steps;
pub(crate) mod text;
