//! What to copy and how, as plain data: the options of GNU cp, and more.

pub use engines::profile::Location;
pub use tree::{
    Backup, BackupKind, BadGlob, Context, Destination, Existing, Filter, Follow, IgnoreFile, Keep,
    Make, ModeRule, Options, Preserve, Reflink, Request, Rule, Sparse,
};
