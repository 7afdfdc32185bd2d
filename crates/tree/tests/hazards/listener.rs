//! An observer that writes down all that it hears, and a copy in one line.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tree::{Announcement, Destination, Diagnostic, Observer, Options, Outcome, Receipt, Request};

/// Called each time that an engine has moved a span.
type Meanwhile<'m> = Box<dyn Fn() + Sync + 'm>;

#[derive(Default)]
pub(crate) struct Listener<'m> {
    pub(crate) diagnostics: Mutex<Vec<Diagnostic>>,
    pub(crate) receipts: Mutex<Vec<Receipt>>,
    pub(crate) interrupt: AtomicBool,
    /// The copy has told that it may take longer than an instant.
    pub(crate) deferred_init_called: AtomicBool,
    /// Receipts are not wanted.
    pub(crate) without_receipts: bool,
    /// What happens while data is copied.
    pub(crate) meanwhile: Option<Meanwhile<'m>>,
    /// What happens between a look at both ends and opening them, with [`Options::verbose`].
    pub(crate) announced: Option<Meanwhile<'m>>,
}

impl<'m> Listener<'m> {
    pub(crate) fn with_meanwhile(meanwhile: impl Fn() + Sync + 'm) -> Listener<'m> {
        Listener { meanwhile: Some(Box::new(meanwhile)), ..Listener::default() }
    }

    pub(crate) fn heard(&self) -> Vec<Diagnostic> {
        self.diagnostics.lock().expect("no test panics while it listens").clone()
    }
}

impl Observer for Listener<'_> {
    fn diagnose(&self, diagnostic: Diagnostic) {
        self.diagnostics.lock().expect("no test panics while it listens").push(diagnostic);
    }

    fn keeps_receipts(&self) -> bool {
        !self.without_receipts
    }

    fn finished(&self, receipt: Receipt) {
        self.receipts.lock().expect("no test panics while it listens").push(receipt);
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

/// Copies `src` to the very name `dst`.
pub(crate) fn copy_exactly(
    src: &Path,
    dst: &Path,
    options: &Options,
    listener: &Listener<'_>,
) -> Outcome {
    let request =
        Request { sources: vec![src.into()], destination: Destination::Exact(OsString::from(dst)) };
    tree::copy(&request, options, listener)
}

/// Copies `src` to `dst`, which must go without a word.
pub(crate) fn copy_well(src: &Path, dst: &Path, options: &Options) -> Vec<Receipt> {
    let listener = Listener::default();
    let outcome = copy_exactly(src, dst, options, &listener);
    assert_eq!(listener.heard(), []);
    assert_eq!(outcome.failures, 0);
    listener.receipts.into_inner().expect("no test panics while it listens")
}

/// Runs `test` while another thread does `meanwhile` again and again, which ends with it, however
/// that ends.
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
