//! Access control lists that a directory gives to what is made in it.

use std::os::fd::BorrowedFd;

use rustix::fs::Mode;

use super::mode::sets_attributes_later;
use crate::fs::{ACL_DEFAULT, Handle, acl_mode, may_have_any};
use crate::request::{ModeRule, Options};

/// Whether it matters that what is made has an access control list from its directory: it loses
/// that, or gets no permissions at last that the list withholds.
pub(crate) fn inherited_acl_matters(options: &Options) -> bool {
    options.preserve.mode == ModeRule::Fresh || sets_attributes_later(options)
}

/// Whether a directory gives an access control list to what is made in it, where that matters.
pub(crate) fn has_default_acl(options: &Options, dir: BorrowedFd<'_>) -> bool {
    inherited_acl_matters(options)
        && may_have_any(dir, c".")
        && Handle::Path(dir).get(ACL_DEFAULT).is_ok()
}

/// What the list that `dir` gives to what is made in it withholds. A directory that was just made
/// has the list by which it was made.
pub(crate) fn denied_by_default_acl(dir: Handle<'_>) -> Mode {
    let list = dir.get(ACL_DEFAULT);
    list.map_or(Mode::empty(), |list| Mode::from_raw_mode(0o777) & !acl_mode(&list))
}
