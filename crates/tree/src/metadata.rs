//! Attributes of what was made: owner, extended attributes and access control lists, mode, times.
//!
//! In that order. A change of owner clears set-user-ID and capabilities, so both come after it;
//! times come last because all else may touch them.

use std::ffi::{CStr, CString};

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, Stat, Timespec, Timestamps, Uid, chmod, chownat, fchmod, fchown,
    futimens, utimensat,
};
use rustix::io::{self, Errno};

use crate::diagnostic::{Action, Diagnostic, OldAttribute};
use crate::identity::{atime, is_directory, is_regular, kind, mtime};
use crate::options::{Context, Keep, ModeRule, Options};
use crate::place::Place;
use crate::receipt::{Attribute, Loss};
use crate::run::{Run, failed};
use crate::xattr::{ACL_ACCESS, ACL_DEFAULT, CONTEXT, Class, Handle, granted};

/// Set-user-ID, set-group-ID and sticky: what must not pass to a file of another owner.
const SPECIAL_BITS: Mode = Mode::SUID.union(Mode::SGID).union(Mode::SVTX);

/// Where attributes come from.
#[derive(Clone, Copy)]
pub(crate) struct Source<'s> {
    pub(crate) handle: Option<Handle<'s>>,
    pub(crate) stat: &'s Stat,
}

/// What they are given to.
#[derive(Clone, Copy)]
pub(crate) struct Target<'t> {
    pub(crate) handle: Handle<'t>,
    pub(crate) place: &'t Place<'t>,
    /// As it was made, or found.
    pub(crate) stat: &'t Stat,
    /// This run made it.
    pub(crate) new: bool,
    /// The directory it is in gives an access control list to what is made there.
    pub(crate) inherits_acl: bool,
    /// The mode that it should have when none is preserved.
    pub(crate) mode: Option<Mode>,
}

/// The permissions that a new file is made with, and those that it should end up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewMode {
    pub(crate) at_first: Mode,
    pub(crate) at_last: Mode,
}

/// The mode of a new file, fifo or device made from one of mode `src`.
pub(crate) fn new_file_mode(
    options: &Options,
    src: &Stat,
    umask: Mode,
    inherits_acl: bool,
) -> NewMode {
    let permissions = Mode::from_raw_mode(src.st_mode & 0o777);
    let asked = match options.preserve.mode {
        ModeRule::Fresh => Mode::from_raw_mode(0o666),
        ModeRule::Umask | ModeRule::Preserve => permissions,
    };
    // Attributes follow: until they are there nobody else has any business with the file.
    let at_first =
        if is_made_private(options, inherits_acl) { Mode::RUSR | Mode::WUSR } else { asked };
    NewMode { at_first, at_last: asked & !umask }
}

/// Whether a new file has to be kept private until its attributes are set.
pub(crate) fn sets_later(options: &Options) -> bool {
    options.preserve.mode == ModeRule::Preserve
        || options.preserve.ownership
        || options.preserve.xattr != Keep::No
}

/// Whether what is made loses the list that its directory gives it: with `--no-preserve=mode` its mode
/// is that of one without. Until the list is gone it lets nobody in.
pub(crate) fn loses_acl(options: &Options, inherits_acl: bool) -> bool {
    inherits_acl && options.preserve.mode == ModeRule::Fresh
}

/// Whether what is made lets nobody in until its attributes are as they are to be.
pub(crate) fn is_made_private(options: &Options, inherits_acl: bool) -> bool {
    sets_later(options) || loses_acl(options, inherits_acl)
}

/// Gives `target` every attribute of `source` that the options ask for. What cannot be given is
/// reported as the options have it, and returned.
pub(crate) fn apply(run: &Run<'_>, source: Source<'_>, target: Target<'_>) -> Vec<Loss> {
    let mut lost = Vec::new();
    let preserve = &run.options.preserve;
    let owner = match preserve.ownership {
        true => own(run, source.stat, target, &mut lost),
        false => Owner::Untouched,
    };
    let now = copy_xattrs(run, source, target, &mut lost);
    set_mode(run, source.stat, target, owner, now, &mut lost);
    if preserve.timestamps
        && let Err(errno) = set_times(target.handle, source.stat)
    {
        run.report(failed(Action::Times, target.place)(errno));
        lost.push(Loss::Times(errno));
    }
    lost
}

/// Gives `target`, which is to replace the file `old`, what that would keep if it were written into:
/// owner, extended attributes and access control list, permissions. What writing takes away from a
/// file is not given back. What cannot be given is told of, and returned.
pub(crate) fn take_over(run: &Run<'_>, old: Source<'_>, target: Target<'_>) -> Vec<Loss> {
    let mut lost = Vec::new();
    let mut mode = Mode::from_raw_mode(old.stat.st_mode & 0o7777);
    if !run.is_root() {
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
            not_taken_over(run, target, OldAttribute::Ownership, errno, &mut lost);
        }
    }
    if !group_kept {
        // What its own group might do is not for another one, beyond what all may.
        let others = mode & Mode::RWXO;
        mode.remove(Mode::RWXG);
        mode |= Mode::from_raw_mode(others.as_raw_mode() << 3);
    }
    take_over_xattrs(run, old, target, group_kept, &mut lost);
    if let Err(errno) = set_permissions(target.handle, mode) {
        not_taken_over(run, target, OldAttribute::Permissions, errno, &mut lost);
    }
    lost
}

/// What is signed or measured belongs to the old contents, and a program's rights end when it is
/// written to.
const OF_CONTENTS: [&[u8]; 2] = [b"security.capability", b"security.ima"];

fn take_over_xattrs(
    run: &Run<'_>,
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
            return not_taken_over(run, target, what, errno, lost);
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
            not_taken_over(run, target, what, errno, lost);
        }
    }
    // The directory may have given a list to the new file; the old one's own is none.
    if !names.iter().any(|name| **name == *ACL_ACCESS)
        && let Err(errno) = target.handle.remove(ACL_ACCESS)
    {
        not_taken_over(run, target, OldAttribute::Permissions, errno, lost);
    }
}

fn not_taken_over(
    run: &Run<'_>,
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
    run.report(Diagnostic::NotTakenOver { what, dst: target.place.path(), errno });
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
fn own(run: &Run<'_>, src: &Stat, target: Target<'_>, lost: &mut Vec<Loss>) -> Owner {
    if (src.st_uid, src.st_gid) == (target.stat.st_uid, target.stat.st_gid) {
        return Owner::Untouched;
    }
    if !target.new && kind(target.stat) == FileType::RegularFile {
        // The new owner must not find more open than both modes allow.
        let both = Mode::from_raw_mode(target.stat.st_mode & src.st_mode & 0o700);
        if let Err(errno) = set_permissions(target.handle, both) {
            run.report(failed(Action::Permissions, target.place)(errno));
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
    if !ordinary || run.is_root() {
        run.report(failed(Action::Ownership, target.place)(errno));
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
    run: &Run<'_>,
    source: Source<'_>,
    target: Target<'_>,
    lost: &mut Vec<Loss>,
) -> Option<Mode> {
    let preserve = &run.options.preserve;
    let keeps_acl = keeps_acl(run.options, kind(source.stat));
    let mut names = Vec::new();
    if reads_xattrs(run.options, kind(source.stat))
        && let Some(handle) = source.handle
    {
        names = handle.list().unwrap_or_else(|errno| {
            if preserve.xattr == Keep::Required && errno != Errno::OPNOTSUPP {
                xattr_lost(run, target, b"", errno, lost);
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
                run.report(failed(Action::Permissions, target.place)(errno));
                lost.push(Loss::Permissions(errno));
            }
            (Class::Context, Err(errno)) => context_lost(run, target, errno, lost),
            (_, Err(errno)) => xattr_lost(run, target, name.to_bytes(), errno, lost),
        }
    }
    if keeps_acl && (target.inherits_acl || !target.new) {
        let default = is_directory(target.stat).then_some(ACL_DEFAULT);
        remove_foreign_acls(run, target, &[Some(ACL_ACCESS), default], &names, lost);
    } else if target.new
        && loses_acl(run.options, target.inherits_acl)
        && kind(target.stat) != FileType::Symlink
    {
        // What is made in a directory later is to get its list all the same.
        remove_foreign_acls(run, target, &[Some(ACL_ACCESS)], &[], lost);
    }
    set_named_context(run, target, lost);
    mode
}

/// What the mode `before` becomes when the attribute `name` is set to `value`, if that is certain.
fn mode_with(name: &CStr, value: &[u8], before: Mode) -> Option<Mode> {
    if name == ACL_ACCESS {
        // Set-group-ID may be cleared with it, see posix_acl_update_mode() in the kernel.
        (!before.intersects(SPECIAL_BITS)).then(|| granted(value))
    } else {
        (name == ACL_DEFAULT || Class::of(name) != Class::Acl).then_some(before)
    }
}

/// Takes away those of the lists `acls` that the target has and the source has not: they came from the
/// directory, or were there before.
fn remove_foreign_acls(
    run: &Run<'_>,
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
            run.report(failed(Action::Permissions, target.place)(errno));
            lost.push(Loss::Permissions(errno));
        }
    }
}

fn set_named_context(run: &Run<'_>, target: Target<'_>, lost: &mut Vec<Loss>) {
    use std::os::unix::ffi::OsStrExt;
    if let Context::Named(context) = &run.options.context {
        let value = [context.as_bytes(), b"\0"].concat();
        if let Err(errno) = target.handle.set(CONTEXT, &value) {
            run.report(failed(Action::Context, target.place)(errno));
            lost.push(Loss::Context(errno));
        }
    }
}

/// An extended attribute could not be kept. Whether that is worth a word depends on who asked: `-a`
/// asks for everything that can be had, and what a file system or the user's rank cannot have is
/// no surprise; a full disk is.
fn xattr_lost(run: &Run<'_>, target: Target<'_>, name: &[u8], errno: Errno, lost: &mut Vec<Loss>) {
    let preserve = &run.options.preserve;
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
        run.report(Diagnostic::Xattr { name: name.to_vec(), dst, errno, required });
    }
    lost.push(Loss::Xattr(name.to_vec(), errno));
}

fn is_unsupported(loss: &Loss) -> bool {
    matches!(loss, Loss::Xattr(_, Errno::OPNOTSUPP))
}

fn context_lost(run: &Run<'_>, target: Target<'_>, errno: Errno, lost: &mut Vec<Loss>) {
    if run.options.preserve.context == Keep::Required {
        run.report(failed(Action::Context, target.place)(errno));
    }
    lost.push(Loss::Context(errno));
}

fn set_mode(
    run: &Run<'_>,
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
    let wanted = if run.options.preserve.mode == ModeRule::Preserve {
        let mode = Mode::from_raw_mode(src.st_mode & 0o7777);
        // Set-user-ID would lend the rights of another user than it was meant to.
        Some(if owner == Owner::Lost { mode & !SPECIAL_BITS } else { mode })
    } else if owner != Owner::Untouched && !target.new && is_regular(target.stat) {
        // What was narrowed for the change of owner, without the bits that it cleared.
        Some(found & !SPECIAL_BITS)
    } else {
        target.mode.map(|mode| mode & !withheld(run, target))
    };
    let Some(wanted) = wanted else { return };
    // A change of owner may have changed the mode meanwhile.
    if owner == Owner::Untouched && Some(wanted) == now {
        return;
    }
    if let Err(errno) = set_permissions(target.handle, wanted) {
        run.report(failed(Action::Permissions, target.place)(errno));
        lost.push(Loss::Permissions(errno));
    }
}

/// What the list that a new target has from its directory withholds. The target was made without most
/// permissions, so that its own list no longer tells.
fn withheld(run: &Run<'_>, target: Target<'_>) -> Mode {
    let keeps = target.new && target.inherits_acl && !loses_acl(run.options, true);
    if keeps { withheld_by(Handle::Path(target.place.dir)) } else { Mode::empty() }
}

/// What the list that `dir` gives to what is made in it withholds. A directory that was just made has the
/// list by which it was made.
pub(crate) fn withheld_by(dir: Handle<'_>) -> Mode {
    let list = dir.get(ACL_DEFAULT);
    list.map_or(Mode::empty(), |list| Mode::from_raw_mode(0o777) & !granted(&list))
}

fn change_owner(handle: Handle<'_>, uid: Option<Uid>, gid: Option<Gid>) -> io::Result<()> {
    match handle {
        Handle::Open(fd) => fchown(fd, uid, gid),
        Handle::Path(fd) => chownat(fd, c"", uid, gid, AtFlags::EMPTY_PATH),
        Handle::Link(dir, name) => chownat(dir, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW),
    }
}

pub(crate) fn set_permissions(handle: Handle<'_>, mode: Mode) -> io::Result<()> {
    match handle {
        Handle::Open(fd) => fchmod(fd, mode),
        // fchmodat knows no AT_EMPTY_PATH.
        Handle::Path(fd) => chmod(Handle::proc_path(fd), mode),
        Handle::Link(..) => Err(Errno::OPNOTSUPP),
    }
}

fn set_times(handle: Handle<'_>, src: &Stat) -> io::Result<()> {
    let spec = |(tv_sec, tv_nsec)| Timespec { tv_sec, tv_nsec };
    let times = Timestamps { last_access: spec(atime(src)), last_modification: spec(mtime(src)) };
    match handle {
        Handle::Open(fd) => futimens(fd, &times),
        Handle::Path(fd) => utimensat(fd, c"", &times, AtFlags::EMPTY_PATH),
        Handle::Link(dir, name) => utimensat(dir, name, &times, AtFlags::SYMLINK_NOFOLLOW),
    }
}
