//! Makes a directory and opens it, without letting others in before it has its attributes.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, Stat, fstat, mkdirat};

use super::context::CopyContext;
use crate::fs::{FileId, Place, dir, fs_type, open_destination, open_operand};
use crate::metadata::{
    NewMode, denied_by_default_acl, drops_inherited_acl, is_created_private, set_permissions,
    sets_attributes_later,
};
use crate::report::{Action, Diagnostic, failed};
use crate::request::{ModeRule, Options};

/// Permissions that would let others into a directory while it is being filled.
pub(super) const OTHERS_WRITE: Mode = Mode::WGRP.union(Mode::WOTH);
const OTHERS: Mode = Mode::RWXG.union(Mode::RWXO);

/// The permissions that a directory is made with and should end up with.
fn new_mode(options: &Options, src: &Stat, umask: Mode, inherits_acl: bool) -> NewMode {
    let asked = match options.preserve.mode {
        // The sticky bit is no permission, and stays.
        ModeRule::Fresh => Mode::from_raw_mode(0o777 | (src.st_mode & 0o1000)),
        ModeRule::Umask | ModeRule::Preserve => Mode::from_raw_mode(src.st_mode & 0o1777),
    };
    let is_private = is_created_private(options, inherits_acl);
    let withheld = if is_private { OTHERS } else { OTHERS_WRITE };
    NewMode { initial: (asked & !withheld) | Mode::RWXU, wanted: asked & !umask }
}

/// A directory that was just made.
pub(crate) struct MadeDirectory {
    pub(crate) fd: OwnedFd,
    pub(crate) stat: Stat,
    /// The mode that it should have in the end, if that is not the one it has.
    pub(crate) mode: Option<Mode>,
}

/// Makes a directory and opens what was made. `action` is what to call it when it cannot be made, and
/// `inherits_acl` tells whether it gets a list that it may lose again.
pub(crate) fn make_and_open(
    cx: &CopyContext<'_>,
    dst: &Place<'_>,
    src_stat: &Stat,
    action: Action,
    inherits_acl: bool,
) -> Result<MadeDirectory, Diagnostic> {
    let mut mode = new_mode(cx.options, src_stat, cx.umask, inherits_acl);
    if action == Action::CreateParent && cx.options.preserve.mode == ModeRule::Fresh {
        // Nobody has named this directory, so that nothing of it is taken over.
        mode.initial.remove(Mode::SVTX);
        mode.wanted.remove(Mode::SVTX);
    }
    mkdirat(dst.dir, dst.name, mode.initial).map_err(failed(action, dst))?;
    let mut fd = open_destination(dst.dir, dst.name, OFlags::NOFOLLOW)
        .map_err(failed(Action::EnterDestination, dst))?;
    let mut stat = fstat(&fd).map_err(failed(Action::Fstat, dst))?;
    let parent = fstat(dst.dir).ok();
    if !is_ours(cx, &fd, &stat, parent.as_ref()) {
        return Err(Diagnostic::DestinationReplaced { dst: dst.path() });
    }
    let made_with = Mode::from_raw_mode(stat.st_mode & 0o7777);
    if !made_with.contains(Mode::RWXU) {
        // The umask took away what is needed to fill it.
        let usable = made_with | Mode::RWXU;
        set_permissions(dir::handle(fd.as_fd()), usable)
            .map_err(failed(Action::Permissions, dst))?;
        fd = open_operand(fd.as_fd(), c".").map_err(failed(Action::EnterDestination, dst))?;
        stat.st_mode |= Mode::RWXU.as_raw_mode();
    }
    // It keeps what it has from the one above it: set-group-ID, and what an access control list grants, and
    // no more, unless it loses that list. What was asked for and held back comes to that as far as the
    // list grants it, and what was only needed to fill it goes.
    let wanted = if drops_inherited_acl(cx.options, inherits_acl) {
        mode.wanted | (made_with & Mode::SGID)
    } else {
        let needed = Mode::RWXU & !mode.wanted;
        let mut held_back = mode.wanted & !mode.initial;
        // Where attributes are set later the list is asked then.
        if !held_back.is_empty() && !sets_attributes_later(cx.options) {
            held_back &= !denied_by_default_acl(dir::handle(fd.as_fd()));
        }
        (made_with & !needed) | held_back
    };
    let mode = (wanted.as_raw_mode() != stat.st_mode & 0o7777).then_some(wanted);
    Ok(MadeDirectory { fd, stat, mode })
}

/// Whether a directory is the one that was just made, as far as can be told: on the file system of
/// the directory it is in, and of our own. Network file systems may give it to somebody else.
fn is_ours(cx: &CopyContext<'_>, fd: &OwnedFd, stat: &Stat, parent: Option<&Stat>) -> bool {
    let same_device = parent.is_none_or(|parent| FileId::of(parent).dev == FileId::of(stat).dev);
    same_device && (cx.security().caller.owns(stat) || !fs_type::is_on_reliable_fs(fd.as_fd()))
}
