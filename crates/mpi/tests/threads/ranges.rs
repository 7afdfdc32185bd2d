//! Ranks copy ranges of one large file.

use std::fs::{File, create_dir, write};
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use haulage::events::Diagnostic;
use haulage::options::{Destination, Options, Request};
use rustix::io::Errno;
use testfs::{Costs, FuseFs, Lies, random_bytes};

use crate::common::{assert_equal, scratch};
use crate::{Done, Threads, failures, place, run, run_between, with_jobs};

const MIB: u64 = 1 << 20;

/// Copies `src` with so many ranks. Returns what each has done, and the exit status of rank 0.
fn copy(ranks: u32, paths: (&Path, &Path), options: &Options) -> (Vec<Arc<Done>>, u8) {
    let done: Vec<Arc<Done>> = (0..ranks).map(|_| Arc::new(quiet())).collect();
    let status = run(&done, &request(paths), options);
    (done, status)
}

fn request((src, dst): (&Path, &Path)) -> Request {
    crate::request(&[src], Destination::Last(dst.into()))
}

/// A rank without receipts.
fn quiet() -> Done {
    Done { without_receipts: true, ..Done::default() }
}

/// Calls `change` in another thread once a rank has created `file`, and copies with a rank for each of `done`.
/// The ranks get no messages between the two, such as the offer of ranges. Returns the exit status of rank 0.
fn run_with_change(
    done: &[Arc<Done>],
    paths: (&Path, &Path),
    file: PathBuf,
    change: impl FnOnce() + Send + 'static,
) -> u8 {
    let has_changed = Arc::new(AtomicBool::new(false));
    let (copied, changed) = (file.clone(), has_changed.clone());
    let changing = std::thread::spawn(move || {
        let until = Instant::now() + Duration::from_secs(60);
        while !copied.exists() && Instant::now() < until {
            std::thread::yield_now();
        }
        change();
        changed.store(true, Ordering::Relaxed);
    });
    let is_held = Arc::new(move || !has_changed.load(Ordering::Relaxed) && file.exists());
    let options = Options { limit_rate: NonZeroU64::new(600 << 20), ..with_jobs(1) };
    let mut ranks = Threads::connected(done.len().try_into().expect("few ranks"));
    ranks.iter_mut().for_each(|rank| rank.is_held = Some(is_held.clone()));
    let status = run_between(ranks, done, &request(paths), &options);
    changing.join().expect("joined");
    status
}

fn moved(done: &[Arc<Done>]) -> Vec<u64> {
    done.iter().map(|rank| rank.moved_bytes.load(Ordering::Relaxed)).collect()
}

/// A file of `bytes` whose data differs from block to block.
fn make_dense(path: &Path, bytes: u64) {
    let file = File::create(path).expect("created");
    let piece = random_bytes(1 << 20, 7);
    let mut at = 0;
    while at < bytes {
        let len = usize::try_from(MIB.min(bytes - at)).expect("small");
        file.write_all_at(&piece[..len], at).expect("written");
        file.write_all_at(&at.to_le_bytes()[..len.min(8)], at).expect("written");
        at += MIB;
    }
}

/// A file with 4 MiB of data in each 20 MiB.
fn make_sparse(path: &Path, bytes: u64) {
    let file = File::create(path).expect("created");
    file.set_len(bytes).expect("length set");
    let mut piece = random_bytes(4 << 20, 3);
    for at in (3 * MIB..bytes - 4 * MIB).step_by(20 << 20) {
        piece[..8].copy_from_slice(&at.to_le_bytes());
        file.write_all_at(&piece, at).expect("written");
    }
}

/// A tree with one large file.
fn make_tree(src: &Path, make: fn(&Path, u64), bytes: u64) {
    create_dir(src).expect("created");
    make(&src.join("large"), bytes);
}

/// How many ranks have moved data.
fn at_work(done: &[Arc<Done>]) -> usize {
    moved(done).into_iter().filter(|&bytes| bytes > 0).count()
}

#[test]
fn ranks_copy_ranges_of_one_file() {
    for (ranks, jobs, make, bytes) in [
        (2, 1, make_dense as fn(&Path, u64), 64 * MIB + 1),
        (3, 2, make_sparse, 200 * MIB + 5),
        (4, 1, make_dense, 130 * MIB),
        (7, 1, make_sparse, 300 * MIB),
    ] {
        let shown = format!("{ranks} ranks, {jobs} workers, {bytes} bytes");
        let (_dir, src, dst) = place();
        make_tree(&src, make, bytes);
        let done: Vec<Arc<Done>> = (0..ranks).map(|_| Arc::default()).collect();
        let status = run(&done, &request((&src, &dst)), &with_jobs(jobs));
        assert_eq!((failures(&done), status), (vec![], 0), "{shown}");
        assert_equal(&src, &dst, &shown);
        let blocks = |path: &Path| path.join("large").metadata().expect("looked at").blocks();
        assert!(blocks(&dst) <= blocks(&src), "{shown}: holes are kept");
        assert!(at_work(&done) > 1, "{shown}: one rank has copied all");
        let receipts: Vec<_> = done.iter().flat_map(|rank| rank.receipts().clone()).collect();
        assert_eq!(receipts.len(), 2, "{shown}: the file and its directory");
        let file = receipts.iter().find(|receipt| receipt.dst.ends_with("large")).expect("found");
        assert_eq!(file.data_bytes + file.hole_bytes, bytes, "{shown}");
    }
}

#[test]
fn an_operand_that_is_a_file_is_shared_as_well() {
    let (dir, src, dst) = place();
    make_dense(&src, 130 * MIB);
    for options in [
        with_jobs(1),
        Options { atomic: true, ..with_jobs(2) },
        Options { atomic: true, resume: true, ..with_jobs(1) },
        Options { verify: true, ..with_jobs(1) },
    ] {
        let (done, status) = copy(3, (&src, &dst), &options);
        assert_eq!((failures(&done), status), (vec![], 0), "{options:?}");
        assert_equal(&src, &dst, "an operand");
        assert!(at_work(&done) > 1, "{options:?}");
        assert_eq!(testfs::names_in(dir.path()), ["dst", "src"], "no temporary stays");
        std::fs::remove_file(&dst).expect("removed");
    }
}

#[test]
fn ranks_that_all_own_files_help_each_other() {
    let (_dir, src, dst) = place();
    create_dir(&src).expect("created");
    for number in 0..6 {
        make_sparse(&src.join(number.to_string()), (66 + number * 14) * MIB);
    }
    // Names of one file are copied by one rank, and wait for it on the others.
    std::fs::hard_link(src.join("5"), src.join("again")).expect("linked");
    for verify in [false, true] {
        let options = Options { verify, ..with_jobs(1) };
        let (done, status) = copy(4, (&src, &dst), &options);
        assert_eq!((failures(&done), status), (vec![], 0), "verify: {verify}");
        assert_equal(&src, &dst, "many large files");
        assert!(at_work(&done) > 1, "verify: {verify}");
        std::fs::remove_dir_all(&dst).expect("removed");
    }
}

#[test]
fn a_rank_writes_to_no_other_file_than_the_owner() {
    let dir = scratch();
    let path = |name: &str| dir.path().join(name);
    make_tree(&path("src"), make_dense, 160 * MIB);
    create_dir(path("outside")).expect("created");
    let victim = "what nobody may touch".repeat(1 << 10);
    write(path("outside/large"), &victim).expect("written");
    // Between the offer and its arrival, another process moves the copy away.
    let [dst, moved, outside] = [path("dst"), path("moved"), path("outside")];
    let done = [(); 3].map(|()| Arc::new(quiet()));
    run_with_change(&done, (&path("src"), &path("dst")), dst.join("large"), move || {
        std::fs::rename(&dst, moved).expect("moved");
        std::os::unix::fs::symlink(outside, dst).expect("linked");
    });
    let found = std::fs::read(path("outside/large")).expect("read");
    assert!(found == victim.as_bytes(), "a file outside was written to");
    assert_equal(&path("src/large"), &path("moved/large"), "the owner copies it");
    assert_eq!(at_work(&done), 1, "nobody else writes to it");
}

#[test]
fn a_source_that_changed_is_copied_by_its_owner() {
    let (_dir, src, dst) = place();
    make_tree(&src, make_dense, 160 * MIB);
    let large = src.join("large");
    let done = [(); 2].map(|()| Arc::new(quiet()));
    let status = run_with_change(&done, (&src, &dst), dst.join("large"), move || {
        let file = File::options().write(true).open(large).expect("opened");
        file.set_modified(SystemTime::UNIX_EPOCH).expect("time set");
    });
    assert_eq!(status, 0);
    assert_eq!(failures(&done), [Diagnostic::Changed { src: src.join("large") }]);
    assert_eq!(at_work(&done), 1, "the other rank does not copy another version");
}

/// Copies 140 MiB into the directory `store`, with an error. Returns what the ranks have done.
fn copy_into(store: &Path, options: &Options) -> Vec<Arc<Done>> {
    let dir = scratch();
    make_dense(&dir.path().join("large"), 140 * MIB);
    let (done, status) = copy(3, (&dir.path().join("large"), &store.join("dst")), options);
    assert_eq!(status, 1);
    done
}

fn assert_told_once(failures: &[Diagnostic]) {
    let is_full =
        |failure: &&Diagnostic| matches!(failure, Diagnostic::Failed { errno: Errno::NOSPC, .. });
    assert_eq!(failures.iter().filter(is_full).count(), 1, "{failures:?}");
    assert!(failures.len() <= 2, "{failures:?}");
}

#[test]
fn a_range_that_fails_is_told_once_and_the_file_fails() {
    let faults = Lies { write_error: Some((70 * MIB, Errno::NOSPC)), ..Lies::default() };
    let Some(store) = FuseFs::with_source(Vec::new(), faults) else { return };
    let failures = failures(&copy_into(store.path(), &with_jobs(1)));
    assert_told_once(&failures);
    assert!(failures.iter().any(|failure| matches!(failure, Diagnostic::Incomplete { .. })));
    let bytes = store.path().join("dst").metadata().expect("looked at").len();
    assert!(bytes <= 70 * MIB, "{bytes} bytes stay, with a gap");
}

#[test]
fn a_full_disk_is_told_once_by_all_ranks_that_meet_it() {
    let Some(store) = FuseFs::mount(Costs::default()) else { return };
    store.lie(Lies { full_at_write: Some(101), ..Lies::default() });
    let failures = failures(&copy_into(store.path(), &Options { atomic: true, ..with_jobs(1) }));
    assert_told_once(&failures);
    assert_eq!(testfs::names_in(store.path()), Vec::<String>::new(), "nothing stays");
}

#[test]
fn a_wrong_byte_is_noticed_by_the_ranks_that_verify() {
    for at in [3 * MIB, 132 * MIB + 77] {
        let faults = Lies { wrong_byte_at: Some(at), ..Lies::default() };
        let options = Options { verify: true, ..with_jobs(1) };
        let Some(store) = FuseFs::with_source(Vec::new(), faults) else { return };
        let done = copy_into(store.path(), &options);
        let failures = failures(&done);
        let [Diagnostic::Differs { at: found, .. }] = failures[..] else { panic!("{failures:?}") };
        assert_eq!(found, at);
        assert!(at_work(&done) > 1, "{at}");
    }
}

#[test]
fn an_interrupted_copy_goes_on_where_nothing_is_missing() {
    let (dir, src, dst) = place();
    let bytes = 200 * MIB;
    make_dense(&src, bytes);
    let options = Options { atomic: true, resume: true, ..with_jobs(1) };
    let is_past = Arc::new(AtomicBool::new(false));
    let quiet = || Done { is_past_first_range: Some(is_past.clone()), ..quiet() };
    let done = [(); 3].map(|()| Arc::new(quiet()));
    let status = run(&done, &request((&src, &dst)), &options);
    assert_eq!(
        (failures(&done), status),
        (vec![Diagnostic::InterruptedBefore { dst: dst.clone() }], 1)
    );
    assert!(!dst.exists());
    let (again, status) = copy(3, (&src, &dst), &options);
    assert_eq!((failures(&again), status), (vec![], 0));
    assert_equal(&src, &dst, "after the second run");
    let moved: Vec<u64> = moved(&again);
    assert!(moved.iter().sum::<u64>() < bytes, "{moved:?}: all was copied again");
    assert_eq!(testfs::names_in(dir.path()), ["dst", "src"]);
}

#[test]
fn an_interrupted_file_ends_after_what_is_complete() {
    let (_dir, src, dst) = place();
    make_dense(&src, 200 * MIB);
    let options = Options { limit_rate: NonZeroU64::new(150 << 20), ..with_jobs(1) };
    let done = [0, 1, 2].map(|rank| {
        let stops_after_bytes = (rank == 1).then_some(20 * MIB);
        Arc::new(Done { stops_after_bytes, ..quiet() })
    });
    let status = run(&done, &request((&src, &dst)), &options);
    let failures = failures(&done);
    let [Diagnostic::Interrupted { bytes, .. }] = failures[..] else { panic!("{failures:?}") };
    assert_eq!((dst.metadata().expect("looked at").len(), status), (bytes, 1));
    let copied = std::fs::read(&dst).expect("read");
    let all = std::fs::read(&src).expect("read");
    assert!(all.starts_with(&copied), "there is no gap");
}
