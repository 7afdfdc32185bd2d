//! Runs one rank: the copy in a thread of its own, and in the thread that communicates the driver. What
//! the copy asks of other ranks is a step for the driver.

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

use cluster::InodeId;
use haulage::events::{FileId, Outcome};
use haulage::options::{Options, Request};
use haulage::partners::{Event, Load, Partners, Partnership, RangeBytes, ShareEnd, Surplus};
use haulage_cli::{Collector, Ended, Job, OtherRanks};
use rustix::fs::{FlockOperation, flock};
use rustix::io::{self, Errno};

use crate::driver::{Driver, Step};
use crate::frame::Frame;
use crate::ranges::range_bytes;
use crate::shared::{Shared, lock};
use crate::transport::Transport;

/// How long to wait before a locked file is tried again: doubled each time.
const LOCK_WAIT_MIN: Duration = Duration::from_millis(1);
const LOCK_WAIT_MAX: Duration = Duration::from_millis(10);

/// Runs `cp` with the arguments after the command's name on this rank, and returns its exit status.
/// All ranks have the same arguments.
pub fn run(transport: &mut dyn Transport, arguments: Vec<OsString>) -> u8 {
    run_with(transport, move |job| haulage_cli::run_as_rank(arguments, &job))
}

/// Runs `copy` on this rank, and returns its exit status.
pub fn run_with(
    transport: &mut dyn Transport,
    copy: impl FnOnce(Arc<dyn Job>) -> ExitCode + Send + 'static,
) -> u8 {
    let (steps, received) = channel();
    let host = (transport.host(), transport.boot_id());
    let shared = Arc::new(Shared::new(transport.rank(), transport.ranks(), host));
    let rank = Rank { shared: shared.clone(), steps: steps.clone() };
    let copying = Builder::new().name("copy".to_owned()).spawn(move || {
        let status = status_of(copy(Arc::new(rank.clone())));
        rank.send(move |driver, transport| driver.ended(status, transport));
    });
    let Ok(copying) = copying else { transport.abort() };
    let status = Driver::new(shared, steps).run(transport, &received, || copying.is_finished());
    if copying.join().is_err() {
        transport.abort();
    }
    status
}

/// The number of an exit code, which the standard library does not tell.
fn status_of(code: ExitCode) -> u8 {
    (0..=u8::MAX).find(|status| ExitCode::from(*status) == code).unwrap_or(1)
}

/// A rank, as its copy and `haulage_cli` see it.
#[derive(Clone)]
struct Rank {
    shared: Arc<Shared>,
    steps: Sender<Step>,
}

impl Rank {
    /// Has the thread that communicates do something.
    fn send(&self, step: impl FnOnce(&mut Driver, &mut dyn Transport) + Send + 'static) {
        // It outlives the copy.
        let _ = self.steps.send(Box::new(step));
    }

    /// Waits for an answer.
    fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Driver, &mut dyn Transport, SyncSender<T>) + Send + 'static,
    ) -> Option<T> {
        let (sender, answer) = sync_channel(1);
        self.send(move |driver, transport| question(driver, transport, sender));
        answer.recv().ok()
    }
}

fn inode_id(FileId { dev, ino }: FileId) -> InodeId {
    InodeId { dev, ino }
}

impl Partners for Rank {
    fn start(&self) -> bool {
        self.ask(|driver, transport, answer| driver.ready(answer, transport)).unwrap_or(false)
    }

    fn waiting(&self) -> usize {
        self.shared.waiting.load(Ordering::Relaxed)
    }

    fn names_to_give(&self, surplus: Surplus) -> usize {
        let Surplus { names, depth, heavy, endless } = surplus;
        let surplus = cluster::Surplus { names: names as u64, depth: depth as u64, heavy, endless };
        usize::try_from(surplus.part(self.waiting())).unwrap_or(usize::MAX)
    }

    fn give(&self, number: u64, home: Option<u32>, work: Vec<u8>) {
        // Until it is known how many wait then.
        let less = |waiting: usize| Some(waiting.saturating_sub(1));
        let _ = self.shared.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        let home = home.unwrap_or(self.shared.number);
        self.send(move |driver, _| {
            let offered = driver.protocol.offer(work, home, number, &mut driver.commands);
            if let Err(work) = offered {
                driver.shared.inbox.push(Event::NotTaken { number, work, refused: false });
            }
        });
    }

    fn tell(&self, load: Load) {
        if load == Load::NoSurplus && !self.shared.wants_answer.swap(false, Ordering::Relaxed) {
            return;
        }
        self.send(move |driver, _| driver.set_load(load));
    }

    fn end_share(&self, share: u64, end: ShareEnd) {
        self.send(move |driver, _| driver.end_share(share, end));
    }

    fn first_copy(&self, inode: FileId) -> Option<Vec<u8>> {
        let inode = inode_id(inode);
        self.ask(move |driver, _, answer| {
            let ticket = driver.answers.expect(answer);
            driver.protocol.ask_link(inode, ticket, &mut driver.commands);
        })?
    }

    fn copied(&self, inode: FileId, name: &dyn Fn() -> Option<Vec<u8>>) {
        let (inode, name) = (inode_id(inode), name());
        self.send(move |driver, _| driver.protocol.copied(inode, name, &mut driver.commands));
    }

    fn range_bytes(&self, file_bytes: u64, stripe_bytes: u64) -> Option<RangeBytes> {
        (self.shared.ranks > 1).then(|| range_bytes(file_bytes, stripe_bytes))
    }

    fn claim(&self, owner: u32, claim: Vec<u8>) -> Vec<u8> {
        let granted = self.ask(move |driver, _, answer| {
            let ticket = driver.answers.expect(answer);
            driver.protocol.claim(owner, ticket, claim, &mut driver.commands);
        });
        granted.flatten().unwrap_or_default()
    }

    fn lock(&self, file: BorrowedFd<'_>) -> io::Result<bool> {
        let mut wait = LOCK_WAIT_MIN;
        loop {
            match flock(file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(true),
                Err(Errno::INTR) => {}
                // A blocking call would not see an interrupt, and another program may hold the lock.
                Err(Errno::WOULDBLOCK) => {
                    if self.shared.inbox.is_cancelled() || self.shared.is_interrupted() {
                        return Err(Errno::INTR);
                    }
                    sleep(wait);
                    wait = (wait * 2).min(LOCK_WAIT_MAX);
                }
                // The file system has no locks.
                Err(_) => return Ok(false),
            }
        }
    }

    fn finish(&self) -> u64 {
        self.ask(|driver, _, answer| driver.finish(Some(answer))).unwrap_or(1)
    }
}

impl Job for Rank {
    fn is_first(&self) -> bool {
        self.shared.number == 0
    }

    fn put(&self, lines: &[u8]) {
        let lines = self.shared.named(lines);
        if self.is_first() {
            let _ = rustix::io::write(rustix::stdio::stderr(), &lines);
        } else {
            self.send(move |_, transport| {
                transport.send(vec![(0, Frame::Messages(lines).encode())]);
            });
        }
    }

    fn copy(
        &self,
        request: Request,
        mut options: Options,
        collector: &Arc<dyn Collector>,
    ) -> Outcome {
        let shared = &self.shared;
        *lock(&shared.collector) = Some(collector.clone());
        if let Some(bytes) = options.limit_rate {
            let each = bytes.get() / u64::from(shared.ranks);
            options.limit_rate = Some(each.try_into().unwrap_or(NonZeroU64::MIN));
        }
        let partnership = Partnership {
            number: shared.number,
            partners: Arc::new(self.clone()),
            inbox: shared.inbox.clone(),
            boot_id: shared.boot_id.clone(),
        };
        let copy = haulage::Copy::of(request, options);
        let outcome = copy.run_with_partners(&**collector, partnership);
        *lock(&shared.collector) = None;
        outcome
    }

    fn host(&self) -> String {
        self.shared.host.clone()
    }

    fn waited(&self) -> Duration {
        lock(&self.shared.waiting_time).sum(Instant::now())
    }

    fn others(&self) -> OtherRanks {
        let others = lock(&self.shared.others);
        let none = OtherRanks { ranks: self.shared.ranks - 1, ..OtherRanks::default() };
        others.iter().fold(none, |sum, told| OtherRanks {
            progress: sum.progress.plus(told.progress),
            waiting: sum.waiting + u32::from(told.is_waiting),
            ..sum
        })
    }

    fn put_receipt(&self, line: &[u8]) {
        self.shared.receipt_lines.put(line);
    }

    fn summarize(&self, summary: Vec<u8>) {
        *lock(&self.shared.summary) = summary;
    }

    fn ended(&self) -> Vec<Ended> {
        lock(&self.shared.ended).clone()
    }
}
