//! Which sources were met before: hard links among the files of a run, and operands that repeat.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};

use rustix::fs::{AtFlags, CWD, fstat, linkat, statat, unlinkat};
use rustix::io::{self, Errno};

use crate::copies::{Copies, Made};
use crate::dir;
use crate::existing::split;
use crate::identity::FileId;
use crate::lock::lock;
use crate::place::Place;
use crate::plan::trim_slashes;
use crate::run::Run;
use crate::trail::Trail;

/// The files with several names that this run has met. The first to meet one claims it and copies
/// it; whoever meets it later waits until that copy is there, and links to it.
#[derive(Default)]
pub(crate) struct Links {
    table: Mutex<Table>,
    settled: Condvar,
}

#[derive(Default)]
struct Table {
    /// Sources that somebody is copying.
    claimed: HashSet<FileId>,
    copies: Copies,
}

/// What [`Links::claim`] says.
pub(crate) enum Claim<'l> {
    /// Nobody has it: copy it, then [`settle`](Holder::settle).
    First(Holder<'l>),
    /// It was copied before.
    Before(Made),
}

/// The right to make the first copy. Dropped without being settled, it passes to the next.
pub(crate) struct Holder<'l> {
    links: &'l Links,
    id: FileId,
}

impl Links {
    /// Claims the source `id`, or waits until whoever has claimed it is done. A copy that was `lost`
    /// does not count: its name stands for something else.
    pub(crate) fn claim(&self, id: FileId, lost: Option<&Made>) -> Claim<'_> {
        let mut table = lock(&self.table);
        loop {
            let made = table.copies.get(id);
            if let Some(made) = made.filter(|made| lost.is_none_or(|lost| !lost.is(made))) {
                return Claim::Before(made);
            }
            if table.claimed.insert(id) {
                return Claim::First(Holder { links: self, id });
            }
            table = self.settled.wait(table).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether `id` is what has been made of the source `src`.
    pub(crate) fn is_copy(&self, src: FileId, id: FileId) -> bool {
        lock(&self.table).copies.get(src).is_some_and(|made| made.id == id)
    }
}

impl Holder<'_> {
    /// The copy is there, as `name` in the directory `home`.
    pub(crate) fn settle(self, home: &Trail, name: &CStr, id: FileId) {
        lock(&self.links.table).copies.insert(self.id, home, name, id);
    }
}

impl Drop for Holder<'_> {
    fn drop(&mut self) {
        lock(&self.links.table).claimed.remove(&self.id);
        self.links.settled.notify_all();
    }
}

impl Made {
    /// The path of the copy, for messages.
    pub(crate) fn path(&self) -> PathBuf {
        self.home.join(&self.name)
    }

    fn is(&self, other: &Made) -> bool {
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

/// The directory that was reached last: those who have names elsewhere have neighbours there, too.
#[derive(Default)]
pub(crate) struct Reached(Option<(Trail, OwnedFd)>);

impl Reached {
    /// The directory at `trail`.
    ///
    /// # Errors
    /// What [`dir::reach`] says.
    pub(crate) fn reach(&mut self, run: &Run<'_>, trail: &Trail) -> io::Result<BorrowedFd<'_>> {
        if self.0.as_ref().is_none_or(|(last, _)| !last.is(trail)) {
            self.0 = None;
            self.0 = Some((trail.clone(), dir::reach(run, trail)?));
        }
        let (_, dir) = self.0.as_ref().expect("it was just reached");
        Ok(dir.as_fd())
    }
}

/// What is known of the operands and of what was made of them.
#[derive(Default)]
pub(crate) struct Tops {
    files: Mutex<HashMap<NamedFile, Above>>,
    /// What was made of an operand: its directory, unless that is the target, its name there, and
    /// the file.
    made: Mutex<HashSet<(Option<FileId>, CString, FileId)>>,
    /// Directory operands, and where each went.
    directories: Mutex<HashMap<FileId, PathBuf>>,
    /// Directories of this run whose parent is none of this run's: a source directory that is one
    /// of these would be copied into itself for ever.
    roots: Mutex<HashSet<FileId>>,
}

/// A file operand, and the last component of its name.
type NamedFile = (FileId, Box<[u8]>);

/// The directories in which a file operand has a name. Few have a second, so only then is it looked
/// which directory the first one's path leads to.
enum Above {
    Path(Box<[u8]>),
    Directories(HashSet<FileId>),
}

impl Above {
    /// Whether the directory at `path` is one of them; if not it becomes one.
    fn has_again(&mut self, path: &[u8]) -> bool {
        if let Above::Path(first) = self {
            *self = Above::Directories(directory_at(first).into_iter().collect());
        }
        let Above::Directories(ids) = self else { unreachable!("it was just made so") };
        directory_at(path).is_some_and(|id| !ids.insert(id))
    }
}

impl Tops {
    /// Whether `name` of this file, by whatever way to its directory, was an operand before. The
    /// same name in another directory is not this one: with --parents it goes elsewhere.
    pub(crate) fn is_file_again(&self, src: FileId, name: &CStr) -> bool {
        let (above, base) = split(name);
        let mut files = lock(&self.files);
        match files.entry((src, base.into())) {
            Entry::Vacant(entry) => {
                entry.insert(Above::Path(above.into()));
                false
            }
            Entry::Occupied(entry) => entry.into_mut().has_again(above),
        }
    }

    pub(crate) fn made(&self, run: &Run<'_>, dst: &Place<'_>, id: FileId) {
        lock(&self.made).insert((below_target(run, dst), dst.name.into(), id));
    }

    pub(crate) fn was_made(&self, run: &Run<'_>, dst: &Place<'_>, id: FileId) -> bool {
        lock(&self.made).contains(&(below_target(run, dst), dst.name.into(), id))
    }

    /// Where the directory operand `src` went before; the first time it is remembered.
    pub(crate) fn directory_before(&self, src: FileId, dst: &Path) -> Option<PathBuf> {
        match lock(&self.directories).entry(src) {
            Entry::Occupied(entry) => Some(entry.get().clone()),
            Entry::Vacant(entry) => {
                entry.insert(dst.to_owned());
                None
            }
        }
    }

    /// The directory operand `src` has not gone to `dst` after all.
    pub(crate) fn forget_directory(&self, src: FileId, dst: &Path) {
        if let Entry::Occupied(entry) = lock(&self.directories).entry(src)
            && entry.get() == dst
        {
            entry.remove();
        }
    }

    /// Makes a directory whose parent is none of this run's and remembers it. Nobody can meet it
    /// before: whoever has seen its name asks [`is_root_made`](Tops::is_root_made) later.
    pub(crate) fn make_root<T, E>(
        &self,
        make: impl FnOnce() -> Result<T, E>,
        id: impl FnOnce(&T) -> FileId,
    ) -> Result<T, E> {
        let mut roots = lock(&self.roots);
        make().inspect(|made| {
            roots.insert(id(made));
        })
    }

    pub(crate) fn is_root_made(&self, id: FileId) -> bool {
        lock(&self.roots).contains(&id)
    }
}

/// The directory that an operand's name begins with. A symbolic link counts for itself: --parents
/// makes another directory of it.
fn directory_at(name: &[u8]) -> Option<FileId> {
    let name = OsStr::from_bytes(trim_slashes(name));
    statat(CWD, name, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| FileId::of(&stat))
}

/// The directory that `dst` is in, where not all operands go into the same.
fn below_target(run: &Run<'_>, dst: &Place<'_>) -> Option<FileId> {
    let stat = run.options.parents.then(|| fstat(dst.dir).ok())??;
    Some(FileId::of(&stat))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SRC: FileId = FileId { dev: 1, ino: 2 };
    const DST: FileId = FileId { dev: 3, ino: 4 };

    #[test]
    fn of_many_workers_one_copies_and_the_others_link() {
        let links = Links::default();
        let home = Trail::top(Path::new("t"), None);
        let copies = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| match links.claim(SRC, None) {
                    Claim::First(holder) => {
                        copies.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        std::thread::sleep(std::time::Duration::from_millis(20));
                        holder.settle(&home, c"f", DST);
                    }
                    Claim::Before(made) => assert_eq!(made.id, DST),
                });
            }
        });
        assert_eq!(copies.into_inner(), 1);
    }

    #[test]
    fn what_took_the_place_of_the_copy_is_not_linked() {
        let dir = tempfile::tempdir().expect("a directory");
        let open = std::fs::File::open(dir.path()).expect("a directory");
        let shown = crate::place::Shown::Operand(dir.path());
        let trust = crate::place::Trust::Entered;
        let dst = Place { dir: open.as_fd(), name: c"other", shown, trust };
        let made = |name: &CStr| {
            let path = dir.path().join(name.to_str().expect("a name"));
            std::fs::write(path, "content").expect("a file");
            let stat = statat(open.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW).expect("it is there");
            let home = Trail::top(dir.path(), None);
            Made { home, name: name.into(), id: FileId::of(&stat) }
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
        let links = Links::default();
        let Claim::First(holder) = links.claim(SRC, None) else { panic!("nobody had it") };
        std::thread::scope(|scope| {
            let next = scope.spawn(|| matches!(links.claim(SRC, None), Claim::First(_)));
            drop(holder);
            assert!(next.join().expect("it waits no longer"));
        });
    }
}
