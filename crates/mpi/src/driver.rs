//! Passes messages between the copy of a rank, the protocol and the other ranks.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, SyncSender};
use std::time::{Duration, Instant};

use cluster::{Command, Message, Protocol, RankId, Request, Ticket};
use haulage::partners::{Event, Load, ShareEnd};
use haulage_cli::Ended;

use crate::frame::{Bytes, Frame, RankProgress};
use crate::place::Place;
use crate::shared::{Shared, lock};
use crate::transport::Transport;

/// How long to wait for an event of this rank before messages are looked for again: doubled each time
/// that there is neither.
const WAIT_MIN: Duration = Duration::from_micros(50);
const WAIT_MAX: Duration = Duration::from_millis(1);

/// How often a rank tells rank 0 how far it is, at most: several times a second, and if there are many
/// ranks so that rank 0 receives a thousand such messages a second.
const TELL_EVERY_MIN: Duration = Duration::from_millis(250);
const TELL_EVERY_FOR_EACH_RANK: Duration = Duration::from_millis(1);

/// How often receipts are sent that are no whole message, and written to their file.
const FLUSH_EVERY: Duration = Duration::from_secs(1);

/// Something that the copy has the thread that communicates do.
pub(crate) type Step = Box<dyn FnOnce(&mut Driver, &mut dyn Transport) + Send>;

/// Two runs need not ask the same ranks.
fn seed() -> u64 {
    let bytes = sys::process_random().unwrap_or_default();
    u64::from_ne_bytes(*bytes.first_chunk().expect("the process has sixteen random bytes"))
}

/// Workers that wait for answers, by the tickets of their questions: for the name of a first copy, or for a range.
#[derive(Default)]
pub(crate) struct Answers {
    workers: HashMap<Ticket, SyncSender<Option<Vec<u8>>>>,
    next: Ticket,
}

impl Answers {
    /// The ticket of a question that `worker` is about to ask.
    pub(crate) fn expect(&mut self, worker: SyncSender<Option<Vec<u8>>>) -> Ticket {
        let ticket = self.next;
        self.next += 1;
        self.workers.insert(ticket, worker);
        ticket
    }

    fn give(&mut self, ticket: Ticket, answer: Option<Vec<u8>>) {
        give(self.workers.remove(&ticket), answer);
    }
}

/// Answers a worker that may no longer wait.
fn give<T>(worker: Option<SyncSender<T>>, answer: T) {
    let _ = worker.map(|worker| worker.try_send(answer));
}

/// One rank's part of the job.
pub(crate) struct Driver {
    pub(crate) protocol: Protocol<Bytes>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) commands: Vec<Command<Bytes>>,
    /// For answers of workers.
    steps: Sender<Step>,
    pub(crate) answers: Answers,
    /// The copy waits for the start.
    starts: Option<SyncSender<bool>>,
    /// On rank 0: the copy waits for the end.
    finishes: Option<SyncSender<u64>>,
    /// On rank 0: the ranks that are ready, and where they are.
    places: Vec<(RankId, Option<Place>)>,
    /// The copy of this rank is ready.
    is_ready: bool,
    /// The other ranks know that this one was interrupted.
    told_interrupt: bool,
    /// On rank 0: failures of the others.
    failures: u64,
    /// The exit status, once the copy has ended.
    status: Option<u8>,
    /// The summary can be sent once the copy has ended.
    is_summary_due: bool,
    /// On rank 0: the protocol knows that everything is copied.
    has_finished: bool,
    /// Nothing more arrives.
    is_over: bool,
    /// What rank 0 knows about this rank's progress, and since when.
    told: RankProgress,
    told_at: Instant,
    /// Receipts that are no whole message were sent or written then.
    flushed_at: Instant,
    /// Rank 0 expects nothing more.
    has_said_farewell: bool,
}

impl Driver {
    pub(crate) fn new(shared: Arc<Shared>, steps: Sender<Step>) -> Driver {
        Driver {
            protocol: Protocol::new(shared.number, shared.ranks, seed()),
            shared,
            commands: Vec::new(),
            steps,
            answers: Answers::default(),
            starts: None,
            finishes: None,
            places: Vec::new(),
            is_ready: false,
            told_interrupt: false,
            failures: 0,
            status: None,
            is_summary_due: false,
            has_finished: false,
            is_over: false,
            told: RankProgress::default(),
            told_at: Instant::now(),
            flushed_at: Instant::now(),
            has_said_farewell: false,
        }
    }

    /// Passes messages on until the copy and the job have ended. Returns the exit status.
    pub(crate) fn run(
        &mut self,
        transport: &mut dyn Transport,
        steps: &Receiver<Step>,
        has_ended: impl Fn() -> bool,
    ) -> u8 {
        // At the start other ranks count as waiting.
        self.shared.waiting.store(self.protocol.demand(), Ordering::Relaxed);
        self.shared.set_waiting(self.shared.number != 0);
        let mut wait = WAIT_MIN;
        loop {
            if self.is_over
                && let Some(status) = self.status
            {
                return status;
            }
            let mut is_active = false;
            if !self.told_interrupt && self.shared.is_interrupted() {
                self.told_interrupt = true;
                self.protocol.cancel(&mut self.commands);
                self.perform(transport);
            }
            let has_ended = has_ended();
            let mut next = steps.recv_timeout(wait).ok();
            if next.is_none() && has_ended && self.status.is_none() {
                // The copy has panicked, and has said so.
                transport.abort();
            }
            while let Some(step) = next {
                is_active = true;
                step(self, transport);
                self.perform(transport);
                next = steps.try_recv().ok();
            }
            while let Some((from, bytes)) = transport.receive() {
                is_active = true;
                self.message(from, &bytes, transport);
            }
            self.tell_rank_0(transport);
            wait = if is_active { WAIT_MIN } else { (wait * 2).min(WAIT_MAX) };
        }
    }

    /// The workers of this rank have more or less to do.
    pub(crate) fn set_load(&mut self, load: Load) {
        match load {
            Load::NoSurplus => self.protocol.no_surplus(&mut self.commands),
            Load::Idle => {
                self.shared.set_waiting(true);
                self.protocol.idle(&mut self.commands);
            }
            Load::Busy => {
                self.shared.set_waiting(false);
                self.protocol.resume(&mut self.commands);
            }
        }
    }

    /// The copy is done with a share, or cannot open it.
    pub(crate) fn end_share(&mut self, share: u64, end: ShareEnd) {
        let (work, for_now) = match end {
            ShareEnd::Copied => return self.protocol.done(share, &mut self.commands),
            ShareEnd::Refused(work) => (work, false),
            ShareEnd::RefusedForNow(work) => (work, true),
            ShareEnd::TakesNone(work) => {
                self.shared.set_waiting(true);
                self.protocol.take_none(&mut self.commands);
                (work, false)
            }
        };
        self.protocol.hand_back(share, work, for_now, &mut self.commands);
    }

    /// The copy of this rank is ready, and wants to know whether it can start.
    pub(crate) fn ready(&mut self, copy: SyncSender<bool>, transport: &mut dyn Transport) {
        self.is_ready = true;
        self.starts = Some(copy);
        if self.shared.number == 0 {
            return self.start_if_ready();
        }
        transport.send(vec![(0, Frame::Ready(Some(Place::own())).encode())]);
        give(self.starts.take(), true);
    }

    /// On rank 0: starts the copy once all ranks are ready, if they can understand each other.
    fn start_if_ready(&mut self) {
        if !self.is_ready || self.places.len() + 1 < self.shared.ranks as usize {
            return;
        }
        let own = Place::own();
        // One without a place has failed, and has said why.
        let other = self.places.iter().find_map(|(rank, place)| {
            Some((rank, place.as_ref().filter(|place| !place.agrees_with(&own))?))
        });
        if let Some((rank, place)) = other {
            let (theirs, own) = (place.shown(), own.shown());
            let line = format!("cp: rank {rank} is {theirs}, and rank 0 is {own}\n");
            self.shared.tell(&self.shared.named(line.as_bytes()));
        }
        give(self.starts.take(), other.is_none());
    }

    /// On rank 0: everything is copied. `copy` waits for the number of failures of the others.
    pub(crate) fn finish(&mut self, copy: Option<SyncSender<u64>>) {
        self.finishes = copy;
        if !std::mem::replace(&mut self.has_finished, true) {
            self.protocol.finish(&mut self.commands);
        }
    }

    /// The copy has ended with this exit status.
    pub(crate) fn ended(&mut self, status: u8, transport: &mut dyn Transport) {
        self.status = Some(status);
        if self.shared.number == 0 {
            // It may have failed before it began to copy.
            return self.finish(None);
        }
        if !self.is_ready {
            transport.send(vec![(0, Frame::Ready(None).encode())]);
        }
        // It may have ended before it was told to. What other ranks still give goes back to them.
        self.protocol.take_none(&mut self.commands);
        self.protocol.idle(&mut self.commands);
        self.say_farewell(transport);
    }

    /// Sends the summary if it is due, and the copy has ended.
    fn say_farewell(&mut self, transport: &mut dyn Transport) {
        if self.is_summary_due
            && let Some(status) = self.status
        {
            self.is_summary_due = false;
            self.has_said_farewell = true;
            if let Some(lines) = self.shared.receipt_lines.rest() {
                transport.send(vec![(0, Frame::Receipts(lines).encode())]);
            }
            let summary = [&[status][..], &lock(&self.shared.summary)].concat();
            self.protocol.farewell(summary, &mut self.commands);
        }
    }

    /// Sends receipts and counts to rank 0. Rank 0 writes its receipts.
    fn tell_rank_0(&mut self, transport: &mut dyn Transport) {
        let now = Instant::now();
        let flushes = now.duration_since(self.flushed_at) >= FLUSH_EVERY;
        if flushes {
            self.flushed_at = now;
        }
        if self.shared.number == 0 {
            if flushes && let Some(collector) = self.shared.collector() {
                collector.flush_receipts();
            }
            return;
        }
        if self.has_said_farewell {
            return;
        }
        if let Some(lines) = self.shared.receipt_lines.next(flushes) {
            transport.send(vec![(0, Frame::Receipts(lines).encode())]);
        }
        let every = TELL_EVERY_MIN.max(TELL_EVERY_FOR_EACH_RANK * self.shared.ranks);
        if now.duration_since(self.told_at) < every {
            return;
        }
        self.told_at = now;
        if let Some(progress) = self.shared.progress()
            && progress != self.told
        {
            self.told = progress;
            transport.send(vec![(0, Frame::Progress(progress).encode())]);
        }
    }

    fn message(&mut self, from: RankId, bytes: &[u8], transport: &mut dyn Transport) {
        match Frame::decode(bytes) {
            Some(Frame::Ready(place)) => {
                self.places.push((from, place));
                self.start_if_ready();
            }
            Some(Frame::Protocol(message)) => {
                if let Message::Ask(Request::Once) = message {
                    self.shared.wants_answer.store(true, Ordering::Relaxed);
                }
                self.protocol.receive(from, message, &mut self.commands);
            }
            Some(Frame::Progress(progress)) => {
                if let Some(known) = lock(&self.shared.others).get_mut(from as usize) {
                    *known = progress;
                }
            }
            Some(Frame::Receipts(lines)) => {
                if let Some(collector) = self.shared.collector() {
                    collector.add_receipts(&lines);
                }
                transport.send(vec![(from, Frame::ReceiptsWritten.encode())]);
            }
            Some(Frame::ReceiptsWritten) => self.shared.receipt_lines.arrived(),
            Some(Frame::Messages(lines)) => self.shared.tell(&lines),
            None => {
                self.shared.tell(&self.shared.named(b"cp: another rank is another program\n"));
                transport.abort();
            }
        }
        self.perform(transport);
    }

    /// Does what the protocol demands.
    fn perform(&mut self, transport: &mut dyn Transport) {
        let mut messages = Vec::new();
        while !self.commands.is_empty() {
            for command in std::mem::take(&mut self.commands) {
                match command {
                    Command::Send(to, message) => {
                        messages.push((to, Frame::Protocol(message).encode()));
                    }
                    command => self.command(command, transport),
                }
            }
        }
        if !messages.is_empty() {
            transport.send(messages);
        }
    }

    fn command(&mut self, command: Command<Bytes>, transport: &mut dyn Transport) {
        match command {
            Command::Send(..) => unreachable!("the caller sends"),
            Command::Demand(waiting) => self.shared.waiting.store(waiting, Ordering::Relaxed),
            Command::Take { share, home, work } => {
                self.shared.inbox.push(Event::Share { share, home, work });
            }
            Command::Returned(number) => self.shared.inbox.push(Event::Returned(number)),
            Command::TakeBack { number, takes_none, work } => {
                self.shared.inbox.push(Event::NotTaken { number, work, refused: !takes_none });
            }
            Command::FirstCopy(ticket, name) => self.answers.give(ticket, name),
            Command::Claimed(from, ticket, claim) => {
                let steps = self.steps.clone();
                let answer = move |grant| {
                    let step: Step = Box::new(move |driver, _| {
                        driver.protocol.grant(from, ticket, grant, &mut driver.commands);
                    });
                    let _ = steps.send(step);
                };
                self.shared.inbox.claim(from, &claim, Box::new(answer));
            }
            Command::Granted(ticket, grant) => self.answers.give(ticket, Some(grant)),
            Command::Cancel => self.shared.inbox.cancel(),
            Command::Summarize => self.summarize(transport),
            Command::Summary(0, _) => {}
            Command::Summary(rank, summary) => {
                let (&status, summary) = summary.split_first().unwrap_or((&1, &[]));
                self.failures += u64::from(status != 0);
                lock(&self.shared.ended).push(Ended { rank, status, summary: summary.into() });
            }
            Command::Exit => {
                give(self.finishes.take(), self.failures);
                self.is_over = true;
            }
        }
    }

    /// Everything is copied. The copy of rank 0 waits for the others, and has nothing to add.
    fn summarize(&mut self, transport: &mut dyn Transport) {
        if self.shared.number == 0 {
            return self.protocol.farewell(Vec::new(), &mut self.commands);
        }
        self.is_summary_due = true;
        self.shared.inbox.push(Event::End);
        self.say_farewell(transport);
    }
}
