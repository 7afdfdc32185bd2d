//! The names in a directory, a batch at a time: a directory of a million entries is never held in
//! memory.

use std::collections::VecDeque;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{FileType, Mode, OFlags, RawDir, SeekFrom, openat, seek};
use rustix::io::{self, Errno};

/// Bytes of one batch as the kernel gives it: some thousands of names. After each of them workers who
/// share a large directory wait for each other.
const BATCH_BYTES: usize = 128 << 10;

/// The same of a first one, most of which is read again if the directory has to be closed.
const FIRST_BATCH_BYTES: usize = 32 << 10;

/// A directory of fewer names is read to its end at once. It may become a destination too, and have
/// its times set, while names in it are still to be copied.
const BATCH_NAMES_MIN: usize = 256;

/// A buffer for [`Listing::next`], which takes no memory until it is used.
#[derive(Debug, Default)]
pub(crate) struct Buffer(Vec<u8>);

/// Where the reading of a directory stands. It outlives the descriptor: a directory can be closed,
/// opened again and read on.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    batch: VecDeque<Name>,
    /// The file system's own mark after the last name given out.
    cookie: u64,
    ended: bool,
    /// A batch was read, and the directory not closed since.
    reads_on: bool,
}

#[derive(Debug)]
struct Name {
    name: CString,
    /// What the directory says it is; unknown where it says nothing.
    kind: FileType,
    cookie: u64,
}

impl Listing {
    /// The listing of a directory that is not to be read.
    pub(crate) fn ended() -> Listing {
        Listing { ended: true, ..Listing::default() }
    }

    /// Whether there is nothing more to come.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended && self.batch.is_empty()
    }

    /// The next of the names that were read already, and what the directory says it is, if that is
    /// `kind`.
    pub(crate) fn next_buffered(&mut self, kind: FileType) -> Option<(CString, FileType)> {
        let next = self.batch.pop_front_if(|next| next.kind == kind)?;
        self.cookie = next.cookie;
        Some((next.name, next.kind))
    }

    /// The number of names that were read and not given out.
    pub(crate) fn buffered(&self) -> usize {
        self.batch.len()
    }

    /// Hands over the first half of the names in hand but for `kept`, rounded up, as a listing of
    /// nothing else. They are the first so that reading can go on after them.
    pub(crate) fn give_half(&mut self, kept: usize) -> Listing {
        let half = self.batch.len().saturating_sub(kept).div_ceil(2);
        let rest = self.batch.split_off(half);
        let batch = std::mem::replace(&mut self.batch, rest);
        if let Some(last) = batch.back() {
            self.cookie = last.cookie;
        }
        Listing { batch, ended: true, ..Listing::default() }
    }

    /// The next name in `dir`, other than `.` and `..`, and what the directory says it is.
    pub(crate) fn next(
        &mut self,
        dir: BorrowedFd<'_>,
        buffer: &mut Buffer,
    ) -> io::Result<Option<(CString, FileType)>> {
        while self.batch.is_empty() && !self.ended {
            self.fill(dir, buffer)?;
        }
        Ok(self.batch.pop_front().map(|next| {
            self.cookie = next.cookie;
            (next.name, next.kind)
        }))
    }

    /// Lets go of the names read ahead, before the descriptor is closed.
    pub(crate) fn suspend(&mut self) {
        self.ended &= self.batch.is_empty();
        self.reads_on = false;
        self.batch = VecDeque::new();
    }

    /// Goes on in `dir`, a new descriptor for the same directory.
    pub(crate) fn resume(&mut self, dir: BorrowedFd<'_>) -> io::Result<()> {
        if !self.ended && self.cookie != 0 {
            seek(dir, SeekFrom::Start(self.cookie))?;
        }
        Ok(())
    }

    fn fill(&mut self, dir: BorrowedFd<'_>, buffer: &mut Buffer) -> io::Result<()> {
        let bytes = if self.reads_on { BATCH_BYTES } else { FIRST_BATCH_BYTES };
        self.reads_on = true;
        buffer.0.reserve(bytes);
        let mut entries = RawDir::new(dir, &mut buffer.0.spare_capacity_mut()[..bytes]);
        loop {
            match entries.next() {
                None => self.ended = true,
                Some(Err(Errno::INTR)) => continue,
                Some(Err(errno)) => {
                    // Asking a failing directory again would go on for ever.
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
                // Not itself, not its parent.
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

/// Shows `look` each name in `dir`, and what the directory says it is.
pub(crate) fn each_name(
    dir: BorrowedFd<'_>,
    mut look: impl FnMut(&CStr, FileType),
) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // To look leaves no trace where that is allowed: to the owner, and to root.
    let listed = match openat(dir, c".", flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => openat(dir, c".", flags, Mode::empty()),
        result => result,
    }?;
    let mut buffer = [MaybeUninit::uninit(); 8 << 10];
    let mut entries = RawDir::new(listed.as_fd(), &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        look(entry.file_name(), entry.file_type());
    }
    Ok(())
}

/// Whether a listed name can stand for an entry. A broken or hostile file system may list names
/// with slashes in them, which would be paths to somewhere else.
fn is_component(name: &CStr) -> bool {
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
    fn a_large_directory_is_never_held_whole_and_can_be_left_in_between() {
        let dir = tempfile::tempdir().expect("a directory");
        for number in 0..FILES {
            std::fs::write(dir.path().join(format!("a file's name {number}")), "").expect("a file");
        }
        let open = || std::fs::File::open(dir.path()).expect("the directory");
        let (mut file, mut listing, mut buffer) = (open(), Listing::default(), Buffer::default());
        let mut names = BTreeSet::new();
        let insert = |names: &mut BTreeSet<_>, name| assert!(names.insert(name), "listed twice");
        while let Some((name, kind)) = listing.next(file.as_fd(), &mut buffer).expect("listed") {
            assert!(matches!(kind, FileType::RegularFile | FileType::Unknown));
            assert!(listing.batch.len() < FILES / 2, "{}", listing.batch.len());
            insert(&mut names, name);
            let buffered = listing.buffered();
            assert!(listing.next_buffered(FileType::Directory).is_none());
            assert_eq!(listing.buffered(), buffered, "what is of another kind stays");
            if let Some((name, _)) = listing.next_buffered(kind) {
                insert(&mut names, name);
            }
            if names.len() % 300 < 2 {
                let mut given = listing.give_half(1);
                while let Some((name, _)) = given.next(file.as_fd(), &mut buffer).expect("given") {
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
