//! Ranks that are threads of this process copy one tree.

#[path = "../common/mod.rs"]
mod common;
mod ranges;
mod tree;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use haulage::events::{Diagnostic, Observer, Receipt};
use haulage::options::{Destination, Options, Request};
use haulage_mpi::rank;
use haulage_mpi::transport::Transport;

/// The most bytes of the first range of a file of some hundred MiB.
const FIRST_RANGE_BYTES: u64 = 64 << 20;

/// What one rank has done.
#[derive(Default)]
struct Done {
    receipts: Mutex<Vec<Receipt>>,
    failed: Mutex<Vec<Diagnostic>>,
    moved_bytes: AtomicU64,
    without_receipts: bool,
    /// Stops after so many entries.
    stops_after: Option<usize>,
    stops_after_bytes: Option<u64>,
    stops_at: Option<Instant>,
    /// Stops once there is a file of this name.
    stops_with: Option<PathBuf>,
    /// The rank that copied the first range of a file copies another, so that the first is known to be complete. Each
    /// rank stops then; the others have waited for it.
    is_past_first_range: Option<Arc<AtomicBool>>,
    /// The rank has copied the first byte of the file.
    has_first_range: AtomicBool,
    /// The time that each entry takes.
    entry_time: Duration,
    /// The entries of all ranks, and the number of this one.
    pace: Option<(Arc<Pace>, usize)>,
    /// The rank gives up at the start.
    takes_none: bool,
}

impl Done {
    fn receipts(&self) -> MutexGuard<'_, Vec<Receipt>> {
        self.receipts.lock().expect("locked")
    }
}

impl Observer for Done {
    fn diagnose(&self, diagnostic: Diagnostic) {
        self.failed.lock().expect("locked").push(diagnostic);
    }

    fn keeps_receipts(&self) -> bool {
        !self.without_receipts
    }

    fn finished(&self, receipt: Receipt) {
        self.receipts().push(receipt);
        if let Some((pace, rank)) = &self.pace {
            pace.keep(*rank);
        }
        std::thread::sleep(self.entry_time);
    }

    fn moved(&self, _: &engines::Variant, span: engines::Span, moved: engines::Moved) {
        self.moved_bytes.fetch_add(moved.bytes, Ordering::Relaxed);
        let (Some(is_past), engines::Pos::At(at)) = (&self.is_past_first_range, span.src) else {
            return;
        };
        // Several ranks may copy ranges below the limit.
        let has_first = self.has_first_range.fetch_or(at == 0, Ordering::Relaxed) || at == 0;
        match at >= FIRST_RANGE_BYTES {
            true if has_first => is_past.store(true, Ordering::Relaxed),
            true => testfs::wait_until(|| is_past.load(Ordering::Relaxed)),
            false => {}
        }
    }

    fn interrupted(&self) -> bool {
        let moved_bytes = self.moved_bytes.load(Ordering::Relaxed);
        self.stops_at.is_some_and(|at| Instant::now() >= at)
            || self.stops_after.is_some_and(|most| self.receipts().len() >= most)
            || self.stops_after_bytes.is_some_and(|bytes| moved_bytes >= bytes)
            || self.stops_with.as_ref().is_some_and(|file| file.exists())
            || self.is_past_first_range.as_ref().is_some_and(|is| is.load(Ordering::Relaxed))
    }
}

/// Keeps a rank from copying all before the thread of another one gets a processor.
struct Pace {
    /// What each rank is to copy at least.
    least: usize,
    entries: Mutex<Vec<usize>>,
}

impl Pace {
    fn of(ranks: usize, least: usize) -> Arc<Pace> {
        Arc::new(Pace { least, entries: Mutex::new(vec![0; ranks]) })
    }

    /// Counts an entry of `rank`, which takes long as long as other ranks have too few.
    fn keep(&self, rank: usize) {
        let mut entries = self.entries.lock().expect("locked");
        entries[rank] += 1;
        let is_ahead = entries[rank] > self.least && !Pace::all_have(&entries, self.least);
        drop(entries);
        std::thread::sleep(Duration::from_millis(if is_ahead { 20 } else { 0 }));
    }

    fn all_have(entries: &[usize], least: usize) -> bool {
        entries.iter().all(|&entries| entries >= least)
    }

    fn assert_kept(&self, shown: &str) {
        let entries = self.entries.lock().expect("locked");
        assert!(Pace::all_have(&entries, self.least), "{shown}: {entries:?}");
    }
}

/// A directory, and paths in it for a source and a destination.
fn place() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let dir = common::scratch();
    let (src, dst) = (dir.path().join("src"), dir.path().join("dst"));
    (dir, src, dst)
}

fn request(sources: &[&Path], destination: Destination) -> Request {
    Request { sources: sources.iter().map(|&source| source.into()).collect(), destination }
}

fn with_jobs(jobs: usize) -> Options {
    Options { jobs: jobs.try_into().ok(), ..Options::archive() }
}

fn failures(done: &[Arc<Done>]) -> Vec<Diagnostic> {
    done.iter().flat_map(|rank| rank.failed.lock().expect("locked").clone()).collect()
}

/// Copies with a rank for each of `done`. Returns the exit status of rank 0.
fn run(done: &[Arc<Done>], request: &Request, options: &Options) -> u8 {
    let ranks = done.len().try_into().expect("few ranks");
    run_between(Threads::connected(ranks), done, request, options)
}

/// Copies with a rank for each of `done`, over the transports `ranks`. Returns the exit status of
/// rank 0.
fn run_between(
    ranks: Vec<Threads>,
    done: &[Arc<Done>],
    request: &Request,
    options: &Options,
) -> u8 {
    let start = |(mut transport, done): (Threads, Arc<Done>)| {
        let (request, options) = (request.clone(), options.clone());
        std::thread::spawn(move || {
            rank::run_with(&mut transport, move |job| {
                if done.takes_none {
                    return ExitCode::FAILURE;
                }
                let collector: Arc<dyn haulage_cli::Collector> = done;
                let outcome = job.copy(request, options, &collector);
                if outcome.failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
            })
        })
    };
    let threads: Vec<_> = ranks.into_iter().zip(done.to_vec()).map(start).collect();
    let statuses: Vec<u8> =
        threads.into_iter().map(|thread| thread.join().expect("joined")).collect();
    statuses[0]
}

/// What other ranks send is not looked at.
impl haulage_cli::Collector for Done {
    fn tell(&self, _: &[u8]) {}

    fn add_receipts(&self, _: &[u8]) {}

    fn flush_receipts(&self) {}
}

/// Ranks that are threads of one process.
struct Threads {
    rank: u32,
    /// Tells the hosts of ranks apart.
    boot_id: Vec<u8>,
    /// Messages do not arrive as long as it returns true.
    is_held: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
    senders: Vec<Sender<(u32, Vec<u8>)>>,
    receiver: Receiver<(u32, Vec<u8>)>,
}

impl Threads {
    /// So many ranks.
    fn connected(ranks: u32) -> Vec<Threads> {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..ranks).map(|_| channel()).unzip();
        let connected = (0..ranks).zip(receivers).map(|(rank, receiver)| {
            let senders = senders.clone();
            Threads { rank, boot_id: b"host".into(), is_held: None, senders, receiver }
        });
        connected.collect()
    }
}

impl Transport for Threads {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn ranks(&self) -> u32 {
        u32::try_from(self.senders.len()).expect("it was a u32")
    }

    fn host(&self) -> String {
        String::from("threads")
    }

    fn boot_id(&self) -> Vec<u8> {
        self.boot_id.clone()
    }

    fn send(&mut self, messages: Vec<(u32, Vec<u8>)>) {
        for (to, message) in messages {
            // A rank that has ended needs no messages.
            let _ = self.senders[to as usize].send((self.rank, message));
        }
    }

    fn receive(&mut self) -> Option<(u32, Vec<u8>)> {
        let is_held = self.is_held.as_ref().is_some_and(|is_held| is_held());
        if is_held { None } else { self.receiver.try_recv().ok() }
    }

    fn abort(&self) -> ! {
        std::process::abort();
    }
}
