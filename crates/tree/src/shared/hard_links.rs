//! Hard links among the files of a run: which sources have a copy, and which are being copied.

use std::collections::HashSet;
use std::ffi::CStr;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, PoisonError};

use rustix::fs::{AtFlags, linkat, statat, unlinkat};
use rustix::io::{self, Errno};

use super::copied_inodes::{CopiedInodes, FirstCopy};
use crate::fs::{DirPath, FileId, Place};
use crate::lock::lock;

/// The files with several names that this run has met. The first to meet one claims it and copies
/// it; whoever meets it later waits until that copy is there, and links to it.
#[derive(Default)]
pub(crate) struct HardLinks {
    table: Mutex<Table>,
    published: Condvar,
}

#[derive(Default)]
struct Table {
    /// Sources that somebody is copying.
    claimed: HashSet<FileId>,
    copies: CopiedInodes,
}

/// What [`HardLinks::claim`] says.
pub(crate) enum Claim<'l> {
    /// It has no copy and no worker makes one: copy it, then [`publish`](Claimant::publish).
    First(Claimant<'l>),
    /// It was copied before.
    Copied(FirstCopy),
}

/// The right to make the first copy. Dropped without being published, it passes to the next.
pub(crate) struct Claimant<'l> {
    links: &'l HardLinks,
    id: FileId,
}

impl HardLinks {
    /// Claims the source `id`, or waits until whoever has claimed it is done. A copy that was `lost`
    /// does not count: its name stands for something else.
    pub(crate) fn claim(&self, id: FileId, lost: Option<&FirstCopy>) -> Claim<'_> {
        let mut table = lock(&self.table);
        loop {
            let made = table.copies.get(id);
            if let Some(made) = made.filter(|made| lost.is_none_or(|lost| !lost.is(made))) {
                return Claim::Copied(made);
            }
            if table.claimed.insert(id) {
                return Claim::First(Claimant { links: self, id });
            }
            table = self.published.wait(table).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether `id` is what has been made of the source `src`.
    pub(crate) fn is_copy(&self, src: FileId, id: FileId) -> bool {
        lock(&self.table).copies.get(src).is_some_and(|made| made.id == id)
    }
}

impl Claimant<'_> {
    /// The copy is there, as `name` in the directory `home`.
    pub(crate) fn publish(self, home: &DirPath, name: &CStr, id: FileId) {
        lock(&self.links.table).copies.insert(self.id, home, name, id);
    }
}

impl Drop for Claimant<'_> {
    fn drop(&mut self) {
        lock(&self.links.table).claimed.remove(&self.id);
        self.links.published.notify_all();
    }
}

impl FirstCopy {
    /// The path of the copy, for messages.
    pub(crate) fn path(&self) -> PathBuf {
        self.home.join(&self.name)
    }

    fn is(&self, other: &FirstCopy) -> bool {
        self.id == other.id && self.name == other.name && self.home.is(&other.home)
    }

    /// Whether the name of the copy, which is in `from`, stands for something else by now, or for
    /// nothing.
    pub(crate) fn is_lost(&self, from: BorrowedFd<'_>) -> bool {
        match statat(from, &*self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => FileId::of(&stat) != self.id,
            Err(errno) => errno == Errno::NOENT,
        }
    }

    /// Links the copy, which is in `from`, to `dst`.
    ///
    /// # Errors
    /// What linkat(2) says; ESTALE when the name no longer stands for the copy that was made, in
    /// which case there is no link.
    pub(crate) fn link_to(&self, dst: &Place<'_>, from: BorrowedFd<'_>) -> io::Result<()> {
        linkat(from, &*self.name, dst.dir, dst.name, AtFlags::empty())?;
        let linked = statat(dst.dir, dst.name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileId::of(&linked) == self.id {
            return Ok(());
        }
        // Somebody exchanged the first copy for another file. A link to that must not stay.
        unlinkat(dst.dir, dst.name, AtFlags::empty())?;
        Err(Errno::STALE)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::path::Path;

    use super::*;

    const SRC: FileId = FileId { dev: 1, ino: 2 };
    const DST: FileId = FileId { dev: 3, ino: 4 };

    #[test]
    fn of_many_workers_one_copies_and_the_others_link() {
        let links = HardLinks::default();
        let home = DirPath::top(Path::new("t"), None);
        let copies = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| match links.claim(SRC, None) {
                    Claim::First(claimant) => {
                        copies.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        std::thread::sleep(std::time::Duration::from_millis(20));
                        claimant.publish(&home, c"f", DST);
                    }
                    Claim::Copied(made) => assert_eq!(made.id, DST),
                });
            }
        });
        assert_eq!(copies.into_inner(), 1);
    }

    #[test]
    fn what_took_the_place_of_the_copy_is_not_linked() {
        let dir = tempfile::tempdir().expect("a directory");
        let open = std::fs::File::open(dir.path()).expect("a directory");
        let shown = crate::fs::place::DisplayPath::Operand(dir.path());
        let trust = crate::fs::place::Trust::PreExisting;
        let dst = Place { dir: open.as_fd(), name: c"other", shown, trust };
        let made = |name: &CStr| {
            let path = dir.path().join(name.to_str().expect("a name"));
            std::fs::write(path, "content").expect("a file");
            let stat = statat(open.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW).expect("it is there");
            let home = DirPath::top(dir.path(), None);
            FirstCopy { home, name: name.into(), id: FileId::of(&stat) }
        };
        let copy = made(c"copy");
        assert_eq!(copy.link_to(&dst, open.as_fd()), Ok(()));
        dst.unlink().expect("the link");
        made(c"secret");
        std::fs::rename(dir.path().join("secret"), dir.path().join("copy")).expect("exchanged");
        assert_eq!(copy.link_to(&dst, open.as_fd()), Err(Errno::STALE));
        assert_eq!(dst.stat(false).err(), Some(Errno::NOENT), "no link stays");
    }

    #[test]
    fn a_claim_that_failed_passes_to_the_next() {
        let links = HardLinks::default();
        let Claim::First(claimant) = links.claim(SRC, None) else { panic!("nobody had it") };
        std::thread::scope(|scope| {
            let next = scope.spawn(|| matches!(links.claim(SRC, None), Claim::First(_)));
            drop(claimant);
            assert!(next.join().expect("it waits no longer"));
        });
    }
}
