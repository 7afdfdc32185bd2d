//! Entries without data: symbolic links, fifos, sockets, devices; and links to the source itself.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, linkat, mknodat, openat, readlinkat,
    renameat, statat, symlinkat, unlinkat,
};
use rustix::io::{self, Errno};

use crate::beside::make_beside;
use crate::diagnostic::{Action, Diagnostic};
use crate::entry::{Job, matters_who_it_is};
use crate::existing::{Old, split};
use crate::extents;
use crate::identity::{FileId, is_symlink, kind};
use crate::metadata::{self, Source, Target};
use crate::observer::Announcement;
use crate::options::{Context, Keep, ModeRule, Options};
use crate::place::{Place, Trust};
use crate::receipt::Loss;
use crate::rehearsal::{may_have_another_name, may_link};
use crate::run::{Run, failed};
use crate::xattr::{Handle, may_have_any};

/// Makes a symbolic link with the same text. What stands in its way is replaced without further ado
/// where it `gives_way`; so it is below. Which file was made is returned where it matters.
pub(crate) fn copy_symlink(
    run: &Run<'_>,
    job: &Job<'_>,
    src_stat: &Stat,
    old: Old,
) -> Result<(Option<FileId>, Vec<Loss>), Diagnostic> {
    // To read a link sets its time of access.
    let text = match run.rehearsal {
        None => readlinkat(job.src.dir, job.src.name, Vec::new())
            .map_err(failed(Action::ReadLink, &job.src))?,
        Some(_) => CString::default(),
    };
    replacing(run, job, old, |name| symlinkat(&*text, job.dst.dir, name))
        .map_err(failed(Action::CreateSymlink, &job.dst))?;
    finish_like_source(run, job, src_stat, None)
}

/// Makes a fifo, socket or device like the source. Nothing is opened, so nothing can block.
pub(crate) fn copy_node(
    run: &Run<'_>,
    job: &Job<'_>,
    src_stat: &Stat,
    old: Old,
) -> Result<(Option<FileId>, Vec<Loss>), Diagnostic> {
    let kind = kind(src_stat);
    let action = match kind {
        FileType::Fifo => Action::CreateFifo,
        FileType::Socket | FileType::CharacterDevice | FileType::BlockDevice => {
            Action::CreateSpecial
        }
        _ => return Err(Diagnostic::UnknownKind { src: job.src.path() }),
    };
    let mode = metadata::new_file_mode(run.options, src_stat, run.umask, job.inherits_acl);
    let device = match kind {
        // The device that it is, not the one that it is on.
        FileType::CharacterDevice | FileType::BlockDevice => src_stat.st_rdev,
        _ => 0,
    };
    let make = |name: &CStr| mknodat(job.dst.dir, name, kind, mode.at_first, device);
    replacing(run, job, old, make).map_err(failed(action, &job.dst))?;
    let later = metadata::is_made_private(run.options, job.inherits_acl);
    finish_like_source(run, job, src_stat, later.then_some(mode.at_last))
}

/// Makes the destination a hard link to the source itself.
pub(crate) fn link_source(
    run: &Run<'_>,
    job: &Job<'_>,
    src_stat: &Stat,
    old: Old,
) -> Result<FileId, Diagnostic> {
    let error = |errno| Diagnostic::HardLink { src: job.src.path(), dst: job.dst.path(), errno };
    let flags = if is_symlink(src_stat) || !job.src_through_link {
        AtFlags::empty()
    } else {
        AtFlags::SYMLINK_FOLLOW
    };
    let link = |name: &CStr| linkat(job.src.dir, job.src.name, job.dst.dir, name, flags);
    let before = match run.rehearsal {
        None => run.options.verbose && job.dst.stat(false).is_ok(),
        Some(_) => old != Old::Nothing,
    };
    replacing(run, job, old, link).map_err(error)?;
    if let Some(rehearsal) = &run.rehearsal {
        let follow = flags == AtFlags::SYMLINK_FOLLOW;
        may_have_another_name(run, rehearsal, (&job.src, src_stat), follow, &job.dst)
            .map_err(error)?;
    }
    if before {
        run.announce(|| Announcement::Removed { dst: job.dst.path() });
    }
    if run.rehearsal.is_some() {
        return Ok(FileId::of(src_stat));
    }
    let made = job.dst.stat(false).map_err(failed(Action::Stat, &job.dst))?;
    if FileId::of(&made) != FileId::of(src_stat) {
        // The name had been given to another file by then, which nobody asked us to link.
        let _ = job.dst.unlink();
        return Err(Diagnostic::SourceReplaced { src: job.src.path() });
    }
    Ok(FileId::of(&made))
}

/// Makes the destination a symbolic link to the source's name.
pub(crate) fn link_to_name(
    run: &Run<'_>,
    job: &Job<'_>,
    src_stat: &Stat,
    old: Old,
) -> Result<Option<FileId>, Diagnostic> {
    let text = job.src.path();
    if !text.has_root() && !is_working_directory(&job.dst) {
        return Err(Diagnostic::RelativeSymlinkElsewhere { dst: job.dst.path() });
    }
    let make = |name: &CStr| symlinkat(text.as_os_str().as_bytes(), job.dst.dir, name);
    replacing(run, job, old, make).map_err(|errno| Diagnostic::SymbolicLink {
        src: text.clone(),
        dst: job.dst.path(),
        errno,
    })?;
    let source = Source { handle: None, stat: src_stat };
    let (made, _lost) = finish(run, job, source, FileType::Symlink, None)?;
    Ok(made)
}

/// Makes something new at the destination. Where another thing is there that the user has given
/// leave to replace, or that gives way anyhow, the new one is made beside it and takes its name, so
/// that there is no moment without either.
fn replacing(
    run: &Run<'_>,
    job: &Job<'_>,
    old: Old,
    make: impl Fn(&CStr) -> io::Result<()>,
) -> io::Result<()> {
    let yields = old == Old::GivesWay || run.options.force || run.options.ask;
    if run.rehearsal.is_some() {
        return match old {
            Old::Nothing => may_link(&job.dst),
            Old::Stands if !yields => Err(Errno::EXIST),
            Old::Stands | Old::GivesWay => Ok(()),
        };
    }
    match make(job.dst.name) {
        Err(Errno::EXIST) if yields => {}
        result => return result,
    }
    replace_by(run, &job.src, &job.dst, |beside| make(beside.name))
}

/// Makes something beside `dst`, of which `src` is the source, that takes its name then.
pub(crate) fn replace_by(
    run: &Run<'_>,
    src: &Place<'_>,
    dst: &Place<'_>,
    make: impl Fn(&Place<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let (beside, ()) =
        make_beside(run, src, (dst.dir, dst.name), |name| make(&Place { name, ..*dst }))?;
    let renamed = renameat(dst.dir, &*beside, dst.dir, dst.name);
    // Two names of one file are both left standing by a rename.
    let _ = unlinkat(dst.dir, &*beside, AtFlags::empty());
    renamed
}

/// Whether the link is to stand in the working directory; also where it cannot stand at all, which
/// making it will tell.
fn is_working_directory(place: &Place<'_>) -> bool {
    if place.trust == Trust::Made {
        // Where nothing is made there is no such directory to be compared.
        return false;
    }
    let (parent, _) = split(place.name);
    let at = |dir, name: &[u8]| statat(dir, OsStr::from_bytes(name), AtFlags::empty());
    match (at(CWD, b"."), at(place.dir, parent)) {
        (Ok(here), Ok(there)) => FileId::of(&here) == FileId::of(&there),
        (_, there) => there.is_err(),
    }
}

/// Gives what was just made the attributes of the source, which is of the same kind.
fn finish_like_source(
    run: &Run<'_>,
    job: &Job<'_>,
    src_stat: &Stat,
    mode: Option<Mode>,
) -> Result<(Option<FileId>, Vec<Loss>), Diagnostic> {
    // A source that cannot be held has no attributes that could be read, beyond its inode's.
    let reads = run.rehearsal.is_none() && metadata::reads_xattrs(run.options, kind(src_stat));
    let src = match job.src_through_link {
        _ if !reads => None,
        true => hold(&job.src, OFlags::empty()).ok().filter(|held| is_same(held, src_stat)),
        false if may_have_any(job.src.dir, job.src.name) => hold(&job.src, OFlags::NOFOLLOW).ok(),
        false => None,
    };
    let source =
        Source { handle: src.as_ref().map(|src| Handle::Path(src.as_fd())), stat: src_stat };
    finish(run, job, source, kind(src_stat), mode)
}

/// Gives what was just made its attributes, through a descriptor that stands for the inode and not
/// for its name, unless it is a symbolic link and nobody else can have given its name to another.
fn finish(
    run: &Run<'_>,
    job: &Job<'_>,
    source: Source<'_>,
    made: FileType,
    mode: Option<Mode>,
) -> Result<(Option<FileId>, Vec<Loss>), Diagnostic> {
    if let Some(rehearsal) = &run.rehearsal {
        return Ok((Some(rehearsal.new_id()), Vec::new()));
    }
    if !keeps_anything(run.options) && !metadata::loses_acl(run.options, job.inherits_acl) {
        if !matters_who_it_is(run, job, source.stat) {
            return Ok((None, Vec::new()));
        }
        let made = job.dst.stat(false).map_err(failed(Action::Stat, &job.dst))?;
        return Ok((Some(FileId::of(&made)), Vec::new()));
    }
    let held = match made {
        FileType::Symlink if job.private => None,
        _ => {
            let held = hold(&job.dst, OFlags::NOFOLLOW);
            Some(held.map_err(failed(Action::Stat, &job.dst))?)
        }
    };
    let looked = held.as_ref().map_or_else(|| job.dst.stat(false), fstat);
    let dst_stat = looked.map_err(failed(Action::Stat, &job.dst))?;
    // A file with several names may have been exchanged for what was made, to be given away by us.
    let is_ours = held
        .as_ref()
        .is_none_or(|held| run.is_mine(&dst_stat) || !extents::are_honest(held.as_fd()));
    if kind(&dst_stat) != made || dst_stat.st_nlink != 1 || !is_ours {
        return Err(Diagnostic::DestinationReplaced { dst: job.dst.path() });
    }
    let link = Handle::Link(job.dst.dir, job.dst.name);
    let target = Target {
        handle: held.as_ref().map_or(link, |held| Handle::Path(held.as_fd())),
        place: &job.dst,
        stat: &dst_stat,
        new: true,
        inherits_acl: job.inherits_acl,
        mode,
    };
    let lost = metadata::apply(run, source, target);
    if job.is_top || !run.options.preserve.timestamps {
        // Such an entry cannot be synced by itself. A journal has its attributes before those of
        // its directory, but this directory gets none after it.
        run.remainder.note(run, job.dst.dir, || job.dst.path());
    }
    Ok((Some(FileId::of(&dst_stat)), lost))
}

fn is_same(held: &OwnedFd, stat: &Stat) -> bool {
    fstat(held).is_ok_and(|now| FileId::of(&now) == FileId::of(stat))
}

fn keeps_anything(options: &Options) -> bool {
    let preserve = &options.preserve;
    preserve.ownership
        || preserve.timestamps
        || preserve.mode == ModeRule::Preserve
        || preserve.xattr != Keep::No
        || preserve.context != Keep::No
        || matches!(options.context, Context::Named(_))
}

/// Opens an entry, whatever it is, without any effect on it.
fn hold(place: &Place<'_>, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
    let name: &CStr = place.name;
    openat(place.dir, name, flags, Mode::empty())
}
