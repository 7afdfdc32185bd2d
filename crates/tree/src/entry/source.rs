//! Opening the source of an entry.

use std::os::fd::OwnedFd;

use rustix::fs::{OFlags, Stat, fstat};
use rustix::io::Errno;

use super::{Entry, ListedEntry};
use crate::fs::{FileId, FsTypes, Place, is_file, open_listed, open_looked_at};
use crate::report::{Action, Diagnostic, Result, failed};

/// An open source, and what it was when it was opened.
pub(crate) struct OpenSource {
    pub(crate) fd: OwnedFd,
    pub(crate) stat: Stat,
}

/// A source that has been opened, and the file for its copy if that was created already.
pub(crate) struct Prepared {
    pub(crate) source: OpenSource,
    pub(crate) created: Option<OwnedFd>,
}

const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

/// Opens a source that its directory lists as a regular file. `None` if it cannot be opened, or is
/// something else.
pub(crate) fn open_listed_source(
    fs_types: &mut FsTypes,
    entry: &ListedEntry<'_>,
) -> Option<OpenSource> {
    open_regular(fs_types, &entry.src, false)
}

/// Opens a source that is probably a regular file, through a symbolic link with `follow`. `None` if it
/// cannot be opened, or is something else.
pub(crate) fn open_regular(
    fs_types: &mut FsTypes,
    src: &Place<'_>,
    follow: bool,
) -> Option<OpenSource> {
    let (fd, stat) = open_listed(fs_types, None, (src.dir, src.name), read_flags(follow))?;
    Some(OpenSource { fd, stat })
}

fn read_flags(follow: bool) -> OFlags {
    if follow { READ } else { READ | OFlags::NOFOLLOW }
}

/// Opens the source, which must still be the file that `entry.src_stat` describes. `fs_type` is the type of its file
/// system, if that is known.
pub(crate) fn open_source(fs_type: Option<u64>, entry: &Entry<'_>) -> Result<OpenSource> {
    let (dir, name) = (entry.src.dir, entry.src.name);
    let flags = read_flags(entry.src_through_link);
    let replaced = || Diagnostic::SourceReplaced { src: entry.src.path() };
    let opened = open_looked_at(fs_type, dir, name, flags, &entry.src_stat);
    let fd = opened.map_err(|errno| match errno {
        Errno::LOOP if !entry.src_through_link => replaced(),
        errno => failed(Action::OpenForReading, &entry.src)(errno),
    })?;
    let stat = fstat(&fd).map_err(failed(Action::Fstat, &entry.src))?;
    if !is_file(&fd, &stat, FileId::of(&entry.src_stat)) {
        return Err(replaced());
    }
    Ok(OpenSource { fd, stat })
}
