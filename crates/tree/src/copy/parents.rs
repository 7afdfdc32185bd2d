//! `--parents`: the directories of the source's name, created again below the target directory.
//!
//! [`descend`] opens or creates them before the entry is copied, and [`finish`] sets their
//! attributes after it.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, Mode, Stat, fstat};
use rustix::io::{self, Errno};

use super::directory_pair::{OpenDirectory, create_and_open};
use crate::destination::context::CopyContext;
use crate::destination::dry_run;
use crate::fs::{
    Anchor, DirPath, DisplayPath, FileId, Handle, KeptNames, OpenFile, Place, SEARCH, Trust,
    c_name, enter_for_search, is_directory, is_still, is_symlink, join, lstat, open_for_search,
};
use crate::metadata::{Source, Target, apply, has_default_acl, sets_attributes_later};
use crate::report::{Action, Announcement, Diagnostic, Result, failed, failed_at};
use crate::request::ModeRule;
use crate::security::{open_through_symlink, unless_untrusted};

/// The directories between the target and the name of one entry, from the target down.
#[derive(Default)]
pub(crate) struct Parents(Vec<Level>);

/// The directory that an entry goes into.
#[derive(Clone, Copy)]
pub(crate) struct TargetDir<'p> {
    pub(crate) fd: BorrowedFd<'p>,
    pub(crate) dir_path: &'p DirPath,
}

struct Level {
    /// The source's name up to this directory.
    prefix: Box<[u8]>,
    src: OpenFile,
    dst: Arc<OwnedFd>,
    dst_stat: Stat,
    /// The file of this name in the directory above: the directory, or a symbolic link to it.
    named: FileId,
    dir_path: DirPath,
    /// This run created it, for this entry.
    new: bool,
    /// The directory was opened for the previous operand.
    reused: bool,
    mode: Option<Mode>,
    inherits_acl: bool,
}

impl Level {
    /// The level for the next operand, if `name` in the directory `above` is still the same file.
    fn reuse(self, above: BorrowedFd<'_>, name: &CStr) -> Option<Level> {
        let named = lstat(above, name).ok()?;
        let reused = FileId::of(&named) == self.named;
        reused.then_some(Level { new: false, reused, ..self })
    }

    /// The current attributes of both sides.
    fn stats(&self) -> io::Result<(Stat, Stat)> {
        if self.reused {
            return Ok((fstat(&self.src.fd)?, fstat(&self.dst)?));
        }
        Ok((self.src.stat, self.dst_stat))
    }
}

impl Parents {
    /// The directory that the entry goes into, unless that is the target itself.
    pub(crate) fn last(&self) -> Option<TargetDir<'_>> {
        self.0.last().map(|Level { dst, dir_path, .. }| TargetDir { fd: dst.as_fd(), dir_path })
    }

    /// Whether this run created that directory for this entry.
    pub(crate) fn is_last_new(&self) -> bool {
        self.0.last().is_some_and(|level| level.new)
    }
}

/// Opens the directories of `src`'s name below `target`, shown as `target_path`, and creates those
/// that are missing. Directories that the `previous` operand has opened are used again.
///
/// # Errors
/// The first directory that could not be entered. Those created before it stay.
pub(crate) fn descend(
    cx: &CopyContext<'_>,
    target: TargetDir<'_>,
    target_path: &Path,
    src: &[u8],
    previous: Parents,
) -> Result<Parents> {
    let mut previous = previous.0.into_iter();
    let mut parents = Parents::default();
    for end in directory_ends(src) {
        let prefix = &src[..end];
        let name = &prefix[prefix.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1)..];
        let name = c_name(name).map_err(failed_at(Action::ParentAttributes, path_of(prefix)))?;
        let above = parents.last().unwrap_or(target);
        let level = previous.next().filter(|level| *level.prefix == *prefix);
        let level = match level.and_then(|level| level.reuse(above.fd, &name)) {
            Some(level) => level,
            None => {
                previous = Vec::new().into_iter();
                // Leading slashes of an absolute name lead to the target itself.
                let start = prefix.iter().position(|&byte| byte != b'/').unwrap_or(prefix.len());
                let dst_path = join(target_path, OsStr::from_bytes(&prefix[start..]));
                let above = (above, parents.is_last_new());
                enter_or_create(cx, above, &name, (path_of(prefix), path_of(src)), dst_path)?
            }
        };
        parents.0.push(level);
    }
    Ok(parents)
}

/// The offset in `src` at which the name of each directory ends.
fn directory_ends(src: &[u8]) -> Vec<usize> {
    let end = src.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    (1..end).filter(|&at| src[at] == b'/' && src[at - 1] != b'/').collect()
}

fn path_of(name: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(name))
}

fn enter_or_create(
    cx: &CopyContext<'_>,
    (above, above_is_new): (TargetDir<'_>, bool),
    name: &CStr,
    (src_path, operand): (&Path, &Path),
    dst_path: PathBuf,
) -> Result<Level> {
    let place = Place::new(above.fd, name, DisplayPath::Operand(&dst_path), Trust::PreExisting);
    let inherits_acl = sets_attributes_later(cx.options) && has_default_acl(cx.options, above.fd);
    let existing = match place.stat(false) {
        // In a dry run a new directory above does not exist.
        Err(Errno::NOTDIR) if above_is_new && cx.options.dry_run => Ok(None),
        // The name of a dangling link is taken.
        Ok(stat) if is_symlink(&stat) && place.stat(true).is_err() => Err(Errno::EXIST),
        Ok(stat) => Ok(Some((enter_existing(cx, &place, &stat)?, FileId::of(&stat)))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => return Err(failed(Action::Stat, &place)(errno)),
    };
    // An error is about the source's directory if that is needed to create one, else about the
    // operand.
    let (action, shown) = match existing {
        Ok(Some(_)) => (Action::Stat, operand),
        _ => (Action::ParentAttributes, src_path),
    };
    let src = c_name(src_path.as_os_str().as_bytes()).and_then(|src_name| {
        let fd = open_for_search(CWD, &src_name)?;
        Ok(OpenFile { stat: fstat(&fd)?, fd })
    });
    let src = src.map_err(failed_at(action, shown))?;
    let existing = existing.map_err(failed(Action::CreateParent, &place))?;
    let new = existing.is_none();
    let (opened, named) = match existing {
        Some((opened, named)) => (opened, Some(named)),
        None => (create(cx, &place, above_is_new, src_path, &src.stat)?, None),
    };
    let (dst, id) = (Arc::new(opened.fd), FileId::of(&opened.stat));
    let named = named.unwrap_or(id);
    // The directory can be opened again by its name, unless that is a symbolic link or `..`.
    let anchor = match named == id && name.to_bytes() != b".." {
        true => Anchor::In(above.dir_path.clone(), name.into()),
        false => Anchor::Held(dst.clone()),
    };
    Ok(Level {
        prefix: src_path.as_os_str().as_bytes().into(),
        src,
        dir_path: DirPath::top(&dst_path, Some(anchor), None),
        dst,
        dst_stat: opened.stat,
        named,
        new,
        reused: false,
        mode: opened.mode,
        inherits_acl,
    })
}

/// Creates the directory `place` like the source's directory `src_path`.
fn create(
    cx: &CopyContext<'_>,
    place: &Place<'_>,
    above_is_new: bool,
    src_path: &Path,
    src_stat: &Stat,
) -> Result<OpenDirectory> {
    let placeholder = |OpenFile { fd, stat }| OpenDirectory { fd, stat, mode: None };
    let (created, is_first) = match &cx.dry_run {
        None => {
            // With `--no-preserve=mode` only a directory that is itself copied stays sticky.
            let mut like = *src_stat;
            if cx.options.preserve.mode == ModeRule::Fresh {
                like.st_mode &= !0o1000;
            }
            // It keeps an inherited access control list, unless it gets the source's.
            let create = || create_and_open(cx, place, &like, Action::CreateParent, false);
            let operands = &cx.operands;
            let created = operands.create_root(create, |created| FileId::of(&created.stat))?;
            if let Err(errno) = KeptNames::default().check(place, None) {
                cx.report.report(failed(Action::KeepName, place)(errno));
            }
            (created, true)
        }
        // `.` and `..` exist with the directory above.
        Some(_) if matches!(place.name.to_bytes(), b"." | b"..") => {
            (placeholder(dry_run::open_placeholder(place, Action::CreateParent)?), false)
        }
        Some(dry_run) => {
            let trust = if above_is_new { Trust::Created } else { Trust::PreExisting };
            let place = Place { trust, ..*place };
            let created = dry_run.create_placeholder(&place, Action::CreateParent)?;
            if !above_is_new {
                dry_run.record_ancestors(&place);
            }
            (placeholder(created), dry_run.record_directory(place.path()))
        }
    };
    if is_first {
        cx.report
            .announce(|| Announcement::ParentMade { src: src_path.to_owned(), dst: place.path() });
    }
    Ok(created)
}

/// Opens an existing directory, or the target of a symbolic link to one.
fn enter_existing(
    cx: &CopyContext<'_>,
    place: &Place<'_>,
    existing: &Stat,
) -> Result<OpenDirectory> {
    let opened = if is_symlink(existing) {
        let opened = open_through_symlink(&cx.security, place.dir, place.name, SEARCH, None);
        unless_untrusted(opened, place)?
    } else if place.name.to_bytes() == b".." {
        open_for_search(place.dir, place.name)
    } else {
        enter_for_search(place.dir, place.name)
    };
    let fd = opened.map_err(|errno| match errno {
        Errno::NOTDIR | Errno::LOOP => Diagnostic::ParentNotDirectory { path: place.path() },
        errno => failed(Action::EnterDestination, place)(errno),
    })?;
    let stat = fstat(&fd).map_err(failed(Action::Fstat, place))?;
    let same = is_symlink(existing) || is_still(&fd, &stat, existing, || place.stat(false));
    if !same || !is_directory(&stat) {
        return Err(Diagnostic::DestinationReplaced { dst: place.path() });
    }
    let above = (!is_symlink(existing)).then_some(place.dir);
    cx.security.record_directory(fd.as_fd(), above);
    Ok(OpenDirectory { fd, stat, mode: None })
}

/// Sets the attributes of the directories, from the innermost to the outermost. If this run created
/// one of them, the existing ones get the source's attributes too; otherwise none is changed.
pub(crate) fn finish(cx: &CopyContext<'_>, parents: &Parents) {
    if cx.options.dry_run {
        return;
    }
    if parents.0.iter().any(|level| level.new) {
        parents.0.iter().rev().for_each(|level| set_attributes(cx, level));
    }
    for level in &parents.0 {
        cx.data.syncer.sync_directory(level.dst.as_fd(), || level.dir_path.path());
    }
}

fn set_attributes(cx: &CopyContext<'_>, level: &Level) {
    let shown = DisplayPath::Directory(&level.dir_path);
    let place = Place::new(level.dst.as_fd(), c".", shown, Trust::PreExisting);
    let (src_stat, dst_stat) = match level.stats() {
        Ok(stats) => stats,
        Err(errno) => return cx.report.report(failed(Action::Fstat, &place)(errno)),
    };
    let source = Source { handle: Some(Handle::Path(level.src.fd.as_fd())), stat: &src_stat };
    let target = Target {
        handle: Handle::Path(level.dst.as_fd()),
        place: &place,
        stat: &dst_stat,
        new: level.new,
        inherits_acl: level.inherits_acl,
        mode: level.mode,
    };
    // Losses were reported; these directories have no receipts.
    let _ = apply(cx.metadata(), source, target);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_step_for_each_directory() {
        for (name, steps) in [
            ("f", &[][..]),
            ("f/", &[]),
            ("a/f", &["a"]),
            ("a//f//", &["a"]),
            ("/a/b/f", &["/a", "/a/b"]),
            ("./a/../f", &[".", "./a", "./a/.."]),
        ] {
            let ends = directory_ends(name.as_bytes());
            let found: Vec<_> = ends.into_iter().map(|end| &name[..end]).collect();
            assert_eq!(found, steps, "{name}");
        }
    }
}
