//! Sources that change while they are copied, or whose reported length is wrong.

use std::fs::{File, OpenOptions, metadata, read, write};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use testfs::random_bytes;
use tree::{Diagnostic, Options};

use crate::recorder::{Recorder, copy_exactly, copy_ok};

/// More than one piece.
const LONG_BYTES: usize = (64 << 20) + 12_345;

#[test]
fn a_zero_from_a_copy_call_is_not_taken_for_the_end() {
    let dir = tempfile::tempdir().expect("created");
    for file in ["/proc/version", "/proc/cmdline", "/sys/kernel/mm/transparent_hugepage/enabled"] {
        if !std::path::Path::new(file).exists() {
            testfs::skip(&testfs::test_name(), &format!("no {file}"));
            continue;
        }
        let dst = dir.path().join("copy");
        copy_ok(file.as_ref(), &dst, &Options::default());
        assert_eq!(read(&dst).expect("read"), read(file).expect("read"), "{file}");
    }
}

#[test]
fn a_source_that_shrinks_is_reported_with_the_true_count() {
    let dir = tempfile::tempdir().expect("created");
    let (src, dst) = (dir.path().join("src"), dir.path().join("dst"));
    write(&src, random_bytes(LONG_BYTES, 1)).expect("a source");
    let shorter = 3 << 20;
    let recorder = Recorder::with_meanwhile(|| {
        let file = OpenOptions::new().write(true).open(&src).expect("opened");
        file.set_len(shorter).expect("it shrinks");
    });
    let outcome = copy_exactly(&src, &dst, &Options::default(), &recorder);
    assert_eq!(outcome.failures, 1);
    let copied = metadata(&dst).expect("looked at").len();
    let bytes_expected = LONG_BYTES as u64;
    assert_eq!(
        recorder.reported(),
        [Diagnostic::Shrank { src: src.clone(), bytes: copied, bytes_expected }]
    );
    assert!(copied < bytes_expected);
}

#[test]
fn a_source_that_keeps_growing_ends() {
    let dir = tempfile::tempdir().expect("created");
    let (src, dst) = (dir.path().join("src"), dir.path().join("dst"));
    write(&src, random_bytes(1 << 20, 2)).expect("a source");
    let more = vec![b'x'; 1 << 20];
    let recorder = Recorder::with_meanwhile(|| {
        let mut file = OpenOptions::new().append(true).open(&src).expect("opened");
        file.write_all(&more).expect("it grows");
    });
    let outcome = copy_exactly(&src, &dst, &Options::default(), &recorder);
    assert_eq!(outcome.failures, 0, "GNU cp does not fail either");
    assert_eq!(recorder.reported(), [Diagnostic::Changed { src: src.clone() }]);
    assert!(metadata(&dst).expect("looked at").len() <= 2 << 20);
    let receipts = recorder.receipts.lock().expect("receipts");
    assert!(receipts[0].changed);
}

#[test]
fn a_source_that_is_written_to_is_reported() {
    let dir = tempfile::tempdir().expect("created");
    let (src, dst) = (dir.path().join("src"), dir.path().join("dst"));
    write(&src, random_bytes(1 << 20, 3)).expect("a source");
    let recorder = Recorder::with_meanwhile(|| {
        let file = OpenOptions::new().write(true).open(&src).expect("opened");
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).expect("it is touched");
    });
    let _ = copy_exactly(&src, &dst, &Options::default(), &recorder);
    assert_eq!(recorder.reported(), [Diagnostic::Changed { src: src.clone() }]);
}

#[test]
fn a_read_error_is_not_taken_for_the_end() {
    let dir = tempfile::tempdir().expect("created");
    let dst = dir.path().join("dst");
    // Address 0 of a process is never mapped.
    let src = std::path::Path::new("/proc/self/mem");
    let recorder = Recorder::default();
    let outcome = copy_exactly(src, &dst, &Options::default(), &recorder);
    assert!(outcome.failures > 0);
    let reported = recorder.reported();
    assert!(
        matches!(
            &reported[0],
            Diagnostic::Failed { action: tree::Action::Read, path, errno: tree::Errno::IO }
                if path == src
        ),
        "{reported:?}"
    );
    assert_eq!(reported[1], Diagnostic::Incomplete { dst, bytes: 0, bytes_expected: 0 });
}

#[test]
fn an_interrupted_copy_names_the_partial_file_and_finishes_directories() {
    let dir = tempfile::tempdir().expect("created");
    let (src, dst) = (dir.path().join("src"), dir.path().join("dst"));
    std::fs::create_dir(&src).expect("created");
    write(src.join("long"), random_bytes(LONG_BYTES, 4)).expect("a source");
    let times = std::fs::FileTimes::new().set_modified(std::time::SystemTime::UNIX_EPOCH);
    File::open(&src).and_then(|dir| dir.set_times(times)).expect("an old directory");
    let interrupt = AtomicBool::new(false);
    struct Interrupted<'i>(Recorder<'i>, &'i AtomicBool);
    impl tree::Observer for Interrupted<'_> {
        fn diagnose(&self, diagnostic: Diagnostic) {
            self.0.diagnose(diagnostic);
        }
        fn moved(&self, _: &engines::Variant, _: engines::Span, moved: engines::Moved) {
            self.1.fetch_or(moved.bytes > 0, Ordering::Relaxed);
        }
        fn interrupted(&self) -> bool {
            self.1.load(Ordering::Relaxed)
        }
    }
    let observer = Interrupted(Recorder::default(), &interrupt);
    let request = tree::Request {
        sources: vec![src.clone().into()],
        destination: tree::Destination::Exact(dst.clone().into()),
    };
    let outcome = tree::copy(&request, &Options::archive(), &observer);
    assert!(outcome.failures > 0);
    let reported = observer.0.reported();
    assert!(
        matches!(&reported[0], Diagnostic::Interrupted { dst: partial, bytes }
            if *partial == dst.join("long") && *bytes > 0 && *bytes < LONG_BYTES as u64),
        "{reported:?}"
    );
    let modified = metadata(&dst).and_then(|dir| dir.modified()).expect("its time");
    assert_eq!(modified, std::time::SystemTime::UNIX_EPOCH);
}
