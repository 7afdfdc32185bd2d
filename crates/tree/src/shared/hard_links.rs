//! Hard links among the files of a run: which sources have a copy, and which are being copied.
//!
//! Workers of this process come to terms here. One of them asks the partners.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rustix::fs::{AtFlags, Stat, fstat, linkat};
use rustix::io::{self, Errno};

use super::copied_inodes::{CopiedInodes, FirstCopy};
use super::locks::{FileGuard, FileLocks};
use super::partner_context::PartnerContext;
use crate::fs::fs_type::is_on_reliable_fs;
use crate::fs::{DirPath, FileId, Place, give_name, hold, is_file, lstat, split};
use crate::lock::lock;
use crate::report::{Diagnostic, Reporter};

/// The sources with several hard links. The first worker that finds one claims and copies it. A
/// worker that finds it later waits for that copy and links to it.
pub(crate) struct HardLinks {
    copies: Mutex<CopiedInodes>,
    /// Sources that a worker is copying, or asks the partners about.
    claimed: FileLocks,
    partners: Arc<PartnerContext>,
}

/// The result of [`HardLinks::claim`].
pub(crate) enum Claim<'l> {
    /// The caller has to copy the source, then [`publish`](Claimant::publish).
    First(Claimant<'l>),
    /// An earlier copy exists.
    Copied(FirstCopy),
}

/// The right to make the first copy. If it is dropped without being published, the next worker gets
/// it.
pub(crate) struct Claimant<'l> {
    links: &'l HardLinks,
    id: FileId,
    #[expect(dead_code, reason = "it is kept, and dropped")]
    guard: FileGuard<'l>,
    /// Partners link their names to the copy, or copy the source if this process cannot.
    is_for_all: bool,
}

impl HardLinks {
    pub(crate) fn new(partners: Arc<PartnerContext>) -> HardLinks {
        HardLinks { copies: Mutex::default(), claimed: FileLocks::default(), partners }
    }

    /// Claims the source `id`, or waits for the worker that has claimed it. The copy `lost` does
    /// not count: its name belongs to another file now.
    pub(crate) fn claim(&self, id: FileId, lost: Option<&FirstCopy>) -> Claim<'_> {
        let made = || {
            let made = lock(&self.copies).get(id);
            made.filter(|made| lost.is_none_or(|lost| !lost.is(made)))
        };
        if let Some(made) = made() {
            return Claim::Copied(made);
        }
        let guard = self.claimed.lock_file(id);
        // Another worker may have copied it meanwhile.
        if let Some(made) = made() {
            return Claim::Copied(made);
        }
        // Of a copy that has lost its name no partner is told.
        let mut claimant = Claimant { links: self, id, guard, is_for_all: false };
        if lost.is_some() {
            return Claim::First(claimant);
        }
        let Some(copy) = self.partners.others.first_copy(self.partners.common(id)) else {
            claimant.is_for_all = true;
            return Claim::First(claimant);
        };
        match self.partners.decode_copy(&copy) {
            // It cannot be reached from here, and becomes a file of its own.
            None => Claim::First(claimant),
            Some(made) => {
                claimant.publish(&made.dir, &made.name, made.id);
                Claim::Copied(made)
            }
        }
    }

    /// Whether `id` is the copy of the source `src`.
    pub(crate) fn is_copy(&self, src: FileId, id: FileId) -> bool {
        lock(&self.copies).get(src).is_some_and(|made| made.id == id)
    }
}

impl Claimant<'_> {
    /// Records the copy `name` in the directory `dir`.
    pub(crate) fn publish(mut self, dir: &DirPath, name: &CStr, id: FileId) {
        lock(&self.links.copies).insert(self.id, dir, name, id);
        let partners = &self.links.partners;
        self.tell(&|| partners.encode_copy(dir, name, id));
    }

    /// Tells the partners, once, which name the copy has.
    fn tell(&mut self, name: &dyn Fn() -> Option<Vec<u8>>) {
        let partners = &self.links.partners;
        if std::mem::take(&mut self.is_for_all) {
            partners.others.copied(partners.common(self.id), name);
        }
    }
}

impl Drop for Claimant<'_> {
    fn drop(&mut self) {
        self.tell(&|| None);
    }
}

impl FirstCopy {
    /// The path of the copy, for messages.
    pub(crate) fn path(&self) -> PathBuf {
        self.dir.join(&self.name)
    }

    fn is(&self, other: &FirstCopy) -> bool {
        self.id == other.id && self.name == other.name && self.dir.is(&other.dir)
    }

    /// lstat(2) of the name of the copy in the directory `from`.
    pub(crate) fn stat(&self, from: BorrowedFd<'_>) -> io::Result<Stat> {
        lstat(from, &*self.name)
    }

    /// Whether its name in the directory `from` still is that of the copy.
    pub(crate) fn is_in(&self, from: BorrowedFd<'_>) -> bool {
        self.id.is_at(from, &*self.name)
    }

    /// Links `dst` to the copy in the directory `from`, as [`link_known`] does.
    pub(crate) fn link_to(
        &self,
        report: &Reporter<'_>,
        dst: &Place<'_>,
        from: BorrowedFd<'_>,
    ) -> io::Result<()> {
        link_known(report, (from, &self.name, AtFlags::empty()), self.id, dst)
    }
}

/// Links `dst` to the file `name` in `from`, which must be the file `id`. The flags are those of linkat(2).
///
/// # Errors
/// Those of linkat(2); ESTALE, without a link, when the name belongs to another file. A link that
/// cannot be removed is reported.
pub(crate) fn link_known(
    report: &Reporter<'_>,
    (from, name, flags): (BorrowedFd<'_>, &CStr, AtFlags),
    id: FileId,
    dst: &Place<'_>,
) -> io::Result<()> {
    // Some file systems give each name of a file a number of its own, and overlayfs gives another one to a file of which
    // a link is made. The number by which the file is known is that of this name now, and a file that is open is not
    // exchanged.
    let follow = flags.contains(AtFlags::SYMLINK_FOLLOW);
    let held = (!is_on_reliable_fs(from)).then(|| hold(from, name, follow)).transpose()?;
    if let Some(held) = &held
        && !is_file(held, &fstat(held)?, id)
    {
        return Err(Errno::STALE);
    }
    linkat(from, name, dst.dir, dst.name, flags)?;
    let linked = dst.stat(false);
    let id = held.as_ref().map_or(Ok(id), FileId::of_open);
    if linked.as_ref().is_ok_and(|linked| Ok(FileId::of(linked)) == id) {
        return Ok(());
    }
    // Another process exchanged the file, or may have. A link to its file must not stay.
    match dst.unlink() {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => {
            // The name may be a temporary one, beside that of the destination.
            let (_, name) = split(dst.name);
            let path = dst.path().with_file_name(OsStr::from_bytes(name));
            report.report(Diagnostic::LeftOver { path, errno });
            return Err(errno);
        }
    }
    linked?;
    let held = held.ok_or(Errno::STALE)?;
    give_name(held.as_fd(), dst.dir, dst.name)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const SRC: FileId = FileId { dev: 1, ino: 2 };
    const DST: FileId = FileId { dev: 3, ino: 4 };

    #[test]
    fn one_worker_copies_and_the_others_link() {
        let links = HardLinks::new(Arc::new(PartnerContext::alone()));
        let dir_path = DirPath::top(Path::new("t"), None, None);
        let copies = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| match links.claim(SRC, None) {
                    Claim::First(claimant) => {
                        copies.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        std::thread::sleep(std::time::Duration::from_millis(20));
                        claimant.publish(&dir_path, c"f", DST);
                    }
                    Claim::Copied(made) => assert_eq!(made.id, DST),
                });
            }
        });
        assert_eq!(copies.into_inner(), 1);
    }

    #[test]
    fn a_file_that_replaced_the_copy_is_not_linked() {
        let dir = tempfile::tempdir().expect("created");
        let open = std::fs::File::open(dir.path()).expect("opened");
        let shown = crate::fs::place::DisplayPath::Operand(dir.path());
        let trust = crate::fs::place::Trust::PreExisting;
        let dst = Place { dir: open.as_fd(), name: c"other", shown, trust };
        let made = |name: &CStr| {
            let path = dir.path().join(name.to_str().expect("a name"));
            std::fs::write(path, "content").expect("written");
            let stat = lstat(open.as_fd(), name).expect("looked at");
            let dir_path = DirPath::top(dir.path(), None, None);
            FirstCopy { dir: dir_path, name: name.into(), id: FileId::of(&stat) }
        };
        let (options, never) = (crate::request::Options::default(), false.into());
        let report = Reporter::new(&crate::report::Silent, &options, &never);
        let copy = made(c"copy");
        assert_eq!(copy.link_to(&report, &dst, open.as_fd()), Ok(()));
        dst.unlink().expect("the link");
        made(c"secret");
        std::fs::rename(dir.path().join("secret"), dir.path().join("copy")).expect("renamed");
        assert_eq!(copy.link_to(&report, &dst, open.as_fd()), Err(Errno::STALE));
        assert_eq!(dst.stat(false).err(), Some(Errno::NOENT), "no link stays");
    }

    #[test]
    fn a_dropped_claim_passes_to_the_next_worker() {
        let links = HardLinks::new(Arc::new(PartnerContext::alone()));
        let Claim::First(claimant) = links.claim(SRC, None) else { panic!("nobody had it") };
        std::thread::scope(|scope| {
            let next = scope.spawn(|| matches!(links.claim(SRC, None), Claim::First(_)));
            drop(claimant);
            assert!(next.join().expect("joined"));
        });
    }
}
