//! One entry to copy, as the walk finds it, and its open source.

use std::ffi::{CStr, OsStr, OsString};
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rustix::fs::{FileType, OFlags, Stat, fstat};
use rustix::io::Errno;

use crate::fs::{
    DirPath, FileId, FsTypes, OpenFile, Place, file_bytes, is_directory, is_regular, is_smb,
    is_still, kind, last_component, open_listed, open_looked_at, trim_slashes,
};
use crate::report::{Action, Announcement, Diagnostic, Method, Receipt, Reporter, Result, failed};
use crate::request::{Make, Options};
use crate::shared::Kept;
use crate::shared::messages::FilePlace;

/// One entry to copy, as the walk finds it.
pub(crate) struct ListedEntry<'a> {
    pub(crate) src: Place<'a>,
    pub(crate) dst: Place<'a>,
    /// The destination's directory, if it can be opened again for another name of the same file.
    pub(crate) dst_dir: Option<&'a DirPath>,
    /// What the user named.
    pub(crate) operand: &'a Arc<Operand>,
    /// This is the operand itself.
    pub(crate) is_operand: bool,
    /// The type of the entry in the directory listing.
    pub(crate) listed_as: FileType,
    /// If the source is a symbolic link, its target is copied.
    pub(crate) src_through_link: bool,
    /// The only file system to enter.
    pub(crate) device: Option<u64>,
    /// The destination's directory has a default access control list.
    pub(crate) inherits_acl: bool,
    /// No other user may create or remove names in the destination's directory.
    pub(crate) private: bool,
    /// A file of at least as many bytes is not copied, but given to another worker.
    pub(crate) give_from_bytes: u64,
    /// Where partners find a large file of which they copy ranges.
    pub(crate) range_place: Option<&'a RangePlace<'a>>,
    /// When the copy of the entry started, if receipts are kept.
    pub(crate) started: Option<Instant>,
}

/// An entry, and the attributes of its source when that was looked at.
pub(crate) struct Entry<'a> {
    pub(crate) listed: &'a ListedEntry<'a>,
    pub(crate) src_stat: Stat,
}

impl<'a> Deref for Entry<'a> {
    type Target = ListedEntry<'a>;

    fn deref(&self) -> &ListedEntry<'a> {
        self.listed
    }
}

impl ListedEntry<'_> {
    /// The receipt of the entry, which ends now.
    pub(crate) fn receipt(&self, kind: FileType, method: Method) -> Receipt {
        let elapsed_ns = elapsed_ns(self.started);
        Receipt { elapsed_ns, ..Receipt::new(self.src.path(), self.dst.path(), kind, method) }
    }

    /// The device of the destination's directory, if it is known.
    pub(crate) fn dst_dev(&self) -> Option<u64> {
        self.dst_dir?.id().map(|id| id.dev)
    }

    /// Whether the entry is left out, which is announced with `--debug`.
    pub(crate) fn is_left_out(&self, options: &Options, report: &Reporter<'_>) -> bool {
        let filter = &options.filter;
        let Some(dir_path) = self.src.shown.dir() else { return false };
        let is_selected = || {
            !report.observer.is_selective()
                || report.observer.selects(&self.src.path(), self.listed_as)
        };
        if filter.is_empty() {
            return !is_selected();
        }
        // Patterns that end in a slash match directories. A link counts if it is followed.
        let is_directory = match self.listed_as {
            FileType::Directory => true,
            FileType::Unknown | FileType::Symlink => {
                self.src.stat(self.src_through_link).is_ok_and(|stat| is_directory(&stat))
            }
            _ => false,
        };
        let below = dir_path.below_operand(self.src.name);
        let left_out = filter.leaves_out(&below, is_directory) || !is_selected();
        if left_out {
            report.announce_debug(|| Announcement::LeftOut { src: self.src.path() });
        }
        left_out
    }

    /// Opens the source, which its directory lists as a regular file. `None` if it cannot be opened, is
    /// something else, or its names have to be counted before.
    pub(crate) fn open_listed(
        &self,
        options: &Options,
        fs_types: &mut FsTypes,
    ) -> Option<OpenFile> {
        let dir = self.src.shown.dir().and_then(DirPath::id).filter(|_| options.preserve.links);
        let fs_type = dir.and_then(|dir| fs_types.of(self.src.dir, dir.dev));
        // The answer of a server that opens a file tells of one name, and Linux 5.10 believes it.
        if fs_type.is_some_and(is_smb) {
            return None;
        }
        open_regular(fs_types, &self.src, false)
    }

    /// With `--verbose`, announces the copy, and the backup of the existing file.
    pub(crate) fn announce_copy(&self, report: &Reporter<'_>, backup: Option<&Path>) {
        report.announce(|| Announcement::Copied {
            src: self.src.path(),
            dst: self.dst.path(),
            backup: backup.map(Path::to_owned),
        });
    }

    /// Whether another entry of the run may be a hard link to the same file, and become one again.
    pub(crate) fn may_have_links(&self, options: &Options, src_stat: &Stat) -> bool {
        // A symbolic link that is followed is another name of its file, which st_nlink omits.
        let several = src_stat.st_nlink > 1 || options.follow.follows(self.is_operand);
        several && self.keeps_links(options, src_stat)
    }

    /// Whether an entry of a file that another entry names becomes a hard link again.
    pub(crate) fn keeps_links(&self, options: &Options, src_stat: &Stat) -> bool {
        options.preserve.links
            && matches!(options.make, Make::Copy | Make::AttributesOnly)
            && self.dst_dir.is_some()
            // A number that the directory of the source has, too, is that of all files.
            && self.src.shown.dir().is_none_or(|dir_path| dir_path.id() != Some(FileId::of(src_stat)))
    }

    /// Whether later entries of the run are compared with the copy of this one.
    pub(crate) fn is_compared_later(&self, options: &Options, src_stat: &Stat) -> bool {
        self.is_operand || options.backup.is_some() || self.may_have_links(options, src_stat)
    }
}

/// Nanoseconds since the copy of an entry started.
pub(crate) fn elapsed_ns(started: Option<Instant>) -> u64 {
    started.map_or(0, |started| u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// Bytes of data that a copy of the source moves or shares.
pub(crate) fn bytes_to_copy(options: &Options, src_stat: &Stat) -> u64 {
    let copies = options.make == Make::Copy && is_regular(src_stat);
    if copies { file_bytes(src_stat) } else { 0 }
}

/// Whether the source's data is copied, rather than the entry re-created.
pub(crate) fn copies_data(options: &Options, src: &Stat) -> bool {
    match kind(src) {
        FileType::RegularFile => true,
        FileType::Symlink | FileType::Directory => false,
        _ => !options.recursive || options.copy_contents,
    }
}

/// A source operand and the destination of its copy.
#[derive(Debug)]
pub(crate) struct Operand {
    pub(crate) src: PathBuf,
    pub(crate) dst: PathBuf,
    /// All source operands, if the copies of two may be in one directory below the target.
    pub(crate) merged: Arc<[PathBuf]>,
    /// The destination is a name in a directory that the user named.
    pub(crate) into_directory: bool,
    /// A copy of the operand into itself was reported. That is reported once.
    pub(crate) into_itself: AtomicBool,
    /// Partners may copy entries below it.
    pub(crate) shareable: AtomicBool,
}

impl Operand {
    /// Where the operands that are merged with this one have a source that is copied to `name` beside the copy of `src`.
    pub(crate) fn merged_sources(
        &self,
        src: &Place<'_>,
        name: &CStr,
    ) -> impl Iterator<Item = PathBuf> {
        let dir_path = src.shown.dir().filter(|_| !self.merged.is_empty());
        let below = dir_path.map(|dir_path| dir_path.below_operand(name));
        let in_target = match (below, name_in_target(&self.src)) {
            (None, _) => PathBuf::from(OsStr::from_bytes(name.to_bytes())),
            (Some(below), top) => top.join(OsStr::from_bytes(&below)),
        };
        self.merged.iter().filter_map(move |source| {
            let below = in_target.strip_prefix(name_in_target(source)).ok()?;
            Some(if below.as_os_str().is_empty() { source.clone() } else { source.join(below) })
        })
    }
}

/// The name of the operand's copy in the target directory, which is empty if that is the directory itself.
fn name_in_target(source: &Path) -> &Path {
    match last_component(source.as_os_str().as_bytes()) {
        b"." => Path::new(""),
        name => Path::new(OsStr::from_bytes(name)),
    }
}

/// The name of a source operand that is copied into a directory.
pub(crate) fn source_name<'s>(options: &Options, source: &'s OsStr) -> &'s [u8] {
    let bytes = source.as_bytes();
    if options.strip_trailing_slashes { trim_slashes(bytes) } else { bytes }
}

/// Tells how a partner opens the directories of a file and of its copy, and what must not end before the partner
/// does; `None` if it cannot, or is not to.
pub(crate) type RangePlace<'a> = dyn Fn() -> Option<(FilePlace, Kept)> + 'a;

/// Whether any directory on `path`, which starts below the directory of `entry`, is left out.
pub(crate) fn is_path_left_out(options: &Options, entry: &ListedEntry<'_>, path: &Path) -> bool {
    let top = entry.src.shown.dir().map(|dir_path| dir_path.below_operand(entry.src.name));
    let top = PathBuf::from(OsString::from_vec(top.unwrap_or_default()));
    let ends = path.ancestors().filter(|end| !end.as_os_str().is_empty());
    ends.map(|end| top.join(end))
        .any(|path| options.filter.leaves_out(path.as_os_str().as_bytes(), true))
}

// Opening the source of an entry.

/// A source that has been opened, and the file for its copy if that was created already.
pub(crate) struct Prepared {
    pub(crate) source: OpenFile,
    pub(crate) created: Option<OwnedFd>,
}

const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

/// Opens a source that is probably a regular file, through a symbolic link with `follow`. `None` if it
/// cannot be opened, or is something else.
pub(crate) fn open_regular(
    fs_types: &mut FsTypes,
    src: &Place<'_>,
    follow: bool,
) -> Option<OpenFile> {
    open_listed(fs_types, None, (src.dir, src.name), read_flags(follow))
}

fn read_flags(follow: bool) -> OFlags {
    if follow { READ } else { READ | OFlags::NOFOLLOW }
}

/// Opens the source, which must still be the file that `entry.src_stat` describes. `fs_type` is the type of its file
/// system, if that is known.
pub(crate) fn open_source(fs_type: Option<u64>, entry: &Entry<'_>) -> Result<OpenFile> {
    let (dir, name) = (entry.src.dir, entry.src.name);
    let flags = read_flags(entry.src_through_link);
    let opened = open_looked_at(fs_type, dir, name, flags, &entry.src_stat);
    let fd = opened.map_err(|errno| match errno {
        Errno::LOOP if !entry.src_through_link => source_replaced(entry),
        errno => failed(Action::OpenForReading, &entry.src)(errno),
    })?;
    check_source(entry, fd)
}

/// The open source `fd`, which must still be the file that `entry.src_stat` describes.
pub(crate) fn check_source(entry: &Entry<'_>, fd: OwnedFd) -> Result<OpenFile> {
    let stat = fstat(&fd).map_err(failed(Action::Fstat, &entry.src))?;
    if !is_still(&fd, &stat, &entry.src_stat, || entry.src.stat(entry.src_through_link)) {
        return Err(source_replaced(entry));
    }
    Ok(OpenFile { fd, stat })
}

fn source_replaced(entry: &Entry<'_>) -> Diagnostic {
    Diagnostic::SourceReplaced { src: entry.src.path() }
}
