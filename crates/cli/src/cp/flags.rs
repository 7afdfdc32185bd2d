//! Every option of `cp`, one row each: parser, `--help` and the manual page read it here.

use super::flag::Flag;

mod gnu;
mod ours;

/// All of them, GNU's first.
pub(crate) fn flags() -> impl Iterator<Item = &'static Flag> {
    gnu::FLAGS.iter().chain(ours::FLAGS)
}
