//! Which symbolic links and files of the destination are trusted.

pub(crate) mod context;
pub(crate) mod symlink;

pub(crate) use context::Security;
pub(crate) use symlink::{
    LastReopened, NotFollowed, Resolved, open_through_symlink, resolve_symlink, unless_untrusted,
};
