//! The request of the caller, as plain data.

pub(crate) mod filter;
pub(crate) mod options;

pub(crate) use options::{
    Backup, BackupKind, Context, Existing, Follow, Keep, Make, ModeRule, Options, Preserve,
    Reflink, Sparse,
};
pub(crate) use options::{Destination, Request};
