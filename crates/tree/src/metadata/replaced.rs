//! The attributes that a new file gets from the file that it replaces, with `--atomic`.

use rustix::fs::{Gid, Mode, Uid};
use rustix::io::Errno;

use super::set::{MetadataContext, SPECIAL_BITS, Source, Target, change_owner, set_permissions};
use crate::fs::{ACL_ACCESS, Class};
use crate::report::{Diagnostic, Loss, OldAttribute};

/// Gives `target`, which is to replace the file `old`, what that would keep if it were written
/// into: owner, extended attributes and access control list, permissions. What writing takes away
/// from a file is not given back. What cannot be given is told of, and returned.
pub(crate) fn apply_replaced(
    cx: MetadataContext<'_>,
    old: Source<'_>,
    target: Target<'_>,
) -> Vec<Loss> {
    let mut lost = Vec::new();
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
            report_loss(cx, target, OldAttribute::Ownership, errno, &mut lost);
        }
    }
    if !group_kept {
        // What its own group might do is not for another one, beyond what all may.
        let others = mode & Mode::RWXO;
        mode.remove(Mode::RWXG);
        mode |= Mode::from_raw_mode(others.as_raw_mode() << 3);
    }
    apply_xattrs(cx, old, target, group_kept, &mut lost);
    if let Err(errno) = set_permissions(target.handle, mode) {
        report_loss(cx, target, OldAttribute::Permissions, errno, &mut lost);
    }
    lost
}

/// What is signed or measured belongs to the old contents, and a program's rights end when it is
/// written to.
const OF_CONTENTS: [&[u8]; 2] = [b"security.capability", b"security.ima"];

fn apply_xattrs(
    cx: MetadataContext<'_>,
    old: Source<'_>,
    target: Target<'_>,
    group_kept: bool,
    lost: &mut Vec<Loss>,
) {
    let Some(handle) = old.handle else { return };
    let names = match handle.list() {
        Ok(names) => names,
        Err(Errno::OPNOTSUPP) => Vec::new(),
        Err(errno) => {
            let what = OldAttribute::Xattr(Vec::new());
            return report_loss(cx, target, what, errno, lost);
        }
    };
    for name in &names {
        let class = Class::of(name);
        if class == Class::Private || OF_CONTENTS.contains(&name.to_bytes()) {
            continue;
        }
        let value = match class {
            // It speaks of the group, which is another one now.
            Class::Acl if !group_kept => Err(Errno::PERM),
            _ => handle.get(name),
        };
        if let Err(errno) = value.and_then(|value| target.handle.set(name, &value)) {
            let what = OldAttribute::Xattr(name.to_bytes().to_vec());
            report_loss(cx, target, what, errno, lost);
        }
    }
    // The directory may have given a list to the new file; the old one's own is none.
    if !names.iter().any(|name| **name == *ACL_ACCESS)
        && let Err(errno) = target.handle.remove(ACL_ACCESS)
    {
        report_loss(cx, target, OldAttribute::Permissions, errno, lost);
    }
}

fn report_loss(
    cx: MetadataContext<'_>,
    target: Target<'_>,
    what: OldAttribute,
    errno: Errno,
    lost: &mut Vec<Loss>,
) {
    lost.push(match &what {
        OldAttribute::Ownership => Loss::Ownership(errno),
        OldAttribute::Permissions => Loss::Permissions(errno),
        OldAttribute::Xattr(name) => Loss::Xattr(name.clone(), errno),
    });
    cx.report.report(Diagnostic::NotTakenOver { what, dst: target.place.path(), errno });
}
