//! For tests: a cell in a directory of its own.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::interface::{ReadyVariant, Setting, Workload};
use super::scratch_dirs::ScratchDirs;
use crate::clock::Clock;
use crate::definition::cell::Cell;
use crate::sample::measurement::Measurement;
use crate::scratch::WorkDir;

pub(crate) struct TestCell {
    pub(crate) workload: &'static Workload,
    pub(crate) cell: Cell,
    pub(crate) dirs: ScratchDirs,
    _home: tempfile::TempDir,
    /// Faults and device bytes are counted for the process, so trials go one after another.
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

impl TestCell {
    /// One warm file of `file_bytes`, and a fresh destination.
    pub(crate) fn new(workload: &'static Workload, file_bytes: u64) -> TestCell {
        TestCell::new_in(workload, file_bytes, &std::env::temp_dir())
    }

    pub(crate) fn new_in(workload: &'static Workload, file_bytes: u64, dir: &Path) -> TestCell {
        // A failed test leaves no state behind that matters here.
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let home = tempfile::tempdir_in(dir).expect("created");
        let below = |name| {
            let path = home.path().join(name);
            std::fs::create_dir(&path).expect("made");
            WorkDir::open(&path).expect("opened")
        };
        let dirs = ScratchDirs { src: below("src"), dst: below("dst"), seed: 7 };
        let cell = Cell::plain("part", workload.name, file_bytes);
        TestCell { workload, cell, dirs, _home: home, _alone: alone }
    }

    pub(crate) fn setting(&self) -> Setting<'_> {
        Setting { cell: &self.cell, dirs: &self.dirs, nth: 0 }
    }

    pub(crate) fn started(&self, variant: &str) -> Box<dyn ReadyVariant> {
        assert_eq!((self.workload.check)(variant), Ok(()), "{variant}");
        let started = (self.workload.start)(&self.setting(), variant);
        started.unwrap_or_else(|why| panic!("{variant}: {why:?}"))
    }

    /// Runs a variant twice and returns the second measurement: the leftovers of a first run must
    /// not affect another.
    pub(crate) fn run(&mut self, variant: &str) -> Measurement {
        let mut started = self.started(variant);
        let mut run = || started.run(Clock::default()).expect(variant);
        run();
        let measured = run();
        drop(started);
        assert_eq!(self.left(), Vec::<String>::new(), "{variant} leaves files behind");
        measured
    }

    /// Names in the destination's directory.
    pub(crate) fn left(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dirs.dst.path()).expect("listed");
        entries.map(|entry| entry.expect("listed").file_name().display().to_string()).collect()
    }

    /// Why a variant is refused, when it starts or when it runs.
    pub(crate) fn refusal(&mut self, variant: &str) -> String {
        let started = (self.workload.start)(&self.setting(), variant);
        let run = started.and_then(|mut started| started.run(Clock::default()));
        run.expect_err(variant).refusal().expect("no error")
    }
}

/// Texts that are no variants, each with part of what is said about it.
pub(crate) fn check_refusals(workload: &Workload, cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let why = (workload.check)(text).expect_err("no variant");
        assert!(why.contains(expected), "'{text}': {why}");
    }
}

/// Whether all of a file is in the page cache but for what the kernel may have taken back
/// meanwhile.
pub(crate) fn is_resident(resident_bytes: Option<u64>, bytes: u64) -> bool {
    resident_bytes.is_some_and(|resident| (bytes / 10 * 9..=bytes).contains(&resident))
}
