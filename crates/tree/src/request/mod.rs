//! The request of the caller, as plain data.

pub(crate) mod filter;
pub(crate) mod options;

pub(crate) use options::{
    Backup, BackupKind, Context, Destination, Existing, Follow, Keep, Make, ModeRule, Options,
    Preserve, Reflink, Request, Sparse,
};
