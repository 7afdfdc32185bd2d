//! Runs one rank: the copy in a thread of its own, and in this one the messages.

use std::collections::HashMap;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use cluster::{Command, Message, Protocol, RankId, Request, Taken};
use haulage::ranks;
use haulage_cli::Job;

use crate::event::Event;
use crate::frame::{Bytes, Frame, RankProgress};
use crate::place::Place;
use crate::rank::{JobOfRank, Shared};
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

/// Runs `cp` with the arguments after the command's name on this rank, and returns its exit status.
/// All ranks have the same arguments.
pub fn run(transport: &mut dyn Transport, arguments: Vec<OsString>) -> u8 {
    run_with(transport, move |job| haulage_cli::run_as_rank(arguments, &job))
}

/// The same with another `copy`.
pub fn run_with(
    transport: &mut dyn Transport,
    copy: impl FnOnce(Arc<dyn Job>) -> ExitCode + Send + 'static,
) -> u8 {
    let (events, received) = channel();
    let (number, ranks) = (transport.rank(), transport.ranks());
    let host = (transport.host(), transport.boot_id());
    let shared = Arc::new(Shared::new(number, ranks, host, events));
    let of_copy = shared.clone();
    let copying = std::thread::Builder::new().name("copy".to_owned()).spawn(move || {
        let status = copy(Arc::new(JobOfRank(of_copy.clone())));
        of_copy.ended(status_of(status));
    });
    let Ok(copying) = copying else { transport.abort() };
    let mut driver = Driver {
        protocol: Protocol::new(number, ranks, seed()),
        shared,
        commands: Vec::new(),
        taken: HashMap::new(),
        next_taken: 0,
        homes: None,
        places: Vec::new(),
        is_ready: false,
        failures: 0,
        status: None,
        is_summary_due: false,
        has_finished: false,
        is_over: false,
        told: RankProgress::default(),
        told_at: Instant::now(),
        flushed_at: Instant::now(),
        has_said_farewell: false,
    };
    let status = driver.run(transport, &received, || copying.is_finished());
    if copying.join().is_err() {
        transport.abort();
    }
    status
}

/// Two runs need not ask the same ranks.
fn seed() -> u64 {
    let bytes = engines::sys::process_random().unwrap_or_default();
    u64::from_ne_bytes(*bytes.first_chunk().expect("the process has sixteen random bytes"))
}

/// The number of an exit code, which the standard library does not tell.
fn status_of(code: ExitCode) -> u8 {
    (0..=u8::MAX).find(|status| ExitCode::from(*status) == code).unwrap_or(1)
}

/// One rank's part of the job.
struct Driver {
    protocol: Protocol<Bytes>,
    shared: Arc<Shared>,
    commands: Vec<Command<Bytes>>,
    /// Shares of other ranks that the copy has.
    taken: HashMap<u64, Taken>,
    next_taken: u64,
    /// The rank that reads the directory of the share that is being received.
    homes: Option<RankId>,
    /// On rank 0: the ranks that are ready, and where they are.
    places: Vec<(RankId, Vec<u8>)>,
    /// The copy of this rank is ready.
    is_ready: bool,
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
    /// Passes messages on until the copy and the job have ended. Returns the exit status.
    fn run(
        &mut self,
        transport: &mut dyn Transport,
        events: &Receiver<Event>,
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
            self.shared.look_for_interrupt();
            let has_ended = has_ended();
            let mut next = events.recv_timeout(wait).ok();
            if next.is_none() && has_ended && self.status.is_none() {
                // The copy has panicked, and has said so.
                transport.abort();
            }
            while let Some(event) = next {
                is_active = true;
                self.event(event, transport);
                next = events.try_recv().ok();
            }
            while let Some((from, bytes)) = transport.receive() {
                is_active = true;
                self.message(from, &bytes, transport);
            }
            self.tell_rank_0(transport);
            wait = if is_active { WAIT_MIN } else { (wait * 2).min(WAIT_MAX) };
        }
    }

    fn event(&mut self, event: Event, transport: &mut dyn Transport) {
        match event {
            Event::Ready => self.ready(transport),
            Event::Give { number, home, work } => {
                let home = home.unwrap_or(self.shared.number);
                let offered = self.protocol.offer(work, home, number, &mut self.commands);
                if let Err(work) = offered {
                    let back = ranks::Event::NotTaken { number, work, refused: false };
                    self.shared.inbox.push(back);
                }
            }
            Event::NoSurplus => self.protocol.no_surplus(&mut self.commands),
            Event::Idle => {
                self.shared.set_waiting(true);
                self.protocol.idle(&mut self.commands);
            }
            Event::Resume => {
                self.shared.set_waiting(false);
                self.protocol.resume(&mut self.commands);
            }
            Event::GiveUp => {
                self.shared.set_waiting(true);
                self.protocol.take_none(&mut self.commands);
            }
            Event::Done(share) => {
                let taken = self.taken.remove(&share).expect("each share is returned once");
                self.protocol.done(taken, &mut self.commands);
            }
            Event::HandBack { share, work, for_now } => {
                let taken = self.taken.remove(&share).expect("each share is returned once");
                self.protocol.hand_back(taken, work, for_now, &mut self.commands);
            }
            Event::AskLink(inode, ticket) => {
                self.protocol.ask_link(inode, ticket, &mut self.commands);
            }
            Event::Claim { owner, ticket, claim } => {
                self.protocol.claim(owner, ticket, claim, &mut self.commands);
            }
            Event::Grant { to, ticket, grant } => {
                self.protocol.grant(to, ticket, grant, &mut self.commands);
            }
            Event::Copied(inode, name) => self.protocol.copied(inode, name, &mut self.commands),
            Event::Message(lines) => self.protocol.report(lines, &mut self.commands),
            Event::Interrupted => self.protocol.cancel(&mut self.commands),
            Event::Finish => self.finish(),
            Event::Ended(status) => self.ended(status, transport),
        }
        self.perform(transport);
    }

    /// The copy of this rank is ready.
    fn ready(&mut self, transport: &mut dyn Transport) {
        self.is_ready = true;
        if self.shared.number == 0 {
            return self.start_if_ready();
        }
        transport.send(vec![(0, Frame::Ready(Place::own().encode()).encode())]);
        self.shared.start(true);
    }

    /// On rank 0: starts the copy once all ranks are ready, if they can understand each other.
    fn start_if_ready(&mut self) {
        if !self.is_ready || self.places.len() + 1 < self.shared.ranks as usize {
            return;
        }
        let own = Place::own();
        let differs = |place: &[u8]| !Place::decode(place).is_some_and(|it| it.agrees_with(&own));
        // An empty one is of a rank that has failed, and has said why.
        let other = self.places.iter().find(|(_, place)| !place.is_empty() && differs(place));
        if let Some((rank, place)) = other {
            let theirs = Place::decode(place).map(|place| place.shown());
            let theirs = theirs.unwrap_or_else(|| String::from("another program"));
            let line = format!("cp: rank {rank} is {theirs}, and rank 0 is {}\n", own.shown());
            self.shared.tell(&self.shared.named(line.as_bytes()));
        }
        self.shared.start(other.is_none());
    }

    /// On rank 0: everything is copied.
    fn finish(&mut self) {
        if !std::mem::replace(&mut self.has_finished, true) {
            self.protocol.finish(&mut self.commands);
        }
    }

    fn ended(&mut self, status: u8, transport: &mut dyn Transport) {
        self.status = Some(status);
        if self.shared.number == 0 {
            // It may have failed before it began to copy.
            return self.finish();
        }
        if !self.is_ready {
            transport.send(vec![(0, Frame::Ready(Vec::new()).encode())]);
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
            self.protocol.farewell(self.shared.own_summary(status), &mut self.commands);
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
                if let Message::Share { home, .. } = message {
                    self.homes = Some(home);
                }
                self.protocol.receive(from, message, &mut self.commands);
            }
            Some(Frame::Progress(progress)) => self.shared.set_progress_of(from, progress),
            Some(Frame::Receipts(lines)) => {
                if let Some(collector) = self.shared.collector() {
                    collector.add_receipts(&lines);
                }
                transport.send(vec![(from, Frame::ReceiptsWritten.encode())]);
            }
            Some(Frame::ReceiptsWritten) => self.shared.receipt_lines.arrived(),
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
            Command::Take(taken, work) => self.take(taken, work),
            Command::Returned(number) => self.shared.inbox.push(ranks::Event::Returned(number)),
            Command::TakeBack { number, takes_none, work } => {
                let back = ranks::Event::NotTaken { number, work, refused: !takes_none };
                self.shared.inbox.push(back);
            }
            Command::CopyFirst(_, ticket) => self.shared.answer_link(ticket, None),
            Command::LinkTo(ticket, name) => self.shared.answer_link(ticket, Some(name)),
            Command::Claimed(from, ticket, claim) => {
                self.shared.inbox.claim(&*self.shared, (from, ticket), &claim);
            }
            Command::Granted(ticket, grant) => self.shared.answer_claim(ticket, grant),
            Command::Tell(_, lines) => self.shared.tell(&lines),
            Command::Cancel => self.shared.cancelled.store(true, Ordering::Relaxed),
            Command::Summarize => self.summarize(transport),
            Command::Summary(0, _) => {}
            Command::Summary(rank, summary) => {
                self.shared.has_ended(rank, &summary);
                self.failures += u64::from(summary.first().is_none_or(|&status| status != 0));
            }
            Command::Exit => {
                self.shared.finished(self.failures);
                self.is_over = true;
            }
        }
    }

    fn take(&mut self, taken: Taken, work: Vec<u8>) {
        let share = self.next_taken;
        self.next_taken += 1;
        self.taken.insert(share, taken);
        let home = self.homes.take().expect("a share says who reads its directory");
        self.shared.inbox.push(ranks::Event::Share { share, home, work });
    }

    /// Everything is copied. The copy of rank 0 waits for the others, and has nothing to add.
    fn summarize(&mut self, transport: &mut dyn Transport) {
        if self.shared.number == 0 {
            return self.protocol.farewell(Vec::new(), &mut self.commands);
        }
        self.is_summary_due = true;
        self.shared.inbox.push(ranks::Event::End);
        self.say_farewell(transport);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::transport::Threads;

    /// The next message of rank 1.
    fn answer(transport: &mut Threads) -> Frame {
        let until = Instant::now() + Duration::from_secs(20);
        while Instant::now() < until {
            if let Some((1, bytes)) = transport.receive() {
                return Frame::decode(&bytes).expect("a message");
            }
            std::thread::sleep(WAIT_MAX);
        }
        panic!("rank 1 does not answer");
    }

    #[test]
    fn a_rank_that_has_given_up_answers_others() {
        let mut ranks = Threads::connected(2).into_iter();
        let (mut first, mut second) = (ranks.next().expect("two"), ranks.next().expect("two"));
        let running = std::thread::spawn(move || run_with(&mut second, |_| ExitCode::from(3)));
        assert!(matches!(answer(&mut first), Frame::Ready(_)));
        assert!(matches!(answer(&mut first), Frame::Protocol(Message::TakesNone)));
        let mut exchange = |message| {
            first.send(vec![(1, Frame::Protocol(message).encode())]);
            answer(&mut first)
        };
        let request = Request::Standing;
        let back = exchange(Message::Share { request, home: 0, id: 3, work: vec![4] });
        let expected = Message::HandBack { id: 3, takes_none: true, work: vec![4] };
        assert_eq!(format!("{back:?}"), format!("{:?}", Frame::Protocol(expected)));
        for request in [Request::Once, Request::Standing] {
            let answered = exchange(Message::Ask(request));
            let is_no = matches!(answered, Frame::Protocol(Message::NoWork(of)) if of == request);
            assert!(is_no, "{answered:?}");
        }
        // It stays until it is known that it has left.
        first.send(vec![(1, Frame::Protocol(Message::LeaveKnown).encode())]);
        let mut exchange = |message| {
            first.send(vec![(1, Frame::Protocol(message).encode())]);
            answer(&mut first)
        };
        let farewell = exchange(Message::Finish);
        assert!(matches!(farewell, Frame::Protocol(Message::Farewell(status)) if status == [3]));
        first.send(vec![(1, Frame::Protocol(Message::Exit).encode())]);
        assert_eq!(running.join().expect("no panic"), 3);
    }
}
