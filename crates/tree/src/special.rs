//! Entries without data: symbolic links, fifos, sockets, devices; and links to the source itself.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, linkat, mknodat, openat, readlinkat, statat,
    symlinkat,
};
use rustix::io::{self, Errno};

use crate::diagnostic::{Action, Diagnostic};
use crate::entry::Job;
use crate::existing::remove;
use crate::identity::{FileId, is_symlink, kind};
use crate::metadata::{self, Source, Target};
use crate::options::{Context, Keep, ModeRule, Options};
use crate::place::Place;
use crate::receipt::Loss;
use crate::run::{Run, failed};
use crate::xattr::Handle;

/// Makes a symbolic link with the same text.
pub(crate) fn copy_symlink(
    run: &Run<'_>,
    job: &Job<'_>,
    src_stat: &Stat,
) -> Result<(FileId, Vec<Loss>), Diagnostic> {
    let text = readlinkat(job.src.dir, job.src.name, Vec::new())
        .map_err(failed(Action::ReadLink, &job.src))?;
    replacing(run, job, || symlinkat(&*text, job.dst.dir, job.dst.name))?
        .map_err(failed(Action::CreateSymlink, &job.dst))?;
    finish(run, job, src_stat, None)
}

/// Makes a fifo, socket or device like the source. Nothing is opened, so nothing can block.
pub(crate) fn copy_node(
    run: &Run<'_>,
    job: &Job<'_>,
    src_stat: &Stat,
) -> Result<(FileId, Vec<Loss>), Diagnostic> {
    let kind = kind(src_stat);
    let action = match kind {
        FileType::Fifo => Action::CreateFifo,
        FileType::Socket | FileType::CharacterDevice | FileType::BlockDevice => {
            Action::CreateSpecial
        }
        _ => return Err(Diagnostic::UnknownKind { src: job.src.path() }),
    };
    let mode = metadata::new_file_mode(run.options, src_stat, run.umask);
    let device = match kind {
        // The device that it is, not the one that it is on.
        FileType::CharacterDevice | FileType::BlockDevice => src_stat.st_rdev,
        _ => 0,
    };
    let make = || mknodat(job.dst.dir, job.dst.name, kind, mode.at_first, device);
    replacing(run, job, make)?.map_err(failed(action, &job.dst))?;
    finish(run, job, src_stat, metadata::sets_later(run.options).then_some(mode.at_last))
}

/// Makes the destination a hard link to the source itself.
pub(crate) fn link_source(
    run: &Run<'_>,
    job: &Job<'_>,
    src_stat: &Stat,
) -> Result<FileId, Diagnostic> {
    let error = |errno| Diagnostic::HardLink { src: job.src.path(), dst: job.dst.path(), errno };
    let flags = if is_symlink(src_stat) || !job.src_through_link {
        AtFlags::empty()
    } else {
        AtFlags::SYMLINK_FOLLOW
    };
    let link = || linkat(job.src.dir, job.src.name, job.dst.dir, job.dst.name, flags);
    replacing(run, job, link)?.map_err(error)?;
    let made = job.dst.stat(false).map_err(failed(Action::Stat, &job.dst))?;
    if FileId::of(&made) != FileId::of(src_stat) {
        // The name had been given to another file by then, which nobody asked us to link.
        let _ = job.dst.unlink();
        return Err(Diagnostic::SourceReplaced { src: job.src.path() });
    }
    Ok(FileId::of(&made))
}

/// Makes the destination a symbolic link to the source's name.
pub(crate) fn link_to_name(run: &Run<'_>, job: &Job<'_>) -> Result<FileId, Diagnostic> {
    let text = job.src.path();
    if !text.has_root() && !is_working_directory(&job.dst) {
        return Err(Diagnostic::RelativeSymlinkElsewhere { dst: job.dst.path() });
    }
    let link = || symlinkat(text.as_os_str().as_bytes(), job.dst.dir, job.dst.name);
    replacing(run, job, link)?.map_err(|errno| Diagnostic::SymbolicLink {
        src: text.clone(),
        dst: job.dst.path(),
        errno,
    })?;
    let made = job.dst.stat(false).map_err(failed(Action::Stat, &job.dst))?;
    Ok(FileId::of(&made))
}

/// Calls `make`, and where something is in the way that the user has given leave to replace, removes
/// that and calls it again. The outer error is that of removing.
fn replacing(
    run: &Run<'_>,
    job: &Job<'_>,
    make: impl Fn() -> io::Result<()>,
) -> Result<io::Result<()>, Diagnostic> {
    match make() {
        Err(Errno::EXIST) if run.options.force || run.options.ask => {
            remove(run, job)?;
            Ok(make())
        }
        result => Ok(result),
    }
}

fn is_working_directory(place: &Place<'_>) -> bool {
    if place.name.to_bytes().contains(&b'/') {
        return false;
    }
    let at = |dir| statat(dir, c".", AtFlags::empty());
    matches!((at(CWD), at(place.dir)), (Ok(here), Ok(there)) if FileId::of(&here) == FileId::of(&there))
}

/// Gives what was just made its attributes, through a descriptor that stands for the inode and not
/// for its name.
fn finish(
    run: &Run<'_>,
    job: &Job<'_>,
    src_stat: &Stat,
    mode: Option<Mode>,
) -> Result<(FileId, Vec<Loss>), Diagnostic> {
    if !keeps_anything(run.options) {
        let made = job.dst.stat(false).map_err(failed(Action::Stat, &job.dst))?;
        return Ok((FileId::of(&made), Vec::new()));
    }
    let dst = hold(&job.dst).map_err(failed(Action::Stat, &job.dst))?;
    let dst_stat = fstat(&dst).map_err(failed(Action::Fstat, &job.dst))?;
    if kind(&dst_stat) != kind(src_stat) {
        return Err(Diagnostic::DestinationReplaced { dst: job.dst.path() });
    }
    // Links have few attributes beyond the inode's, and a source that cannot be held has none that
    // can be read.
    let src = hold(&job.src).ok();
    let source =
        Source { handle: src.as_ref().map(|src| Handle::Path(src.as_fd())), stat: src_stat };
    let target = Target {
        handle: Handle::Path(dst.as_fd()),
        place: &job.dst,
        stat: &dst_stat,
        new: true,
        inherits_acl: job.inherits_acl,
        mode,
    };
    Ok((FileId::of(&dst_stat), metadata::apply(run, source, target)))
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

/// Opens the entry itself, whatever it is, without any effect on it.
fn hold(place: &Place<'_>) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let name: &CStr = place.name;
    openat(place.dir, name, flags, Mode::empty())
}
