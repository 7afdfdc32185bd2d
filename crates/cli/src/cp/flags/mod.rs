//! Every option of `cp`, one row each: parser, `--help` and the manual page read it here.

use crate::cp::flags::flag::Flag;

pub(crate) mod flag;
mod gnu;
mod own;

/// All of them, GNU's first.
pub(crate) fn flags() -> impl Iterator<Item = &'static Flag> {
    gnu::FLAGS.iter().chain(own::FLAGS)
}
