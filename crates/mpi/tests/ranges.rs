//! Ranks that are threads of this process copy ranges of one large file.

mod in_process;

use std::fs::{File, create_dir, write};
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use haulage::events::{Diagnostic, Observer, Receipt};
use haulage::options::{Destination, Options, Request};
use haulage_mpi::transport::Transport;
use in_process::{Threads, run_ranks};
use rustix::io::Errno;
use testfs::{Aspects, Costs, FuseFs, Lies, assert_equal_trees, random_bytes};

const MIB: u64 = 1 << 20;

/// What one rank has done.
#[derive(Default)]
struct Done {
    receipts: Mutex<Vec<Receipt>>,
    failed: Mutex<Vec<Diagnostic>>,
    moved_bytes: AtomicU64,
    keeps_receipts: bool,
    stops_after_bytes: Option<u64>,
}

impl Observer for Done {
    fn diagnose(&self, diagnostic: Diagnostic) {
        self.failed.lock().expect("no panic").push(diagnostic);
    }

    fn keeps_receipts(&self) -> bool {
        self.keeps_receipts
    }

    fn finished(&self, receipt: Receipt) {
        self.receipts.lock().expect("no panic").push(receipt);
    }

    fn moved(&self, _: &engines::Variant, _: engines::Span, moved: engines::Moved) {
        self.moved_bytes.fetch_add(moved.bytes, Ordering::Relaxed);
    }

    fn interrupted(&self) -> bool {
        let moved_bytes = self.moved_bytes.load(Ordering::Relaxed);
        self.stops_after_bytes.is_some_and(|bytes| moved_bytes >= bytes)
    }
}

/// A rank whose messages do not arrive as long as `is_held` returns true.
struct Held<H> {
    transport: Threads,
    is_held: H,
}

impl<H: Fn() -> bool> Transport for Held<H> {
    fn rank(&self) -> u32 {
        self.transport.rank()
    }

    fn ranks(&self) -> u32 {
        self.transport.ranks()
    }

    fn host(&self) -> String {
        self.transport.host()
    }

    fn send(&mut self, messages: Vec<(u32, Vec<u8>)>) {
        self.transport.send(messages);
    }

    fn receive(&mut self) -> Option<(u32, Vec<u8>)> {
        if (self.is_held)() { None } else { self.transport.receive() }
    }

    fn abort(&self) -> ! {
        self.transport.abort();
    }
}

/// Copies `src` with so many ranks. Returns what each has done, and the exit status of rank 0.
fn copy(ranks: u32, paths: (&Path, &Path), options: &Options) -> (Vec<Arc<Done>>, u8) {
    let done: Vec<Arc<Done>> = (0..ranks).map(|_| Arc::default()).collect();
    let status = run(&done, paths, options, || false);
    (done, status)
}

/// Copies `src` with a rank for each of `done`, whose messages wait as long as `is_held` returns true.
/// Returns the exit status of rank 0.
fn run(
    done: &[Arc<Done>],
    (src, dst): (&Path, &Path),
    options: &Options,
    is_held: impl Fn() -> bool + Clone + Send + 'static,
) -> u8 {
    let request = Request { sources: vec![src.into()], destination: Destination::Last(dst.into()) };
    let held = |transport| Held { transport, is_held: is_held.clone() };
    let transports =
        Threads::connected(done.len().try_into().expect("few ranks")).into_iter().map(held);
    run_ranks(transports.zip(done.to_vec()), &request, options, |_| true)
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
    let is_held = move || !has_changed.load(Ordering::Relaxed) && file.exists();
    let options = Options { limit_rate: NonZeroU64::new(600 << 20), ..with_jobs(1) };
    let status = run(done, paths, &options, is_held);
    changing.join().expect("no panic");
    status
}

/// A directory in memory, or an ordinary one.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory")
}

fn failures(done: &[Arc<Done>]) -> Vec<Diagnostic> {
    done.iter().flat_map(|rank| rank.failed.lock().expect("no panic").clone()).collect()
}

fn moved(done: &[Arc<Done>]) -> Vec<u64> {
    done.iter().map(|rank| rank.moved_bytes.load(Ordering::Relaxed)).collect()
}

fn with_jobs(jobs: usize) -> Options {
    Options { jobs: jobs.try_into().ok(), ..Options::archive() }
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

fn assert_equal(src: &Path, dst: &Path, shown: &str) {
    assert_equal_trees(src, dst, Aspects::ALL, shown);
}

/// A tree with one large file.
fn make_tree(src: &Path, make: fn(&Path, u64), bytes: u64) {
    create_dir(src).expect("created");
    make(&src.join("large"), bytes);
}

/// How many ranks have moved data.
fn at_work(done: &[Arc<Done>]) -> usize {
    done.iter().filter(|rank| rank.moved_bytes.load(Ordering::Relaxed) > 0).count()
}

#[test]
fn ranks_copy_ranges_of_one_file() {
    for (ranks, jobs, make, bytes) in [
        (2, 1, make_dense as fn(&Path, u64), 64 * MIB + 1),
        (3, 2, make_sparse, 200 * MIB + 5),
        (4, 1, make_dense, 130 * MIB),
        (7, 1, make_sparse, 460 * MIB),
    ] {
        let shown = format!("{ranks} ranks, {jobs} workers, {bytes} bytes");
        let dir = scratch();
        let (src, dst) = (dir.path().join("src"), dir.path().join("dst"));
        make_tree(&src, make, bytes);
        let done: Vec<Arc<Done>> = (0..ranks)
            .map(|_| Arc::new(Done { keeps_receipts: true, ..Done::default() }))
            .collect();
        let status = run(&done, (&src, &dst), &with_jobs(jobs), || false);
        assert_eq!((failures(&done), status), (vec![], 0), "{shown}");
        assert_equal(&src, &dst, &shown);
        let blocks = |path: &Path| path.join("large").metadata().expect("looked at").blocks();
        assert!(blocks(&dst) <= blocks(&src), "{shown}: holes are kept");
        assert!(at_work(&done) > 1, "{shown}: one rank has copied all");
        let receipts = done.iter().flat_map(|rank| rank.receipts.lock().expect("no panic").clone());
        let receipts: Vec<Receipt> = receipts.collect();
        assert_eq!(receipts.len(), 2, "{shown}: the file and its directory");
        let file = receipts.iter().find(|receipt| receipt.dst.ends_with("large")).expect("it");
        assert_eq!(file.data_bytes + file.hole_bytes, bytes, "{shown}");
    }
}

#[test]
fn an_operand_that_is_a_file_is_shared_as_well() {
    let dir = scratch();
    let (src, dst) = (dir.path().join("src"), dir.path().join("dst"));
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
    let dir = scratch();
    let (src, dst) = (dir.path().join("src"), dir.path().join("dst"));
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
    let done = [(); 3].map(|()| Arc::default());
    run_with_change(&done, (&path("src"), &path("dst")), dst.join("large"), move || {
        std::fs::rename(&dst, moved).expect("moved");
        std::os::unix::fs::symlink(outside, dst).expect("linked");
    });
    let found = std::fs::read(path("outside/large")).expect("the file");
    assert!(found == victim.as_bytes(), "a file outside was written to");
    assert_equal(&path("src/large"), &path("moved/large"), "the owner copies it");
    assert_eq!(at_work(&done), 1, "nobody else writes to it");
}

#[test]
fn a_source_that_changed_is_copied_by_its_owner() {
    let dir = scratch();
    let (src, dst) = (dir.path().join("src"), dir.path().join("dst"));
    make_tree(&src, make_dense, 160 * MIB);
    let large = src.join("large");
    let done = [(); 2].map(|()| Arc::default());
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
    let bytes = store.path().join("dst").metadata().expect("a part").len();
    assert!(bytes <= 70 * MIB, "{bytes} bytes stay, with a gap");
}

#[test]
fn a_full_disk_is_told_once_by_all_ranks_that_meet_it() {
    let costs = Costs { full_after_writes: Some(100), ..Costs::default() };
    let Some(store) = FuseFs::mount(costs) else { return };
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
    let dir = scratch();
    let (src, dst) = (dir.path().join("src"), dir.path().join("dst"));
    let bytes = 200 * MIB;
    make_dense(&src, bytes);
    let slow = |rate| Options {
        atomic: true,
        resume: true,
        limit_rate: NonZeroU64::new(rate),
        ..with_jobs(1)
    };
    // Rank 0 is in its second range.
    let stops_after_bytes = Some(40 * MIB);
    let done = [(); 3].map(|()| Arc::new(Done { stops_after_bytes, ..Done::default() }));
    let status = run(&done, (&src, &dst), &slow(600 << 20), || false);
    assert_eq!(
        (failures(&done), status),
        (vec![Diagnostic::InterruptedBefore { dst: dst.clone() }], 1)
    );
    assert!(!dst.exists());
    let (again, status) = copy(3, (&src, &dst), &slow(8 << 30));
    assert_eq!((failures(&again), status), (vec![], 0));
    assert_equal(&src, &dst, "after the second run");
    let moved: Vec<u64> = moved(&again);
    assert!(moved.iter().sum::<u64>() < bytes, "{moved:?}: all was copied again");
    assert_eq!(testfs::names_in(dir.path()), ["dst", "src"]);
}

#[test]
fn an_interrupted_file_ends_after_what_is_complete() {
    let dir = scratch();
    let (src, dst) = (dir.path().join("src"), dir.path().join("dst"));
    make_dense(&src, 300 * MIB);
    let options = Options { limit_rate: NonZeroU64::new(150 << 20), ..with_jobs(1) };
    let done = [0, 1, 2].map(|rank| {
        let stops_after_bytes = (rank == 1).then_some(20 * MIB);
        Arc::new(Done { stops_after_bytes, ..Done::default() })
    });
    let status = run(&done, (&src, &dst), &options, || false);
    let failures = failures(&done);
    let [Diagnostic::Interrupted { bytes, .. }] = failures[..] else { panic!("{failures:?}") };
    assert_eq!((dst.metadata().expect("a part").len(), status), (bytes, 1));
    let copied = std::fs::read(&dst).expect("the part");
    let all = std::fs::read(&src).expect("read");
    assert!(all.starts_with(&copied), "there is no gap");
}
