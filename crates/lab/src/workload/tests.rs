//! For tests: a cell in a directory of its own. Tests of the texts of variants.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::by_name;
use super::interface::{ReadyVariant, Setting, Workload};
use super::scratch_dirs::ScratchDirs;
use crate::clock::Clock;
use crate::definition::cell::{Cell, Destination};
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

    /// Runs a variant that writes a file, which is counted, synced if the cell is durable, and resident as the
    /// cell says. Returns what was measured, also in words for the messages of other claims.
    pub(crate) fn written(&mut self, variant: &str, kind: testfs::FsKind) -> (Measurement, String) {
        let measured = self.run(variant);
        let Cell { destination, durable, file_bytes, .. } = self.cell;
        let what = format!("{kind} {variant} {destination:?}: {measured:?}");
        assert!(measured.verified && measured.counted, "{what}");
        let synced = measured.durable_ns.is_some_and(|ns| ns > measured.elapsed_ns);
        assert_eq!(synced, durable, "{what}");
        let before = measured.dst_resident_bytes_before;
        match destination {
            Destination::Fresh => assert_eq!(before, Some(0), "{what}"),
            Destination::Overwritten => assert!(is_resident(before, file_bytes), "{what}"),
        }
        assert!(is_resident(measured.dst_resident_bytes_after, file_bytes), "{what}");
        (measured, what)
    }

    /// Names in the destination's directory.
    pub(crate) fn left(&self) -> Vec<String> {
        testfs::names_in(self.dirs.dst.path())
    }

    /// Why a variant is refused, when it starts or when it runs.
    pub(crate) fn refusal(&mut self, variant: &str) -> String {
        let started = (self.workload.start)(&self.setting(), variant);
        let run = started.and_then(|mut started| started.run(Clock::default()));
        run.expect_err(variant).refusal().expect("no error")
    }
}

#[test]
fn what_is_no_variant_is_told() {
    for (workload, text, expected) in [
        ("copy", "cp", "no engine is called 'cp'"),
        ("copy", "read_write:0", "'0' is no value for read_write's buffer"),
        ("copy", "sendfile@2", "workers cannot share one file"),
        ("digest", "", "'' is neither read nor mmap"),
        ("digest", "pread:64K,md5", "'pread' is neither"),
        ("digest", "read,md5", "'' is no number of bytes from 1 to 64G, as 4096, 64K or 8M"),
        ("digest", "read:0,md5", "'0' is no number"),
        ("digest", "read:whole,md5", "'whole' is no number"),
        ("digest", "mmap:1000,md5", "'1000' is no multiple of a page"),
        ("digest", "read:64K", "it lacks md5, blake3 or none"),
        ("digest", "read:64K,sha1", "'sha1' is neither a digest nor an option"),
        ("digest", "read:64K,md5,blake3", "'blake3' is one digest or option too many"),
        ("digest", "mmap:8M,md5,populate,populate", "'populate' is one"),
        ("digest", "read:64K,md5,populate", "populate is for mmap"),
        ("read", "read:64K,md5", "the workload digest does"),
        ("create", "read:8K", "'read' is neither write nor mmap"),
        ("create", "write", "'' is no number of bytes"),
        ("create", "write:9", "'9' is no multiple of 8"),
        ("create", "mmap:100", "'100' is no multiple of a page"),
        ("create", "mmap:2G", "'2G' is no number of bytes from 1 to 1G"),
        ("create", "write:8K,populate", "'populate' is no option of write"),
        ("create", "mmap:8K,sequential", "'sequential' is no option of mmap"),
        ("calls", "2G", "is no number of bytes from 1 to 1G"),
        ("send", "reflink", "reflink does not write to sockets"),
        ("send", "memory", "memory does not write to sockets"),
        ("send", "read_write:64K@2", "a stream has one writer at a time"),
        ("send", "mmap:8M,dst", "a socket cannot be mapped"),
        ("receive", "sendfile", "sendfile does not read from sockets"),
        ("receive", "mmap", "mmap does not read from sockets"),
        ("receive", "mmap:8M,dst", "'dst' is no option of mmap"),
        ("receive", "splice:64K@2", "a stream has one reader at a time"),
        ("memory", "memcpy", "no engine is called 'memcpy'"),
        ("memory", "mmap:8M", "mmap copies files"),
        ("memory", "memory:cold", "memory has no option 'cold'; it has window, untouched, offset"),
        ("syscall", "getpid", "'getpid' is no call"),
        ("command", "", "there is no command"),
        ("command", "cp {src}", "{dst} is missing: the destination goes there"),
        ("command", "cp a {dst}", "{src} is missing: the source goes there"),
        ("command", "{src} {dst}", "{src} is missing"),
        ("command", "cp '{src} {dst}", "a quote is not closed"),
    ] {
        let why = (by_name(workload).expect(workload).check)(text).expect_err(text);
        assert!(why.contains(expected), "{workload} '{text}': {why}");
    }
}

/// Whether all of a file is in the page cache but for what the kernel may have taken back
/// meanwhile.
fn is_resident(resident_bytes: Option<u64>, bytes: u64) -> bool {
    resident_bytes.is_some_and(|resident| (bytes / 10 * 9..=bytes).contains(&resident))
}
