//! The targets, one file a format.

pub(crate) mod command_line;
pub(crate) mod experiment;
pub(crate) mod filter;
pub(crate) mod import;
pub(crate) mod journal;
pub(crate) mod profile;
mod program;
pub(crate) mod receipt;
pub(crate) mod run_directory;
mod silent;
pub(crate) mod tune_record;
pub(crate) mod variant;
