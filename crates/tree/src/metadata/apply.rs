//! Gives a copy the attributes of its source: owner, extended attributes and access control lists,
//! mode, times.
//!
//! In that order. A change of owner clears set-user-ID and capabilities, so both come after it;
//! times come last because all else may touch them.

use std::ffi::{CStr, CString};

use rustix::fs::{FileType, Gid, Mode, Stat, Uid};
use rustix::io::Errno;

use super::acl::denied_by_default_acl;
use super::mode::drops_inherited_acl;
use super::set::{
    MetadataContext, SPECIAL_BITS, Source, Target, change_owner, set_permissions, set_times,
};
use crate::fs::{
    ACL_ACCESS, ACL_DEFAULT, CONTEXT, Class, Handle, acl_mode, is_directory, is_regular, kind,
};
use crate::report::{Action, Attribute, Diagnostic, Loss, failed};
use crate::request::{Context, Keep, ModeRule, Options};

/// Gives `target` every attribute of `source` that the options ask for. What cannot be given is
/// reported as the options have it, and returned.
pub(crate) fn apply(cx: MetadataContext<'_>, source: Source<'_>, target: Target<'_>) -> Vec<Loss> {
    let mut lost = Vec::new();
    let preserve = &cx.options.preserve;
    let owner = match preserve.ownership {
        true => copy_owner(cx, source.stat, target, &mut lost),
        false => Owner::Untouched,
    };
    let now = copy_xattrs(cx, source, target, &mut lost);
    set_mode(cx, source.stat, target, owner, now, &mut lost);
    if preserve.timestamps
        && let Err(errno) = set_times(target.handle, source.stat)
    {
        cx.report.report(failed(Action::Times, target.place)(errno));
        lost.push(Loss::Times(errno));
    }
    lost
}

/// The attributes of what is of the kind `of` that the options ask for, but for those in `lost`.
pub(crate) fn kept(options: &Options, of: FileType, lost: &[Loss]) -> Vec<Attribute> {
    let preserve = &options.preserve;
    // Linux has no permissions of symbolic links.
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

/// What became of owner and group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// Nothing was to be done.
    Untouched,
    /// They are the source's now, and the change has cleared bits of the mode.
    Changed,
    /// They could not be changed.
    Lost,
}

/// Gives the target the source's owner and group.
fn copy_owner(
    cx: MetadataContext<'_>,
    src: &Stat,
    target: Target<'_>,
    lost: &mut Vec<Loss>,
) -> Owner {
    if (src.st_uid, src.st_gid) == (target.stat.st_uid, target.stat.st_gid) {
        return Owner::Untouched;
    }
    if !target.new && kind(target.stat) == FileType::RegularFile {
        // The new owner must not find more open than both modes allow.
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
        // The group alone may be one of the user's own; if not, nothing more can be done.
        let _ = change_owner(target.handle, None, Some(gid));
    }
    if !ordinary || cx.caller.is_root() {
        cx.report.report(failed(Action::Ownership, target.place)(errno));
    }
    lost.push(Loss::Ownership(errno));
    Owner::Lost
}

/// Whether extended attributes of a source of the kind `of` are to be copied, if it has any.
pub(crate) fn reads_xattrs(options: &Options, of: FileType) -> bool {
    let preserve = &options.preserve;
    keeps_acl(options, of) || preserve.xattr != Keep::No || preserve.context != Keep::No
}

/// Symbolic links have no access control lists.
fn keeps_acl(options: &Options, of: FileType) -> bool {
    options.preserve.mode == ModeRule::Preserve && of != FileType::Symlink
}

/// Copies access control lists, extended attributes and the security context, each if asked for.
/// Returns the mode that the target now has, if that is certain.
fn copy_xattrs(
    cx: MetadataContext<'_>,
    source: Source<'_>,
    target: Target<'_>,
    lost: &mut Vec<Loss>,
) -> Option<Mode> {
    let preserve = &cx.options.preserve;
    let keeps_acl = keeps_acl(cx.options, kind(source.stat));
    let mut names = Vec::new();
    if reads_xattrs(cx.options, kind(source.stat))
        && let Some(handle) = source.handle
    {
        names = handle.list().unwrap_or_else(|errno| {
            if preserve.xattr == Keep::Required && errno != Errno::OPNOTSUPP {
                xattr_lost(cx, target, b"", errno, lost);
            }
            Vec::new()
        });
    }
    let found = Mode::from_raw_mode(target.stat.st_mode & 0o7777);
    // To write into an old file may have taken them away.
    let mut mode = (target.new || !found.intersects(SPECIAL_BITS)).then_some(found);
    for name in &names {
        let wanted = match Class::of(name) {
            Class::Acl => keeps_acl,
            Class::Context => preserve.context != Keep::No,
            Class::Plain => preserve.xattr != Keep::No,
            Class::Private => false,
        };
        let Some(handle) = source.handle.filter(|_| wanted) else { continue };
        let copied = handle.get(name).and_then(|value| {
            target.handle.set(name, &value)?;
            mode = mode.and_then(|mode| mode_with(name, &value, mode));
            Ok(())
        });
        match (Class::of(name), copied) {
            (_, Ok(())) => {}
            (Class::Acl, Err(errno)) => {
                cx.report.report(failed(Action::Permissions, target.place)(errno));
                lost.push(Loss::Permissions(errno));
            }
            (Class::Context, Err(errno)) => context_lost(cx, target, errno, lost),
            (_, Err(errno)) => xattr_lost(cx, target, name.to_bytes(), errno, lost),
        }
    }
    if keeps_acl && (target.inherits_acl || !target.new) {
        let default = is_directory(target.stat).then_some(ACL_DEFAULT);
        remove_foreign_acls(cx, target, &[Some(ACL_ACCESS), default], &names, lost);
    } else if target.new
        && drops_inherited_acl(cx.options, target.inherits_acl)
        && kind(target.stat) != FileType::Symlink
    {
        // What is made in a directory later is to get its list all the same.
        remove_foreign_acls(cx, target, &[Some(ACL_ACCESS)], &[], lost);
    }
    set_named_context(cx, target, lost);
    mode
}

/// What the mode `before` becomes when the attribute `name` is set to `value`, if that is certain.
fn mode_with(name: &CStr, value: &[u8], before: Mode) -> Option<Mode> {
    if name == ACL_ACCESS {
        // Set-group-ID may be cleared with it, see posix_acl_update_mode() in the kernel.
        (!before.intersects(SPECIAL_BITS)).then(|| acl_mode(value))
    } else {
        (name == ACL_DEFAULT || Class::of(name) != Class::Acl).then_some(before)
    }
}

/// Takes away those of the lists `acls` that the target has and the source has not: they came from
/// the directory, or were there before.
fn remove_foreign_acls(
    cx: MetadataContext<'_>,
    target: Target<'_>,
    acls: &[Option<&CStr>],
    names: &[CString],
    lost: &mut Vec<Loss>,
) {
    for &acl in acls.iter().flatten() {
        if names.iter().any(|name| **name == *acl) {
            continue;
        }
        if let Err(errno) = target.handle.remove(acl) {
            cx.report.report(failed(Action::Permissions, target.place)(errno));
            lost.push(Loss::Permissions(errno));
        }
    }
}

fn set_named_context(cx: MetadataContext<'_>, target: Target<'_>, lost: &mut Vec<Loss>) {
    use std::os::unix::ffi::OsStrExt;
    if let Context::Named(context) = &cx.options.context {
        let value = [context.as_bytes(), b"\0"].concat();
        if let Err(errno) = target.handle.set(CONTEXT, &value) {
            cx.report.report(failed(Action::Context, target.place)(errno));
            lost.push(Loss::Context(errno));
        }
    }
}

/// An extended attribute could not be kept. Whether that is worth a word depends on who asked: `-a`
/// asks for everything that can be had, and what a file system or the user's rank cannot have is no
/// surprise; a full disk is.
fn xattr_lost(
    cx: MetadataContext<'_>,
    target: Target<'_>,
    name: &[u8],
    errno: Errno,
    lost: &mut Vec<Loss>,
) {
    let preserve = &cx.options.preserve;
    let required = preserve.xattr == Keep::Required;
    let expected = match errno {
        Errno::OPNOTSUPP => true,
        Errno::PERM | Errno::ACCESS => preserve.quiet,
        _ => false,
    };
    // A file system without such attributes has none of the others either: once will do.
    let told = errno == Errno::OPNOTSUPP && lost.iter().any(is_unsupported);
    if (required || !expected) && !told {
        let dst = target.place.path();
        cx.report.report(Diagnostic::Xattr { name: name.to_vec(), dst, errno, required });
    }
    lost.push(Loss::Xattr(name.to_vec(), errno));
}

fn is_unsupported(loss: &Loss) -> bool {
    matches!(loss, Loss::Xattr(_, Errno::OPNOTSUPP))
}

fn context_lost(cx: MetadataContext<'_>, target: Target<'_>, errno: Errno, lost: &mut Vec<Loss>) {
    if cx.options.preserve.context == Keep::Required {
        cx.report.report(failed(Action::Context, target.place)(errno));
    }
    lost.push(Loss::Context(errno));
}

fn set_mode(
    cx: MetadataContext<'_>,
    src: &Stat,
    target: Target<'_>,
    owner: Owner,
    now: Option<Mode>,
    lost: &mut Vec<Loss>,
) {
    if kind(target.stat) == FileType::Symlink {
        return;
    }
    let found = Mode::from_raw_mode(target.stat.st_mode & 0o7777);
    let wanted = if cx.options.preserve.mode == ModeRule::Preserve {
        let mode = Mode::from_raw_mode(src.st_mode & 0o7777);
        // Set-user-ID would lend the rights of another user than it was meant to.
        Some(if owner == Owner::Lost { mode & !SPECIAL_BITS } else { mode })
    } else if owner != Owner::Untouched && !target.new && is_regular(target.stat) {
        // What was narrowed for the change of owner, without the bits that it cleared.
        Some(found & !SPECIAL_BITS)
    } else {
        target.mode.map(|mode| mode & !denied_by_parent(cx, target))
    };
    let Some(wanted) = wanted else { return };
    // A change of owner may have changed the mode meanwhile.
    if owner == Owner::Untouched && Some(wanted) == now {
        return;
    }
    if let Err(errno) = set_permissions(target.handle, wanted) {
        cx.report.report(failed(Action::Permissions, target.place)(errno));
        lost.push(Loss::Permissions(errno));
    }
}

/// What the list that a new target has from its directory withholds. The target was made without
/// most permissions, so that its own list no longer tells.
fn denied_by_parent(cx: MetadataContext<'_>, target: Target<'_>) -> Mode {
    let keeps = target.new && target.inherits_acl && !drops_inherited_acl(cx.options, true);
    if keeps { denied_by_default_acl(Handle::Path(target.place.dir)) } else { Mode::empty() }
}
