//! Follows symbolic links of the destination: only those that existed before the run and belong to
//! root or to the caller (docs/design/symlinks.md).

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, Stat, fstat, openat, readlinkat};
use rustix::io::{self, Errno};

use super::context::Security;
use crate::fs::{
    Anchor, DirPath, FileId, Place, SEARCH, c_name, enter_for_search, fs_type_of, is_pseudo,
    is_still, is_symlink, lstat, open_for_search, open_looked_at,
};
use crate::report::{Diagnostic, Result};

/// Why a link was not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotFollowed {
    /// A link on the way was created during the run, or belongs to another user.
    Untrusted,
    /// The error of a call on a component.
    Errno(Errno),
}

/// The result of the calls; a link at `dst` that is not trusted ends the copy of the entry.
pub(crate) fn unless_untrusted<T>(
    followed: Result<T, NotFollowed>,
    dst: &Place<'_>,
) -> Result<io::Result<T>> {
    match followed {
        Err(NotFollowed::Untrusted) => Err(Diagnostic::ForeignSymlink { dst: dst.path() }),
        Err(NotFollowed::Errno(errno)) => Ok(Err(errno)),
        Ok(opened) => Ok(Ok(opened)),
    }
}

impl From<Errno> for NotFollowed {
    fn from(errno: Errno) -> NotFollowed {
        NotFollowed::Errno(errno)
    }
}

/// The kernel follows as many links in one lookup.
const LINKS_MAX: usize = 40;

const HELD: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens the target of the link `name` in `dir` with `flags`. ESTALE if that is not `wanted`.
pub(crate) fn open_through_symlink(
    security: &Security,
    dir: BorrowedFd<'_>,
    name: &CStr,
    flags: OFlags,
    wanted: Option<FileId>,
) -> Result<OwnedFd, NotFollowed> {
    let Resolved { dir, name, stat, is_proc_link, .. } = follow(security, dir, name, false)?;
    if is_proc_link {
        let opened = openat(&dir, &*name, flags, Mode::empty())?;
        return match wanted {
            Some(wanted) if wanted != FileId::of_open(&opened)? => Err(Errno::STALE.into()),
            _ => Ok(opened),
        };
    }
    if wanted.is_some_and(|wanted| wanted != FileId::of(&stat)) {
        return Err(Errno::STALE.into());
    }
    let opened = open_looked_at(None, dir.as_fd(), &name, flags | OFlags::NOFOLLOW, &stat)?;
    if !is_still(&opened, &fstat(&opened)?, &stat, || lstat(&dir, &*name)) {
        return Err(Errno::STALE.into());
    }
    Ok(opened)
}

/// Finds the directory and the name of the target of the link `name` in `dir`; `None` for a link of
/// /proc. A link that the user `named` is trusted.
pub(crate) fn resolve_symlink(
    security: &Security,
    dir: BorrowedFd<'_>,
    name: &CStr,
    named: bool,
) -> Result<Option<Resolved>, NotFollowed> {
    Ok(Some(follow(security, dir, name, named)?).filter(|target| !target.is_proc_link))
}

/// Where a chain of links ends: at a file that is no symbolic link, or at a link of /proc, whose target no text
/// gives.
pub(crate) struct Resolved {
    pub(crate) dir: OwnedFd,
    pub(crate) name: CString,
    /// The target, open with O_PATH.
    pub(crate) held: OwnedFd,
    stat: Stat,
    is_proc_link: bool,
}

/// Follows one component after the other. Each is open while it is checked. Every link is checked,
/// because a trusted one may lead to a directory in which other users can create links.
fn follow(
    security: &Security,
    dir: BorrowedFd<'_>,
    name: &CStr,
    named: bool,
) -> Result<Resolved, NotFollowed> {
    let mut at = open_for_search(dir, c".")?;
    let mut path = name.to_bytes().to_vec();
    let mut links = 0;
    loop {
        if path.is_empty() {
            return Err(Errno::NOENT.into());
        }
        if path[0] == b'/' {
            at = open_for_search(CWD, c"/")?;
        }
        let (component, rest) = split_first(&path);
        let held = openat(&at, &*component, HELD, Mode::empty())?;
        let stat = fstat(&held)?;
        if is_symlink(&stat) {
            let old = !security.changed_during_run(&stat) && security.is_owner_trusted(&stat);
            let trusted =
                named || (old && is_preexisting(security, at.as_fd(), &stat, links == 0)?);
            if !trusted {
                return Err(NotFollowed::Untrusted);
            }
            links += 1;
            if links > LINKS_MAX {
                return Err(Errno::LOOP.into());
            }
        }
        // No text gives the target of a link of /proc, and no user can exchange it.
        let is_proc_link = is_symlink(&stat) && fs_type_of(held.as_fd()).is_some_and(is_pseudo);
        if is_symlink(&stat) && !is_proc_link {
            let text = readlinkat(&held, c"", Vec::new())?;
            path = [text.as_bytes(), &rest].concat();
            continue;
        }
        if rest.is_empty() {
            return Ok(Resolved { dir: at, name: component, held, stat, is_proc_link });
        }
        at = if is_proc_link { open_for_search(at.as_fd(), &component)? } else { held };
        path = without_slashes(&rest);
    }
}

/// Whether `link` was in `dir` before the run. Directories outside the destination, to which a link
/// leads, were not recorded: there it suffices that no other user can change the directory, or that
/// it did not change during the run.
fn is_preexisting(
    security: &Security,
    dir: BorrowedFd<'_>,
    link: &Stat,
    in_destination: bool,
) -> Result<bool, NotFollowed> {
    if security.contains(dir, FileId::of(link)) {
        return Ok(true);
    }
    let dir = fstat(dir)?;
    let is_private = security.is_owner_trusted(&dir) && dir.st_mode & 0o022 == 0;
    let in_destination = in_destination || security.is_entered(&dir);
    Ok(!in_destination && (is_private || !security.changed_during_run(&dir)))
}

/// The first component of `path`, and the rest with its leading slash. A trailing slash, or a path
/// of slashes alone, names the directory itself.
fn split_first(path: &[u8]) -> (CString, Vec<u8>) {
    let path = without_slashes(path);
    let end = path.iter().position(|&byte| byte == b'/').unwrap_or(path.len());
    let name = CString::new(&path[..end]).expect("the kernel's texts hold no zero byte");
    (name, path[end..].to_vec())
}

fn without_slashes(path: &[u8]) -> Vec<u8> {
    let start = path.iter().position(|&byte| byte != b'/');
    start.map_or_else(|| b".".to_vec(), |start| path[start..].to_vec())
}

// Opens a directory of the destination again, from an ancestor that is still open.

/// Opens the directory at `dir_path` again, from its anchor down. A symbolic link is followed only
/// where one was followed before, and only to the same directory.
///
/// # Errors
/// ENOENT when the path has no anchor, ESTALE when a link is not trusted any more or has another
/// target, and the errors of openat(2).
fn reopen(security: &Security, dir_path: &DirPath) -> io::Result<OwnedFd> {
    let mut steps = Vec::new();
    let mut at = dir_path;
    let held = loop {
        let (parent, name, target) = match (at.parent(), at.anchor()) {
            (Some(parent), _) => (parent, c_name(at.name())?, None),
            (None, Some(Anchor::In(parent, name))) => (parent, name.clone(), None),
            (None, Some(Anchor::ThroughLink(parent, name, id))) => {
                (parent, name.clone(), Some(*id))
            }
            (None, Some(Anchor::Held(held))) => break held,
            (None, None) => return Err(Errno::NOENT),
        };
        steps.push((name, target));
        at = parent;
    };
    let mut dir = open_for_search(held.as_fd(), c".")?;
    for (name, target) in steps.iter().rev() {
        dir = match target {
            None => enter_for_search(dir.as_fd(), name)?,
            Some(_) => open_through_symlink(security, dir.as_fd(), name, SEARCH, *target).map_err(
                |error| match error {
                    NotFollowed::Untrusted => Errno::STALE,
                    NotFollowed::Errno(errno) => errno,
                },
            )?,
        };
    }
    Ok(dir)
}

/// The directory that was reopened last: hard links to files in it often follow each other.
#[derive(Default)]
pub(crate) struct LastReopened(Option<(DirPath, OwnedFd)>);

impl LastReopened {
    /// The directory at `dir_path`, opened by [`reopen`] unless it is the last one.
    pub(crate) fn open(
        &mut self,
        security: &Security,
        dir_path: &DirPath,
    ) -> io::Result<BorrowedFd<'_>> {
        if self.0.as_ref().is_none_or(|(last, _)| !last.is(dir_path)) {
            self.0 = None;
            self.0 = Some((dir_path.clone(), reopen(security, dir_path)?));
        }
        let (_, dir) = self.0.as_ref().expect("it was just reopened");
        Ok(dir.as_fd())
    }
}
