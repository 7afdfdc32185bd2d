//! A FUSE file system of this process whose requests take a set time, so that a variant which is
//! fast elsewhere is slow here, and which lies where it is told to ([`Lies`]).

mod lies;
mod nodes;
mod requests;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fuser::{BackgroundSession, Config, Errno, INodeNo, ReplyData};

use crate::skip::{skip, test_name};
use lies::Liar;
pub use lies::{LengthChange, Lies, WrongSize};
use nodes::{Node, Nodes, Owner};
use requests::Requests;

/// The time of requests, and which requests are not supported. All others take only the round trip
/// to this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Costs {
    /// The time that each request is on its way, as to a server. Requests travel at the same time.
    pub latency: Duration,
    /// The time of each write, whatever its size. Writes wait for one another, unless there is a latency.
    pub write_time: Duration,
    /// The time for each MiB of a copy_file_range(2), which the file system serves itself. `None`
    /// if it does not support the call.
    pub served_mib_time: Option<Duration>,
    /// Whether reads and writes bypass the page cache.
    pub direct_io: bool,
    /// Number of writes after which writes fail with ENOSPC, whatever statfs(2) reports.
    pub full_after_writes: Option<u64>,
    /// Renames with flags, such as RENAME_NOREPLACE, fail with EINVAL, as on many network file
    /// systems.
    pub no_rename_flags: bool,
    /// Before the first such rename fails, a file with the new name is created, as by another
    /// process. It contains its name.
    pub rename_loses_race: bool,
    /// Hard links fail with this error.
    pub no_hard_links: Option<rustix::io::Errno>,
    /// Names that differ in case are one name.
    pub ignores_case: bool,
    /// Names are stored as text, as UDF does: a file whose name was none is not found by that again.
    pub stores_text: bool,
    /// How long the kernel trusts names and attributes that it has seen, and that a name is missing.
    /// A second mount of the same store may show what was true so long ago, as network file systems
    /// do. Data is read again after each open(2).
    pub caches_for: Duration,
    /// The attribute `system.nfs4_acl` of each file, as clients of NFSv4 show it. Nothing can change it.
    pub nfs4_acl: Option<&'static [u8]>,
}

/// A mounted file system. Dropping it unmounts it.
#[derive(Debug)]
pub struct FuseFs {
    costs: Costs,
    session: Option<BackgroundSession>,
    store: Arc<Store>,
    hanging: Hanging,
    dir: tempfile::TempDir,
}

/// What all mounts of it share.
#[derive(Debug)]
struct Store {
    nodes: Mutex<Nodes>,
    liar: Mutex<Liar>,
    writes: AtomicU64,
    served_bytes: AtomicU64,
}

/// Reads without a reply. `None` after they were made to fail; later ones fail at once. While a
/// read hangs, the file system cannot be unmounted and the process cannot be killed.
type Hanging = Arc<Mutex<Option<Vec<ReplyData>>>>;

/// Requests that are on their way at the same time at most.
const TRAVELLING_MAX: usize = 64;

/// The name of the file of [`FuseFs::with_source`].
const SOURCE: &str = "source";

impl FuseFs {
    /// Mounts an empty one. `None` after a reported skip, if nothing can be mounted.
    ///
    /// # Panics
    /// If no directory can be created to mount it on.
    #[must_use]
    pub fn mount(costs: Costs) -> Option<FuseFs> {
        let store = Store {
            nodes: Mutex::new(Nodes::new(costs.ignores_case, costs.stores_text)),
            liar: Mutex::default(),
            writes: AtomicU64::new(0),
            served_bytes: AtomicU64::new(0),
        };
        FuseFs::mount_store(costs, Arc::new(store))
    }

    /// Mounts one with the file `source` of this content, of which it tells these lies, past the page
    /// cache. `None` after a reported skip, if nothing can be mounted.
    ///
    /// # Panics
    /// If no directory can be created to mount it on.
    #[must_use]
    pub fn with_source(content: Vec<u8>, lies: Lies) -> Option<FuseFs> {
        let served = FuseFs::mount(Costs { direct_io: true, ..Costs::default() })?;
        let (node, attrs) = (Node::File(content), (0o644, Owner::here()));
        let mut nodes = lock(&served.store.nodes);
        nodes.add(INodeNo::ROOT, OsStr::new(SOURCE), node, attrs).expect("it is the first");
        drop(nodes);
        served.lie(lies);
        Some(served)
    }

    /// Another mount of the same store, with caches of its own, as another host has it. `None` after a
    /// reported skip.
    ///
    /// # Panics
    /// If no directory can be created to mount it on.
    #[must_use]
    pub fn mount_again(&self) -> Option<FuseFs> {
        FuseFs::mount_store(self.costs, Arc::clone(&self.store))
    }

    fn mount_store(costs: Costs, store: Arc<Store>) -> Option<FuseFs> {
        let dir = tempfile::tempdir().expect("a directory");
        let hanging: Hanging = Arc::new(Mutex::new(Some(Vec::new())));
        let requests = Requests::new(costs, Arc::clone(&store), Arc::clone(&hanging));
        let mut config = Config::default();
        if !costs.latency.is_zero() {
            config.n_threads = Some(TRAVELLING_MAX);
        }
        match fuser::spawn_mount(requests, dir.path(), &config) {
            Ok(session) => Some(FuseFs { costs, session: Some(session), store, hanging, dir }),
            Err(error) => {
                skip(&test_name(), &format!("no FUSE file system can be mounted: {error}"));
                None
            }
        }
    }

    /// The mount point.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The path of the file of [`FuseFs::with_source`].
    #[must_use]
    pub fn source(&self) -> PathBuf {
        self.path().join(SOURCE)
    }

    /// Whether a read waits for a reply that does not come.
    #[must_use]
    pub fn hangs(&self) -> bool {
        let hanging = lock(&self.hanging);
        hanging.as_ref().is_some_and(|replies| !replies.is_empty())
    }

    /// Lies from now on. The default ends it.
    pub fn lie(&self, lies: Lies) {
        *lock(&self.store.liar) = Liar::new(lies);
    }

    /// What it really has, by path: the content of each file, and `None` for a directory.
    #[must_use]
    pub fn contents(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        lock(&self.store.nodes).contents()
    }

    /// Number of inodes, with those that have no name and that a kernel still knows.
    #[must_use]
    pub fn inodes(&self) -> usize {
        lock(&self.store.nodes).len()
    }

    /// Number of writes so far.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.store.writes.load(Ordering::Relaxed)
    }

    /// Bytes of served copy_file_range(2) calls so far.
    #[must_use]
    pub fn served_bytes(&self) -> u64 {
        self.store.served_bytes.load(Ordering::Relaxed)
    }
}

impl Drop for FuseFs {
    fn drop(&mut self) {
        // No request is held back any more.
        self.lie(Lies::default());
        let hanging = lock(&self.hanging).take();
        for reply in hanging.into_iter().flatten() {
            reply.error(Errno::EIO);
        }
        // The directory can be removed only when nothing is mounted on it.
        if let Some(Err(error)) = self.session.take().map(BackgroundSession::umount_and_join) {
            // The kernel may release the last file shortly after its process has ended.
            let detached = Command::new("umount").arg("-l").arg(self.path()).status();
            if !detached.is_ok_and(|status| status.success()) {
                eprintln!("{} stays mounted: {error}", self.path().display());
            }
        }
    }
}

/// A test that has failed leaves its locks to the others.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
