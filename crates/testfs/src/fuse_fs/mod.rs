//! A FUSE file system of this process whose requests take a set time, so that a variant which is
//! fast elsewhere is slow here, and which lies where it is told to ([`Lies`]).

mod costs;
mod lies;
mod nodes;
mod requests;
mod store;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use fuser::{BackgroundSession, Config, Errno, INodeNo};

use crate::session::{lock, unmount};
use crate::skip::{skip, test_name};
pub use costs::Costs;
use lies::Liar;
pub use lies::{LengthChange, Lies, WrongSize};
use nodes::{Node, Nodes, Owner};
use requests::Requests;
use store::{Hanging, Store};

/// A mounted file system. Dropping it unmounts it.
#[derive(Debug)]
pub struct FuseFs {
    costs: Costs,
    session: Option<BackgroundSession>,
    store: Arc<Store>,
    hanging: Hanging,
    dir: tempfile::TempDir,
}

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
            travelling: AtomicU64::new(0),
            most_travelling: AtomicU64::new(0),
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
        let dir = tempfile::tempdir().expect("created");
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

    /// The part of [`FuseFs::contents`] at the directory `name`, by the paths below it.
    #[must_use]
    pub fn contents_below(&self, name: &str) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let of_dir = |(path, content): (PathBuf, Option<Vec<u8>>)| {
            Some((path.strip_prefix(name).ok()?.to_owned(), content))
        };
        self.contents().into_iter().filter_map(of_dir).collect()
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

    /// The most requests that were on their way at the same time since this was asked last.
    #[must_use]
    pub fn most_travelling(&self) -> u64 {
        self.store.most_travelling.swap(0, Ordering::Relaxed)
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
        unmount(self.session.take(), self.dir.path());
    }
}
