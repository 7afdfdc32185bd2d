//! An observer that records what it is told, and short calls of `copy`.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tree::{Announcement, Destination, Diagnostic, Observer, Options, Outcome, Receipt, Request};

/// Called each time that an engine has moved a span.
type Meanwhile<'m> = Box<dyn Fn() + Sync + 'm>;

#[derive(Default)]
pub(crate) struct Recorder<'m> {
    pub(crate) diagnostics: Mutex<Vec<Diagnostic>>,
    pub(crate) receipts: Mutex<Vec<Receipt>>,
    /// The call of `interrupted` from which on the copy is interrupted.
    pub(crate) interrupts_at: Option<usize>,
    pub(crate) asked: AtomicUsize,
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

    /// As when a user copies: some ways are not taken for receipts.
    pub(crate) fn without_receipts(meanwhile: impl Fn() + Sync + 'm) -> Recorder<'m> {
        Recorder { without_receipts: true, ..Recorder::with_meanwhile(meanwhile) }
    }

    /// Copies `src` to the name `dst` without any diagnostic.
    pub(crate) fn expect_copy(
        &self,
        src: &Path,
        dst: &Path,
        options: &Options,
        what: impl std::fmt::Display,
    ) {
        let outcome = copy_exactly(src, dst, options, self);
        assert_eq!((outcome.failures, self.reported()), (0, vec![]), "{what}");
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
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        self.interrupts_at.is_some_and(|at| asked >= at)
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
        Request { sources: vec![src.into()], destination: Destination::Exact(dst.into()) };
    tree::copy(&request, options, recorder)
}

/// Copies `sources` into the directory `dir`.
pub(crate) fn copy_into(
    sources: &[PathBuf],
    dir: &Path,
    options: &Options,
    recorder: &Recorder<'_>,
) -> Outcome {
    let sources = sources.iter().map(Into::into).collect();
    let request = Request { sources, destination: Destination::Directory(dir.into()) };
    tree::copy(&request, options, recorder)
}

/// Copies `src` to `dst` without any diagnostic.
pub(crate) fn copy_ok(src: &Path, dst: &Path, options: &Options) -> Vec<Receipt> {
    let recorder = Recorder::default();
    recorder.expect_copy(src, dst, options, dst.display());
    recorder.receipts.into_inner().expect("no test panics while it holds the lock")
}

/// A new directory, and the paths of names in it.
pub(crate) fn home() -> (tempfile::TempDir, impl Fn(&str) -> PathBuf + Sync) {
    let dir = tempfile::tempdir().expect("created");
    let path = dir.path().to_owned();
    (dir, move |name: &str| path.join(name))
}

/// Makes files in `top`, and the directories above them.
pub(crate) fn make_files(top: &Path, names: &[&str], content: impl AsRef<[u8]>) {
    for path in names.iter().map(|name| top.join(name)) {
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("created");
        std::fs::write(path, &content).expect("written");
    }
}

/// Afterwards all files are older than a run, by the coarse clock of the kernel.
pub(crate) fn let_clock_tick() {
    let now = || rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    let before = now();
    while now() == before {
        std::thread::yield_now();
    }
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
