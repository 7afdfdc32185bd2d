//! Cancellation from another thread, and the answers of callbacks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Cancels a copy from another thread, or from a signal handler. Clones cancel the same copy.
///
/// A copy looks at it between two entries and between two pieces of a large file, which are at most
/// 64 MiB long.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// A token that nobody has used.
    #[must_use]
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// Makes the copy stop soon. It only stores a flag, so that a signal handler may call it.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Lets copies start again. A copy that was cancelled and has not seen it yet goes on.
    pub fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether [`cancel`](CancelToken::cancel) was called.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a copy does after a callback. A callback that returns nothing continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Control {
    /// Go on.
    #[default]
    Continue,
    /// Go on. Of an error: it does not make the copy fail. Of an entry that was asked about: leave it
    /// out. Of a directory that was entered: leave out its entries. Otherwise the same as
    /// [`Control::Continue`].
    Skip,
    /// Stop. The copy fails as cancelled.
    Quit,
}

impl From<()> for Control {
    fn from((): ()) -> Control {
        Control::Continue
    }
}

impl From<bool> for Control {
    /// `true` continues and `false` skips.
    fn from(wanted: bool) -> Control {
        if wanted { Control::Continue } else { Control::Skip }
    }
}
