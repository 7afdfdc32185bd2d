//! How many processors the workers of a run use, so that the workers of one large file are no more
//! than the processors that are left.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::lock::OnDrop;

/// The processors that workers of a run use. Clones share one count. Without a count there is one
/// worker, which may use all of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessorUse(Option<Arc<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    /// Workers that have work.
    busy: AtomicUsize,
    /// Threads that help busy workers with large files.
    helpers: AtomicUsize,
}

/// The processors that the copy of one file uses beside that of its worker. Dropping it returns
/// them.
#[derive(Debug)]
pub(crate) struct Helpers {
    processors: ProcessorUse,
    /// How many there are; `None` until they were asked for.
    pub(crate) taken: Option<usize>,
}

impl ProcessorUse {
    /// For several workers, none of which is busy yet.
    pub(crate) fn counted() -> ProcessorUse {
        ProcessorUse(Some(Arc::default()))
    }

    /// Counts a worker as busy until the guard is dropped.
    pub(crate) fn busy(&self) -> OnDrop<impl FnMut()> {
        self.add_busy();
        OnDrop(|| self.remove_busy())
    }

    /// Calls `wait` while its worker does not count as busy.
    pub(crate) fn idle_during<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.remove_busy();
        let _idle = OnDrop(|| self.add_busy());
        wait()
    }

    /// The helpers of a worker that copies a file, none at first.
    pub(crate) fn helpers(&self) -> Helpers {
        Helpers { processors: self.clone(), taken: None }
    }

    fn add_busy(&self) {
        if let Some(counts) = &self.0 {
            counts.busy.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn remove_busy(&self) {
        if let Some(counts) = &self.0 {
            counts.busy.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Helpers {
    /// Takes as many as are left of `processors`, up to `most`, or returns those that busy workers
    /// need by now. `processors` counts them if it matters. Returns whether the number has changed.
    pub(crate) fn adjust(&mut self, most: usize, processors: impl FnOnce() -> usize) -> bool {
        let before = self.taken;
        let Some(counts) = &self.processors.0 else {
            self.taken = Some(most);
            return self.taken != before;
        };
        let processors = processors();
        let busy = counts.busy.load(Ordering::Relaxed);
        let own = before.unwrap_or(0);
        let take = |helpers: usize| {
            let of_others = helpers - own;
            let left = processors.saturating_sub(busy + of_others).min(most);
            self.taken = Some(left);
            Some(of_others + left)
        };
        let _ = counts.helpers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        self.taken != before
    }

    /// Whether there were none, and there may be some when other workers have no more work.
    pub(crate) fn may_come(&self) -> bool {
        self.processors.0.is_some() && self.taken == Some(0)
    }

    /// Whether other workers use all processors, which `processors` counts if it matters.
    pub(crate) fn are_refused(&self, processors: impl FnOnce() -> usize) -> bool {
        let Some(counts) = &self.processors.0 else { return false };
        self.taken.unwrap_or(0) == 0 && {
            let busy = counts.busy.load(Ordering::Relaxed);
            busy + counts.helpers.load(Ordering::Relaxed) >= processors()
        }
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        if let Some(counts) = &self.processors.0 {
            counts.helpers.fetch_sub(self.taken.unwrap_or(0), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_worker_uses_all_processors() {
        let mut helpers = ProcessorUse::default().helpers();
        assert!(helpers.adjust(3, || 4) && !helpers.adjust(3, || 4));
        assert_eq!((helpers.taken, helpers.are_refused(|| 1)), (Some(3), false));
    }

    #[test]
    fn helpers_use_the_processors_that_busy_workers_leave() {
        let processors = ProcessorUse::counted();
        let (_first, second) = (processors.busy(), processors.busy());
        let (mut one, mut two) = (processors.helpers(), processors.helpers());
        assert!(one.adjust(3, || 2) && one.are_refused(|| 2), "both processors are in use");
        processors.idle_during(|| {
            assert!(one.adjust(3, || 2) && one.taken == Some(1));
            assert!(two.adjust(3, || 2) && two.are_refused(|| 2), "one has the other processor");
            assert!(!one.adjust(3, || 2), "it keeps what it has");
        });
        assert!(one.adjust(3, || 2) && one.taken == Some(0), "the second worker is busy again");
        drop(second);
        assert!(two.adjust(1, || 8) && one.adjust(7, || 8));
        assert_eq!((one.taken, two.taken), (Some(6), Some(1)));
        drop(one);
        assert!(two.adjust(7, || 8) && two.taken == Some(7));
    }
}
