//! Files that are created in batches end like files that are created one by one.

use std::fs::{create_dir, create_dir_all, read, read_dir, remove_file, write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, Once};

use testfs::{Aspects, Tree, assert_equal_trees, each_fs, random_bytes};
use tree::{Diagnostic, Options};

use crate::recorder::{Recorder, copy_exactly};
use crate::workers::with_jobs;

/// Enough for batches, which start when there are several workers.
const FILES: usize = 200;

fn make_files(dir: &Path) {
    create_dir_all(dir).expect("created");
    for number in 0..FILES {
        write(dir.join(format!("f{number}")), random_bytes(900, number as u64)).expect("written");
    }
}

#[test]
fn an_interrupt_leaves_no_empty_file() {
    each_fs(|kind, dir| {
        let src = dir.join("s");
        make_files(&src);
        for at in (0..).step_by(13) {
            let dst = dir.join(format!("t{at}"));
            let interrupts_at = Some(at);
            let recorder = Recorder { interrupts_at, ..Recorder::without_receipts(|| ()) };
            let options = with_jobs(2, Options::archive());
            let outcome = copy_exactly(&src, &dst, &options, &recorder);
            let mut partial = Vec::new();
            let mut whole = 0;
            for entry in read_dir(&dst).into_iter().flatten() {
                let path = entry.expect("an entry").path();
                let source = src.join(path.file_name().expect("its name"));
                let is_whole = read(&path).expect("read") == read(source).expect("read");
                if is_whole { whole += 1 } else { partial.push(path) }
            }
            let of = format!("{kind}, asked {at} times: {partial:?}");
            if whole == FILES {
                assert!(at > FILES, "{of}");
                return;
            }
            let reported_paths = recorder.reported().into_iter().filter_map(|diagnostic| {
                let Diagnostic::Interrupted { dst, .. } = diagnostic else { return None };
                Some(dst)
            });
            // One for each worker.
            assert!(partial.len() <= 2, "{of}");
            partial.sort();
            let mut reported_paths: Vec<_> = reported_paths.collect();
            reported_paths.sort();
            assert_eq!(reported_paths, partial, "{of}");
            assert_eq!(outcome.failures, partial.len() as u64, "{of}");
        }
    });
}

#[test]
fn a_file_that_became_a_directory_is_entered_and_later_files_are_copied() {
    each_fs(|kind, dir| {
        for jobs in [1, 2, 3] {
            let (src, dst) = (dir.join(format!("s{jobs}")), dir.join(format!("t{jobs}")));
            make_files(&src);
            let swap = Once::new();
            // The names were listed before the first is copied.
            let recorder = Recorder::without_receipts(|| {
                swap.call_once(|| {
                    for number in 0..FILES {
                        let path = src.join(format!("f{number}"));
                        if number % 7 == 3 && !dst.join(format!("f{number}")).exists() {
                            remove_file(&path).expect("a source that nobody has opened");
                            create_dir(&path).expect("created");
                            write(path.join("in it"), "x").expect("written");
                        }
                    }
                });
            });
            // A clone does not call the observer before it is done.
            let options = Options { reflink: tree::Reflink::Never, ..Options::archive() };
            let what = format!("{kind}, {jobs}");
            recorder.expect_copy(&src, &dst, &with_jobs(jobs, options), &what);
            // The source directory was changed after it was looked at.
            let aspects = Aspects { mtimes: false, ..Aspects::ALL };
            assert_equal_trees(&src, &dst, aspects, &what);
            let entered = (0..FILES).filter(|number| dst.join(format!("f{number}")).is_dir());
            assert!(entered.count() > 3, "{what}");
        }
    });
}

#[test]
fn a_file_that_cannot_be_created_is_reported_and_later_files_are_copied() {
    each_fs(|kind, dir| {
        let (src, dst) = (dir.join("s"), dir.join("t"));
        make_files(&src);
        let taken = Once::new();
        let recorder = Recorder::without_receipts(|| {
            taken.call_once(|| {
                for number in 0..FILES {
                    let _ = std::fs::File::create_new(dst.join(format!("f{number}")));
                }
            });
        });
        let options = Options { reflink: tree::Reflink::Never, ..Options::archive() };
        let outcome = copy_exactly(&src, &dst, &with_jobs(2, options), &recorder);
        let reported = recorder.reported();
        assert_eq!(outcome.failures, reported.len() as u64, "{kind}: {reported:?}");
        let mut failed = 0;
        for number in 0..FILES {
            let name = format!("f{number}");
            let copy = read(dst.join(&name)).expect("read");
            if copy == read(src.join(&name)).expect("read") {
                continue;
            }
            // A file of another process is kept.
            assert_eq!(copy, b"", "{kind}: {name}");
            let path = dst.join(&name);
            let is_it = |reported: &&Diagnostic| {
                matches!(reported, Diagnostic::Failed { path: shown, errno, .. }
                    if *shown == path && errno.raw_os_error() == 17)
            };
            assert_eq!(reported.iter().filter(is_it).count(), 1, "{kind}: {name}: {reported:?}");
            failed += 1;
        }
        assert!(failed > 10 && failed == reported.len(), "{kind}: {failed} of {reported:?}");
    });
}

#[test]
fn a_source_that_is_rewritten_before_its_turn_is_copied_with_its_new_contents() {
    let large = random_bytes(9 << 20, 2);
    each_fs(|kind, dir| {
        // On two file systems early, on the others late.
        let at = [40, 90][kind as usize % 2];
        let (src, dst) = (dir.join("s"), dir.join("t"));
        make_files(&src);
        let (moved, rewritten) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let one = Mutex::new(());
        let recorder = Recorder::without_receipts(|| {
            // The other worker waits after its current file meanwhile.
            let _one = one.lock();
            if moved.fetch_add(1, Ordering::Relaxed) != at {
                return;
            }
            for number in 0..FILES {
                let name = format!("f{number}");
                // Files with data were copied or are being copied.
                let bytes = std::fs::metadata(dst.join(&name)).map_or(0, |copy| copy.len());
                if bytes > 0 {
                    continue;
                }
                let path = src.join(&name);
                let nth = rewritten.fetch_add(1, Ordering::Relaxed);
                match nth % 3 {
                    // It is given to another worker.
                    0 if nth % 30 == 0 => write(&path, &large).expect("written"),
                    0 => write(&path, random_bytes(700_000, 1)).expect("written"),
                    1 => write(&path, "short").expect("written"),
                    _ => {
                        let mode = std::fs::Permissions::from_mode(0o600);
                        std::fs::set_permissions(&path, mode).expect("mode set");
                    }
                }
            }
        });
        let options = Options { reflink: tree::Reflink::Never, ..Options::archive() };
        let outcome = copy_exactly(&src, &dst, &with_jobs(2, options), &recorder);
        let reported = recorder.reported();
        drop(recorder);
        let [from, to] = [&src, &dst].map(|root| Tree::read(root).expect("read"));
        let aspects = Aspects { modes: true, ..Aspects::CONTENT };
        let differs = |path: &&Path| !from.differences_at(&to, path, aspects).is_empty();
        let differ = from.paths().filter(differs).count();
        // One file may have been rewritten while it was read.
        assert!(differ <= 1 && reported.len() <= 2, "{kind}, {at}: {differ}, {reported:?}");
        assert!(outcome.failures <= reported.len() as u64, "{kind}, {at}");
        assert!(rewritten.into_inner() > 5, "{kind}, {at}");
        let is_large = |number: usize| {
            let copy = std::fs::metadata(dst.join(format!("f{number}"))).expect("looked at");
            copy.len() == large.len() as u64
        };
        assert!((0..FILES).any(is_large), "{kind}, {at}");
    });
}
