//! `--dry-run`: all is looked at and decided as ever, and nothing is made.
//!
//! A directory that would be made has to be entered, since it is told what would be put into it. The
//! place of its descriptor is taken by one in which no name can be looked up, let alone be made. What
//! would be there is known only as far as it is kept here.

use std::collections::HashSet;
use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    Access, AtFlags, CWD, Mode, OFlags, Stat, StatxAttributes, StatxFlags, accessat, fstat, openat,
    readlinkat, statat, statx,
};
use rustix::io::{self, Errno};

use crate::entry::{Entry, is_path_left_out};
use crate::fs::{
    Caller, FileId, Handle, Place, Trust, is_regular, is_symlink, open_for_search, placeholder_dir,
    split,
};
use crate::lock::lock;
use crate::report::{Action, Diagnostic, failed};
use crate::request::{BackupKind, Existing, Follow, Options};

/// What would have been made so far.
#[derive(Default)]
pub(crate) struct DryRun {
    directories: Mutex<HashSet<PathBuf>>,
    /// Names of operands in the target directory that are no directories.
    files: Mutex<HashSet<CString>>,
    /// The directories above what would be made, where that will not be told by looking for them, and
    /// the way from each down to it: with `-L`, and where directories of `--parents` are missing.
    above: Mutex<Vec<(FileId, PathBuf)>>,
    ids: AtomicU64,
    /// The file system of the directories that would be made just now: a tree is gone through by one.
    device: AtomicU64,
}

impl DryRun {
    /// Whether the directory at `path` would be made now, rather than have been made before.
    pub(crate) fn creates_directory(&self, path: PathBuf) -> bool {
        let mut made = lock(&self.directories);
        let path = without_detours(&path, &made);
        made.insert(path)
    }

    /// What would stand at `name` is none of the directories.
    pub(crate) fn creates_file(&self, name: &CStr) {
        lock(&self.files).insert(name.into());
    }

    /// Something would be made at `dst`, in a directory that is there.
    pub(crate) fn notes_above(&self, dst: &Place<'_>) {
        let Some(dir) = path_of(dst.dir) else { return };
        let path = dir.join(OsStr::from_bytes(split(dst.name).1));
        let above = path.ancestors().skip(1).filter_map(|above| {
            let stat = statat(CWD, above, AtFlags::empty()).ok()?;
            Some((FileId::of(&stat), path.strip_prefix(above).ok()?.to_owned()))
        });
        lock(&self.above).extend(above);
    }

    /// A number that no inode has.
    pub(crate) fn new_id(&self) -> FileId {
        FileId { dev: u64::MAX, ino: self.ids.fetch_add(1, Ordering::Relaxed) }
    }
}

/// The path of a directory without what leads into one of `made` and out of it again.
fn without_detours(path: &Path, made: &HashSet<PathBuf>) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, component| {
        if component == Component::ParentDir && made.contains(&plain) {
            plain.pop();
        } else {
            plain.push(component);
        }
        plain
    })
}

/// The directory that would be made at `dst`.
///
/// # Errors
/// Why it could not be made, as far as can be known.
pub(crate) fn directory(
    dry_run: &DryRun,
    dst: &Place<'_>,
    action: Action,
) -> Result<(OwnedFd, Stat), Diagnostic> {
    may_create(dst, action)?;
    if dst.trust != Trust::Created
        && let Ok(above) = stat_above(dst)
    {
        dry_run.device.store(FileId::of(&above).dev, Ordering::Relaxed);
    }
    made(dst, action)
}

/// The directory that would stand at `dst`, whose last component came with the one above it.
///
/// # Errors
/// Those of open(2) and fstat(2).
pub(crate) fn made(dst: &Place<'_>, action: Action) -> Result<(OwnedFd, Stat), Diagnostic> {
    let fd = placeholder_dir().map_err(failed(action, dst))?;
    let stat = fstat(&fd).map_err(failed(Action::Fstat, dst))?;
    Ok((fd, stat))
}

/// Whether something could be made at `dst`, where nothing stands.
///
/// # Errors
/// Why not, as far as can be known.
pub(crate) fn may_create(dst: &Place<'_>, action: Action) -> Result<(), Diagnostic> {
    may_stand(dst).map_err(failed(action, dst))?;
    if dst.trust != Trust::Created
        && dst.name.to_bytes().ends_with(b"/")
        && action == Action::CreateRegular
    {
        return Err(failed(action, dst)(Errno::NOTDIR));
    }
    Ok(())
}

/// Whether a link, or a node, could be made at `dst`, where nothing stands.
///
/// # Errors
/// Why not, as far as can be known.
pub(crate) fn may_link(dst: &Place<'_>) -> io::Result<()> {
    may_stand(dst)?;
    // Only a directory has a name that ends so.
    if dst.trust != Trust::Created && dst.name.to_bytes().ends_with(b"/") {
        return Err(Errno::NOENT);
    }
    Ok(())
}

fn may_stand(dst: &Place<'_>) -> io::Result<()> {
    let (parent, name) = split(dst.name);
    if matches!(name, b"." | b"..") {
        // With the directory that it is in comes this name.
        return Err(Errno::EXIST);
    }
    if dst.trust == Trust::Created {
        return Ok(());
    }
    let writable = Access::WRITE_OK | Access::EXEC_OK;
    accessat(dst.dir, OsStr::from_bytes(parent), writable, AtFlags::EACCESS)
}

/// What a second operand that goes to a name would meet there.
pub(crate) enum EarlierOperand {
    /// Nothing of this run's.
    None,
    /// It would be left alone.
    Skipped,
    /// A copy, which would get the name of a numbered backup.
    Copy,
}

/// Finds out what the copies of this run that are not there would do to this one.
///
/// # Errors
/// What a real run would say.
pub(crate) fn check_earlier_operand(
    dry_run: Option<&DryRun>,
    options: &Options,
    entry: &Entry<'_>,
) -> Result<EarlierOperand, Diagnostic> {
    let Some(dry_run) = dry_run else { return Ok(EarlierOperand::None) };
    let several = entry.is_operand && entry.operand.into_directory && !options.parents;
    if !several || !lock(&dry_run.files).contains(entry.dst.name) {
        return Ok(EarlierOperand::None);
    }
    match options.existing {
        Existing::Skip => return Ok(EarlierOperand::Skipped),
        Existing::Fail => return Err(Diagnostic::NotReplacing { dst: entry.dst.path() }),
        // What was just written is newer than a source, unless that is from the future.
        Existing::ReplaceOlder if !options.preserve.timestamps => {
            return Ok(EarlierOperand::Skipped);
        }
        Existing::Replace | Existing::ReplaceOlder => {}
    }
    let numbered = options.backup.as_ref().is_some_and(|b| b.kind == BackupKind::Numbered);
    if numbered {
        return Ok(EarlierOperand::Copy);
    }
    Err(Diagnostic::JustCreated { src: entry.src.path(), dst: entry.dst.path() })
}

/// Whether the kernel would make `dst` another name of the source `src`, which `stat` describes.
///
/// # Errors
/// EXDEV on another file system; EPERM for what may not be changed, and for what is somebody else's and
/// is protected, see proc_sys_fs(5).
pub(crate) fn may_have_another_name(
    caller: Caller,
    dry_run: &DryRun,
    (src, stat): (&Place<'_>, &Stat),
    follow: bool,
    dst: &Place<'_>,
) -> io::Result<()> {
    let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
    if !caller.is_root() && !caller.owns(stat) && links_are_protected() {
        let lends_rights = stat.st_mode & 0o4000 != 0 || stat.st_mode & 0o2010 == 0o2010;
        let both = Access::READ_OK | Access::WRITE_OK;
        let may_change = || accessat(src.dir, src.name, both, flags | AtFlags::EACCESS).is_ok();
        if !is_regular(stat) || lends_rights || !may_change() {
            return Err(Errno::PERM);
        }
    }
    let device = match dst.trust {
        Trust::Created => dry_run.device.load(Ordering::Relaxed),
        Trust::Operand | Trust::PreExisting => FileId::of(&stat_above(dst)?).dev,
    };
    let is_elsewhere = |stat: &Stat| FileId::of(stat).dev != device;
    // Overlayfs may show a file on another device than its directory.
    let stands_elsewhere = || {
        let is_link = follow && src.stat(false).is_ok_and(|link| is_symlink(&link));
        is_link || stat_above(src).is_ok_and(|above| is_elsewhere(&above))
    };
    if is_elsewhere(stat) && stands_elsewhere() {
        return Err(Errno::XDEV);
    }
    let fixed = StatxAttributes::IMMUTABLE | StatxAttributes::APPEND;
    match statx(src.dir, src.name, flags, StatxFlags::empty()) {
        Ok(found) if found.stx_attributes.intersects(fixed) => Err(Errno::PERM),
        // Old kernels do not tell.
        _ => Ok(()),
    }
}

/// What the directory is in which `dst` has its last name.
fn stat_above(dst: &Place<'_>) -> io::Result<Stat> {
    let (above, _) = split(dst.name);
    statat(dst.dir, OsStr::from_bytes(above), AtFlags::empty())
}

fn links_are_protected() -> bool {
    std::fs::read("/proc/sys/fs/protected_hardlinks").is_ok_and(|text| text.trim_ascii() != b"0")
}

/// The way from the directory `entry.src` down to where a copy of it would meet its own beginning, if it
/// would. It is empty where it cannot be told.
pub(crate) fn path_to_itself(
    options: &Options,
    dry_run: &DryRun,
    entry: &Entry<'_>,
    src: FileId,
) -> Option<PathBuf> {
    if entry.dst.trust == Trust::Created {
        if entry.device.is_some_and(|device| device != src.dev) {
            return None;
        }
        let above = lock(&dry_run.above);
        let mut ways = above.iter().filter(|(id, _)| *id == src).map(|(_, way)| way);
        return ways.find(|way| !is_path_left_out(options, entry, way)).cloned();
    }
    // Without following links nothing below an operand is above what is made of it.
    if options.follow == Follow::Always {
        dry_run.notes_above(&entry.dst);
    }
    if !is_within(entry.dst.dir, src) {
        return None;
    }
    // Where the way there cannot be told, nothing on it is left out as far as anybody knows.
    let way = way_below(entry).unwrap_or_default();
    (!is_path_left_out(options, entry, &way)).then_some(way)
}

/// The path of the destination below the source.
fn way_below(entry: &Entry<'_>) -> Option<PathBuf> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let src = openat(entry.src.dir, entry.src.name, flags, Mode::empty()).ok()?;
    let above = path_of(entry.dst.dir)?;
    let dst = above.join(OsStr::from_bytes(split(entry.dst.name).1));
    Some(dst.strip_prefix(path_of(src.as_fd())?).ok()?.to_owned())
}

fn path_of(dir: BorrowedFd<'_>) -> Option<PathBuf> {
    let path = readlinkat(CWD, Handle::proc_path(dir), Vec::new()).ok()?;
    Some(PathBuf::from(OsStr::from_bytes(path.to_bytes())))
}

/// Whether the directory `inner` is `outer` or lies below it.
fn is_within(inner: BorrowedFd<'_>, outer: FileId) -> bool {
    let Ok(mut at) = open_for_search(inner, c".") else { return false };
    loop {
        let Ok(id) = fstat(&at).map(|stat| FileId::of(&stat)) else { return false };
        if id == outer {
            return true;
        }
        let above = statat(&at, c"..", AtFlags::empty()).map(|stat| FileId::of(&stat));
        if above.is_err() || above == Ok(id) {
            return false;
        }
        let Ok(next) = open_for_search(at.as_fd(), c"..") else { return false };
        at = next;
    }
}
