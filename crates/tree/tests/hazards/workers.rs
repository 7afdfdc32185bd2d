//! Several workers copy a tree as one worker does.

use std::collections::{HashMap, HashSet};
use std::fs::{
    Permissions, create_dir_all, hard_link, metadata, read, remove_dir_all, set_permissions, write,
};
use std::num::NonZeroUsize;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::current;
use std::time::Duration;

use testfs::{Aspects, Tree, assert_equal_trees, each_fs, random_bytes};
use tree::{Diagnostic, ModeRule, Options};

use crate::recorder::{Recorder, copy_exactly, copy_into, copy_ok, home, make_files};

pub(crate) fn with_jobs(jobs: usize, options: Options) -> Options {
    Options { jobs: NonZeroUsize::new(jobs), ..options }
}

/// Files in the flat directory.
const FLAT: usize = 400;

/// An uneven tree: a flat directory, a deep one, many that are nearly empty, and hard links between
/// them.
fn make_tree(root: &Path, random: &mut fastrand::Rng) {
    let mut files = Vec::new();
    let mut at = root.join("deep");
    for level in 0..90 {
        create_dir_all(&at).expect("created");
        files.push(at.join("f"));
        at = at.join(format!("l{level}"));
    }
    create_dir_all(root.join("flat")).expect("created");
    files.extend((0..FLAT).map(|number| root.join(format!("flat/f{number}"))));
    for number in 0..150 {
        let dir = root.join(format!("many/{}/d{number}", number % 7));
        create_dir_all(&dir).expect("created");
        files.extend((0..number % 3).map(|file| dir.join(format!("f{file}"))));
    }
    for (number, file) in files.iter().enumerate() {
        match random.u8(..10) {
            0 if number > 0 => {
                let other = &files[random.usize(..number)];
                // The target may be a symbolic link that does not exist yet.
                let _ = hard_link(other, file);
            }
            1 => symlink("f", file).expect("linked"),
            _ => write(file, random_bytes(random.usize(..5000), number as u64)).expect("written"),
        }
    }
}

#[test]
fn any_number_of_workers_copies_the_same_tree() {
    each_fs(|kind, dir| {
        let src = dir.join("s");
        make_tree(&src, &mut fastrand::Rng::with_seed(3));
        for jobs in [1, 24] {
            let dst = dir.join(format!("t{jobs}"));
            let archive = with_jobs(jobs, Options::archive());
            let what = format!("{kind}, {jobs}");
            // Without receipts files are created in batches.
            Recorder::without_receipts(|| ()).expect_copy(&src, &dst, &archive, &what);
            assert_equal_trees(&src, &dst, Aspects::ALL, &what);
            remove_dir_all(&dst).expect("removed");
            let receipts = copy_ok(&src, &dst, &archive);
            assert_equal_trees(&src, &dst, Aspects::ALL, &what);
            // Every entry once.
            let entries = receipts.iter().map(|receipt| &receipt.src).collect::<HashSet<_>>();
            assert_eq!(entries.len(), receipts.len(), "{what}");
            // Once more, to existing names.
            let mut again = Options { recursive: true, ..Options::archive() };
            again.preserve = tree::Preserve { links: true, ..tree::Preserve::default() };
            copy_ok(&src, &dst, &with_jobs(jobs, again));
            let aspects = Aspects { mtimes: false, ..Aspects::ALL };
            assert_equal_trees(&src, &dst, aspects, &what);
        }
    });
}

#[test]
fn a_flat_directory_is_split_among_all_workers() {
    let (_dir, at) = home();
    let (src, dst) = (at("s"), at("t"));
    create_dir_all(&src).expect("created");
    for number in 0..2000 {
        write(src.join(format!("f{number}")), "x").expect("written");
    }
    let shares = Mutex::new(HashMap::new());
    let recorder = Recorder::without_receipts(|| {
        let mut shares = shares.lock().expect("locked");
        let share = shares.entry(current().id()).or_insert(0);
        *share += 1;
        let has_enough = *share >= 200;
        let some_have_less = shares.len() < 4 || shares.values().any(|&share| share < 200);
        drop(shares);
        // On a busy machine a thread starts late: the others leave it enough.
        let is_ahead = has_enough && some_have_less;
        std::thread::sleep(Duration::from_millis(if is_ahead { 20 } else { 1 }));
    });
    recorder.expect_copy(&src, &dst, &with_jobs(4, Options::archive()), "");
    drop(recorder);
    let shares = shares.into_inner().expect("a map");
    assert_eq!(shares.len(), 4, "{shares:?}");
    assert!(shares.values().all(|&files| files >= 200), "{shares:?}");
    assert_eq!(std::fs::read_dir(&dst).expect("listed").count(), 2000);
}

#[test]
fn a_large_file_is_shared_with_idle_workers() {
    each_fs(|kind, dir| {
        let (src, dst) = (dir.join("s"), dir.join("t"));
        write(&src, random_bytes(40 << 20, 3)).expect("written");
        let options = Options { reflink: tree::Reflink::Never, ..Options::default() };
        let receipts = copy_ok(&src, &dst, &with_jobs(3, options));
        // The variant depends on the profile; three workers share the file.
        let workers = receipts[0].attempts.iter().map(|attempt| attempt.variant.workers);
        assert_eq!(workers.collect::<Vec<_>>(), [3], "{kind}: {:?}", receipts[0].attempts);
        assert!(read(&src).expect("read") == read(&dst).expect("read"), "{kind}");
    });
}

#[test]
fn a_few_slow_files_trigger_the_deferred_initialisation() {
    let (_dir, at) = home();
    let (src, dst) = (at("s"), at("t"));
    make_files(&src, &["f0", "f1", "f2", "f3", "f4", "f5"], "x");
    for without_receipts in [false, true] {
        let _ = remove_dir_all(&dst);
        let mut recorder =
            Recorder::with_meanwhile(|| std::thread::sleep(Duration::from_millis(5)));
        recorder.without_receipts = without_receipts;
        recorder.expect_copy(&src, &dst, &with_jobs(2, Options::archive()), without_receipts);
        assert!(recorder.deferred_init_called.load(Ordering::Relaxed), "{without_receipts}");
    }
}

/// All destinations are one file, by hard and symbolic links.
#[test]
fn files_with_one_destination_do_not_mix() {
    const NAMES: usize = 60;
    const BYTES: usize = 300_000;
    let (_dir, at) = home();
    let (src, dst) = (at("s"), at("t"));
    create_dir_all(&src).expect("created");
    let mode_of = |number: usize| if number.is_multiple_of(2) { 0o640 } else { 0o604 };
    let set_mode = |file: &Path, number| {
        set_permissions(file, Permissions::from_mode(mode_of(number))).expect("mode set");
    };
    for number in 0..NAMES {
        let fill = u8::try_from(number).expect("few names");
        let file = src.join(format!("f{number}"));
        // Long files mix their data, and short ones their attributes.
        let bytes = if number < NAMES / 3 { BYTES } else { 5000 };
        write(&file, vec![fill; bytes - number]).expect("written");
        set_mode(&file, number);
    }
    let mut options = Options { recursive: true, ..Options::default() };
    options.preserve.mode = ModeRule::Preserve;
    for round in 0..40 {
        let _ = remove_dir_all(&dst);
        make_files(&dst, &["f0"], "old");
        for number in 1..NAMES {
            let name = dst.join(format!("f{number}"));
            match number % 3 {
                0 => symlink("f0", &name).expect("linked"),
                _ => hard_link(dst.join("f0"), &name).expect("linked"),
            }
        }
        set_mode(&dst.join("f0"), round);
        copy_ok(&src, &dst, &with_jobs(8, options.clone()));
        let copy = read(dst.join("f0")).expect("read");
        let last = usize::from(copy[0]);
        assert!(copy.iter().all(|byte| *byte == copy[0]), "{round}");
        assert_eq!(copy, read(src.join(format!("f{last}"))).expect("read"), "{round}: {last}");
        let found = metadata(dst.join("f0")).expect("looked at");
        let (mode, names) = (found.mode() & 0o777, found.nlink());
        assert_eq!(mode, mode_of(last), "{round}: {mode:o} with the data of {last}");
        assert_eq!(names, u64::try_from(NAMES - NAMES / 3 + 1).expect("few names"), "{round}");
    }
}

#[test]
fn a_tree_is_not_copied_into_itself_by_any_worker() {
    let (_dir, at) = home();
    let src = at("s");
    make_tree(&src, &mut fastrand::Rng::with_seed(4));
    let dst = src.join("many/0/copy");
    let recorder = Recorder::default();
    let outcome = copy_exactly(&src, &dst, &with_jobs(8, Options::archive()), &recorder);
    assert_eq!(outcome.failures, 1);
    assert!(matches!(recorder.reported()[..], [Diagnostic::IntoItself { .. }]));
    assert!(dst.join("many/0").exists());
    assert!(!dst.join("many/0/copy").exists());
}

#[test]
fn each_failure_is_reported_once_and_stops_no_worker() {
    let (_dir, at) = home();
    let (src, dst) = (at("s"), at("t"));
    make_tree(&src, &mut fastrand::Rng::with_seed(5));
    // A directory does not replace a file, nor a file a directory.
    create_dir_all(dst.join("flat")).expect("created");
    create_dir_all(dst.join("many")).expect("created");
    write(dst.join("many/3"), "in the way").expect("written");
    for number in (0..FLAT).step_by(10) {
        create_dir_all(dst.join(format!("flat/f{number}"))).expect("created");
    }
    let recorder = Recorder::default();
    let outcome = copy_exactly(&src, &dst, &with_jobs(8, Options::archive()), &recorder);
    let reported = recorder.reported();
    assert_eq!(outcome.failures, FLAT as u64 / 10 + 1);
    assert_eq!(reported.len(), FLAT / 10 + 1);
    assert!(
        ["many/6/d6", "flat/f399"].iter().all(|name| dst.join(name).symlink_metadata().is_ok())
    );
}

#[test]
fn an_interrupt_stops_every_worker_and_entered_directories_are_finished() {
    let (_dir, at) = home();
    let (src, dst) = (at("s"), at("t"));
    make_tree(&src, &mut fastrand::Rng::with_seed(6));
    let recorder = Recorder { interrupts_at: Some(500), ..Recorder::default() };
    let outcome = copy_exactly(&src, &dst, &with_jobs(4, Options::archive()), &recorder);
    assert_eq!(outcome.failures, u64::try_from(recorder.reported().len()).expect("few"));
    let [from, to] = [&src, &dst].map(|root| Tree::read(root).expect("read"));
    assert!(to.paths().count() < from.paths().count(), "it was stopped");
    let aspects = Aspects { modes: true, mtimes: true, ..Aspects::CONTENT };
    for path in to.paths().filter(|path| dst.join(path).is_dir()) {
        assert_eq!(from.differences_at(&to, path, aspects), [""; 0], "{}", path.display());
    }
}

#[test]
fn many_operands_are_copied_in_parallel() {
    let (_dir, at) = home();
    let names: Vec<_> = (0..100).map(|number| at(&number.to_string())).collect();
    names.iter().for_each(|name| write(name, "content").expect("written"));
    create_dir_all(at("t")).expect("created");
    let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let recorder = Recorder::with_meanwhile(|| {
        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        // On a busy machine the second thread starts late.
        let is_alone = most.load(Ordering::SeqCst) == 1;
        std::thread::sleep(Duration::from_millis(if is_alone { 50 } else { 1 }));
        now.fetch_sub(1, Ordering::SeqCst);
    });
    let outcome = copy_into(&names, &at("t"), &with_jobs(4, Options::default()), &recorder);
    assert_eq!((outcome.failures, recorder.reported()), (0, vec![]));
    assert_eq!(std::fs::read_dir(at("t")).expect("listed").count(), 100);
    let most = most.load(Ordering::SeqCst);
    assert!((2..=4).contains(&most), "{most} at once");
}
