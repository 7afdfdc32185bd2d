//! One rank's part of the protocol (docs/design/ranks.md).
//!
//! Work stealing follows the lifelines of Saraswat et al. (PPoPP 2011): a rank without work asks the
//! rank that reads the directory of its last share and a few random ones, then leaves a standing
//! request with its neighbours in a hypercube and sends nothing more. Termination is that of Dijkstra and Scholten (1980): each share is returned when
//! everything below it is copied, so the run has ended when rank 0 has its last share back. The
//! attributes of a directory wait for the same messages.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fastrand::Rng;

use crate::ids::{RankId, ShareId};
use crate::message::{Message, Payload, Request};
use crate::neighbours::{neighbours, random_other};
use crate::source_links::{Answers, Asker, InodeId, SourceLinks, Ticket};

/// How many random ranks a rank without work asks before it waits for its neighbours.
const TRIES: u32 = 2;

/// What the driver has to do.
#[derive(Debug)]
pub enum Command<P: Payload> {
    /// Send the message to the rank.
    Send(RankId, Message<P>),
    /// So many ranks wait for work now. Call [`Protocol::offer`] when there is some to give, or
    /// [`Protocol::no_surplus`] when there is none.
    Demand(usize),
    /// Do this work, of a directory that the rank `home` reads, then call [`Protocol::done`] or
    /// [`Protocol::hand_back`].
    Take {
        /// The number of the share for the call.
        share: u64,
        /// The rank.
        home: RankId,
        /// The work.
        work: P::Work,
    },
    /// The work that was offered with this number is done by the rank that took it.
    Returned(u64),
    /// The work that was offered with this number could not be started elsewhere. Do it here.
    TakeBack {
        /// The number.
        number: u64,
        /// The other rank takes no share at all, or none at the moment. It says nothing about this one.
        takes_none: bool,
        /// The work.
        work: P::Work,
    },
    /// Make the name that has this ticket a hard link to the other. If there is none, copy the file, then call
    /// [`Protocol::copied`].
    FirstCopy(Ticket, Option<P::Name>),
    /// The rank asks for a range of a file of this rank. Call [`Protocol::grant`] with the ticket.
    Claimed(RankId, Ticket, P::Work),
    /// The answer to the [`Protocol::claim`] with this ticket.
    Granted(Ticket, P::Work),
    /// Leave out all names that are not copied yet.
    Cancel,
    /// Call [`Protocol::farewell`].
    Summarize,
    /// On rank 0: what a rank has done.
    Summary(RankId, P::Summary),
    /// Nothing more arrives. The run is over.
    Exit,
}

/// One rank's part of the protocol.
#[derive(Debug)]
pub struct Protocol<P: Payload> {
    rank: RankId,
    ranks: u32,
    state: State,
    rng: Rng,
    /// Ranks that asked this one, in order.
    askers: VecDeque<Waiting>,
    /// The ranks with which this one has left a standing request.
    asked: BTreeSet<RankId>,
    /// This rank takes no share.
    takes_none: bool,
    /// The other ranks know that, and that it gives none.
    has_left: bool,
    /// Neighbours that take and give none.
    left: BTreeSet<RankId>,
    /// Ranks that rely on this one because a neighbour of theirs has left. Only rank 0 has some.
    adopted: BTreeSet<RankId>,
    /// Who may have more of what the last share was a part of.
    last_home: Option<RankId>,
    /// A rank was asked once, and has not answered.
    is_asking: bool,
    tries_left: u32,
    /// Shares that other ranks have, with the caller's number.
    given: BTreeMap<ShareId, u64>,
    next_share: ShareId,
    /// Shares that this rank has from others, by numbers of its own.
    taken: BTreeMap<u64, (RankId, ShareId)>,
    next_taken: u64,
    links: SourceLinks<P::Name>,
    /// Names and claims of this rank that wait for an answer.
    tickets: u64,
    /// Messages of this rank, `TakesNone` and `Copied`, that the receivers may not know yet.
    unknown: u64,
    cancelled: bool,
    /// On rank 0: the ranks that have not said farewell, itself included.
    farewells_missing: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Busy,
    Idle,
    /// Everything is copied; answers to requests are still on their way.
    Finishing,
    /// The summary is sent.
    Gone,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    rank: RankId,
    request: Request,
}

impl Waiting {
    fn is_once(&self) -> bool {
        self.request == Request::Once
    }
}

type Commands<P> = Vec<Command<P>>;

impl<P: Payload> Protocol<P> {
    /// The start of a run. Rank 0 has the operands. Every other rank has nothing, and counts as
    /// having left a standing request with its neighbours, without a message.
    ///
    /// # Panics
    /// If `rank` is not less than `ranks`.
    pub fn new(rank: RankId, ranks: u32, seed: u64) -> Protocol<P> {
        assert!(rank < ranks, "ranks are numbered from 0");
        let request = Request::Standing;
        let askers = neighbours(rank, ranks).filter(|&neighbour| neighbour != 0);
        let asked = neighbours(rank, ranks).filter(|_| rank != 0);
        Protocol {
            rank,
            ranks,
            state: if rank == 0 { State::Busy } else { State::Idle },
            rng: Rng::with_seed(seed ^ u64::from(rank)),
            askers: askers.map(|rank| Waiting { rank, request }).collect(),
            asked: asked.collect(),
            takes_none: false,
            has_left: false,
            left: BTreeSet::new(),
            adopted: BTreeSet::new(),
            last_home: None,
            is_asking: false,
            tries_left: 0,
            given: BTreeMap::new(),
            next_share: 0,
            taken: BTreeMap::new(),
            next_taken: 0,
            links: SourceLinks::new(),
            tickets: 0,
            unknown: 0,
            cancelled: false,
            farewells_missing: ranks,
        }
    }

    /// How many ranks wait for work from this one.
    pub fn demand(&self) -> usize {
        if self.cancelled || self.state != State::Busy { 0 } else { self.askers.len() }
    }

    /// This rank has nothing to do until it is given something. Shares that it gave may be out.
    pub fn idle(&mut self, out: &mut Commands<P>) {
        if self.state != State::Busy {
            // The end of the run was faster.
            return;
        }
        self.refuse_askers(Waiting::is_once, out);
        self.state = State::Idle;
        if self.takes_none {
            self.leave(out);
        } else if !self.cancelled {
            self.tries_left = TRIES;
            self.ask(out);
        }
    }

    /// This rank takes no further share. It gives what it has until it is idle.
    pub fn take_none(&mut self, out: &mut Commands<P>) {
        self.takes_none = true;
        if self.state == State::Idle {
            self.leave(out);
        }
    }

    /// This rank is busy again with something that it had put off, such as the end of a directory.
    pub fn resume(&mut self, out: &mut Commands<P>) {
        assert!(matches!(self.state, State::Busy | State::Idle), "the run has not ended");
        if self.state == State::Idle {
            self.state = State::Busy;
        }
        self.tell_demand(out);
    }

    /// Gives `work` to the rank that waits longest. `home` is the rank that reads its directory.
    /// `number` comes back with [`Command::Returned`]. Returns the work if no rank waits any more.
    pub fn offer(
        &mut self,
        work: P::Work,
        home: RankId,
        number: u64,
        out: &mut Commands<P>,
    ) -> Result<(), P::Work> {
        if self.demand() == 0 {
            return Err(work);
        }
        let Some(Waiting { rank, request }) = self.askers.pop_front() else { return Err(work) };
        let id = self.next_share;
        self.next_share += 1;
        self.given.insert(id, number);
        out.push(Command::Send(rank, Message::Share { request, home, id, work }));
        self.tell_demand(out);
        Ok(())
    }

    /// This rank is busy and has nothing to give at the moment.
    pub fn no_surplus(&mut self, out: &mut Commands<P>) {
        self.refuse_askers(Waiting::is_once, out);
        self.tell_demand(out);
    }

    /// A share that was taken is done, with everything below it.
    pub fn done(&mut self, share: u64, out: &mut Commands<P>) {
        let (from, id) = self.give_back(share);
        out.push(Command::Send(from, Message::Done(id)));
    }

    /// A share that was taken cannot be started here. That says nothing about the share if it is only
    /// so `for_now`, or if this rank takes none.
    pub fn hand_back(&mut self, share: u64, work: P::Work, for_now: bool, out: &mut Commands<P>) {
        let (from, id) = self.give_back(share);
        let takes_none = for_now || self.takes_none;
        out.push(Command::Send(from, Message::HandBack { id, takes_none, work }));
    }

    /// The name with this ticket is one of several of a file. [`Command::FirstCopy`] says what to do with it.
    pub fn ask_link(&mut self, inode: InodeId, ticket: Ticket, out: &mut Commands<P>) {
        self.tickets += 1;
        self.send(inode.owner(self.ranks), Message::AskLink(inode, ticket), out);
    }

    /// The file, which had no first copy, is copied to `name`; `None` if it could not be copied.
    pub fn copied(&mut self, inode: InodeId, name: Option<P::Name>, out: &mut Commands<P>) {
        self.unknown += 1;
        self.send(inode.owner(self.ranks), Message::Copied(inode, name), out);
    }

    /// Asks the rank that owns a file for a range of it, as part of a share that this rank has.
    /// [`Command::Granted`] has the answer.
    pub fn claim(&mut self, owner: RankId, ticket: Ticket, work: P::Work, out: &mut Commands<P>) {
        self.tickets += 1;
        self.send(owner, Message::Claim(ticket, work), out);
    }

    /// Answers a [`Command::Claimed`] of the rank `to`.
    pub fn grant(&mut self, to: RankId, ticket: Ticket, work: P::Work, out: &mut Commands<P>) {
        self.send(to, Message::Grant(ticket, work), out);
    }

    /// The run is to end early. At its end that has no effect.
    pub fn cancel(&mut self, out: &mut Commands<P>) {
        if !self.cancelled && matches!(self.state, State::Busy | State::Idle) {
            self.send(0, Message::Cancel, out);
        }
    }

    /// On rank 0: the operands are copied, with everything below them.
    ///
    /// # Panics
    /// On another rank, or if shares are out.
    pub fn finish(&mut self, out: &mut Commands<P>) {
        assert!(self.rank == 0 && self.given.is_empty(), "rank 0 has all shares back");
        self.send_all(|| Message::Finish, out);
        self.end(out);
    }

    /// Answers [`Command::Summarize`]. Nothing may be sent to rank 0 after it.
    pub fn farewell(&mut self, summary: P::Summary, out: &mut Commands<P>) {
        assert_eq!(self.state, State::Finishing, "the run has ended");
        self.state = State::Gone;
        self.send(0, Message::Farewell(summary), out);
    }

    /// Handles a message.
    ///
    /// # Panics
    /// If the message cannot come at this point: another rank does not follow the protocol.
    pub fn receive(&mut self, from: RankId, message: Message<P>, out: &mut Commands<P>) {
        match message {
            Message::Ask(request) => self.asked(Waiting { rank: from, request }, out),
            Message::NoWork(request) => {
                self.clear_request(from, request);
                match self.state {
                    State::Idle if !self.cancelled => self.ask(out),
                    _ => self.summarize_after_last_answer(out),
                }
            }
            Message::Share { request, home, id, work } => {
                self.clear_request(from, request);
                if self.takes_none {
                    let back = Message::HandBack { id, takes_none: true, work };
                    return out.push(Command::Send(from, back));
                }
                self.last_home = Some(home).filter(|&home| home != self.rank);
                let share = self.next_taken;
                self.next_taken += 1;
                self.taken.insert(share, (from, id));
                self.take(share, home, work, out);
            }
            Message::Done(id) => out.push(Command::Returned(self.returned(id))),
            Message::HandBack { id, takes_none, work } => {
                let number = self.returned(id);
                out.push(Command::TakeBack { number, takes_none, work });
            }
            Message::TakesNone => self.has_left(from, out),
            Message::AskLink(inode, ticket) => {
                let answers = self.links.ask(inode, Asker { rank: from, ticket });
                self.answer(answers, out);
            }
            Message::Copied(inode, name) => {
                let answers = self.links.copied(inode, name);
                self.answer(answers, out);
                self.send(from, Message::Known, out);
            }
            Message::Known => {
                self.unknown -= 1;
                self.summarize_after_last_answer(out);
            }
            Message::FirstCopy(ticket, name) => {
                self.tickets -= 1;
                out.push(Command::FirstCopy(ticket, name));
            }
            Message::Claim(ticket, work) => out.push(Command::Claimed(from, ticket, work)),
            Message::Grant(ticket, work) => {
                self.tickets -= 1;
                out.push(Command::Granted(ticket, work));
            }
            Message::Cancel => self.cancelled(out),
            Message::Finish => self.end(out),
            Message::Farewell(summary) => {
                self.farewells_missing -= 1;
                out.push(Command::Summary(from, summary));
                if self.farewells_missing == 0 {
                    self.send_all(|| Message::Exit, out);
                    out.push(Command::Exit);
                }
            }
            Message::Exit => out.push(Command::Exit),
        }
    }

    fn asked(&mut self, asker: Waiting, out: &mut Commands<P>) {
        let is_once = asker.is_once();
        if !is_once && !neighbours(self.rank, self.ranks).any(|known| known == asker.rank) {
            self.adopted.insert(asker.rank);
        }
        let waits = match self.state {
            _ if self.has_left => false,
            State::Busy => !is_once || !self.cancelled,
            State::Idle => !is_once,
            State::Finishing | State::Gone => false,
        };
        if !waits {
            return out.push(Command::Send(asker.rank, Message::NoWork(asker.request)));
        }
        self.askers.push_back(asker);
        self.tell_demand(out);
    }

    /// Asks the next rank: first the one that may have more of the same, then random ones. If none
    /// of these has anything, asks all neighbours.
    fn ask(&mut self, out: &mut Commands<P>) {
        if self.is_asking || self.takes_none {
            return;
        }
        let mut next = self.last_home.take();
        if next.is_none() && self.tries_left > 0 {
            self.tries_left -= 1;
            next = random_other(&mut self.rng, self.rank, self.ranks);
        }
        if let Some(next) = next {
            self.is_asking = true;
            return out.push(Command::Send(next, Message::Ask(Request::Once)));
        }
        for rank in self.relied_on() {
            if self.asked.insert(rank) {
                out.push(Command::Send(rank, Message::Ask(Request::Standing)));
            }
        }
    }

    /// The ranks with which this one leaves standing requests: its neighbours, rank 0 in place of
    /// those that have left, and for rank 0 the ranks that ask it so. They are mutual, and connect
    /// all ranks that are left as long as rank 0 is one of them.
    fn relied_on(&self) -> BTreeSet<RankId> {
        let stay = |rank: &RankId| *rank != self.rank && !self.left.contains(rank);
        let instead = (!self.left.is_empty()).then_some(0);
        let neighbours = neighbours(self.rank, self.ranks);
        neighbours.chain(self.adopted.iter().copied()).chain(instead).filter(stay).collect()
    }

    /// Tells those that rely on this rank not to, and answers those that wait at it.
    fn leave(&mut self, out: &mut Commands<P>) {
        if self.has_left || !matches!(self.state, State::Busy | State::Idle) {
            return;
        }
        self.has_left = true;
        let mut others = self.relied_on();
        others.extend(neighbours(self.rank, self.ranks));
        self.unknown += others.len() as u64;
        out.extend(others.into_iter().map(|rank| Command::Send(rank, Message::TakesNone)));
        self.refuse_askers(|_| true, out);
    }

    /// `rank` has left.
    fn has_left(&mut self, rank: RankId, out: &mut Commands<P>) {
        self.left.insert(rank);
        out.push(Command::Send(rank, Message::Known));
        let before = self.askers.len();
        self.refuse_askers(|asker| asker.rank == rank && !asker.is_once(), out);
        if self.askers.len() < before {
            self.tell_demand(out);
        }
        if self.state == State::Idle && !self.cancelled {
            self.ask(out);
        }
    }

    fn clear_request(&mut self, from: RankId, request: Request) {
        match request {
            Request::Once => self.is_asking = false,
            Request::Standing => {
                self.asked.remove(&from);
            }
        }
    }

    fn take(&mut self, share: u64, home: RankId, work: P::Work, out: &mut Commands<P>) {
        assert!(
            matches!(self.state, State::Busy | State::Idle),
            "shares are out, so the run goes on"
        );
        if self.cancelled {
            return self.done(share, out);
        }
        out.push(Command::Take { share, home, work });
        self.resume(out);
    }

    fn give_back(&mut self, share: u64) -> (RankId, ShareId) {
        self.taken.remove(&share).expect("each share is returned once")
    }

    fn returned(&mut self, id: ShareId) -> u64 {
        self.given.remove(&id).expect("a share comes back once, to the rank that gave it")
    }

    fn answer(&mut self, answers: Answers<P::Name>, out: &mut Commands<P>) {
        for (Asker { rank, ticket }, name) in answers {
            self.send(rank, Message::FirstCopy(ticket, name), out);
        }
    }

    fn cancelled(&mut self, out: &mut Commands<P>) {
        if self.cancelled || matches!(self.state, State::Finishing | State::Gone) {
            return;
        }
        self.cancelled = true;
        if self.rank == 0 {
            self.send_all(|| Message::Cancel, out);
        }
        self.refuse_askers(Waiting::is_once, out);
        out.push(Command::Demand(0));
        out.push(Command::Cancel);
    }

    /// Answers the waiting ranks for which that holds.
    fn refuse_askers(&mut self, is_refused: impl Fn(&Waiting) -> bool, out: &mut Commands<P>) {
        self.askers.retain(|asker| {
            let is_refused = is_refused(asker);
            if is_refused {
                out.push(Command::Send(asker.rank, Message::NoWork(asker.request)));
            }
            !is_refused
        });
    }

    fn tell_demand(&self, out: &mut Commands<P>) {
        if self.state == State::Busy {
            out.push(Command::Demand(self.demand()));
        }
    }

    fn end(&mut self, out: &mut Commands<P>) {
        assert!(
            matches!(self.state, State::Busy | State::Idle)
                && self.given.is_empty()
                && self.taken.is_empty()
                && self.tickets == 0,
            "the run ends when nothing is left on any rank"
        );
        self.state = State::Finishing;
        self.refuse_askers(|_| true, out);
        self.summarize_after_last_answer(out);
    }

    fn summarize_after_last_answer(&self, out: &mut Commands<P>) {
        let is_answered = !self.is_asking && self.asked.is_empty() && self.unknown == 0;
        if self.state == State::Finishing && is_answered {
            out.push(Command::Summarize);
        }
    }

    fn send(&mut self, to: RankId, message: Message<P>, out: &mut Commands<P>) {
        if to == self.rank {
            self.receive(to, message, out);
        } else {
            out.push(Command::Send(to, message));
        }
    }

    fn send_all(&self, message: impl Fn() -> Message<P>, out: &mut Commands<P>) {
        out.extend(
            (0..self.ranks).filter(|&to| to != self.rank).map(|to| Command::Send(to, message())),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Plain;

    impl Payload for Plain {
        type Work = ();
        type Name = ();
        type Summary = ();
    }

    /// The commands so far, as text. They are taken away.
    fn said(out: &mut Vec<Command<Plain>>) -> String {
        format!("{:?}", std::mem::take(out))
    }

    #[test]
    fn a_rank_stays_until_all_its_messages_are_answered() {
        // Rank 1 of two, for which rank 0 has work.
        let inodes = (0..).map(|ino| InodeId { dev: 1, ino });
        let inode = inodes.clone().find(|inode| inode.owner(2) == 0).expect("found");
        let (mut rank, mut out) = (Protocol::<Plain>::new(1, 2, 0), Vec::new());
        let request = Request::Standing;
        rank.receive(0, Message::Share { request, home: 0, id: 7, work: () }, &mut out);
        let Some(Command::Take { share, .. }) = out.drain(..).next() else { panic!("a share") };
        rank.ask_link(inode, 1, &mut out);
        rank.receive(0, Message::FirstCopy(1, None), &mut out);
        rank.copied(inode, Some(()), &mut out);
        rank.done(share, &mut out);
        rank.idle(&mut out);
        out.clear();
        // Rank 0 has the share back, and not yet the message about the copy.
        rank.receive(0, Message::Finish, &mut out);
        rank.receive(0, Message::NoWork(Request::Once), &mut out);
        assert_eq!(said(&mut out), "[]");
        rank.receive(0, Message::Known, &mut out);
        assert_eq!(said(&mut out), "[Summarize]");
        // Nothing may be sent after the farewell.
        rank.farewell((), &mut out);
        out.clear();
        rank.cancel(&mut out);
        assert_eq!(said(&mut out), "[]");
    }

    #[test]
    fn a_rank_that_takes_nothing_says_so_and_answers_those_that_ask() {
        let new = |rank| (Protocol::<Plain>::new(rank, 2, 0), Vec::new());
        let ((mut giver, mut given), (mut taker, mut out)) = (new(0), new(1));
        let request = Request::Standing;
        giver.offer((), 0, 5, &mut given).expect("rank 1 waits");
        let Some(Command::Send(1, share)) = given.drain(..).next() else { panic!("a share") };
        taker.receive(0, share, &mut out);
        let Some(Command::Take { share, .. }) = out.drain(..).next() else { panic!("a share") };
        taker.take_none(&mut out);
        assert_eq!(said(&mut out), "[]", "it may have names to give");
        taker.hand_back(share, (), false, &mut out);
        let Some(Command::Send(0, back)) = out.drain(..).next() else { panic!("it comes back") };
        giver.receive(1, back, &mut given);
        assert_eq!(said(&mut given), "[TakeBack { number: 5, takes_none: true, work: () }]");
        taker.receive(0, Message::Ask(Request::Standing), &mut out);
        out.clear();
        taker.idle(&mut out);
        assert_eq!(said(&mut out), "[Send(0, TakesNone), Send(0, NoWork(Standing))]");
        for request in [Request::Once, Request::Standing] {
            taker.receive(0, Message::Ask(request), &mut out);
            assert_eq!(said(&mut out), format!("[Send(0, NoWork({request:?}))]"));
        }
        taker.receive(0, Message::Share { request, home: 0, id: 9, work: () }, &mut out);
        let back = "[Send(0, HandBack { id: 9, takes_none: true, work: () })]";
        assert_eq!(said(&mut out), back);
    }

    #[test]
    fn rank_0_takes_the_place_of_neighbours_that_have_left() {
        // The neighbours of 3 are 1, 2 and 7.
        let (mut rank, mut out) = (Protocol::<Plain>::new(3, 8, 0), Vec::new());
        rank.receive(7, Message::TakesNone, &mut out);
        let answered = "[Send(7, Known), Send(7, NoWork(Standing)), Send(0, Ask(Standing))]";
        assert_eq!(said(&mut out), answered);
        rank.receive(7, Message::NoWork(Request::Standing), &mut out);
        rank.receive(2, Message::TakesNone, &mut out);
        // It waits at rank 0 already.
        assert_eq!(said(&mut out), "[Send(2, Known), Send(2, NoWork(Standing))]");
        // Rank 0 gives to it from now on, and asks it as well.
        let (mut first, mut out) = (Protocol::<Plain>::new(0, 8, 0), Vec::new());
        first.receive(3, Message::Ask(Request::Standing), &mut out);
        out.clear();
        first.idle(&mut out);
        for _ in 0..TRIES {
            first.receive(3, Message::NoWork(Request::Once), &mut out);
        }
        let said = said(&mut out);
        assert!(said.contains("Send(3, Ask(Standing))"), "{said}");
    }

    #[test]
    fn the_rank_that_may_have_more_is_asked_first() {
        let (mut rank, mut out) = (Protocol::<Plain>::new(5, 64, 0), Vec::new());
        let request = Request::Standing;
        rank.receive(4, Message::Share { request, home: 33, id: 1, work: () }, &mut out);
        out.clear();
        rank.idle(&mut out);
        assert_eq!(said(&mut out), "[Send(33, Ask(Once))]");
        for tries in 0..TRIES {
            rank.receive(33, Message::NoWork(Request::Once), &mut out);
            assert!(matches!(out[..], [Command::Send(_, Message::Ask(Request::Once))]), "{tries}");
            out.clear();
        }
        rank.receive(9, Message::NoWork(Request::Once), &mut out);
        // It waits at the others already.
        assert_eq!(said(&mut out), "[Send(4, Ask(Standing))]");
    }
}
