//! Manual pages and completion scripts, from the tables of options: clap's for the commands of the lab,
//! the flag table for `cp`.

pub(crate) mod completions;
pub(crate) mod of_clap;
pub(crate) mod overview;
pub(crate) mod roff;
