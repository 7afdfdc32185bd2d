//! Going where a symbolic link leads that was there before, and nowhere that anybody else may have
//! pointed it to meanwhile.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, Stat, fstat, openat, readlinkat};
use rustix::io::Errno;

use super::context::Security;
use crate::fs::{FileId, file_system, is_pseudo, is_symlink, open_for_search, open_looked_at};

/// Why a link was not followed to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotFollowed {
    /// A link on the way is younger than the run, or of somebody whom it need not trust.
    Untrusted,
    /// What the kernel says of a component.
    Errno(Errno),
}

impl From<Errno> for NotFollowed {
    fn from(errno: Errno) -> NotFollowed {
        NotFollowed::Errno(errno)
    }
}

/// As many as the kernel follows in one lookup.
const LINKS_MAX: usize = 40;

const HELD: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens with `flags` what `name` in `dir` leads to, which has to be `wanted` where that is known.
pub(crate) fn open_through_symlink(
    security: &Security,
    dir: BorrowedFd<'_>,
    name: &CStr,
    flags: OFlags,
    wanted: Option<FileId>,
) -> Result<OwnedFd, NotFollowed> {
    let entry = match follow(security, dir, name, false)? {
        End::Resolved(entry) => entry,
        End::Kernels { dir, name } => {
            let opened = openat(&dir, &*name, flags, Mode::empty())?;
            if let Some(wanted) = wanted
                && wanted != FileId::of(&fstat(&opened)?)
            {
                return Err(Errno::STALE.into());
            }
            return Ok(opened);
        }
    };
    if wanted.is_some_and(|wanted| wanted != FileId::of(&entry.stat)) {
        return Err(Errno::STALE.into());
    }
    let flags = flags | OFlags::NOFOLLOW;
    let opened = open_looked_at(entry.dir.as_fd(), &entry.name, flags, &entry.stat)?;
    if FileId::of(&fstat(&opened)?) != FileId::of(&entry.stat) {
        return Err(Errno::STALE.into());
    }
    Ok(opened)
}

/// Finds the directory and the name of what `name` in `dir` leads to; `None` for what only the kernel
/// knows the way to. Where the user `named` the link, it may lead anywhere.
pub(crate) fn resolve_symlink(
    security: &Security,
    dir: BorrowedFd<'_>,
    name: &CStr,
    named: bool,
) -> Result<Option<Resolved>, NotFollowed> {
    Ok(match follow(security, dir, name, named)? {
        End::Resolved(entry) => Some(entry),
        End::Kernels { .. } => None,
    })
}

/// What a name leads to in the end: no symbolic link.
pub(crate) struct Resolved {
    pub(crate) dir: OwnedFd,
    pub(crate) name: CString,
    /// Itself, without any rights to it.
    pub(crate) held: OwnedFd,
    stat: Stat,
}

/// Where a chain of links ends.
enum End {
    Resolved(Resolved),
    /// In a link of /proc, which leads where no text says.
    Kernels {
        dir: OwnedFd,
        name: CString,
    },
}

/// Goes from link to link. Each component is held while it is looked at; a link that one trusts may
/// lead back to where others can put their own.
fn follow(
    security: &Security,
    dir: BorrowedFd<'_>,
    name: &CStr,
    named: bool,
) -> Result<End, NotFollowed> {
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
            // The links of /proc lead where no text says, and nobody can exchange them.
            if file_system(held.as_fd()).is_some_and(is_pseudo) {
                if rest.is_empty() {
                    return Ok(End::Kernels { dir: at, name: component });
                }
                at = open_for_search(at.as_fd(), &component)?;
                path = without_slashes(&rest);
            } else {
                let text = readlinkat(&held, c"", Vec::new())?;
                path = [text.as_bytes(), &rest].concat();
            }
            continue;
        }
        if rest.is_empty() {
            return Ok(End::Resolved(Resolved { dir: at, name: component, held, stat }));
        }
        at = held;
        path = without_slashes(&rest);
    }
}

/// Whether `link` has been in `dir` since before the run. Directories elsewhere, where a link of the
/// destination leads, are not looked at beforehand: those that nobody else can change will do, and
/// those that nobody has.
fn is_preexisting(
    security: &Security,
    dir: BorrowedFd<'_>,
    link: &Stat,
    in_destination: bool,
) -> Result<bool, NotFollowed> {
    if security.preexisting.contains(dir, FileId::of(link)) {
        return Ok(true);
    }
    let dir = fstat(dir)?;
    let is_private = security.is_owner_trusted(&dir) && dir.st_mode & 0o022 == 0;
    let in_destination = in_destination || security.preexisting.is_entered(&dir);
    Ok(!in_destination && (is_private || !security.changed_during_run(&dir)))
}

/// The first component of `path`, and the rest with the slash before it. A slash at the end, or a
/// path of slashes alone, names the directory itself.
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
