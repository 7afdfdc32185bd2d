//! A directory of the source and its copy, both open.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustix::fs::{Mode, OFlags, Stat, fstat, mkdirat};

use crate::destination::context::CopyContext;
use crate::entry::Operand;
use crate::fs::{Dir, Place, dir, fs_type, open_destination, open_operand};
use crate::metadata::{
    NewMode, denied_by_default_acl, drops_inherited_acl, is_created_private, set_permissions,
};
use crate::report::{Action, Diagnostic, Result, failed};
use crate::request::{ModeRule, Options};
use crate::shared::messages::Facts;
use crate::shared::{CreationLock, ReceivedShare};

/// A directory that is being copied. Workers that have names from it share it.
pub(crate) struct DirectoryPair {
    pub(crate) src: Dir,
    pub(crate) dst: Dir,
    pub(crate) facts: Facts,
    /// The final mode of the destination if modes are not preserved.
    pub(crate) mode: Option<Mode>,
    /// The directory above the destination has a default access control list.
    pub(crate) inherits_acl: bool,
    /// When the copy of the directory started, if receipts are kept.
    pub(crate) started: Option<Instant>,
    /// Failures of the directory itself, if receipts are kept.
    pub(crate) failures: Mutex<Vec<Diagnostic>>,
    /// Taken while files are created in the destination.
    pub(crate) creation_lock: CreationLock,
    pub(crate) operand: Arc<Operand>,
    /// Set if a partner entered the directory, and has given names in it to this one. It is told
    /// when this is dropped.
    pub(crate) received: Option<ReceivedShare>,
    /// Names that were given to a partner came back. No further ones are given.
    pub(crate) returned: AtomicBool,
}

// Creates a directory and opens it. Other users get no access before it has its attributes.

/// Permissions to create names, which other users do not get while the directory is being filled.
pub(super) const OTHERS_WRITE: Mode = Mode::WGRP.union(Mode::WOTH);
const OTHERS: Mode = Mode::RWXG.union(Mode::RWXO);

/// The permissions that a directory is created with, and its final ones before the umask.
fn new_mode(options: &Options, src: &Stat, inherits_acl: bool) -> NewMode {
    let asked = match options.preserve.mode {
        // The sticky bit is not a permission, and is kept.
        ModeRule::Fresh => Mode::from_raw_mode(0o777 | (src.st_mode & 0o1000)),
        ModeRule::Umask | ModeRule::Preserve => Mode::from_raw_mode(src.st_mode & 0o1777),
    };
    let is_private = is_created_private(options, inherits_acl);
    let delayed = if is_private { OTHERS } else { OTHERS_WRITE };
    NewMode { initial: (asked & !delayed) | Mode::RWXU, wanted: asked }
}

/// An open destination directory.
pub(crate) struct OpenDirectory {
    pub(crate) fd: OwnedFd,
    pub(crate) stat: Stat,
    /// The final mode of the directory, if it has another one now.
    pub(crate) mode: Option<Mode>,
}

/// Creates the directory `dst` and opens it. `action` names the call in an error. `inherits_acl`
/// tells whether the directory above has a default access control list that may be removed again.
pub(crate) fn create_and_open(
    cx: &CopyContext<'_>,
    dst: &Place<'_>,
    src_stat: &Stat,
    action: Action,
    inherits_acl: bool,
) -> Result<OpenDirectory> {
    let mode = new_mode(cx.options, src_stat, inherits_acl);
    mkdirat(dst.dir, dst.name, mode.initial).map_err(failed(action, dst))?;
    let mut fd = open_destination(dst.dir, dst.name, OFlags::NOFOLLOW)
        .map_err(failed(Action::EnterDestination, dst))?;
    let mut stat = fstat(&fd).map_err(failed(Action::Fstat, dst))?;
    // It is the one that was just created, as far as can be told: it is on the file system of its
    // parent and belongs to the caller. Network file systems may give it another owner.
    let is_elsewhere = fstat(dst.dir).is_ok_and(|parent| parent.st_dev != stat.st_dev);
    let is_own = cx.security.caller.owns(&stat) || !fs_type::is_on_reliable_fs(fd.as_fd());
    if is_elsewhere || !is_own {
        return Err(Diagnostic::DestinationReplaced { dst: dst.path() });
    }
    let created_mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
    if !created_mode.contains(Mode::RWXU) {
        // The umask removed permissions that are needed to fill it.
        let usable = created_mode | Mode::RWXU;
        set_permissions(dir::handle(fd.as_fd()), usable)
            .map_err(failed(Action::Permissions, dst))?;
        fd = open_operand(fd.as_fd(), c".").map_err(failed(Action::EnterDestination, dst))?;
        stat.st_mode |= Mode::RWXU.as_raw_mode();
    }
    // The directory keeps what it inherited: set-group-ID, and the permissions that the default
    // access control list grants, unless that list is removed. Permissions that were withheld are
    // added as far as the list grants them; those that were only needed to fill it are removed.
    let wanted = if drops_inherited_acl(cx.options, inherits_acl) {
        (mode.wanted & !cx.umask) | (created_mode & Mode::SGID)
    } else {
        // As in GNU cp a list does not replace the umask for what is withheld without extended attributes as well.
        let masked = if cx.options.preserve.ownership { OTHERS } else { OTHERS_WRITE };
        let withheld = mode.wanted & !mode.initial & !(cx.umask & masked);
        let may_matter = !withheld.is_empty() || cx.umask.intersects(Mode::RWXU);
        let denied = if may_matter && cx.options.preserve.mode != ModeRule::Preserve {
            denied_by_default_acl(dir::handle(fd.as_fd()), cx.umask)
        } else {
            cx.umask
        };
        let needed = Mode::RWXU & !(mode.wanted & !denied);
        (created_mode & !needed) | (withheld & !denied)
    };
    let mode = (wanted.as_raw_mode() != stat.st_mode & 0o7777).then_some(wanted);
    Ok(OpenDirectory { fd, stat, mode })
}
