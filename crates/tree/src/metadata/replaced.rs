//! The attributes that a new file gets from the file that it replaces, with `--atomic`.

use rustix::fs::{Gid, Mode, Uid};
use rustix::io::Errno;

use super::set::{
    Losses, MetadataContext, SPECIAL_BITS, Source, Target, change_owner, set_permissions,
};
use crate::fs::{ACL_ACCESS, Class};
use crate::report::{Diagnostic, Loss, OldAttribute};

/// Sets the attributes of `target` that the file `old` would keep if it were overwritten: owner,
/// extended attributes and access control list, permissions. Those that writing clears are not set.
/// Returns those that could not be set, after reporting them.
pub(crate) fn apply_replaced(
    cx: MetadataContext<'_>,
    old: Source<'_>,
    target: Target<'_>,
) -> Vec<Loss> {
    let mut losses = Losses::none(cx, target);
    let mut mode = Mode::from_raw_mode(old.stat.st_mode & 0o7777);
    if !cx.caller.is_root() {
        mode.remove(Mode::SUID);
        if mode.contains(Mode::XGRP) {
            mode.remove(Mode::SGID);
        }
    }
    let mut group_kept = true;
    if (old.stat.st_uid, old.stat.st_gid) != (target.stat.st_uid, target.stat.st_gid) {
        let (uid, gid) = (Uid::from_raw(old.stat.st_uid), Gid::from_raw(old.stat.st_gid));
        if let Err(errno) = change_owner(target.handle, Some(uid), Some(gid)) {
            group_kept = old.stat.st_gid == target.stat.st_gid
                || change_owner(target.handle, None, Some(gid)).is_ok();
            mode.remove(SPECIAL_BITS);
            report_loss(&mut losses, OldAttribute::Ownership, errno);
        }
    }
    if !group_kept {
        // Another group gets only the permissions of others.
        let others = mode & Mode::RWXO;
        mode.remove(Mode::RWXG);
        mode |= Mode::from_raw_mode(others.as_raw_mode() << 3);
    }
    apply_xattrs(&mut losses, old, group_kept);
    if let Err(errno) = set_permissions(target.handle, mode) {
        report_loss(&mut losses, OldAttribute::Permissions, errno);
    }
    losses.list
}

/// Extended attributes that belong to the old contents: writing to a file clears them.
const OF_CONTENTS: [&[u8]; 2] = [b"security.capability", b"security.ima"];

fn apply_xattrs(losses: &mut Losses<'_>, old: Source<'_>, group_kept: bool) {
    let target = losses.target;
    let Some(handle) = old.handle else { return };
    let names = match handle.list() {
        Ok(names) => names,
        Err(Errno::OPNOTSUPP) => Vec::new(),
        Err(errno) => return report_loss(losses, OldAttribute::Xattr(Vec::new()), errno),
    };
    for name in &names {
        let class = Class::of(name);
        if class == Class::Private || OF_CONTENTS.contains(&name.to_bytes()) {
            continue;
        }
        let value = match class {
            // The list grants rights to the group, which is another one now.
            Class::Acl if !group_kept => Err(Errno::PERM),
            _ => handle.get(name),
        };
        if let Err(errno) = value.and_then(|value| target.handle.set(name, &value)) {
            report_loss(losses, OldAttribute::Xattr(name.to_bytes().to_vec()), errno);
        }
    }
    // The new file may have inherited a list that the old one does not have.
    if !names.iter().any(|name| **name == *ACL_ACCESS)
        && let Err(errno) = target.handle.remove(ACL_ACCESS)
    {
        report_loss(losses, OldAttribute::Permissions, errno);
    }
}

fn report_loss(losses: &mut Losses<'_>, what: OldAttribute, errno: Errno) {
    losses.list.push(match &what {
        OldAttribute::Ownership => Loss::Ownership(errno),
        OldAttribute::Permissions => Loss::Permissions(errno),
        OldAttribute::Xattr(name) => Loss::Xattr(name.clone(), errno),
    });
    let dst = losses.target.place.path();
    losses.cx.report.report(Diagnostic::NotTakenOver { what, dst, errno });
}
