//! Sets the attributes of a copy, in this order: owner, extended attributes and access control
//! lists, mode, times.
//!
//! A change of owner clears set-user-ID and capabilities, so the mode and the extended attributes
//! come later. Every other change may change the times, so they come last.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{FileType, Gid, Mode, Stat, Uid};
use rustix::io::Errno;

use super::set::{
    Losses, MetadataContext, SPECIAL_BITS, Source, Target, change_owner, denied_by_default_acl,
    drops_inherited_acl, set_permissions, set_times,
};
use crate::fs::{
    ACL_ACCESS, ACL_DEFAULT, CONTEXT, Class, Handle, acl_mode, is_directory, is_mode_as_nfs4_acl,
    is_regular, kind,
};
use crate::report::{Action, Attribute, Diagnostic, Loss, failed};
use crate::request::{Context, Keep, ModeRule, Options};

/// Sets every attribute of `source` that the options ask for. Returns those that could not be set,
/// after reporting them as the options demand.
pub(crate) fn apply(cx: MetadataContext<'_>, source: Source<'_>, target: Target<'_>) -> Vec<Loss> {
    let mut losses = Losses { cx, target, list: Vec::new() };
    let preserve = &cx.options.preserve;
    let owner = match preserve.ownership {
        true => copy_owner(&mut losses, source.stat),
        false => Owner::Unchanged,
    };
    let mode = copy_xattrs(&mut losses, source);
    set_mode(&mut losses, source.stat, owner, mode);
    if preserve.timestamps
        && let Err(errno) = set_times(target.handle, source.stat)
    {
        losses.report(Action::Times, Loss::Times(errno));
    }
    losses.list
}

/// The attributes of a file of type `of` that the options ask for, without those in `lost`.
pub(crate) fn kept(options: &Options, of: FileType, lost: &[Loss]) -> Vec<Attribute> {
    let preserve = &options.preserve;
    // On Linux symbolic links have no permissions.
    let permissions = preserve.mode == ModeRule::Preserve && of != FileType::Symlink;
    [
        (preserve.ownership, Attribute::Ownership),
        (permissions, Attribute::Permissions),
        (preserve.timestamps, Attribute::Times),
        (preserve.xattr != Keep::No, Attribute::Xattr),
        (preserve.context != Keep::No, Attribute::Context),
    ]
    .into_iter()
    .filter(|&(asked, kind)| asked && !lost.iter().any(|loss| loss.attribute() == kind))
    .map(|(_, kind)| kind)
    .collect()
}

/// The result of [`copy_owner`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Unchanged,
    /// Owner and group are the source's now, and the change has cleared bits of the mode.
    Changed,
    /// The owner could not be changed; the group may have been.
    Lost,
}

fn copy_owner(losses: &mut Losses<'_>, src: &Stat) -> Owner {
    let (cx, target) = (losses.cx, losses.target);
    if (src.st_uid, src.st_gid) == (target.stat.st_uid, target.stat.st_gid) {
        return Owner::Unchanged;
    }
    if !target.new && is_regular(target.stat) {
        // The new owner must not get more access than both modes allow.
        let both = Mode::from_raw_mode(target.stat.st_mode & src.st_mode & 0o700);
        if let Err(errno) = set_permissions(target.handle, both) {
            cx.report.report(failed(Action::Permissions, target.place)(errno));
        }
    }
    let (uid, gid) = (Uid::from_raw(src.st_uid), Gid::from_raw(src.st_gid));
    let Err(errno) = change_owner(target.handle, Some(uid), Some(gid)) else {
        return Owner::Changed;
    };
    let ordinary = matches!(errno, Errno::PERM | Errno::INVAL);
    if ordinary {
        // The caller may be a member of the group. If not, nothing more can be done.
        let _ = change_owner(target.handle, None, Some(gid));
    }
    if !ordinary || cx.caller.is_root() {
        losses.report(Action::Ownership, Loss::Ownership(errno));
    } else {
        losses.list.push(Loss::Ownership(errno));
    }
    Owner::Lost
}

/// Whether extended attributes of a source of type `of` are copied, if it has any.
pub(crate) fn reads_xattrs(options: &Options, of: FileType) -> bool {
    let preserve = &options.preserve;
    keeps_acl(options, of) || preserve.xattr != Keep::No || preserve.context != Keep::No
}

/// Symbolic links have no access control lists.
fn keeps_acl(options: &Options, of: FileType) -> bool {
    options.preserve.mode == ModeRule::Preserve && of != FileType::Symlink
}

/// Whether the options ask for the extended attribute `name` of a file of type `of`.
fn is_copied(options: &Options, of: FileType, name: &CStr) -> bool {
    match Class::of(name) {
        Class::Acl => keeps_acl(options, of),
        Class::Context => options.preserve.context != Keep::No,
        Class::Plain => options.preserve.xattr != Keep::No,
        Class::Private => false,
    }
}

/// Whether the regular file `dst` has all extended attributes of `src` that the options ask for, and no other list.
pub(crate) fn has_xattrs_of(options: &Options, src: Handle<'_>, dst: Handle<'_>) -> bool {
    let is_equal = |name: &CStr| match (src.get(name), dst.get(name)) {
        (Err(Errno::NODATA), Err(Errno::NODATA)) => true,
        (src, dst) => src.is_ok() && src == dst,
    };
    let names = |names: Vec<CString>| names.into_iter().chain([ACL_ACCESS.to_owned()]);
    let is_copied = |name: &CString| is_copied(options, FileType::RegularFile, name);
    !matches!(options.context, Context::Named(_))
        && src.list().is_ok_and(|list| names(list).filter(is_copied).all(|name| is_equal(&name)))
}

/// Copies access control lists, extended attributes and the security context, each if asked for.
/// Returns the mode of the target afterwards, if that is known.
fn copy_xattrs(losses: &mut Losses<'_>, source: Source<'_>) -> Option<Mode> {
    let (options, target) = (losses.cx.options, losses.target);
    let keeps_acl = keeps_acl(options, kind(source.stat));
    let mut names = Vec::new();
    if reads_xattrs(options, kind(source.stat))
        && let Some(handle) = source.handle
    {
        names = handle.list().unwrap_or_else(|errno| {
            // A file system without extended attributes has none that could be lost.
            if errno == Errno::OPNOTSUPP {
                return Vec::new();
            }
            lose_all_xattrs(losses, errno);
            // Without its list the mode of the copy might grant the group what the source denies.
            if keeps_acl { unlisted_acls(losses, handle, kind(source.stat)) } else { Vec::new() }
        });
    }
    // A list of access may take the right to set what follows, and btrfs and tmpfs name it first.
    names.sort_by_key(|name| Class::of(name) == Class::Acl);
    let found = Mode::from_raw_mode(target.stat.st_mode & 0o7777);
    // Writing into an existing file may have cleared the special bits.
    let mut mode = (target.new || !found.intersects(SPECIAL_BITS)).then_some(found);
    for name in &names {
        let wanted = is_copied(options, kind(source.stat), name);
        let Some(handle) = source.handle.filter(|_| wanted) else { continue };
        // What an existing file has already may not be settable any more.
        let has = |value: &Vec<u8>| !target.new && target.handle.get(name).as_ref() == Ok(value);
        let set = |value: &Vec<u8>| match has(value) {
            true => Ok(()),
            false => target.handle.set(name, value),
        };
        let copied = handle.get(name).and_then(|value| match set(&value) {
            // The mode says what a server makes of it for each file.
            Err(Errno::OPNOTSUPP) if is_mode_as_nfs4_acl(name, &value) => Ok(()),
            Err(errno) => Err(errno),
            Ok(()) => {
                mode = mode.and_then(|mode| mode_with(name, &value, mode));
                Ok(())
            }
        });
        let Err(errno) = copied else { continue };
        match Class::of(name) {
            Class::Acl => losses.report(Action::Permissions, Loss::Permissions(errno)),
            Class::Context => lose_context(losses, errno),
            Class::Plain | Class::Private => lose_xattr(losses, name.to_bytes(), errno),
        }
    }
    if keeps_acl && (target.inherits_acl || !target.new) {
        remove_other_acl(losses, ACL_ACCESS, &names);
        if is_directory(target.stat) {
            remove_other_acl(losses, ACL_DEFAULT, &names);
        }
    } else if target.new
        && drops_inherited_acl(options, target.inherits_acl)
        && kind(target.stat) != FileType::Symlink
    {
        // A directory keeps its default list for files that are created in it later.
        remove_other_acl(losses, ACL_ACCESS, &[]);
    }
    if let Context::Named(context) = &options.context {
        let value = [context.as_bytes(), b"\0"].concat();
        if let Err(errno) = target.handle.set(CONTEXT, &value) {
            losses.report(Action::Context, Loss::Context(errno));
        }
    }
    mode
}

/// The mode after the attribute `name` was set to `value`, if that is known.
fn mode_with(name: &CStr, value: &[u8], before: Mode) -> Option<Mode> {
    if name == ACL_ACCESS {
        // This may clear set-group-ID, see posix_acl_update_mode() in the kernel.
        (!before.intersects(SPECIAL_BITS)).then(|| acl_mode(value))
    } else {
        (name == ACL_DEFAULT || Class::of(name) != Class::Acl).then_some(before)
    }
}

/// Removes the list `acl` of the target unless the source has it, by its attribute `names`. The
/// list was inherited from the directory, or is that of an existing file.
fn remove_other_acl(losses: &mut Losses<'_>, acl: &CStr, names: &[CString]) {
    if !names.iter().any(|name| **name == *acl)
        && let Err(errno) = losses.target.handle.remove(acl)
    {
        losses.report(Action::Permissions, Loss::Permissions(errno));
    }
}

/// The access control lists of a source whose attributes cannot be listed: they have known names.
/// One that cannot be read is a failure.
fn unlisted_acls(losses: &mut Losses<'_>, source: Handle<'_>, of: FileType) -> Vec<CString> {
    let lists: &[&CStr] = match of {
        FileType::Directory => &[ACL_ACCESS, ACL_DEFAULT],
        _ => &[ACL_ACCESS],
    };
    let has = |losses: &mut Losses<'_>, list: &CStr| match source.get(list) {
        Ok(_) => true,
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS) => false,
        Err(errno) => {
            match (errno, Loss::Permissions(errno)) {
                // /proc is not mounted, through which fifos and devices are asked.
                (Errno::NOENT, loss) => losses.list.push(loss),
                (_, loss) => losses.report(Action::Permissions, loss),
            }
            false
        }
    };
    lists.iter().filter(|list| has(losses, list)).map(|list| (*list).to_owned()).collect()
}

/// Records that the extended attributes of the source are unknown, and its security context: one
/// loss for each that the options ask for.
fn lose_all_xattrs(losses: &mut Losses<'_>, errno: Errno) {
    let preserve = &losses.cx.options.preserve;
    if preserve.xattr != Keep::No {
        lose_xattr(losses, b"", errno);
    }
    if preserve.context != Keep::No {
        lose_context(losses, errno);
    }
}

/// Records a security context that could not be kept, which is reported if it is required.
fn lose_context(losses: &mut Losses<'_>, errno: Errno) {
    match losses.cx.options.preserve.context {
        Keep::Required => losses.report(Action::Context, Loss::Context(errno)),
        _ => losses.list.push(Loss::Context(errno)),
    }
}

/// Records an extended attribute that could not be kept; the empty name stands for all. It is reported if the option named
/// extended attributes. `-a` asks for all that are possible: then a file system without them, or
/// missing rights, are expected, and a full disk is not.
fn lose_xattr(losses: &mut Losses<'_>, name: &[u8], errno: Errno) {
    let preserve = &losses.cx.options.preserve;
    let required = preserve.xattr == Keep::Required;
    let expected = match errno {
        Errno::OPNOTSUPP => true,
        Errno::PERM | Errno::ACCESS => preserve.quiet,
        _ => false,
    };
    // That a file system has no extended attributes is reported once.
    let is_unsupported = |loss: &Loss| matches!(loss, Loss::Xattr(_, Errno::OPNOTSUPP));
    let is_reported = errno == Errno::OPNOTSUPP && losses.list.iter().any(is_unsupported);
    if (required || !expected) && !is_reported {
        let dst = losses.target.place.path();
        let diagnostic = Diagnostic::Xattr { name: name.to_vec(), dst, errno, required };
        losses.cx.report.report(diagnostic);
    }
    losses.list.push(Loss::Xattr(name.to_vec(), errno));
}

/// Sets the mode, unless it is known to be the current one.
fn set_mode(losses: &mut Losses<'_>, src: &Stat, owner: Owner, current: Option<Mode>) {
    let (cx, target) = (losses.cx, losses.target);
    if kind(target.stat) == FileType::Symlink {
        return;
    }
    let wanted = if cx.options.preserve.mode == ModeRule::Preserve {
        let mode = Mode::from_raw_mode(src.st_mode & 0o7777);
        // Set-user-ID must not give the rights of another user than the source's.
        let is_withheld = owner == Owner::Lost && mode.intersects(SPECIAL_BITS);
        if is_withheld {
            losses.list.push(Loss::Permissions(Errno::PERM));
        }
        Some(if is_withheld { mode & !SPECIAL_BITS } else { mode })
    } else if owner != Owner::Unchanged && !target.new && is_regular(target.stat) {
        // The mode was narrowed for the change of owner, which has cleared the special bits.
        Some(Mode::from_raw_mode(target.stat.st_mode & 0o7777) & !SPECIAL_BITS)
    } else {
        target.mode.map(|mode| mode & !denied_by_parent(cx, target))
    };
    let Some(wanted) = wanted else { return };
    // A change of owner may have changed the current mode.
    if owner == Owner::Unchanged && Some(wanted) == current {
        return;
    }
    if let Err(errno) = set_permissions(target.handle, wanted) {
        losses.report(Action::Permissions, Loss::Permissions(errno));
    }
}

/// The permissions that the inherited access control list of a new target withholds. The target was
/// created private, so its own list no longer tells.
fn denied_by_parent(cx: MetadataContext<'_>, target: Target<'_>) -> Mode {
    let keeps = target.new && target.inherits_acl && !drops_inherited_acl(cx.options, true);
    if !keeps {
        return Mode::empty();
    }
    denied_by_default_acl(Handle::Path(target.place.dir), Mode::empty())
}

// The attributes that a new file gets from the file that it replaces, with `--atomic`.

/// Sets the attributes of `target` that the file `old` would keep if it were overwritten: owner,
/// extended attributes and access control list, permissions. Those that writing clears are not set.
/// Returns those that could not be set, after reporting them.
pub(crate) fn apply_replaced(
    cx: MetadataContext<'_>,
    old: Source<'_>,
    target: Target<'_>,
) -> Vec<Loss> {
    let mut losses = Losses { cx, target, list: Vec::new() };
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
            report_loss(&mut losses, Loss::Ownership(errno));
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
        report_loss(&mut losses, Loss::Permissions(errno));
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
        Err(errno) => return report_loss(losses, Loss::Xattr(Vec::new(), errno)),
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
            report_loss(losses, Loss::Xattr(name.to_bytes().to_vec(), errno));
        }
    }
    // The new file may have inherited a list that the old one does not have.
    if !names.iter().any(|name| **name == *ACL_ACCESS)
        && let Err(errno) = target.handle.remove(ACL_ACCESS)
    {
        report_loss(losses, Loss::Permissions(errno));
    }
}

fn report_loss(losses: &mut Losses<'_>, lost: Loss) {
    losses.list.push(lost.clone());
    let dst = losses.target.place.path();
    losses.cx.report.report(Diagnostic::NotTakenOver { lost, dst });
}
