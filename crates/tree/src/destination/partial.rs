//! `--resume`: partial files, their journals, and the marker of an unfinished directory.
//!
//! What a killed run left and no copy of `--resume` continues or replaces is removed when the entry of that
//! name is complete ([`StaleFiles`]). A partial file: the source has become a symbolic link or a short file, is
//! linked to, or the destination has another target. A temporary: the destination is complete, or is made from
//! a partial file.
//!
//! The data of `NAME` is in `.NAME.haulage-part`, and `.NAME.haulage-journal` records how much of
//! it is valid ([`crate::data::journal`]).

use std::ffi::{CStr, CString};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use engines::{pread_full, pwrite_all};
use rustix::fs::{AtFlags, Mode, OFlags, Stat, fstat, ftruncate, major, openat, statat, unlinkat};
use rustix::io::{self, Errno};
use xxhash_rust::xxh3::xxh3_64;

use super::own_names::names;
use super::temporary::{
    Beside, LeftOver, is_append_only, is_locked_elsewhere, lock_created, open_own_file, remove_own,
    try_lock,
};
use crate::data::journal::{Journal, MAGIC};
use crate::fs::fs_type::is_on_reliable_fs;
use crate::fs::{
    FileId, Place, file_bytes, fs_type_of, hold, is_directory, is_named, is_regular, lstat,
    open_to_write,
};
use crate::report::Reporter;

/// The first bytes of the marker of a directory.
const MARKER: &[u8; 8] = b"haulage/";

/// A partial file and its journal.
pub(crate) struct PartialFile {
    pub(crate) fd: OwnedFd,
    pub(crate) name: CString,
    pub(crate) journal: Journal,
}

impl Beside<'_> {
    /// Whether the file that `stat` describes is one that this user created, as far as the file system tells:
    /// where it keeps no modes or owners, such as vfat, a new file looks the same.
    pub(super) fn is_own(&self, stat: &Stat) -> Result<bool, LeftOver> {
        // A new file has one name.
        let may_be_own = is_regular(stat) && stat.st_nlink == 1;
        let is_private = is_private(stat, self.security.caller.euid);
        Ok(is_private || may_be_own && self.looks_as_new(stat)?)
    }

    /// Whether a private file that is created now has this owner and mode.
    fn looks_as_new(&self, stat: &Stat) -> Result<bool, LeftOver> {
        let created = self.create(|name| {
            let fd = openat(self.dir, name, FLAGS | NEW, PRIVATE)?;
            lock_created(&fd, self.dir, name)?;
            Ok(fd)
        });
        let Ok((name, fd)) = created else { return Ok(false) };
        let new = fstat(&fd);
        drop(fd);
        remove_own(self.dir, &name)?;
        let shown = |stat: &Stat| (stat.st_uid, stat.st_mode, stat.st_nlink);
        Ok(new.is_ok_and(|new| shown(&new) == shown(stat)))
    }
}

const FLAGS: OFlags =
    OFlags::RDWR.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
const NEW: OFlags = OFlags::CREATE.union(OFlags::EXCL);
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// Opens the partial file beside a destination, or creates one. `None` when another run uses it, another
/// file that must stay has its name, or files of those names are copied from the directory of the source.
pub(crate) fn resume_or_create(beside: &Beside<'_>, src: &Stat) -> io::Result<Option<PartialFile>> {
    let Some((partial_name, journal_name)) = names(beside.name) else { return Ok(None) };
    if is_append_only(beside.dir) {
        return Ok(None);
    }
    let src = (id_of_source(beside.src, src), src);
    let is_source_name = |own: &CString| beside.is_source_name(own);
    if [&partial_name, &journal_name].into_iter().any(is_source_name)
        || is_blocked(beside, (&partial_name, &journal_name))?
    {
        return Ok(None);
    }
    let Some((mut fd, is_new)) = open_locked(beside, &partial_name)? else { return Ok(None) };
    let Some((file, _)) = open_own(beside, &journal_name)? else {
        let _ = unlinkat(beside.dir, &*partial_name, AtFlags::empty());
        return Ok(None);
    };
    if !is_new && !Journal::is_of(file.as_fd(), src)? {
        // A file of another source, or of an earlier state of this one, may have attributes that the copy
        // must not have.
        unlinkat(beside.dir, &*partial_name, AtFlags::empty())?;
        // An SMB server keeps the name of a removed file until it is closed.
        drop(fd);
        match open_locked(beside, &partial_name)? {
            Some((new, _)) => fd = new,
            None => return Ok(None),
        }
    }
    let journal = Journal::read(file, fd.as_fd(), src)?;
    Ok(Some(PartialFile { fd, name: partial_name, journal }))
}

/// What identifies the source in a journal. The number of a device that has no block device (btrfs, overlayfs, NFS,
/// FUSE) is another one each time that it is mounted, and the path stands for it.
fn id_of_source(place: &Place<'_>, src: &Stat) -> FileId {
    let id = FileId::of(src);
    if major(id.dev) == 0 { FileId { dev: path_digest(place), ..id } } else { id }
}

/// Whether a file that haulage did not make has one of the names of a partial file and its journal.
fn is_blocked(
    beside: &Beside<'_>,
    (partial_name, journal_name): (&CStr, &CStr),
) -> Result<bool, LeftOver> {
    let kind = match open_own_file(beside.dir, journal_name) {
        Err(Errno::NOENT | Errno::NAMETOOLONG) => None,
        Err(_) => return Ok(true),
        Ok((fd, stat)) => {
            let is_own = !beside.is_source(journal_name, &stat) && beside.is_own(&stat)?;
            match journal_kind(fd.as_fd()).filter(|_| is_own) {
                None => return Ok(true),
                kind => kind,
            }
        }
    };
    let Ok(partial) = lstat(beside.dir, partial_name) else { return Ok(false) };
    Ok(beside.is_source(partial_name, &partial) || !is_partial_file(beside, &partial, kind)?)
}

/// Whether the file that `stat` describes is a partial one, beside a journal of this kind.
fn is_partial_file(
    beside: &Beside<'_>,
    stat: &Stat,
    journal: Option<JournalKind>,
) -> Result<bool, LeftOver> {
    // A run that was killed shortly before the last rename has given the file its owner and mode. Then the
    // journal shows whose it is. A second name is that of the complete copy: see `AtomicFile::commit`.
    let has_records = journal == Some(JournalKind::PartialFile);
    let is_of_journal = has_records && is_regular(stat) && stat.st_nlink == 1;
    // Without a journal only an empty file is known to be a partial one: a run starts with that.
    let is_of_file = journal.is_some_and(|kind| kind != JournalKind::Directory);
    Ok((is_of_journal || beside.is_own(stat)?) && (is_of_file || file_bytes(stat) == 0))
}

/// Opens or creates the partial file `name` as [`open_own`] does, and locks it. `None` also when another
/// run uses it.
fn open_locked(beside: &Beside<'_>, name: &CStr) -> io::Result<Option<(OwnedFd, bool)>> {
    let Some((fd, is_new)) = open_own(beside, name)? else { return Ok(None) };
    match try_lock(&fd) {
        Err(Errno::WOULDBLOCK) => return Ok(None),
        // On file systems without locks no other run is kept out.
        Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL) => {}
        result => result?,
    }
    // The last holder of the lock may have renamed the file.
    Ok(is_named(fd.as_fd(), beside.dir, name).then_some((fd, is_new)))
}

/// The contents of a file with the name of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JournalKind {
    PartialFile,
    Directory,
    /// No more than the start of a journal, which records nothing.
    Empty,
}

/// The kind of the journal `file`; `None` if it is not a journal.
pub(crate) fn journal_kind(file: BorrowedFd<'_>) -> Option<JournalKind> {
    let mut found = [0; MAGIC.len()];
    match pread_full(file, &mut found, 0).ok()? {
        // Also one whose first write was short, as on a full disk.
        len if len < found.len() && MAGIC.starts_with(&found[..len]) => Some(JournalKind::Empty),
        _ if found == *MAGIC => Some(JournalKind::PartialFile),
        _ if found == *MARKER => Some(JournalKind::Directory),
        _ => None,
    }
}

/// Whether the file is regular, private, and of the user `euid`, as the files created here are.
pub(crate) fn is_private(stat: &Stat, euid: u32) -> bool {
    is_regular(stat) && stat.st_uid == euid && stat.st_nlink == 1 && stat.st_mode & 0o077 == 0
}

/// Removes the partial file and the journal of `name`.
pub(crate) fn clear((dir, name): (BorrowedFd<'_>, &CStr)) -> Result<(), LeftOver> {
    let Some((partial, _)) = names(name) else { return Ok(()) };
    let removed = remove_own(dir, &partial);
    removed.and(clear_journal((dir, name)))
}

/// Removes the journal of `name`, whose partial file has been renamed, or the marker of a complete directory.
pub(crate) fn clear_journal((dir, name): (BorrowedFd<'_>, &CStr)) -> Result<(), LeftOver> {
    names(name).map_or(Ok(()), |(_, journal)| remove_own(dir, &journal))
}

/// Opens a private file for reading and writing, and replaces one of another user; whether it is new.
/// `None` if the name belongs to a file that must stay, such as a directory, or a partial file to which another
/// run has just given its owner and mode.
fn open_own(beside: &Beside<'_>, name: &CStr) -> io::Result<Option<(OwnedFd, bool)>> {
    let dir = beside.dir;
    let open = |flags, mode| open_to_write(fs_type_of(dir), (dir, name), flags, mode);
    let opened = open(FLAGS, Mode::empty());
    match &opened {
        Ok(fd) if beside.is_own(&fstat(fd)?)? => {
            return opened.map(|fd| Some((fd, false)));
        }
        // The lock is held until the file is closed, after it was removed. The last holder may have renamed the
        // file: then the name may be that of another run's.
        Ok(fd) if try_lock(fd) == Err(Errno::WOULDBLOCK) || !is_named(fd.as_fd(), dir, name) => {
            return Ok(None);
        }
        // The file system has only shorter names.
        Err(Errno::NAMETOOLONG) => return Ok(None),
        _ => {}
    }
    if !matches!(opened, Err(Errno::NOENT)) {
        match unlinkat(dir, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(_) if lstat(dir, name).is_ok() => return Ok(None),
            Err(errno) => return Err(errno),
        }
    }
    // An SMB server keeps the name of a removed file until it is closed.
    drop(opened);
    match open(FLAGS | NEW, PRIVATE) {
        // Another process created it first.
        Err(Errno::EXIST) => Ok(None),
        result => result.map(|fd| Some((fd, true))),
    }
}

// The marker of a directory whose copy is not complete. Without it a second run of the same
// command would copy into the directory.

/// Whether an earlier run left a marker for the source `src`. In a dry run its owner does not matter,
/// since nothing may be created to find out.
pub(crate) fn has_marker(
    beside: &Beside<'_>,
    src: &Stat,
    is_dry_run: bool,
) -> Result<bool, LeftOver> {
    let Some((_, name)) = names(beside.name) else { return Ok(false) };
    let found = stat_of_marker((beside.dir, &name), (beside.src, src));
    let Some(stat) = found else { return Ok(false) };
    let is_of_caller = stat.st_uid == beside.security.caller.euid;
    Ok(is_dry_run || is_of_caller || beside.looks_as_new(&stat)?)
}

/// Creates a marker for the source `src`. `false` if its name is not free.
pub(crate) fn create_marker(beside: &Beside<'_>, src: &Stat) -> io::Result<bool> {
    let Some((partial, name)) = names(beside.name) else { return Ok(false) };
    if is_append_only(beside.dir) || is_blocked(beside, (&partial, &name))? {
        return Ok(false);
    }
    let Some((file, _)) = open_own(beside, &name)? else { return Ok(false) };
    let text = marker_text(beside.src, src);
    let written = ftruncate(&file, 0).and_then(|()| pwrite_all(file.as_fd(), &text, 0).1);
    if written.is_err() {
        // The directory is not created, and the error of the write is reported.
        let _ = remove_own(beside.dir, &name);
    }
    written.map(|()| true)
}

/// The attributes of the file `name` in `dir`, if it has the text of a marker of `src`. A file system that is mounted
/// again may have another device number, and others than reliable ones give a directory another inode number when they
/// have forgotten it; the path is the same then.
fn stat_of_marker(
    (dir, name): (BorrowedFd<'_>, &CStr),
    (place, src): (&Place<'_>, &Stat),
) -> Option<Stat> {
    let (fd, stat) = open_own_file(dir, name).ok()?;
    let mut text = [0; MARKER_BYTES + 1];
    let len = pread_full(fd.as_fd(), &mut text, 0).ok()?;
    let wanted = marker_text(place, src);
    let is_equal = |bytes: Range<usize>| text[bytes.clone()] == wanted[bytes];
    let keeps_number = || {
        let held = hold(place.dir, place.name, true);
        held.is_ok_and(|src| is_on_reliable_fs(src.as_fd()))
    };
    let is_its = len == MARKER_BYTES
        && is_equal(0..8)
        && (is_equal(8..24) || is_equal(24..32) && (is_equal(8..16) || !keeps_number()));
    (is_regular(&stat) && is_its).then_some(stat)
}

const MARKER_BYTES: usize = 32;

/// The inode number, the device number and a digest of the path of the source directory.
fn marker_text(place: &Place<'_>, src: &Stat) -> Vec<u8> {
    let id = FileId::of(src);
    let path = path_digest(place).to_le_bytes();
    [*MARKER, id.ino.to_le_bytes(), id.dev.to_le_bytes(), path].concat()
}

fn path_digest(place: &Place<'_>) -> u64 {
    let path = std::fs::canonicalize(place.path()).unwrap_or_else(|_| place.path());
    xxh3_64(path.as_os_str().as_bytes())
}

/// Removes the temporary, the partial file and the journal of a destination, which has the given path.
pub(crate) fn remove_all(report: &Reporter<'_>, beside: &Beside<'_>, path: impl Fn() -> PathBuf) {
    let removed = [beside.remove_stale(), remove_partial(beside)];
    for left_over in removed.into_iter().filter_map(Result::err) {
        left_over.report(report, &path());
    }
}

/// Removes the partial file and the journal of a destination, unless another run uses them.
pub(crate) fn remove_partial(beside: &Beside<'_>) -> Result<(), LeftOver> {
    let &Beside { security, dir, name, .. } = beside;
    let Some((partial_name, journal_name)) = names(name) else { return Ok(()) };
    let find = |own: &CStr| {
        let opened = open_own_file(dir, own).ok()?;
        let is_source = beside.is_source(own, &opened.1) || beside.is_source_name(own);
        (!is_source).then_some(opened)
    };
    let mut removed = Ok(());
    let journal_kind = match find(&journal_name) {
        Some((fd, stat)) if beside.is_own(&stat)? => journal_kind(fd.as_fd()),
        _ => None,
    };
    let is_of_file = journal_kind.is_some_and(|kind| kind != JournalKind::Directory);
    if let Some((fd, stat)) = find(&partial_name)
        && is_partial_file(beside, &stat, journal_kind)?
    {
        // The last holder of the lock may have renamed the file, and the name may be that of another run's.
        if is_locked_elsewhere(security, &fd, &stat) || !is_named(fd.as_fd(), dir, &partial_name) {
            return Ok(());
        }
        removed = remove_own(dir, &partial_name);
    }
    // The marker of a directory is kept as long as the directory exists.
    let exists = || statat(dir, name, AtFlags::empty()).is_ok_and(|stat| is_directory(&stat));
    if is_of_file || journal_kind.is_some() && !exists() {
        // Without its journal a partial file that stays would not be recognised by the next run.
        removed = removed.and_then(|()| remove_own(dir, &journal_name));
    }
    removed
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;
    use std::path::Path;

    use super::*;
    use crate::data::journal::RangeRecords;
    use crate::data::journal::{CHUNK_BYTES_MIN, HEADER_BYTES, RECORD_BYTES};
    use crate::fs::{DisplayPath, Place, Trust};
    use crate::security::Security;

    const CHUNK_BYTES: u64 = CHUNK_BYTES_MIN;

    /// Damages a partial file of three recorded chunks with `damage`, and checks how many `valid`
    /// chunks remain.
    fn check(
        what: &str,
        damage: impl FnOnce(&std::fs::File, &std::fs::File, &mut Stat),
        valid: u64,
    ) {
        let dir = tempfile::tempdir().expect("created");
        let at = std::fs::File::open(dir.path()).expect("opened");
        let src = std::fs::File::create(dir.path().join("src")).expect("created");
        src.set_len(4 * CHUNK_BYTES).expect("length set");
        let mut stat = fstat(&src).expect("looked at");
        stat.st_dev = 40;
        let shown = DisplayPath::Operand(Path::new("src"));
        let place = Place::new(at.as_fd(), c"src", shown, Trust::Operand);
        let security = Security::new();
        let resume_or_create = |stat: &Stat| {
            let (dir, name) = (at.as_fd(), c"name");
            let beside = Beside { security: &security, src: &place, operand: None, dir, name };
            resume_or_create(&beside, stat).expect("no error")
        };
        let chunk_bytes = usize::try_from(CHUNK_BYTES).expect("it fits into memory");
        let mut partial = resume_or_create(&stat).expect("no other run uses it");
        assert_eq!(partial.journal.at, 0, "{what}");
        let mut records = RangeRecords::new(0, partial.journal.chunk_bytes);
        for chunk in 1..=3 {
            let end = chunk * CHUNK_BYTES;
            let bytes = vec![u8::try_from(chunk).expect("small"); chunk_bytes];
            pwrite_all(partial.fd.as_fd(), &bytes, end - CHUNK_BYTES).1.expect("written");
            records.record(partial.fd.as_fd(), end, false);
            partial.journal.append(&records.take());
        }
        assert!(resume_or_create(&stat).is_none(), "one at a time");
        drop(partial);
        let open = |name: &str| {
            let mut options = std::fs::File::options();
            options.read(true).write(true).open(dir.path().join(name)).expect("opened")
        };
        damage(&open(".name.haulage-part"), &open(".name.haulage-journal"), &mut stat);
        let partial = resume_or_create(&stat).expect("no other run uses it");
        assert_eq!(partial.journal.at, valid * CHUNK_BYTES, "{what}");
        let len = fstat(&partial.fd).expect("looked at").st_size;
        assert_eq!(u64::try_from(len).expect("a length"), partial.journal.at, "{what}");
    }

    #[test]
    fn only_valid_chunks_are_kept() {
        check("nothing", |_, _, _| (), 3);
        check(
            "a truncated end",
            |partial, _, _| partial.set_len(3 * CHUNK_BYTES - 1).expect("cut"),
            2,
        );
        let flip = |at: u64| {
            move |partial: &std::fs::File, _: &std::fs::File, _: &mut Stat| {
                partial.write_all_at(&[99], at).expect("written");
            }
        };
        check("a byte in the middle", flip(CHUNK_BYTES + 5), 1);
        check("the first byte", flip(0), 0);
        let last = (HEADER_BYTES + 3 * RECORD_BYTES) as u64;
        check("a truncated record", |_, journal, _| journal.set_len(last - 1).expect("cut"), 2);
        check("no journal", |_, journal, _| journal.set_len(0).expect("cut"), 0);
        check(
            "a record of nonsense",
            |_, j, _| j.write_all_at(&[7; 16], last).expect("written"),
            3,
        );
        check("another source", |_, _, stat| stat.st_ino += 1, 0);
        check("a newer source", |_, _, stat| stat.st_mtime += 1, 0);
        check("a source that was mounted again", |_, _, stat| stat.st_dev = 41, 3);
        check("a source on a disk", |_, _, stat| stat.st_dev = 0x801, 0);
        check("a touched source", |_, _, stat| stat.st_ctime_nsec ^= 1, 0);
        check("a longer source", |_, _, stat| stat.st_size += 1, 0);
    }
}
