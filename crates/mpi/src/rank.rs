//! The other ranks, as the copy of this one calls them: each call becomes an event for the thread
//! that communicates.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cluster::{InodeId, Ticket};
use engines::{Moved, Span, Variant};
use haulage::events::Announcement;
use haulage::events::{Diagnostic, FileId, Observer, Outcome, ProgressTracker, Question, Receipt};
use haulage::options::{Options, Request};
use haulage::ranks::{Inbox, RangeBytes, Rank, Ranks, Surplus};
use haulage_cli::{Collector, Ended, Job, OtherRanks};

use crate::event::Event;
use crate::frame::RankProgress;
use crate::receipt_lines::ReceiptLines;
use crate::waiting_time::WaitingTime;

/// What the copy of a rank and the thread that communicates have in common.
pub(crate) struct Shared {
    pub(crate) number: u32,
    pub(crate) ranks: u32,
    host: String,
    boot_id: Vec<u8>,
    events: Sender<Event>,
    pub(crate) inbox: Arc<Inbox>,
    /// Ranks that wait for work from this one.
    pub(crate) waiting: AtomicUsize,
    /// One of them wants to know soon if there is none.
    pub(crate) wants_answer: AtomicBool,
    pub(crate) cancelled: AtomicBool,
    told_interrupt: AtomicBool,
    next_ticket: AtomicU64,
    links: Answers<Option<Vec<u8>>>,
    claims: Answers<Vec<u8>>,
    ready: Answer<bool>,
    finished: Answer<u64>,
    /// Once the copy has a terminal to write to.
    collector: Mutex<Option<Arc<dyn Collector>>>,
    waiting_time: Mutex<WaitingTime>,
    /// On rank 0: how far each of the others is.
    others: Mutex<Vec<RankProgress>>,
    /// On rank 0: the others that have ended.
    ended: Mutex<Vec<Ended>>,
    pub(crate) receipt_lines: ReceiptLines,
    /// What this rank tells at the end.
    summary: Mutex<Vec<u8>>,
    /// While the copy runs.
    observer: Mutex<Option<Arc<dyn Observer + Send>>>,
}

/// An answer for which the copy waits.
struct Answer<T>(SyncSender<T>, Mutex<Receiver<T>>);

impl<T> Answer<T> {
    fn new() -> Answer<T> {
        let (sender, receiver) = sync_channel(1);
        Answer(sender, Mutex::new(receiver))
    }

    fn give(&self, answer: T) {
        // A second one is not waited for.
        let _ = self.0.try_send(answer);
    }

    fn wait(&self) -> Option<T> {
        lock(&self.1).recv().ok()
    }
}

/// Answers for which workers wait, by the tickets of their questions.
struct Answers<T>(Mutex<HashMap<Ticket, SyncSender<T>>>);

impl<T> Answers<T> {
    fn new() -> Answers<T> {
        Answers(Mutex::default())
    }

    /// Where the answer to a question that is about to be sent arrives.
    fn expect(&self, ticket: Ticket) -> Receiver<T> {
        let (sender, answer) = sync_channel(1);
        lock(&self.0).insert(ticket, sender);
        answer
    }

    fn give(&self, ticket: Ticket, answer: T) {
        if let Some(worker) = lock(&self.0).remove(&ticket) {
            // It may no longer wait.
            let _ = worker.send(answer);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) fn new(
        number: u32,
        ranks: u32,
        (host, boot_id): (String, Vec<u8>),
        events: Sender<Event>,
    ) -> Shared {
        Shared {
            number,
            ranks,
            host,
            boot_id,
            events,
            inbox: Arc::default(),
            waiting: AtomicUsize::new(0),
            wants_answer: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
            told_interrupt: AtomicBool::new(false),
            next_ticket: AtomicU64::new(0),
            links: Answers::new(),
            claims: Answers::new(),
            ready: Answer::new(),
            finished: Answer::new(),
            collector: Mutex::default(),
            waiting_time: Mutex::default(),
            others: Mutex::new(vec![RankProgress::default(); ranks as usize]),
            ended: Mutex::default(),
            receipt_lines: ReceiptLines::new(ranks),
            summary: Mutex::default(),
            observer: Mutex::default(),
        }
    }

    fn send(&self, event: Event) {
        // The thread that communicates outlives the copy.
        let _ = self.events.send(event);
    }

    pub(crate) fn ended(&self, status: u8) {
        self.send(Event::Ended(status));
    }

    /// Tells the other ranks that this one was interrupted, once.
    fn interrupted(&self) {
        if !self.told_interrupt.swap(true, Ordering::Relaxed) {
            self.send(Event::Interrupted);
        }
    }

    /// Looks whether this rank was interrupted, for workers that all wait.
    pub(crate) fn look_for_interrupt(&self) {
        if lock(&self.observer).as_ref().is_some_and(|observer| observer.interrupted()) {
            self.interrupted();
        }
    }

    /// The answer to [`Ranks::ready`].
    pub(crate) fn start(&self, can_start: bool) {
        self.ready.give(can_start);
    }

    /// The answer to [`Ranks::finish`].
    pub(crate) fn finished(&self, failures: u64) {
        self.finished.give(failures);
    }

    /// The answer to [`Ranks::ask_link`].
    pub(crate) fn answer_link(&self, ticket: Ticket, copy: Option<Vec<u8>>) {
        self.links.give(ticket, copy);
    }

    /// The answer to [`Ranks::claim`].
    pub(crate) fn answer_claim(&self, ticket: Ticket, grant: Vec<u8>) {
        self.claims.give(ticket, grant);
    }

    /// Writes messages of a rank to standard error. On rank 0.
    pub(crate) fn tell(&self, lines: &[u8]) {
        match self.collector() {
            Some(collector) => collector.tell(lines),
            None => {
                let _ = rustix::io::write(rustix::stdio::stderr(), lines);
            }
        }
    }

    /// What rank 0 does with what others send. While its copy runs, as the others' do.
    pub(crate) fn collector(&self) -> Option<Arc<dyn Collector>> {
        lock(&self.collector).clone()
    }

    /// Counts the time from now on as time without work, or with it.
    pub(crate) fn set_waiting(&self, is_waiting: bool) {
        let (mut time, now) = (lock(&self.waiting_time), Instant::now());
        if is_waiting { time.begin(now) } else { time.end(now) }
    }

    /// How far this rank is. While its copy runs.
    pub(crate) fn progress(&self) -> Option<RankProgress> {
        let observer = lock(&self.observer);
        let progress = observer.as_ref()?.progress()?.progress();
        Some(RankProgress { progress, is_waiting: lock(&self.waiting_time).is_waiting() })
    }

    /// On rank 0: how far `rank` is.
    pub(crate) fn set_progress_of(&self, rank: u32, told: RankProgress) {
        if let Some(known) = lock(&self.others).get_mut(rank as usize) {
            *known = told;
        }
    }

    /// On rank 0: `rank` has ended, with its exit status first in `summary`.
    pub(crate) fn has_ended(&self, rank: u32, summary: &[u8]) {
        let (status, summary) = summary.split_first().unwrap_or((&1, &[]));
        let ended = Ended { rank, status: *status, summary: summary.into() };
        lock(&self.ended).push(ended);
    }

    /// What this rank tells at the end, after its exit status.
    pub(crate) fn own_summary(&self, status: u8) -> Vec<u8> {
        [&[status][..], &lock(&self.summary)].concat()
    }

    /// `lines`, each with host and rank in front.
    pub(crate) fn named(&self, lines: &[u8]) -> Vec<u8> {
        if self.ranks == 1 {
            return lines.into();
        }
        let name = format!("[{} {}] ", self.host, self.number);
        let lines = lines.split_inclusive(|&byte| byte == b'\n');
        lines.flat_map(|line| [name.as_bytes(), line].concat()).collect()
    }
}

impl Ranks for Shared {
    fn ready(&self) -> bool {
        self.send(Event::Ready);
        self.ready.wait().unwrap_or(false)
    }

    fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    fn names_to_give(&self, surplus: Surplus) -> usize {
        let Surplus { names, depth, heavy, endless } = surplus;
        let surplus = cluster::Surplus { names: names as u64, depth: depth as u64, heavy, endless };
        usize::try_from(surplus.part(self.waiting())).unwrap_or(usize::MAX)
    }

    fn give(&self, number: u64, home: Option<u32>, work: Vec<u8>) {
        // Until it is known how many wait then.
        let less = |waiting: usize| Some(waiting.saturating_sub(1));
        let _ = self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        self.send(Event::Give { number, home, work });
    }

    fn no_surplus(&self) {
        if self.wants_answer.swap(false, Ordering::Relaxed) {
            self.send(Event::NoSurplus);
        }
    }

    fn idle(&self) {
        self.send(Event::Idle);
    }

    fn resume(&self) {
        self.send(Event::Resume);
    }

    fn done(&self, share: u64) {
        self.send(Event::Done(share));
    }

    fn hand_back(&self, share: u64, work: Vec<u8>, for_now: bool) {
        self.send(Event::HandBack { share, work, for_now });
    }

    fn give_up(&self) {
        self.send(Event::GiveUp);
    }

    fn ask_link(&self, inode: FileId) -> Option<Vec<u8>> {
        let ticket = self.next_ticket.fetch_add(1, Ordering::Relaxed);
        let answer = self.links.expect(ticket);
        self.send(Event::AskLink(InodeId { dev: inode.dev, ino: inode.ino }, ticket));
        answer.recv().ok().flatten()
    }

    fn copied(&self, inode: FileId, name: Option<Vec<u8>>) {
        self.send(Event::Copied(InodeId { dev: inode.dev, ino: inode.ino }, name));
    }

    fn range_bytes(&self, file_bytes: u64, stripe_bytes: u64) -> Option<RangeBytes> {
        let cluster::RangeBytes { most, least } = cluster::range_bytes(file_bytes, stripe_bytes);
        (self.ranks > 1).then_some(RangeBytes { most, least })
    }

    fn claim(&self, owner: u32, claim: Vec<u8>) -> Vec<u8> {
        let ticket = self.next_ticket.fetch_add(1, Ordering::Relaxed);
        let answer = self.claims.expect(ticket);
        self.send(Event::Claim { owner, ticket, claim });
        answer.recv().unwrap_or_default()
    }

    fn grant(&self, to: u32, ticket: u64, grant: Vec<u8>) {
        self.send(Event::Grant { to, ticket, grant });
    }

    fn finish(&self) -> u64 {
        self.send(Event::Finish);
        self.finished.wait().unwrap_or(1)
    }
}

/// A rank as `haulage_cli` runs it.
pub(crate) struct JobOfRank(pub(crate) Arc<Shared>);

impl Job for JobOfRank {
    fn is_first(&self) -> bool {
        self.0.number == 0
    }

    fn put(&self, lines: &[u8]) {
        let lines = self.0.named(lines);
        if self.is_first() {
            let _ = rustix::io::write(rustix::stdio::stderr(), &lines);
        } else {
            self.0.send(Event::Message(lines));
        }
    }

    fn copy(
        &self,
        request: Request,
        mut options: Options,
        observer: &Arc<dyn Observer + Send>,
        collector: &Arc<dyn Collector>,
    ) -> Outcome {
        *lock(&self.0.collector) = Some(collector.clone());
        *lock(&self.0.observer) = Some(observer.clone());
        if let Some(bytes) = options.limit_rate {
            let each = bytes.get() / u64::from(self.0.ranks);
            options.limit_rate = Some(each.try_into().unwrap_or(std::num::NonZeroU64::MIN));
        }
        let rank = Rank {
            number: self.0.number,
            ranks: self.0.clone(),
            inbox: self.0.inbox.clone(),
            boot_id: self.0.boot_id.clone(),
        };
        let observer = CancelledObserver { observer: &**observer, shared: &self.0 };
        let outcome = haulage::Copy::of(request, options).run_as_rank(&observer, rank);
        *lock(&self.0.collector) = None;
        *lock(&self.0.observer) = None;
        outcome
    }

    fn host(&self) -> String {
        self.0.host.clone()
    }

    fn waited(&self) -> Duration {
        lock(&self.0.waiting_time).sum(Instant::now())
    }

    fn others(&self) -> OtherRanks {
        let others = lock(&self.0.others);
        let none = OtherRanks { ranks: self.0.ranks - 1, ..OtherRanks::default() };
        others.iter().fold(none, |sum, told| OtherRanks {
            progress: sum.progress.plus(told.progress),
            waiting: sum.waiting + u32::from(told.is_waiting),
            ..sum
        })
    }

    fn put_receipt(&self, line: &[u8]) {
        self.0.receipt_lines.put(line);
    }

    fn summarize(&self, summary: Vec<u8>) {
        *lock(&self.0.summary) = summary;
    }

    fn ended(&self) -> Vec<Ended> {
        lock(&self.0.ended).clone()
    }
}

/// The observer of a copy that also ends when another rank was interrupted.
struct CancelledObserver<'o> {
    observer: &'o dyn Observer,
    shared: &'o Shared,
}

impl Observer for CancelledObserver<'_> {
    fn diagnose(&self, diagnostic: Diagnostic) {
        self.observer.diagnose(diagnostic);
    }

    fn confirm(&self, question: Question) -> bool {
        self.observer.confirm(question)
    }

    fn announce(&self, announcement: Announcement) {
        self.observer.announce(announcement);
    }

    fn keeps_receipts(&self) -> bool {
        self.observer.keeps_receipts()
    }

    fn finished(&self, receipt: Receipt) {
        self.observer.finished(receipt);
    }

    fn moved(&self, variant: &Variant, span: Span, moved: Moved) {
        self.observer.moved(variant, span, moved);
    }

    fn progress(&self) -> Option<&ProgressTracker> {
        self.observer.progress()
    }

    fn deferred_init(&self) {
        self.observer.deferred_init();
    }

    fn interrupted(&self) -> bool {
        if !self.observer.interrupted() {
            return self.shared.cancelled.load(Ordering::Relaxed);
        }
        self.shared.interrupted();
        true
    }
}
