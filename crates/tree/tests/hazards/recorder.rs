//! An observer that records what it is told, and short calls of `copy`.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tree::{Announcement, Destination, Diagnostic, Observer, Options, Outcome, Receipt, Request};

/// Called each time that an engine has moved a span.
type Meanwhile<'m> = Box<dyn Fn() + Sync + 'm>;

#[derive(Default)]
pub(crate) struct Recorder<'m> {
    pub(crate) diagnostics: Mutex<Vec<Diagnostic>>,
    pub(crate) receipts: Mutex<Vec<Receipt>>,
    pub(crate) interrupt: AtomicBool,
    /// The deferred initialisation was called.
    pub(crate) deferred_init_called: AtomicBool,
    /// Receipts are not wanted.
    pub(crate) without_receipts: bool,
    /// Called while data is copied.
    pub(crate) meanwhile: Option<Meanwhile<'m>>,
    /// Called after both files were looked at and before they are opened, with
    /// [`Options::verbose`].
    pub(crate) announced: Option<Meanwhile<'m>>,
}

impl<'m> Recorder<'m> {
    pub(crate) fn with_meanwhile(meanwhile: impl Fn() + Sync + 'm) -> Recorder<'m> {
        Recorder { meanwhile: Some(Box::new(meanwhile)), ..Recorder::default() }
    }

    pub(crate) fn reported(&self) -> Vec<Diagnostic> {
        self.diagnostics.lock().expect("no test panics while it holds the lock").clone()
    }
}

impl Observer for Recorder<'_> {
    fn diagnose(&self, diagnostic: Diagnostic) {
        self.diagnostics.lock().expect("no test panics while it holds the lock").push(diagnostic);
    }

    fn keeps_receipts(&self) -> bool {
        !self.without_receipts
    }

    fn finished(&self, receipt: Receipt) {
        self.receipts.lock().expect("no test panics while it holds the lock").push(receipt);
    }

    fn announce(&self, _: Announcement) {
        if let Some(announced) = &self.announced {
            announced();
        }
    }

    fn moved(&self, _: &engines::Variant, _: engines::Span, _: engines::Moved) {
        if let Some(meanwhile) = &self.meanwhile {
            meanwhile();
        }
    }

    fn deferred_init(&self) {
        self.deferred_init_called.store(true, Ordering::Relaxed);
    }

    fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }
}

/// Copies `src` to the name `dst`.
pub(crate) fn copy_exactly(
    src: &Path,
    dst: &Path,
    options: &Options,
    recorder: &Recorder<'_>,
) -> Outcome {
    let request =
        Request { sources: vec![src.into()], destination: Destination::Exact(OsString::from(dst)) };
    tree::copy(&request, options, recorder)
}

/// Copies `src` to `dst` without any diagnostic.
pub(crate) fn copy_ok(src: &Path, dst: &Path, options: &Options) -> Vec<Receipt> {
    let recorder = Recorder::default();
    let outcome = copy_exactly(src, dst, options, &recorder);
    assert_eq!(recorder.reported(), []);
    assert_eq!(outcome.failures, 0);
    recorder.receipts.into_inner().expect("no test panics while it holds the lock")
}

/// Runs `test` while another thread calls `meanwhile` in a loop, also if `test` panics.
pub(crate) fn with_other_thread<T>(meanwhile: impl Fn() + Sync, test: impl FnOnce() -> T) -> T {
    struct Ends<'e>(&'e AtomicBool);
    impl Drop for Ends<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                meanwhile();
            }
        });
        let _ends = Ends(&ended);
        test()
    })
}
