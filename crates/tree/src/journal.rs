//! `--resume`: how far a large file has come, so that the next run of the same command goes on there.
//!
//! The data is in `.NAME.haulage-part` beside its destination, and `.NAME.haulage-journal` says what
//! of it is right: which file it was copied from, and for each stretch where it ends and what it
//! hashes to. A stretch counts when its bytes hash to that now. So nothing has to be written in any
//! order, and what a loss of power tore is copied again.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use engines::{pread_full, pwrite_all};
use rustix::fs::{
    AtFlags, FlockOperation, Mode, OFlags, Stat, flock, fstat, ftruncate, openat, statat, unlinkat,
};
use rustix::io::{self, Errno};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::beside::{is_among_sources, own_name};
use crate::identity::{FileId, ctime, file_bytes, is_regular, mtime};
use crate::place::Place;

/// A file that is worth a journal: what a smaller one loses is copied again in an instant.
pub(crate) const FILE_BYTES_MIN: u64 = 4 << 20;

/// The shortest stretch that is worth a line.
const STRETCH_BYTES_MIN: u64 = 1 << 20;

/// The longest, of which a fast disk writes a hundred in a second.
const STRETCH_BYTES_MAX: u64 = 16 << 20;

/// What a file of `size` bytes loses at most: in ten times a sixth of it, if it is not a small one.
fn stretch_bytes(size: u64) -> u64 {
    (size / 64).clamp(STRETCH_BYTES_MIN, STRETCH_BYTES_MAX)
}

const MAGIC: &[u8; 8] = b"haulage1";
const BEGUN: &[u8; 8] = b"haulage/";
const HEADER_BYTES: usize = 8 * 9;
const RECORD_BYTES: usize = 8 + 16;
const BUFFER_BYTES: usize = 256 << 10;

/// A part of a file, and the journal that says how much of it is right.
pub(crate) struct Part {
    pub(crate) fd: OwnedFd,
    pub(crate) name: CString,
    pub(crate) journal: Journal,
}

/// What is known to be right of a part.
pub(crate) struct Journal {
    file: OwnedFd,
    /// Up to this offset of the part.
    pub(crate) at: u64,
    records: u64,
    /// How much of the part is noted at once.
    pub(crate) stretch_bytes: u64,
    /// It cannot be written to, and says no more.
    broken: bool,
}

/// The names of part and journal of `name`; `None` where they would be too long.
pub(crate) fn names(name: &CStr) -> Option<(CString, CString)> {
    Some((own_name(name, PART)?, own_name(name, JOURNAL)?))
}

const PART: &[u8] = b".haulage-part";
const JOURNAL: &[u8] = b".haulage-journal";

/// Whether `name` may be that of a part or a journal.
pub(crate) fn is_own_name(name: &CStr) -> bool {
    let name = name.to_bytes();
    name.starts_with(b".") && (name.ends_with(PART) || name.ends_with(JOURNAL))
}

/// Whether `name` in `dir` may have a part: not where what is called so is itself to be copied from where
/// `src` is.
pub(crate) fn may_have_part(src: &Place<'_>, dir: BorrowedFd<'_>, name: &CStr) -> bool {
    names(name).is_some_and(|(part, journal)| {
        !is_among_sources(src, dir, &part) && !is_among_sources(src, dir, &journal)
    })
}

/// Takes up the part of `name` in `dir`, or begins one. `None` when another run is at it, or where
/// there can be none, as something else bears its name.
pub(crate) fn take_up(
    dir: BorrowedFd<'_>,
    name: &CStr,
    src: &Stat,
    euid: u32,
) -> io::Result<Option<Part>> {
    let Some((part_name, journal_name)) = names(name) else { return Ok(None) };
    let Some(fd) = open_own(dir, &part_name, euid)? else { return Ok(None) };
    match flock(&fd, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return Ok(None),
        // Some file systems have no locks; there nobody is kept out.
        Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL) => {}
        result => result?,
    }
    // Whoever had the lock before may have given the file its final name.
    let named = statat(dir, &*part_name, AtFlags::SYMLINK_NOFOLLOW);
    let opened = FileId::of(&fstat(&fd)?);
    if !named.is_ok_and(|named| FileId::of(&named) == opened) {
        return Ok(None);
    }
    let Some(file) = open_own(dir, &journal_name, euid)? else {
        let _ = unlinkat(dir, &*part_name, AtFlags::empty());
        return Ok(None);
    };
    let journal = Journal::read(file, fd.as_fd(), src)?;
    Ok(Some(Part { fd, name: part_name, journal }))
}

/// What a journal tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noted {
    Part,
    Directory,
    /// It was only begun.
    Nothing,
}

/// What the journal `file` tells of; `None` where it is none.
pub(crate) fn noted(file: BorrowedFd<'_>) -> Option<Noted> {
    let mut found = [0; MAGIC.len()];
    match pread_full(file, &mut found, 0).ok()? {
        0 => Some(Noted::Nothing),
        _ if found == *MAGIC => Some(Noted::Part),
        _ if found == *BEGUN => Some(Noted::Directory),
        _ => None,
    }
}

/// Whether `stat` is that of a file such as those that are made here.
pub(crate) fn is_private(stat: &Stat, euid: u32) -> bool {
    is_regular(stat) && stat.st_uid == euid && stat.st_nlink == 1 && stat.st_mode & 0o077 == 0
}

/// Removes the part and the journal of `name`, which is complete, or not worth going on with.
pub(crate) fn clear(dir: BorrowedFd<'_>, name: &CStr) {
    if let Some((part, journal)) = names(name) {
        let _ = unlinkat(dir, &*part, AtFlags::empty());
        let _ = unlinkat(dir, &*journal, AtFlags::empty());
    }
}

/// Opens a file of ours for reading and writing; one that somebody else put there is replaced. `None`
/// where something stands that is to stay, such as a directory.
fn open_own(dir: BorrowedFd<'_>, name: &CStr, euid: u32) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    if let Ok(fd) = openat(dir, name, flags, Mode::empty())
        && is_private(&fstat(&fd)?, euid)
    {
        return Ok(Some(fd));
    }
    match unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        // Whether anything can be made here is told by making it.
        Err(_) if statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).is_ok() => return Ok(None),
        Err(errno) => return Err(errno),
    }
    match openat(dir, name, flags | OFlags::CREATE | OFlags::EXCL, Mode::RUSR | Mode::WUSR) {
        // Somebody else was quicker.
        Err(Errno::EXIST) => Ok(None),
        result => result.map(Some),
    }
}

/// A note that the directory `name` is being made as a copy of `src`. Without it a second run of the
/// same command would take the directory for one to copy into.
pub(crate) struct Begun<'d> {
    dir: BorrowedFd<'d>,
    name: CString,
}

impl<'d> Begun<'d> {
    /// The note beside `name` in `dir` that an earlier run left, if it is of this very source.
    pub(crate) fn find(
        dir: BorrowedFd<'d>,
        name: &CStr,
        src: &Stat,
        euid: u32,
    ) -> Option<Begun<'d>> {
        let (_, name) = names(name)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = openat(dir, &*name, flags, Mode::empty()).ok()?;
        let stat = fstat(&fd).ok()?;
        let mut text = [0; BEGUN_BYTES + 1];
        let len = pread_full(fd.as_fd(), &mut text, 0).ok()?;
        let own = is_regular(&stat) && stat.st_uid == euid;
        (own && text[..len] == begun(src)).then_some(Begun { dir, name })
    }

    /// Leaves one, where that is possible.
    pub(crate) fn leave(
        dir: BorrowedFd<'d>,
        name: &CStr,
        src: &Stat,
        euid: u32,
    ) -> io::Result<Option<Begun<'d>>> {
        let Some((_, name)) = names(name) else { return Ok(None) };
        let Some(file) = open_own(dir, &name, euid)? else { return Ok(None) };
        ftruncate(&file, 0)?;
        pwrite_all(file.as_fd(), &begun(src), 0).1?;
        Ok(Some(Begun { dir, name }))
    }

    /// The directory is complete.
    pub(crate) fn end(self) {
        let _ = unlinkat(self.dir, &*self.name, AtFlags::empty());
    }
}

const BEGUN_BYTES: usize = 24;

fn begun(src: &Stat) -> [u8; BEGUN_BYTES] {
    let id = FileId::of(src);
    let fields = [*BEGUN, id.dev.to_le_bytes(), id.ino.to_le_bytes()];
    let mut text = [0; BEGUN_BYTES];
    for (place, field) in text.chunks_exact_mut(8).zip(fields) {
        place.copy_from_slice(&field);
    }
    text
}

/// What a journal begins with: the source as it is. Any change of it, its inode's included, makes
/// another header.
fn header(src: &Stat) -> [u8; HEADER_BYTES] {
    let id = FileId::of(src);
    let (changed, modified) = (ctime(src), mtime(src));
    let signed = [changed.0, changed.1, modified.0, modified.1].map(i64::to_le_bytes);
    let mut header = [0; HEADER_BYTES];
    let fields =
        [*MAGIC, id.dev.to_le_bytes(), id.ino.to_le_bytes(), file_bytes(src).to_le_bytes()];
    for (place, field) in header.chunks_exact_mut(8).zip(fields.iter().chain(&signed)) {
        place.copy_from_slice(field);
    }
    let sum = xxh3_64(&header[..HEADER_BYTES - 8]);
    header[HEADER_BYTES - 8..].copy_from_slice(&sum.to_le_bytes());
    header
}

impl Journal {
    /// Reads what `file` says of `part`, and cuts both back to what is right.
    fn read(file: OwnedFd, part: BorrowedFd<'_>, src: &Stat) -> io::Result<Journal> {
        let header = header(src);
        let mut found = [0; HEADER_BYTES];
        let whole = pread_full(file.as_fd(), &mut found, 0)? == HEADER_BYTES;
        let mut journal = Journal {
            file,
            at: 0,
            records: 0,
            stretch_bytes: stretch_bytes(file_bytes(src)),
            broken: false,
        };
        if whole && found == header {
            while let Some(end) = journal.next_right(part, file_bytes(src))? {
                (journal.at, journal.records) = (end, journal.records + 1);
            }
        } else {
            ftruncate(&journal.file, 0)?;
            pwrite_all(journal.file.as_fd(), &header, 0).1?;
        }
        ftruncate(&journal.file, journal.end())?;
        // A hole at the end is part of what is right.
        ftruncate(part, journal.at)?;
        Ok(journal)
    }

    /// Where the next stretch ends, if it is right.
    fn next_right(&self, part: BorrowedFd<'_>, size: u64) -> io::Result<Option<u64>> {
        let mut record = [0; RECORD_BYTES];
        if pread_full(self.file.as_fd(), &mut record, self.end())? < RECORD_BYTES {
            return Ok(None);
        }
        let (end, hash) = record.split_at(8);
        let end = u64::from_le_bytes(end.try_into().expect("eight bytes"));
        if end <= self.at || end > size {
            return Ok(None);
        }
        Ok((hash_of(part, self.at, end)?.to_le_bytes() == hash).then_some(end))
    }

    fn end(&self) -> u64 {
        HEADER_BYTES as u64 + self.records * RECORD_BYTES as u64
    }

    /// Notes that the part is right up to `at`, once that is worth a line.
    pub(crate) fn note(&mut self, part: BorrowedFd<'_>, at: u64) {
        if self.broken || at < self.at + self.stretch_bytes {
            return;
        }
        let written = hash_of(part, self.at, at).and_then(|hash| {
            let record = [&at.to_le_bytes()[..], &hash.to_le_bytes()].concat();
            pwrite_all(self.file.as_fd(), &record, self.end()).1
        });
        match written {
            Ok(()) => (self.at, self.records) = (at, self.records + 1),
            // The copy needs no journal; only the next run would do more than it has to.
            Err(_) => self.broken = true,
        }
    }
}

/// The hash of a stretch of a part. What lies behind its end is going to be a hole.
fn hash_of(part: BorrowedFd<'_>, from: u64, to: u64) -> io::Result<u128> {
    let (mut buffer, mut at, mut hash) = (vec![0; BUFFER_BYTES], from, Xxh3::new());
    while at < to {
        let len = usize::try_from(to - at).unwrap_or(usize::MAX).min(BUFFER_BYTES);
        let got = pread_full(part, &mut buffer[..len], at)?;
        buffer[got..len].fill(0);
        hash.update(&buffer[..len]);
        at += len as u64;
    }
    Ok(hash.digest128())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    const STRETCH_BYTES: u64 = STRETCH_BYTES_MIN;

    /// How far a part that was journalled for three stretches is right after `harm` was done to it.
    fn check(what: &str, harm: impl FnOnce(&std::fs::File, &std::fs::File, &mut Stat), right: u64) {
        let dir = tempfile::tempdir().expect("a directory");
        let at = std::fs::File::open(dir.path()).expect("a directory");
        let src = std::fs::File::create(dir.path().join("src")).expect("a file");
        src.set_len(4 * STRETCH_BYTES).expect("a length");
        let mut stat = fstat(&src).expect("its state");
        let take_up = |stat: &Stat| {
            let euid = rustix::process::geteuid().as_raw();
            take_up(at.as_fd(), c"name", stat, euid).expect("no error")
        };
        let stretch_bytes = usize::try_from(STRETCH_BYTES).expect("it fits into memory");
        let mut part = take_up(&stat).expect("nobody else is at it");
        assert_eq!(part.journal.at, 0, "{what}");
        for stretch in 1..=3 {
            let end = stretch * STRETCH_BYTES;
            let bytes = vec![u8::try_from(stretch).expect("small"); stretch_bytes];
            pwrite_all(part.fd.as_fd(), &bytes, end - STRETCH_BYTES).1.expect("written");
            part.journal.note(part.fd.as_fd(), end);
        }
        assert!(take_up(&stat).is_none(), "one at a time");
        drop(part);
        let open = |name: &str| {
            let mut options = std::fs::File::options();
            options.read(true).write(true).open(dir.path().join(name)).expect("it is there")
        };
        harm(&open(".name.haulage-part"), &open(".name.haulage-journal"), &mut stat);
        let part = take_up(&stat).expect("nobody else is at it");
        assert_eq!(part.journal.at, right * STRETCH_BYTES, "{what}");
        let len = fstat(&part.fd).expect("its state").st_size;
        assert_eq!(u64::try_from(len).expect("a length"), part.journal.at, "{what}");
    }

    #[test]
    fn only_what_is_right_counts() {
        check("nothing", |_, _, _| (), 3);
        check("a torn end", |part, _, _| part.set_len(3 * STRETCH_BYTES - 1).expect("cut"), 2);
        let flip = |at: u64| {
            move |part: &std::fs::File, _: &std::fs::File, _: &mut Stat| {
                part.write_all_at(&[99], at).expect("written");
            }
        };
        check("a byte in the middle", flip(STRETCH_BYTES + 5), 1);
        check("the first byte", flip(0), 0);
        let last = (HEADER_BYTES + 3 * RECORD_BYTES) as u64;
        check("a torn line", |_, journal, _| journal.set_len(last - 1).expect("cut"), 2);
        check("no journal", |_, journal, _| journal.set_len(0).expect("cut"), 0);
        check("a line of nonsense", |_, j, _| j.write_all_at(&[7; 16], last).expect("w"), 3);
        check("another source", |_, _, stat| stat.st_ino += 1, 0);
        check("a newer source", |_, _, stat| stat.st_mtime += 1, 0);
        check("a touched source", |_, _, stat| stat.st_ctime_nsec ^= 1, 0);
        check("a longer source", |_, _, stat| stat.st_size += 1, 0);
    }

    #[test]
    fn long_names_have_no_parts() {
        let name = |len| CString::new(vec![b'n'; len]).expect("no zero");
        assert!(names(&name(200)).is_some());
        assert!(names(&name(250)).is_none());
    }
}
