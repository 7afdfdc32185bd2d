//! `--parents`: the directories of the source's name, made again below the target.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, fstat, statat};
use rustix::io::{self, Errno};

use super::context::CopyContext;
use super::make_directory::{MadeDirectory, make_and_open};
use crate::destination::dry_run;
use crate::fs::{
    Anchor, DirPath, DisplayPath, FileId, Handle, Place, Trust, c_name, enter_for_search,
    is_directory, is_symlink, join, open_for_search,
};
use crate::metadata::apply::apply;
use crate::metadata::{Source, Target, has_default_acl, sets_attributes_later};
use crate::report::{Action, Announcement, Diagnostic, failed, failed_at};
use crate::request::ModeRule;
use crate::security::{NotFollowed, open_through_symlink};

/// The directories between the target and one entry's name, from the target down.
#[derive(Default)]
pub(crate) struct Parents(Vec<Level>);

/// The directory that an entry goes into.
#[derive(Clone, Copy)]
pub(crate) struct TargetDir<'p> {
    pub(crate) dir: BorrowedFd<'p>,
    pub(crate) home: &'p DirPath,
}

struct Level {
    /// The source's name up to here.
    prefix: Box<[u8]>,
    src: OwnedFd,
    src_stat: Stat,
    dst: Arc<OwnedFd>,
    dst_stat: Stat,
    dst_path: PathBuf,
    /// What has the name in the directory above: the directory, or a symbolic link to it.
    named: FileId,
    home: DirPath,
    new: bool,
    /// The operand before went through it as well.
    again: bool,
    mode: Option<Mode>,
    inherits_acl: bool,
}

impl Level {
    /// The same for the next operand, if its name in the directory above still stands for it.
    fn still_in(self, above: BorrowedFd<'_>, name: &CStr) -> Option<Level> {
        let named = statat(above, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let again = FileId::of(&named) == self.named;
        again.then_some(Level { new: false, again, ..self })
    }

    /// The attributes of both sides as they are by now.
    fn stats(&self) -> io::Result<(Stat, Stat)> {
        if self.again {
            return Ok((fstat(&self.src)?, fstat(&self.dst)?));
        }
        Ok((self.src_stat, self.dst_stat))
    }
}

impl Parents {
    /// Where the entry goes, unless that is the target itself.
    pub(crate) fn last(&self) -> Option<TargetDir<'_>> {
        self.0.last().map(|Level { dst, home, .. }| TargetDir { dir: dst.as_fd(), home })
    }

    /// Whether this run made that directory, for this very entry.
    pub(crate) fn last_is_new(&self) -> bool {
        self.0.last().is_some_and(|level| level.new)
    }
}

/// Goes down from `target`, shown as `target_path`, along the directories of `src`'s name; those
/// that are missing are made. What this way has in common with the one to the entry before is not
/// opened again.
///
/// # Errors
/// The first that could not be gone through. Those made before it stay.
pub(crate) fn descend(
    cx: &CopyContext<'_>,
    target: TargetDir<'_>,
    target_path: &Path,
    src: &[u8],
    before: Parents,
) -> Result<Parents, Diagnostic> {
    let mut before = before.0.into_iter();
    let mut parents = Parents::default();
    for end in ends_of_directories(src) {
        let prefix = &src[..end];
        let name = &prefix[prefix.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1)..];
        let name = c_name(name).map_err(failed_at(Action::ParentAttributes, path_of(prefix)))?;
        let above = parents.last().unwrap_or(target);
        let level = before.next().filter(|level| *level.prefix == *prefix);
        let level = match level.and_then(|level| level.still_in(above.dir, &name)) {
            Some(level) => level,
            None => {
                before = Vec::new().into_iter();
                // The slashes at the front of an absolute name lead to the target itself.
                let shown = join(target_path, OsStr::from_bytes(trim_front(prefix)));
                let above = (above, parents.last_is_new());
                step(cx, above, &name, (path_of(prefix), path_of(src)), shown)?
            }
        };
        parents.0.push(level);
    }
    Ok(parents)
}

/// Where each directory's part of the name `src` ends.
fn ends_of_directories(src: &[u8]) -> Vec<usize> {
    let end = src.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    (1..end).filter(|&at| src[at] == b'/' && src[at - 1] != b'/').collect()
}

fn path_of(name: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(name))
}

fn trim_front(name: &[u8]) -> &[u8] {
    let start = name.iter().position(|&byte| byte != b'/').unwrap_or(name.len());
    &name[start..]
}

fn placeholder((fd, stat): (OwnedFd, Stat)) -> MadeDirectory {
    MadeDirectory { fd, stat, mode: None }
}

fn step(
    cx: &CopyContext<'_>,
    (above, above_is_new): (TargetDir<'_>, bool),
    name: &CStr,
    (src_path, operand): (&Path, &Path),
    dst_path: PathBuf,
) -> Result<Level, Diagnostic> {
    let shown = DisplayPath::Operand(&dst_path);
    let place = Place { dir: above.dir, name, shown, trust: Trust::PreExisting };
    let inherits_acl = sets_attributes_later(cx.options) && has_default_acl(cx.options, above.dir);
    let mut leads_nowhere = false;
    let stands = match place.stat(false) {
        // The directory above would have been made.
        Err(Errno::NOTDIR) if above_is_new && cx.options.dry_run => None,
        Ok(stands) if is_symlink(&stands) && place.stat(true).is_err() => {
            leads_nowhere = true;
            None
        }
        Ok(stands) => Some((go_into(cx, &place, &stands)?, FileId::of(&stands))),
        Err(Errno::NOENT) => None,
        Err(errno) => return Err(failed(Action::Stat, &place)(errno)),
    };
    // Only for a directory that is to be made does it matter by itself that the source's is there.
    let (action, shown) = match stands {
        Some(_) => (Action::Stat, operand),
        None => (Action::ParentAttributes, src_path),
    };
    let src = c_name(src_path.as_os_str().as_bytes())
        .and_then(|src_name| open_for_search(CWD, &src_name))
        .map_err(failed_at(action, shown))?;
    let src_stat = fstat(&src).map_err(failed_at(action, shown))?;
    if leads_nowhere {
        // No directory can be made where such a link stands.
        return Err(failed(Action::CreateParent, &place)(Errno::EXIST));
    }
    let new = stands.is_none();
    let (dst, dst_stat, named, mode) = match stands {
        Some(((fd, stat), named)) => (fd, stat, named, None),
        None => {
            // A directory made from nothing is not sticky; only one that is itself copied stays so.
            let mut like = src_stat;
            if cx.options.preserve.mode == ModeRule::Fresh {
                like.st_mode &= !0o1000;
            }
            let (made, first) = match cx.dry_run() {
                None => {
                    let make = || {
                        // Those that nobody has named keep their list, unless it is the source's
                        // that they get.
                        make_and_open(cx, &place, &like, Action::CreateParent, false)
                    };
                    (
                        cx.destination.operands.create_root(make, |made| FileId::of(&made.stat))?,
                        true,
                    )
                }
                // These came with the directory above.
                Some(_) if matches!(name.to_bytes(), b"." | b"..") => {
                    (placeholder(dry_run::made(&place, Action::CreateParent)?), false)
                }
                Some(dry_run) => {
                    let trust = if above_is_new { Trust::Created } else { Trust::PreExisting };
                    let place = Place { trust, ..place };
                    let made = dry_run::directory(dry_run, &place, Action::CreateParent)?;
                    let made = placeholder(made);
                    if !above_is_new {
                        dry_run.notes_above(&place);
                    }
                    (made, dry_run.creates_directory(dst_path.clone()))
                }
            };
            if first {
                cx.report.announce(|| Announcement::ParentMade {
                    src: src_path.to_owned(),
                    dst: dst_path.clone(),
                });
            }
            (made.fd, made.stat, FileId::of(&made.stat), made.mode)
        }
    };
    let dst = Arc::new(dst);
    // The name leads there again unless it is a link's, or that of the directory above.
    let is_found_again = named == FileId::of(&dst_stat) && name.to_bytes() != b"..";
    let anchor = match is_found_again {
        true => Anchor::In(above.home.clone(), name.into()),
        false => Anchor::Held(dst.clone()),
    };
    Ok(Level {
        prefix: src_path.as_os_str().as_bytes().into(),
        src,
        src_stat,
        home: DirPath::top(&dst_path, Some(anchor)),
        dst,
        dst_stat,
        dst_path,
        named,
        new,
        again: false,
        mode,
        inherits_acl,
    })
}

/// Opens a directory that is there already, or that a symbolic link there leads to.
fn go_into(
    cx: &CopyContext<'_>,
    place: &Place<'_>,
    stands: &Stat,
) -> Result<(OwnedFd, Stat), Diagnostic> {
    let opened = if is_symlink(stands) {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match open_through_symlink(cx.security(), place.dir, place.name, flags, None) {
            Err(NotFollowed::Untrusted) => {
                return Err(Diagnostic::ForeignSymlink { dst: place.path() });
            }
            Err(NotFollowed::Errno(errno)) => Err(errno),
            Ok(fd) => Ok(fd),
        }
    } else if place.name.to_bytes() == b".." {
        open_for_search(place.dir, place.name)
    } else {
        enter_for_search(place.dir, place.name)
    };
    let in_the_way = |errno| match errno {
        Errno::NOTDIR | Errno::LOOP => Diagnostic::ParentNotDirectory { path: place.path() },
        errno => failed(Action::EnterDestination, place)(errno),
    };
    let fd = opened.map_err(in_the_way)?;
    let stat = fstat(&fd).map_err(failed(Action::Fstat, place))?;
    let same = is_symlink(stands) || FileId::of(&stat) == FileId::of(stands);
    if !same || !is_directory(&stat) {
        return Err(Diagnostic::DestinationReplaced { dst: place.path() });
    }
    cx.security().preexisting.enter(fd.as_fd(), (!is_symlink(stands)).then_some(place.dir));
    Ok((fd, stat))
}

/// Gives the directories the attributes of the source's, from the innermost outwards: as soon as
/// one was made, those that were there before get theirs too. Where all of them stood, they stay
/// as they are.
pub(crate) fn finish(cx: &CopyContext<'_>, parents: &Parents) {
    if cx.options.dry_run {
        return;
    }
    set_attributes(cx, parents);
    for level in &parents.0 {
        cx.data.sync.sync_directory(level.dst.as_fd(), || level.dst_path.clone());
    }
}

fn set_attributes(cx: &CopyContext<'_>, parents: &Parents) {
    if !parents.0.iter().any(|level| level.new) {
        return;
    }
    for level in parents.0.iter().rev() {
        let place = Place {
            dir: level.dst.as_fd(),
            name: c".",
            shown: DisplayPath::Operand(&level.dst_path),
            trust: Trust::PreExisting,
        };
        let (src_stat, dst_stat) = match level.stats() {
            Ok(stats) => stats,
            Err(errno) => {
                cx.report.report(failed(Action::Fstat, &place)(errno));
                continue;
            }
        };
        let source = Source { handle: Some(Handle::Path(level.src.as_fd())), stat: &src_stat };
        let target = Target {
            handle: Handle::Path(level.dst.as_fd()),
            place: &place,
            stat: &dst_stat,
            new: level.new,
            inherits_acl: level.inherits_acl,
            mode: level.mode,
        };
        // What is lost here was reported; these directories have no receipts of their own.
        let _ = apply(cx.metadata(), source, target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_directory_of_a_name_is_a_step() {
        for (name, steps) in [
            ("f", &[][..]),
            ("f/", &[]),
            ("a/f", &["a"]),
            ("a//f//", &["a"]),
            ("/a/b/f", &["/a", "/a/b"]),
            ("./a/../f", &[".", "./a", "./a/.."]),
        ] {
            let ends = ends_of_directories(name.as_bytes());
            let found: Vec<_> = ends.into_iter().map(|end| &name[..end]).collect();
            assert_eq!(found, steps, "{name}");
        }
    }
}
