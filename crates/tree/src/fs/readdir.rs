//! Reads a directory a batch of names at a time, so that a large one is never held in memory.

use std::collections::VecDeque;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{FileType, Mode, OFlags, RawDir, SeekFrom, openat, seek};
use rustix::io::{self, Errno};

/// Bytes of a batch as getdents64(2) returns it: some thousand names. Workers that share a large
/// directory wait for each other after each batch (docs/design/work-sharing.md).
const BATCH_BYTES: usize = 128 << 10;

/// Bytes of the first batch. Most of it is read again if the directory has to be closed.
const FIRST_BATCH_BYTES: usize = 32 << 10;

/// A directory of fewer names is read to its end at once. It may be a destination too, whose times
/// are set while names in it are still to be copied.
const BATCH_NAMES_MIN: usize = 256;

/// A buffer for [`Listing::next`]. It is allocated when it is first used.
#[derive(Debug, Default)]
pub(crate) struct Buffer(Vec<u8>);

/// A position in a directory, and the names read ahead. It outlives the descriptor: the directory
/// can be closed, opened again and read further.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    batch: VecDeque<Name>,
    /// The offset (d_off) after the last name that was returned.
    cookie: u64,
    ended: bool,
    /// A batch was read since the directory was opened.
    has_read: bool,
}

#[derive(Debug)]
struct Name {
    name: CString,
    /// The listed type, which may be unknown.
    kind: FileType,
    cookie: u64,
}

impl Listing {
    /// The listing of a directory that is not read.
    pub(crate) fn ended() -> Listing {
        Listing { ended: true, ..Listing::default() }
    }

    /// The listing of names that were read before.
    pub(crate) fn of_names(names: Vec<(CString, FileType)>) -> Listing {
        let batch = names.into_iter().map(|(name, kind)| Name { name, kind, cookie: 0 }).collect();
        Listing { batch, ended: true, ..Listing::default() }
    }

    /// Whether the directory was not read to its end.
    pub(crate) fn is_endless(&self) -> bool {
        !self.ended
    }

    /// Whether one of the names read ahead is, or may be, that of a directory.
    pub(crate) fn has_directories(&self) -> bool {
        let is_directory = |kind| matches!(kind, FileType::Directory | FileType::Unknown);
        self.batch.iter().any(|name| is_directory(name.kind))
    }

    /// The names read ahead, and their listed types.
    pub(crate) fn names(&self) -> impl ExactSizeIterator<Item = (&CStr, FileType)> {
        self.batch.iter().map(|name| (&*name.name, name.kind))
    }

    /// Whether there are no more names.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended && self.batch.is_empty()
    }

    /// The next name that was read ahead, if its listed type is wanted.
    pub(crate) fn next_buffered(
        &mut self,
        is_wanted: impl Fn(FileType) -> bool,
    ) -> Option<(CString, FileType)> {
        let next = self.batch.pop_front_if(|next| is_wanted(next.kind))?;
        self.cookie = next.cookie;
        Some((next.name, next.kind))
    }

    /// The number of names that were read ahead.
    pub(crate) fn buffered(&self) -> usize {
        self.batch.len()
    }

    /// Splits off the first half of the names read ahead, without `kept` of them, rounded up. The
    /// first half, so that the directory can be read further from the offset after them.
    pub(crate) fn give_half(&mut self, kept: usize) -> Listing {
        self.give_first(self.batch.len().saturating_sub(kept).div_ceil(2))
    }

    /// Splits off the first `count` names read ahead.
    pub(crate) fn give_first(&mut self, count: usize) -> Listing {
        let rest = self.batch.split_off(count);
        let batch = std::mem::replace(&mut self.batch, rest);
        if let Some(last) = batch.back() {
            self.cookie = last.cookie;
        }
        Listing { batch, ended: true, ..Listing::default() }
    }

    /// The next name in `dir` other than `.` and `..`, and its listed type.
    pub(crate) fn next(
        &mut self,
        dir: BorrowedFd<'_>,
        buffer: &mut Buffer,
    ) -> io::Result<Option<(CString, FileType)>> {
        while self.batch.is_empty() && !self.ended {
            self.fill(dir, buffer)?;
        }
        Ok(self.next_buffered(|_| true))
    }

    /// Drops the names read ahead, before the descriptor is closed.
    pub(crate) fn suspend(&mut self) {
        self.ended &= self.batch.is_empty();
        self.has_read = false;
        self.batch = VecDeque::new();
    }

    /// Continues with `dir`, a new descriptor of the same directory.
    pub(crate) fn resume(&mut self, dir: BorrowedFd<'_>) -> io::Result<()> {
        if !self.ended && self.cookie != 0 {
            seek(dir, SeekFrom::Start(self.cookie))?;
        }
        Ok(())
    }

    fn fill(&mut self, dir: BorrowedFd<'_>, buffer: &mut Buffer) -> io::Result<()> {
        let bytes = if self.has_read { BATCH_BYTES } else { FIRST_BATCH_BYTES };
        self.has_read = true;
        buffer.0.reserve(bytes);
        let mut entries = RawDir::new(dir, &mut buffer.0.spare_capacity_mut()[..bytes]);
        loop {
            match entries.next() {
                None => self.ended = true,
                Some(Err(Errno::INTR)) => continue,
                Some(Err(errno)) => {
                    // A directory that fails would fail again, without end.
                    self.ended = true;
                    return Err(errno);
                }
                Some(Ok(entry)) if is_component(entry.file_name()) => {
                    self.batch.push_back(Name {
                        name: entry.file_name().into(),
                        kind: entry.file_type(),
                        cookie: entry.next_entry_cookie(),
                    });
                }
                Some(Ok(entry)) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
                Some(Ok(_)) => {
                    self.ended = true;
                    return Err(Errno::IO);
                }
            }
            let enough = self.batch.len() >= BATCH_NAMES_MIN && entries.is_buffer_empty();
            if self.ended || enough {
                return Ok(());
            }
        }
    }
}

/// Calls `visit` with each name in `dir` and its listed type.
pub(crate) fn each_name(
    dir: BorrowedFd<'_>,
    mut visit: impl FnMut(&CStr, FileType),
) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // The owner and root may list it without changing the access time.
    let listed = match openat(dir, c".", flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => openat(dir, c".", flags, Mode::empty()),
        result => result,
    }?;
    let mut buffer = [MaybeUninit::uninit(); 8 << 10];
    let mut entries = RawDir::new(listed.as_fd(), &mut buffer);
    while let Some(entry) = entries.next() {
        match entry {
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
            Ok(entry) => visit(entry.file_name(), entry.file_type()),
        }
    }
    Ok(())
}

/// Whether a listed name is a single component. A broken or hostile file system may list names with
/// slashes, which would be paths to other directories.
pub(crate) fn is_component(name: &CStr) -> bool {
    let bytes = name.to_bytes();
    !bytes.is_empty() && !bytes.contains(&b'/') && bytes != b"." && bytes != b".."
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::os::fd::AsFd;

    use super::*;

    const FILES: usize = 8000;

    #[test]
    fn a_large_directory_is_read_in_parts_and_can_be_closed_between_them() {
        let dir = tempfile::tempdir().expect("created");
        for number in 0..FILES {
            std::fs::write(dir.path().join(format!("a file's name {number}")), "")
                .expect("written");
        }
        let open = || std::fs::File::open(dir.path()).expect("opened");
        let (mut file, mut listing, mut buffer) = (open(), Listing::default(), Buffer::default());
        let mut names = BTreeSet::new();
        let insert = |names: &mut BTreeSet<_>, name| assert!(names.insert(name), "listed twice");
        while let Some((name, kind)) = listing.next(file.as_fd(), &mut buffer).expect("listed") {
            assert!(matches!(kind, FileType::RegularFile | FileType::Unknown));
            assert!(listing.batch.len() < FILES / 2, "{}", listing.batch.len());
            insert(&mut names, name);
            let buffered = listing.buffered();
            assert!(listing.next_buffered(|kind| kind == FileType::Directory).is_none());
            assert_eq!(listing.buffered(), buffered, "what is of another kind stays");
            if let Some((name, _)) = listing.next_buffered(|next| next == kind) {
                insert(&mut names, name);
            }
            if names.len() % 300 < 2 {
                let mut given = listing.give_half(1);
                while let Some((name, _)) = given.next(file.as_fd(), &mut buffer).expect("found") {
                    insert(&mut names, name);
                }
            }
            if names.len() % 700 < 200 {
                listing.suspend();
                file = open();
                listing.resume(file.as_fd()).expect("resumed");
            }
        }
        assert_eq!(names.len(), FILES);
        assert!(listing.has_ended());
    }
}
