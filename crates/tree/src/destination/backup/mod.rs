//! Backups of files that are replaced. `numbers.rs` finds the highest number of a file's backups;
//! [`back_up`] chooses the name.

pub(super) mod numbers;

use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use rustix::fs::{AtFlags, RenameFlags, linkat, renameat, renameat_with, unlinkat};
use rustix::io::{self, Errno};

use self::numbers::{Highest, Seen, note, parse};
use super::context::{CopyContext, Job};
use super::dry_run::may_remove;
use super::temporary::{NAMES_TRIED, replace_by};
use crate::fs::{
    FileId, Handle, Place, Trust, c_name, ctime, each_name, is_renamed_instead, lstat, mtime,
    open_above, rename_if_absent, split,
};
use crate::metadata::set_mtime;
use crate::report::{Action, Diagnostic, Result, failed};
use crate::request::{Backup, BackupKind};

/// A destination that has the name of its backup.
#[derive(Clone, Debug)]
pub(crate) struct BackedUp {
    name: CString,
    /// For messages.
    pub(crate) path: PathBuf,
    method: BackupMethod,
}

/// How a file gets the name of its backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BackupMethod {
    /// The file is renamed.
    Rename,
    /// Nothing is done.
    DryRun,
    /// The backup is a second hard link, so that the file keeps its name until it is replaced.
    Link,
}

impl BackedUp {
    /// Whether the file still has its own name, or would have it after a dry run.
    pub(super) fn keeps_name(&self) -> bool {
        self.method != BackupMethod::Rename
    }

    /// Gives the file its own name back, after the copy failed. False if the copy has that name
    /// already: then the backup is the last name of the old file.
    pub(crate) fn undo(&self, cx: &CopyContext<'_>, dst: &Place<'_>) -> io::Result<bool> {
        if self.method != BackupMethod::DryRun
            && let Some((_, seen)) = numbered(cx, dst)
        {
            cx.numbers.forget(seen.id);
        }
        match self.method {
            BackupMethod::Rename => {
                // What another process has created meanwhile stays, and the backup too.
                let is_own = |now| cx.operands.may_be_of_this_run(dst, FileId::of(&now));
                match lstat(dst.dir, dst.name).is_ok_and(is_own) {
                    true => renameat(dst.dir, &*self.name, dst.dir, dst.name),
                    false => rename_to_new(dst.dir, &self.name, dst.name),
                }?;
            }
            BackupMethod::DryRun => {}
            BackupMethod::Link => {
                let named = |name| lstat(dst.dir, name);
                let old = FileId::of(&named(&*self.name)?);
                if named(dst.name).map_or(true, |now| FileId::of(&now) != old) {
                    return Ok(false);
                }
                unlinkat(dst.dir, &*self.name, AtFlags::empty())?;
            }
        }
        Ok(true)
    }
}

/// The name of a simple backup of `name`.
pub(crate) fn simple_name(name: &[u8], backup: &Backup) -> Vec<u8> {
    with_suffix(name, backup.suffix.as_bytes())
}

/// The number above `highest`, and the name of that backup of `name`.
fn numbered_name(name: &[u8], highest: u128) -> io::Result<(u128, Vec<u8>)> {
    let number = highest.checked_add(1).ok_or(Errno::OVERFLOW)?;
    Ok((number, with_suffix(name, format!(".~{number}~").as_bytes())))
}

/// `name` with `suffix`. As in GNU cp a name that would be too long is cut, and ends in `~`.
fn with_suffix(name: &[u8], suffix: &[u8]) -> Vec<u8> {
    const BYTES_MAX: usize = 255;
    const CUT_BYTES: usize = 253;
    let whole = [name, suffix].concat();
    let base = name.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let cut = [&name[..name.len().min(base + CUT_BYTES)], b"~"].concat();
    if whole.len() - base <= BYTES_MAX || cut == name { whole } else { cut }
}

/// The path of the next backup of the operand at `dst`.
pub(crate) fn next_path(
    cx: &CopyContext<'_>,
    dst: &Place<'_>,
    backup: &Backup,
) -> io::Result<PathBuf> {
    let highest = highest_number(cx, dst, backup.kind)?;
    let path = dst.path();
    let bytes = path.as_os_str().as_bytes();
    Ok(OsString::from_vec(match highest {
        None => simple_name(bytes, backup),
        Some(highest) => numbered_name(bytes, highest)?.1,
    })
    .into())
}

/// Makes a backup of the file `id` at the destination. Where the file system has no hard links,
/// the file is renamed.
///
/// # Errors
/// Those of the calls, and a file of this run that the backup would replace.
pub(crate) fn back_up(
    job: Job<'_>,
    id: FileId,
    backup: &Backup,
    method: BackupMethod,
) -> Result<BackedUp> {
    let (cx, dst) = (job.cx, &job.entry.dst);
    let failure = || failed(Action::Backup, dst);
    if method == BackupMethod::DryRun {
        may_remove(cx.security.caller, dst).map_err(failure())?;
    }
    let highest = highest_number(cx, dst, backup.kind);
    let (highest, name) = (highest.map_err(failure())?, simple_name(dst.name.to_bytes(), backup));
    if highest.is_none() && cx.created.is_at(dst, &name) {
        let backup = backup_path(dst, &name);
        return Err(Diagnostic::BackupDestroysCopy { dst: dst.path(), backup });
    }
    let back_up_by = |method| {
        let name = match highest {
            None => back_up_simple(job, c_name(&name)?, method),
            Some(highest) => back_up_numbered(dst, highest, method),
        }?;
        Ok(BackedUp { path: backup_path(dst, name.to_bytes()), name, method })
    };
    let backed_up = match back_up_by(method) {
        Err(errno) if method == BackupMethod::Link && is_renamed_instead(errno) => {
            back_up_by(BackupMethod::Rename)
        }
        backed_up => backed_up,
    };
    let backed_up = backed_up.map_err(failure())?;
    if highest.is_none() {
        cx.created.insert(id);
    }
    note_created(cx, &Place { name: &backed_up.name, ..*dst });
    Ok(backed_up)
}

fn back_up_simple(job: Job<'_>, name: CString, method: BackupMethod) -> io::Result<CString> {
    let dst = &job.entry.dst;
    match method {
        BackupMethod::Rename => renameat(dst.dir, dst.name, dst.dir, &*name)?,
        BackupMethod::DryRun => {
            may_remove(job.cx.security.caller, &Place { name: &name, ..*dst })?;
        }
        BackupMethod::Link => {
            let new = Place { name: &name, ..*dst };
            replace_by(job, &new, |temp| link(dst, temp.name))?;
        }
    }
    Ok(name)
}

/// Takes the first free number above `highest`. Another process may make backups too, and none may
/// replace another one.
fn back_up_numbered(dst: &Place<'_>, highest: u128, method: BackupMethod) -> io::Result<CString> {
    let mut number = highest;
    for _ in 0..NAMES_TRIED {
        let name;
        (number, name) = numbered_name(dst.name.to_bytes(), number)?;
        let name = c_name(&name)?;
        let named = match method {
            BackupMethod::Rename => rename_to_new(dst.dir, dst.name, &name),
            BackupMethod::DryRun => Ok(()),
            BackupMethod::Link => link(dst, &name),
        };
        match named {
            Err(Errno::EXIST) => {}
            named => return named.map(|()| name),
        }
    }
    Err(Errno::EXIST)
}

/// Gives the file a second name. The driver ntfs of Linux 7.2 takes that for a modification.
fn link(dst: &Place<'_>, name: &CStr) -> io::Result<()> {
    let modified = mtime(&dst.stat(false)?);
    linkat(dst.dir, dst.name, dst.dir, name, AtFlags::empty())?;
    if mtime(&lstat(dst.dir, name)?) != modified {
        // Only its owner may set it. The backup is as good without.
        let _ = set_mtime(Handle::Link(dst.dir, name), modified);
    }
    Ok(())
}

fn rename_to_new(dir: BorrowedFd<'_>, from: &CStr, to: &CStr) -> io::Result<()> {
    match renameat_with(dir, from, dir, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => rename_if_absent(dir, from, to),
        result => result,
    }
}

/// The highest number among the backups of the file at `dst`; `None` for a simple backup.
fn highest_number(
    cx: &CopyContext<'_>,
    dst: &Place<'_>,
    kind: BackupKind,
) -> io::Result<Option<u128>> {
    if kind == BackupKind::Simple {
        return Ok(None);
    }
    let (_, base) = split(dst.name);
    let seen = directory_of(dst)?;
    let list = || {
        let mut highest = Highest::default();
        let listed = open_above(dst).and_then(|(dir, _)| {
            each_name(dir.as_fd(), |name, _kind| {
                if let Some((base, number)) = parse(name.to_bytes()) {
                    note(&mut highest, base, number);
                }
            })
        });
        match listed {
            // A directory that may not be listed shows no backups.
            Err(Errno::ACCESS | Errno::PERM) => Ok(Highest::default()),
            listed => listed.map(|()| highest),
        }
    };
    let mut highest = cx.numbers.highest(seen, base, list)?;
    let first = [dst.name.to_bytes(), b".~1~"].concat();
    let has_first = || lstat(dst.dir, OsStr::from_bytes(&first)).is_ok();
    if highest.is_none() && kind == BackupKind::Existing && has_first() {
        // Another process has made a first numbered backup during this run.
        highest = Some(1);
    }
    Ok(if kind == BackupKind::Numbered { highest.or(Some(0)) } else { highest })
}

/// The directory of `dst`, and its current ctime.
fn directory_of(dst: &Place<'_>) -> io::Result<Seen> {
    let stat = dst.stat_above()?;
    Ok(Seen { id: FileId::of(&stat), changed: ctime(&stat) })
}

/// The kind of backup at `dst` and its directory now, if it may have a number. A directory that this run created
/// has no backups.
fn numbered(cx: &CopyContext<'_>, dst: &Place<'_>) -> Option<(BackupKind, Seen)> {
    let kind = cx.options.backup.as_ref().filter(|_| dst.trust != Trust::Created)?.kind;
    let seen = || directory_of(dst).ok();
    (kind != BackupKind::Simple).then(seen).flatten().map(|seen| (kind, seen))
}

/// Forgets the numbers of the directory of `dst` if another process has changed it. Called before
/// this run changes it.
pub(crate) fn refresh(cx: &CopyContext<'_>, dst: &Place<'_>) {
    if let Some((_, seen)) = numbered(cx, dst) {
        cx.numbers.refresh(seen);
    }
}

/// Records that this run created `dst`, which may itself have the name of a backup.
pub(crate) fn note_created(cx: &CopyContext<'_>, dst: &Place<'_>) {
    let Some((kind, seen)) = numbered(cx, dst) else { return };
    let (_, name) = split(dst.name);
    let number = parse(name);
    if cx.dry_run.is_some() && number.is_some() {
        // A dry run creates no file, so that a later listing would not contain it.
        let _ = highest_number(cx, dst, kind);
    }
    cx.numbers.note_created(seen, number);
}

/// The path of the backup: that of the destination, with the end of `name`.
fn backup_path(dst: &Place<'_>, name: &[u8]) -> PathBuf {
    let old = dst.name.to_bytes();
    let same = old.iter().zip(name).take_while(|(old, new)| old == new).count();
    let mut path = dst.path().into_os_string().into_vec();
    path.truncate(path.len() - (old.len() - same));
    OsString::from_vec([&path, &name[same..]].concat()).into()
}
