//! The events of a simulation, in the order of the virtual clock, and the network.

use std::collections::{BTreeMap, VecDeque};

use super::costs::Costs;
use super::faults::{Faults, mixed};
use super::outcome::Outcome;
use super::rank::{Rank, Simulated};
use super::shape::Shape;
use cluster::{Command, Message, RankId};

/// A copy of one tree by so many ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Simulation {
    /// The tree.
    pub(crate) shape: Shape,
    /// How many entries it has below its root.
    pub(crate) entries: u64,
    /// How many ranks copy it.
    pub(crate) ranks: u32,
    /// The machine.
    pub(crate) costs: Costs,
    /// What goes wrong, and what is not a plain file.
    pub(crate) faults: Faults,
    /// What the random numbers start from. The same seed gives the same run.
    pub(crate) seed: u64,
    /// Whether every entry is counted by name, which takes memory for each.
    pub(crate) counts_names: bool,
}

enum Event {
    /// The worker of a rank has done what it did, unless it was interrupted since.
    Wake { rank: RankId, version: u64 },
    /// A message has arrived.
    Arrive { to: RankId, from: RankId, message: Message<Simulated> },
    /// A rank takes the next message that has arrived.
    Receive { rank: RankId },
    /// The user interrupts the copy.
    Interrupt { rank: RankId },
}

#[derive(Default)]
struct Inbox {
    arrived: VecDeque<(RankId, Message<Simulated>)>,
    /// When the rank has time for the next message.
    free_at: u64,
}

struct Run {
    setting: Simulation,
    ranks: Vec<Rank>,
    inboxes: Vec<Inbox>,
    /// By time, and those of one time in the order in which they were scheduled.
    events: BTreeMap<(u64, u64), Event>,
    numbers: u64,
    now: u64,
    under_way: u64,
    outcome: Outcome,
}

impl Simulation {
    /// A copy in which nothing goes wrong.
    pub(crate) fn of(shape: Shape, entries: u64, ranks: u32, metadata_us: u64) -> Simulation {
        let (costs, faults) = (Costs::with_metadata_us(metadata_us), Faults::default());
        Simulation { shape, entries, ranks, costs, faults, seed: 1, counts_names: false }
    }

    /// Runs the copy to its end.
    ///
    /// # Panics
    /// If the protocol is wrong: an entry is copied after the end, a rank ends with something left,
    /// a message is under way at the end, or nothing happens any more before the end.
    pub(crate) fn run(&self) -> Outcome {
        let mut run = Run {
            setting: *self,
            ranks: (0..self.ranks).map(|rank| Rank::new(rank, *self)).collect(),
            inboxes: (0..self.ranks).map(|_| Inbox::default()).collect(),
            events: BTreeMap::new(),
            numbers: 0,
            now: 0,
            under_way: 0,
            outcome: Outcome { counts_names: self.counts_names, ..Outcome::default() },
        };
        if let Some((at, rank)) = self.faults.cancel {
            run.schedule(at, Event::Interrupt { rank });
        }
        run.ranks[0].start(Shape::root(self.entries), 0, &mut run.outcome);
        run.settle(0);
        while let Some(((at, _), event)) = run.events.pop_first() {
            run.now = at;
            run.happen(event);
            if run.ranks[0].exited && run.under_way == 0 {
                break;
            }
        }
        for (id, rank) in run.ranks.iter().enumerate() {
            assert!(rank.exited && rank.is_done(), "rank {id} of {} has not ended", self.ranks);
        }
        Outcome {
            elapsed_ns: run.now,
            critical_ns: self.shape.critical_ns(self.entries, &self.costs),
            copied_by: run.ranks.iter().map(|rank| rank.copied).collect(),
            records_most: run.ranks.iter().map(|rank| rank.records.most).max().unwrap_or(0),
            ..run.outcome
        }
    }
}

impl Run {
    fn schedule(&mut self, at: u64, event: Event) {
        self.numbers += 1;
        self.events.insert((at, self.numbers), event);
    }

    fn happen(&mut self, event: Event) {
        let (now, setting) = (self.now, self.setting);
        match event {
            Event::Wake { rank, version } => {
                let it = &mut self.ranks[rank as usize];
                if it.version != version || it.wakes_at.is_none() {
                    return;
                }
                it.wake(now, &mut self.outcome);
                self.settle(rank);
            }
            Event::Arrive { to, from, message } => {
                let inbox = &mut self.inboxes[to as usize];
                inbox.arrived.push_back((from, message));
                if inbox.arrived.len() == 1 {
                    let at = inbox.free_at.max(now);
                    self.schedule(at, Event::Receive { rank: to });
                }
            }
            Event::Receive { rank } => {
                let inbox = &mut self.inboxes[rank as usize];
                let (from, message) = inbox.arrived.pop_front().expect("a message");
                inbox.free_at = now + setting.costs.receive_ns;
                if !inbox.arrived.is_empty() {
                    self.schedule(now + setting.costs.receive_ns, Event::Receive { rank });
                }
                self.under_way -= 1;
                let it = &mut self.ranks[rank as usize];
                assert!(!it.exited, "a message arrives after the end");
                it.protocol.receive(from, message, &mut it.out);
                self.settle(rank);
            }
            Event::Interrupt { rank } => {
                let it = &mut self.ranks[rank as usize];
                if !it.exited {
                    it.protocol.cancel(&mut it.out);
                    self.settle(rank);
                }
            }
        }
    }

    /// Carries out what the protocol of `rank` asks for, until it asks for nothing more.
    fn settle(&mut self, rank: RankId) {
        loop {
            let commands = std::mem::take(&mut self.ranks[rank as usize].out);
            if commands.is_empty() {
                break;
            }
            for command in commands {
                match command {
                    Command::Send(to, message) => self.send(rank, to, message),
                    command => {
                        let it = &mut self.ranks[rank as usize];
                        it.obey(command, self.now, &mut self.outcome);
                    }
                }
            }
        }
        let it = &mut self.ranks[rank as usize];
        if let Some(at) = it.wakes_at.filter(|_| it.version != it.scheduled) {
            it.scheduled = it.version;
            let version = it.version;
            self.schedule(at, Event::Wake { rank, version });
        }
    }

    fn send(&mut self, from: RankId, to: RankId, message: Message<Simulated>) {
        self.outcome.messages += 1;
        self.under_way += 1;
        let costs = &self.setting.costs;
        let spread = costs.message_ns_max - costs.message_ns_min + 1;
        // The same for all messages between two ranks, so that they arrive in order.
        let latency = costs.message_ns_min + mixed(u64::from(from) << 32 | u64::from(to)) % spread;
        self.schedule(self.now + latency, Event::Arrive { to, from, message });
    }
}
