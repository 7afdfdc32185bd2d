//! What exists at a destination, and how it is replaced.

pub(crate) mod atomic;
pub(crate) mod backup;
pub(crate) mod context;
pub(crate) mod dry_run;
pub(crate) mod existing;
pub(crate) mod open;
pub(crate) mod partial;
pub(crate) mod replace;
mod same_file;
pub(crate) mod stale_temporaries;
mod temp_name;
