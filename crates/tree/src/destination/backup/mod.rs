//! Renaming what is about to be replaced.

pub(super) mod created;
pub(super) mod numbers;

use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use rustix::fs::{
    AtFlags, OFlags, RenameFlags, fcntl_setfl, linkat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::{self, Errno};

use self::numbers::{Highest, Seen, note, parse};
use super::context::DestinationContext;
use super::replace::replace_by;
use crate::fs::{Buffer, FileId, Listing, Place, Trust, c_name, ctime, dir};
use crate::report::{Action, Diagnostic, failed};
use crate::request::{Backup, BackupKind};

/// A destination under its backup's name.
#[derive(Debug)]
pub(crate) struct BackedUp {
    name: CString,
    /// For messages.
    pub(crate) path: PathBuf,
    method: BackupMethod,
}

/// How a file comes to its backup's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BackupMethod {
    /// It has that name instead of its own.
    Rename,
    /// It would have that name: nothing is done.
    DryRun,
    /// It has that name as well, so that there is no moment without its own.
    Link,
}

impl BackedUp {
    /// Gives the file its own name again, after the copy that was to replace it failed.
    pub(crate) fn undo(&self, cx: &DestinationContext<'_>, dst: &Place<'_>) -> io::Result<()> {
        if self.method != BackupMethod::DryRun
            && numbered(cx, dst).is_some()
            && let Ok(seen) = directory_of(dst)
        {
            cx.numbers.forget(seen.id);
        }
        match self.method {
            BackupMethod::Rename => renameat(dst.dir, &*self.name, dst.dir, dst.name),
            BackupMethod::DryRun => Ok(()),
            BackupMethod::Link => unlinkat(dst.dir, &*self.name, AtFlags::empty()),
        }
    }
}

/// The name that a simple backup of `name` has.
pub(crate) fn simple_name(name: &[u8], backup: &Backup) -> Vec<u8> {
    [name, backup.suffix.as_bytes()].concat()
}

/// The path that the next backup of the operand at `dst` will have. `quiet` leaves no
/// trace of looking for it.
pub(crate) fn next_path(
    cx: &DestinationContext<'_>,
    dst: &Place<'_>,
    backup: &Backup,
    quiet: bool,
) -> io::Result<PathBuf> {
    let highest = highest_number(cx, dst, backup.kind, quiet)?;
    let path = dst.path();
    let bytes = path.as_os_str().as_bytes();
    Ok(OsString::from_vec(match highest {
        None => simple_name(bytes, backup),
        Some(number) => [bytes, format!(".~{}~", number.saturating_add(1)).as_bytes()].concat(),
    })
    .into())
}

/// Why there is no backup.
pub(crate) enum BackupError {
    /// It would have replaced what this run has put at this path.
    CreatedFiles(PathBuf),
    Errno(Errno),
}

impl BackupError {
    /// What is said of it where `dst` would have got the backup.
    pub(crate) fn diagnostic(self, dst: &Place<'_>) -> Diagnostic {
        match self {
            BackupError::CreatedFiles(backup) => {
                Diagnostic::BackupDestroysCopy { dst: dst.path(), backup }
            }
            BackupError::Errno(errno) => failed(Action::Backup, dst)(errno),
        }
    }
}

impl From<Errno> for BackupError {
    fn from(errno: Errno) -> BackupError {
        BackupError::Errno(errno)
    }
}

/// Gives the file `id` at `dst`, which is to be a copy of `src`, a backup's name.
pub(crate) fn back_up(
    cx: &DestinationContext<'_>,
    (src, dst): (&Place<'_>, &Place<'_>),
    id: FileId,
    backup: &Backup,
    method: BackupMethod,
) -> Result<BackedUp, BackupError> {
    match highest_number(cx, dst, backup.kind, method == BackupMethod::DryRun)? {
        None => {
            let name = c_name(&simple_name(dst.name.to_bytes(), backup))?;
            if cx.created.is_at(dst, &name) {
                return Err(BackupError::CreatedFiles(beside(dst, &name)));
            }
            match method {
                BackupMethod::Rename => renameat(dst.dir, dst.name, dst.dir, &*name)?,
                BackupMethod::DryRun => {}
                BackupMethod::Link => {
                    replace_by(&cx.security, src, &Place { name: &name, ..*dst }, |beside| {
                        linkat(dst.dir, dst.name, dst.dir, beside.name, AtFlags::empty())
                    })?;
                }
            }
            cx.created.insert(id);
            note_created(cx, &Place { name: &name, ..*dst });
            Ok(BackedUp { path: beside(dst, &name), name, method })
        }
        Some(highest) => {
            let backed_up = back_up_numbered(dst, highest, method)?;
            note_created(cx, &Place { name: &backed_up.name, ..*dst });
            Ok(backed_up)
        }
    }
}

/// Takes the first free number above `highest`. Another process may be making backups too, and
/// none may replace another's.
fn back_up_numbered(dst: &Place<'_>, highest: u64, method: BackupMethod) -> io::Result<BackedUp> {
    let mut number = highest;
    loop {
        number = number.checked_add(1).ok_or(Errno::OVERFLOW)?;
        let name = c_name(&[dst.name.to_bytes(), format!(".~{number}~").as_bytes()].concat())?;
        let named = match method {
            BackupMethod::Rename => rename_to_new(dst, &name),
            BackupMethod::DryRun => Ok(()),
            BackupMethod::Link => linkat(dst.dir, dst.name, dst.dir, &*name, AtFlags::empty()),
        };
        match named {
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
            Ok(()) => return Ok(BackedUp { path: beside(dst, &name), name, method }),
        }
    }
}

fn rename_to_new(dst: &Place<'_>, name: &CString) -> io::Result<()> {
    let new = &**name;
    match renameat_with(dst.dir, dst.name, dst.dir, new, RenameFlags::NOREPLACE) {
        // Some file systems have no such flag; there the gap between looking and renaming stays.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            match statat(dst.dir, new, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(_) => Err(Errno::EXIST),
                Err(Errno::NOENT) => renameat(dst.dir, dst.name, dst.dir, new),
                Err(errno) => Err(errno),
            }
        }
        result => result,
    }
}

/// The highest number among the backups of the file at `dst`, if the next is to have a number.
fn highest_number(
    cx: &DestinationContext<'_>,
    dst: &Place<'_>,
    kind: BackupKind,
    quiet: bool,
) -> io::Result<Option<u64>> {
    if kind == BackupKind::Simple {
        return Ok(None);
    }
    let (parent, base) = split(dst.name.to_bytes());
    let seen = directory_of(dst)?;
    let list = || match open_listed(dst.dir, parent, quiet) {
        Ok(dir) => list_numbers(dir.as_fd()),
        // A directory that may not be listed shows no backups.
        Err(Errno::ACCESS | Errno::PERM) => Ok(Highest::default()),
        Err(errno) => Err(errno),
    };
    let mut highest = cx.numbers.highest(seen, base, list)?;
    if highest.is_none() && kind == BackupKind::Existing && has_first(dst) {
        // Another process has begun to number them while this run was at it.
        highest = Some(1);
    }
    Ok(if kind == BackupKind::Numbered { highest.or(Some(0)) } else { highest })
}

fn list_numbers(dir: BorrowedFd<'_>) -> io::Result<Highest> {
    let mut listing = Listing::default();
    let mut buffer = Buffer::default();
    let mut highest = Highest::new();
    while let Some((name, _)) = listing.next(dir, &mut buffer)? {
        if let Some((base, number)) = parse(name.to_bytes()) {
            note(&mut highest, base, number);
        }
    }
    Ok(highest)
}

/// Whether a backup of `dst` with the number 1 is there.
fn has_first(dst: &Place<'_>) -> bool {
    let first = [dst.name.to_bytes(), b".~1~"].concat();
    statat(dst.dir, OsStr::from_bytes(&first), AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

/// The directory that `dst` is in, as it is now.
fn directory_of(dst: &Place<'_>) -> io::Result<Seen> {
    let (parent, _) = split(dst.name.to_bytes());
    let stat = statat(dst.dir, OsStr::from_bytes(parent), AtFlags::empty())?;
    Ok(Seen { id: FileId::of(&stat), changed: ctime(&stat) })
}

/// How backups in the directory of `dst` are numbered, if they may be. In one that this run has made there
/// are none.
fn numbered(cx: &DestinationContext<'_>, dst: &Place<'_>) -> Option<BackupKind> {
    let kind = cx.options.backup.as_ref().filter(|_| dst.trust != Trust::Created)?.kind;
    (kind != BackupKind::Simple).then_some(kind)
}

/// Something is about to be done at `dst`: what others have changed beside it until now is noticed.
pub(crate) fn refresh(cx: &DestinationContext<'_>, dst: &Place<'_>) {
    if numbered(cx, dst).is_some()
        && let Ok(seen) = directory_of(dst)
    {
        cx.numbers.refresh(seen);
    }
}

/// This run has put something at `dst`, where the backups of another file may be looked for.
pub(crate) fn note_created(cx: &DestinationContext<'_>, dst: &Place<'_>) {
    let Some(kind) = numbered(cx, dst) else { return };
    let (_, name) = split(dst.name.to_bytes());
    let number = parse(name);
    if cx.dry_run.is_some() && number.is_some() {
        // It will not be listed with what is there.
        let _ = highest_number(cx, dst, kind, true);
    }
    if let Ok(seen) = directory_of(dst) {
        cx.numbers.note_created(seen, number);
    }
}

fn open_listed(dir: BorrowedFd<'_>, parent: &[u8], quiet: bool) -> io::Result<OwnedFd> {
    let listed = dir::open_operand(dir, &c_name(parent)?)?;
    if quiet {
        // Only the owner and root may list it without a trace.
        let _ = fcntl_setfl(&listed, OFlags::NOATIME);
    }
    Ok(listed)
}

/// The directory part of a name, which only an operand has, and the last component.
fn split(name: &[u8]) -> (&[u8], &[u8]) {
    match name.iter().rposition(|&byte| byte == b'/') {
        None => (b".", name),
        Some(0) => (b"/", &name[1..]),
        Some(at) => (&name[..at], &name[at + 1..]),
    }
}

/// The path of the backup: the destination's, with what the name has more.
fn beside(dst: &Place<'_>, name: &CString) -> PathBuf {
    let more = &name.to_bytes()[dst.name.to_bytes().len()..];
    let path = [dst.path().as_os_str().as_bytes(), more].concat();
    OsString::from_vec(path).into()
}
