//! `--dry-run`: everything is looked at and decided as in a copy, and nothing is created.
//!
//! The walk also enters a directory that would be created. A placeholder takes the place of its
//! descriptor, in which every lookup fails. What would exist by now is recorded here.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use engines::fs_types::{EXT4, TMPFS, VFAT, XFS, fs_type_of};
use rustix::fs::{
    Access, AtFlags, CWD, Mode, Stat, StatxAttributes, StatxFlags, accessat, fstat, readlinkat,
    statat, statx,
};
use rustix::io::{self, Errno};

use crate::entry::{Entry, is_path_left_out};
use crate::fs::{
    Caller, FileId, OpenFile, Place, Trust, is_regular, is_symlink, is_within, open_for_search,
    path_of, placeholder_dir, split,
};
use crate::hash::{HashMap, HashSet};
use crate::lock::lock;
use crate::report::{Action, Result, failed};
use crate::request::Options;

/// What would have been created so far.
#[derive(Default)]
pub(crate) struct DryRun {
    directories: Mutex<HashSet<PathBuf>>,
    /// By their names in the target directory.
    copies: Mutex<HashMap<CString, OperandCopy>>,
    /// The directories above each directory that would be created, with the path from them down to it. Needed for
    /// bind mounts, with `-L` and for missing directories of `--parents`, where `..` does not tell.
    ancestors: Mutex<HashMap<FileId, Vec<PathBuf>>>,
    ids: AtomicU64,
    /// The device of the directories that would be created. A dry run has one worker, so one is
    /// enough.
    device: AtomicU64,
}

/// The copy of an operand.
#[derive(Clone)]
pub(super) struct OperandCopy {
    pub(super) stat: Stat,
    src: PathBuf,
}

impl OperandCopy {
    /// stat(2) of the copy of a symbolic link in `dir`.
    pub(super) fn target_in(&self, dir: BorrowedFd<'_>) -> io::Result<Stat> {
        let text = readlinkat(CWD, &self.src, Vec::new())?;
        statat(dir, text, AtFlags::empty())
    }
}

impl DryRun {
    /// Records the directory `path`. Returns whether it would be created now, and was not before.
    pub(crate) fn record_directory(&self, path: PathBuf) -> bool {
        let mut made = lock(&self.directories);
        let path = without_detours(&path, &made);
        made.insert(path)
    }

    /// Records the copy `id` of the operand `entry`.
    pub(crate) fn record_copy(&self, entry: &Entry<'_>, id: FileId) {
        let copy = OperandCopy { stat: id.stat_like(entry.src_stat), src: entry.src.path() };
        lock(&self.copies).insert(entry.dst.name.into(), copy);
    }

    /// The copy of an earlier operand that would have the name of the copy of `entry`.
    pub(super) fn copy_at_destination(&self, entry: &Entry<'_>) -> Option<OperandCopy> {
        let several = entry.is_operand && entry.operand.into_directory;
        several.then(|| lock(&self.copies).get(entry.dst.name).cloned()).flatten()
    }

    /// Records the directories above `dst`, which would be created in an existing directory.
    pub(crate) fn record_ancestors(&self, dst: &Place<'_>) {
        let Some(dir) = path_of(dst.dir) else { return };
        let path = dir.join(OsStr::from_bytes(split(dst.name).1));
        let mut ancestors = lock(&self.ancestors);
        for above in path.ancestors().skip(1) {
            if let (Ok(stat), Ok(below)) =
                (statat(CWD, above, AtFlags::empty()), path.strip_prefix(above))
            {
                ancestors.entry(FileId::of(&stat)).or_default().push(below.to_owned());
            }
        }
    }

    /// A placeholder for the directory `dst` that would be created. The error is that of mkdir(2), as
    /// far as it can be known.
    pub(crate) fn create_placeholder(&self, dst: &Place<'_>, action: Action) -> Result<OpenFile> {
        may_create(dst, None).map_err(failed(action, dst))?;
        if dst.trust != Trust::Created
            && let Ok(above) = dst.stat_above()
        {
            self.device.store(FileId::of(&above).dev, Ordering::Relaxed);
        }
        open_placeholder(dst, action)
    }

    /// The error of linkat(2) from the source of `entry` to its destination: EXDEV on another file system; EPERM for an immutable file, and for a protected one of another user
    /// (proc_sys_fs(5)).
    pub(crate) fn may_have_another_name(
        &self,
        caller: Caller,
        entry: &Entry<'_>,
        follow: bool,
    ) -> io::Result<()> {
        let (src, dst, stat) = (&entry.src, &entry.dst, &entry.src_stat);
        let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        let protected = || std::fs::read("/proc/sys/fs/protected_hardlinks");
        let are_protected = || protected().is_ok_and(|text| text.trim_ascii() != b"0");
        if !caller.is_root() && !caller.owns(stat) && are_protected() {
            let is_privileged = stat.st_mode & 0o4000 != 0 || stat.st_mode & 0o2010 == 0o2010;
            let both = Access::READ_OK | Access::WRITE_OK;
            let may_change = || accessat(src.dir, src.name, both, flags | AtFlags::EACCESS).is_ok();
            if !is_regular(stat) || is_privileged || !may_change() {
                return Err(Errno::PERM);
            }
        }
        let device = self.device_of(dst)?;
        let is_on_other_device = |stat: &Stat| FileId::of(stat).dev != device;
        // Overlayfs may show a file on another device than its directory.
        let parent_differs = || {
            let is_link = follow && src.stat(false).is_ok_and(|link| is_symlink(&link));
            is_link || src.stat_above().is_ok_and(|above| is_on_other_device(&above))
        };
        if is_on_other_device(stat) && parent_differs() {
            return Err(Errno::XDEV);
        }
        unless_fixed(src, flags)
    }

    /// The error of a clone of `src` to the destination of `entry`, as far as the types of file systems tell.
    pub(crate) fn may_clone(
        &self,
        src: &OpenFile,
        entry: &Entry<'_>,
        found: Option<&Stat>,
    ) -> io::Result<()> {
        let device = match found {
            Some(found) => FileId::of(found).dev,
            None => self.device_of(&entry.dst)?,
        };
        match fs_type_of(src.fd.as_fd()) {
            Some(EXT4 | TMPFS | VFAT | XFS) if FileId::of(&src.stat).dev != device => {
                Err(Errno::XDEV)
            }
            Some(EXT4 | TMPFS | VFAT) => Err(Errno::OPNOTSUPP),
            _ => Ok(()),
        }
    }

    /// The device of the directory of `dst`.
    fn device_of(&self, dst: &Place<'_>) -> io::Result<u64> {
        match dst.trust {
            Trust::Created => Ok(self.device.load(Ordering::Relaxed)),
            Trust::Operand | Trust::PreExisting => Ok(FileId::of(&dst.stat_above()?).dev),
        }
    }

    /// The path from the directory `entry.src` down to its own destination, if the copy would reach
    /// that. It is empty if it cannot be determined.
    pub(crate) fn path_to_itself(&self, options: &Options, entry: &Entry<'_>) -> Option<PathBuf> {
        let src = FileId::of(&entry.src_stat);
        if entry.dst.trust == Trust::Created {
            if entry.device.is_some_and(|device| device != src.dev) {
                return None;
            }
            let ancestors = lock(&self.ancestors);
            let mut paths = ancestors.get(&src).into_iter().flatten();
            return paths.find(|path| !is_path_left_out(options, entry, path)).cloned();
        }
        self.record_ancestors(&entry.dst);
        if !is_within(entry.dst.dir, src).unwrap_or(false) {
            return None;
        }
        let path = path_below(entry).unwrap_or_default();
        (!is_path_left_out(options, entry, &path)).then_some(path)
    }

    /// An identity that no file has.
    pub(crate) fn new_id(&self) -> FileId {
        FileId { dev: u32::MAX.into(), ino: self.ids.fetch_add(1, Ordering::Relaxed) }
    }
}

/// `path` without each directory of `made` that is followed by `..`.
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

/// A placeholder for the directory `dst`, which exists if the one above it would.
pub(crate) fn open_placeholder(dst: &Place<'_>, action: Action) -> Result<OpenFile> {
    let fd = placeholder_dir().map_err(failed(action, dst))?;
    let stat = fstat(&fd).map_err(failed(Action::Fstat, dst))?;
    Ok(OpenFile { fd, stat })
}

/// The error of creating a file at the free name `dst`, as far as it can be known: `if_slash`, if no directory can
/// get a name with a trailing slash.
pub(crate) fn may_create(dst: &Place<'_>, if_slash: Option<Errno>) -> io::Result<()> {
    let (parent, name) = split(dst.name);
    if matches!(name, b"." | b"..") {
        // These names exist in every directory.
        return Err(Errno::EXIST);
    }
    if dst.trust == Trust::Created {
        return Ok(());
    }
    let writable = Access::WRITE_OK | Access::EXEC_OK;
    accessat(dst.dir, OsStr::from_bytes(parent), writable, AtFlags::EACCESS)?;
    if_slash.filter(|_| dst.name.to_bytes().ends_with(b"/")).map_or(Ok(()), Err)
}

/// The error of renaming or removing the file `dst`, or of a rename over it, as far as it can be known.
pub(crate) fn may_remove(caller: Caller, dst: &Place<'_>) -> io::Result<()> {
    may_create(dst, None)?;
    let stat = match dst.stat(false) {
        // It would have been created by now, perhaps in a directory that would.
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
        looked => looked?,
    };
    let above = dst.stat_above()?;
    let is_sticky = Mode::from_raw_mode(above.st_mode).contains(Mode::SVTX);
    if is_sticky && !caller.is_root() && !caller.owns(&above) && !caller.owns(&stat) {
        return Err(Errno::PERM);
    }
    unless_fixed(dst, AtFlags::SYMLINK_NOFOLLOW)
}

/// EPERM if the file is immutable, or can only be appended to (chattr(1)): its names stay as they are.
fn unless_fixed(file: &Place<'_>, flags: AtFlags) -> io::Result<()> {
    let fixed = StatxAttributes::IMMUTABLE | StatxAttributes::APPEND;
    match statx(file.dir, file.name, flags, StatxFlags::empty()) {
        Ok(found) if found.stx_attributes.intersects(fixed) => Err(Errno::PERM),
        // Old kernels have no statx(2).
        _ => Ok(()),
    }
}

/// The path of the destination below the source.
fn path_below(entry: &Entry<'_>) -> Option<PathBuf> {
    let src = open_for_search(entry.src.dir, entry.src.name).ok()?;
    let above = path_of(entry.dst.dir)?;
    let dst = above.join(OsStr::from_bytes(split(entry.dst.name).1));
    Some(dst.strip_prefix(path_of(src.as_fd())?).ok()?.to_owned())
}
