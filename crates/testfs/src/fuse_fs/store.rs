//! What the mounts of a file system share with those who ask what became of it.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use fuser::ReplyData;

use super::lies::Liar;
use super::nodes::Nodes;

/// What all mounts of it share.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) nodes: Mutex<Nodes>,
    pub(super) liar: Mutex<Liar>,
    pub(super) writes: AtomicU64,
    pub(super) served_bytes: AtomicU64,
    /// Requests that are on their way.
    pub(super) travelling: AtomicU64,
    pub(super) most_travelling: AtomicU64,
}

/// Reads without a reply. `None` after they were made to fail; later ones fail at once. While a
/// read hangs, the file system cannot be unmounted and the process cannot be killed.
pub(super) type Hanging = Arc<Mutex<Option<Vec<ReplyData>>>>;
