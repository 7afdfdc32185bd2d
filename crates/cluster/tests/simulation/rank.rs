//! One simulated rank: a worker that walks its part of the tree, and its protocol.

use std::collections::VecDeque;

use fastrand::Rng;

use super::costs::LISTED_NAMES;
use super::engine::Simulation;
use super::outcome::Outcome;
use super::shape::{Dir, Shape};
use super::store::{Frame, Names, Owner, Record, RecordId, Records};
use cluster::{Command, Payload, Protocol, RankId, Surplus, Ticket};

/// Directories whose descriptors a rank keeps for later shares.
const KEPT_OPEN: usize = 32;

/// Levels of the tree that a rank keeps open.
const OPEN_LEVELS: usize = 32;

/// Directories of a chain that are one event.
const CHAIN_LEVELS: u64 = 1 << 16;

#[derive(Debug)]
pub(super) struct Simulated;

impl Payload for Simulated {
    type Work = Names;
    /// The rank that copied the file, and its number there.
    type Name = (RankId, Ticket);
    type Summary = u64;
}

/// What the worker does until it wakes.
#[derive(Debug)]
enum Activity {
    Idle,
    /// Copies files in a row of the last frame.
    Files {
        started: u64,
        each_ns: u64,
        count: u64,
    },
    Step(Step),
}

#[derive(Debug)]
enum Step {
    Enter { levels: u64 },
    List(RecordId),
    Open(RecordId),
    Job(Job),
}

/// What is done apart from the walk.
#[derive(Clone, Copy, Debug)]
enum Job {
    Finish(RecordId),
    /// Copies a file under one of its names, or links the name to the copy.
    Name {
        ticket: Ticket,
        is_first: bool,
    },
}

#[derive(Debug)]
pub(super) struct Rank {
    pub(super) protocol: Protocol<Simulated>,
    pub(super) out: Vec<Command<Simulated>>,
    /// When the worker wakes; `None` if it does not.
    pub(super) wakes_at: Option<u64>,
    /// Counts the times of waking that were set, of which only the last is valid.
    pub(super) version: u64,
    /// The last of them for which there is an event.
    pub(super) scheduled: u64,
    pub(super) exited: bool,
    id: RankId,
    setting: Simulation,
    frames: Vec<Frame>,
    pub(super) records: Records,
    jobs: VecDeque<Job>,
    /// Names of files with several names that wait for an answer: the record and the name.
    tickets: Vec<(RecordId, Dir, u64)>,
    activity: Activity,
    kept_open: VecDeque<Dir>,
    cancelled: bool,
    pub(super) copied: u64,
    /// How many further shares it takes, if it gives up.
    shares_left: Option<u64>,
    rng: Rng,
}

impl Rank {
    pub(super) fn new(id: RankId, setting: Simulation) -> Rank {
        let Simulation { ranks, seed, .. } = setting;
        Rank {
            protocol: Protocol::new(id, ranks, seed),
            out: Vec::new(),
            wakes_at: None,
            version: 0,
            scheduled: 0,
            exited: false,
            id,
            setting,
            frames: Vec::new(),
            records: Records::default(),
            jobs: VecDeque::new(),
            tickets: Vec::new(),
            activity: Activity::Idle,
            kept_open: VecDeque::new(),
            cancelled: false,
            copied: 0,
            shares_left: setting.faults.shares_taken(id, seed),
            rng: Rng::with_seed(seed.wrapping_mul(31).wrapping_add(u64::from(id))),
        }
    }

    /// Starts with the operand `root`.
    pub(super) fn start(&mut self, root: Dir, now: u64, outcome: &mut Outcome) {
        outcome.useful_ns += u128::from(self.setting.costs.enter_ns());
        self.push_directory(root, Owner::Operand, 1);
        self.proceed(now, outcome);
    }

    /// Nothing is left here.
    pub(super) fn is_done(&self) -> bool {
        self.frames.is_empty() && self.records.is_empty() && self.jobs.is_empty()
    }

    /// The worker has done what it did.
    pub(super) fn wake(&mut self, now: u64, outcome: &mut Outcome) {
        self.wakes_at = None;
        match std::mem::replace(&mut self.activity, Activity::Idle) {
            Activity::Idle => (),
            Activity::Files { each_ns, count, .. } => {
                self.copied_files(each_ns, count, outcome);
            }
            Activity::Step(step) => self.stepped(step, outcome),
        }
        self.proceed(now, outcome);
    }

    /// Does what the protocol asks for.
    pub(super) fn obey(&mut self, command: Command<Simulated>, now: u64, outcome: &mut Outcome) {
        match command {
            Command::Send(..) => unreachable!("the network sends"),
            Command::Demand(0) => return,
            Command::Demand(_) => return self.stop_after_this_file(now),
            Command::Take { share, work: names, .. } => {
                match &mut self.shares_left {
                    Some(0) => {
                        self.protocol.take_none(&mut self.out);
                        self.protocol.hand_back(share, names, false, &mut self.out);
                        return self.proceed_if_idle(now, outcome);
                    }
                    Some(left) => *left -= 1,
                    None => {}
                }
                self.push_names(names, Owner::Share(share), false);
            }
            Command::Returned(record) => self.settle(record, outcome),
            Command::TakeBack { number, work: names, .. } => {
                self.push_names(names, Owner::Record(number), true);
            }
            Command::FirstCopy(ticket, made) => {
                made.into_iter().for_each(|(rank, first)| outcome.check_linked(rank, first));
                self.jobs.push_back(Job::Name { ticket, is_first: made.is_none() });
            }
            Command::Claimed(..) | Command::Granted(..) => {
                unreachable!("here a share has the ranges themselves")
            }
            Command::Cancel => self.cancelled = true,
            Command::Summarize => {
                assert!(self.is_done(), "rank {} ends with nothing left", self.id);
                return self.protocol.farewell(self.copied, &mut self.out);
            }
            Command::Summary(_, copied) => outcome.copied += copied,
            Command::Exit => self.exited = true,
        }
        self.proceed_if_idle(now, outcome);
    }

    fn proceed_if_idle(&mut self, now: u64, outcome: &mut Outcome) {
        if matches!(self.activity, Activity::Idle) && !self.exited {
            self.proceed(now, outcome);
        }
    }

    /// Files in a row end early, so that the worker sees who waits.
    fn stop_after_this_file(&mut self, now: u64) {
        if let Activity::Files { started, each_ns, count } = &mut self.activity {
            let begun = (now - *started) / *each_ns + 1;
            if begun < *count {
                *count = begun;
                self.wakes_at = Some(*started + begun * *each_ns);
                self.version += 1;
            }
        }
    }

    fn begin(&mut self, activity: Activity, now: u64, elapsed_ns: u64) {
        self.activity = activity;
        self.wakes_at = Some(now + elapsed_ns);
        self.version += 1;
    }

    /// Chooses what to do next.
    fn proceed(&mut self, now: u64, outcome: &mut Outcome) {
        let Simulation { costs, .. } = self.setting;
        if self.cancelled {
            self.drop_everything(outcome);
        }
        if let Some(record) = self.give() {
            let frame = self.frame(record);
            let names = (frame.end - frame.listed).min(LISTED_NAMES);
            return self.step(Step::List(record), now, costs.list_ns(names));
        }
        if let Some(job) = self.jobs.pop_front() {
            self.protocol.resume(&mut self.out);
            let elapsed_ns = match job {
                Job::Finish(record) => costs.finish_ns() * self.records.get(record).dirs,
                Job::Name { ticket, is_first: true } => {
                    costs.leaf_ns(self.setting.shape.range_bytes(&self.tickets[as_index(ticket)].1))
                }
                Job::Name { is_first: false, .. } => costs.link_ns(),
            };
            return self.step(Step::Job(job), now, elapsed_ns);
        }
        while let Some(frame) = self.frames.last() {
            let record = frame.record;
            if frame.next < frame.end {
                return self.begin_names(now, outcome);
            }
            self.frames.pop();
            self.records.get(record).has_frame = false;
            self.check(record, outcome);
            if !self.jobs.is_empty() {
                return self.proceed(now, outcome);
            }
        }
        self.protocol.idle(&mut self.out);
    }

    fn step(&mut self, step: Step, now: u64, elapsed_ns: u64) {
        self.begin(Activity::Step(step), now, elapsed_ns);
    }

    /// Enters the next name, a directory, or copies the files before the next directory.
    fn begin_names(&mut self, now: u64, outcome: &mut Outcome) {
        let Simulation { costs, .. } = self.setting;
        let frame = self.frames.last().expect("found");
        if !frame.is_open {
            let elapsed_ns =
                costs.open_ns(self.setting.shape.levels_to_open(&frame.dir, &self.kept_open));
            outcome.opening_ns += u128::from(elapsed_ns);
            return self.step(Step::Open(frame.record), now, elapsed_ns);
        }
        if frame.known() == 0 {
            let names = (frame.end - frame.listed).min(LISTED_NAMES);
            return self.step(Step::List(frame.record), now, costs.list_ns(names));
        }
        let until = frame.children.next_dir(frame.next).min(frame.listed);
        if until == frame.next {
            let straight = self.setting.shape.straight(&frame.dir);
            // On its way down a chain a rank has nothing to give.
            let levels = straight.saturating_sub(1).clamp(1, CHAIN_LEVELS);
            let each_ns = costs.enter_ns() + costs.list_ns(1) * u64::from(levels > 1);
            return self.step(Step::Enter { levels }, now, levels * each_ns);
        }
        let each_ns = costs.leaf_ns(self.setting.shape.range_bytes(&frame.dir));
        let count = if self.setting.faults.link_every > 0 { 1 } else { until - frame.next };
        self.begin(Activity::Files { started: now, each_ns, count }, now, count * each_ns);
    }

    fn copied_files(&mut self, each_ns: u64, count: u64, outcome: &mut Outcome) {
        let frame = self.frames.last_mut().expect("the frame of the files");
        let (first, dir, record) = (frame.next, frame.dir, frame.record);
        frame.next += count;
        if let Some(inode) = self.setting.faults.inode(&dir, first) {
            let ticket = self.tickets.len() as Ticket;
            self.tickets.push((record, dir, first));
            self.records.get(record).pending += 1;
            return self.protocol.ask_link(inode, ticket, &mut self.out);
        }
        outcome.useful_ns += u128::from(each_ns * count);
        self.copied += count;
        outcome.add_copied(&dir, first, count);
    }

    fn stepped(&mut self, step: Step, outcome: &mut Outcome) {
        let Simulation { costs, .. } = self.setting;
        match step {
            Step::List(record) => {
                let frame = self.frame(record);
                let names = (frame.end - frame.listed).min(LISTED_NAMES);
                frame.listed += names;
                outcome.useful_ns += u128::from(costs.list_ns(names));
            }
            Step::Enter { levels } => {
                let frame = self.frames.last_mut().expect("the frame of the directory");
                let (parent, at, record) = (frame.dir, frame.next, frame.record);
                frame.next += 1;
                let index = frame.children.dir_at(at).expect("a directory");
                let dir = match levels {
                    1 => frame.children.dir(&parent, index),
                    levels => Shape::below(&parent, levels),
                };
                outcome.add_copied(&parent, at, 1);
                self.copied += levels;
                let listed = costs.list_ns(1) * (levels - 1);
                outcome.useful_ns += u128::from(levels * costs.enter_ns() + listed);
                self.records.get(record).pending += 1;
                self.push_directory(dir, Owner::Record(record), levels);
            }
            Step::Open(record) => {
                let refuses = self.rng.u64(..1000) < self.setting.faults.hand_back_per_mille;
                let at = self.frames.iter().rposition(|frame| frame.record == record);
                let at = at.expect("the frame of the share");
                let untouched = self.records.get(record).pending == 0;
                if refuses && untouched {
                    let frame = self.frames.remove(at);
                    let Owner::Share(share) = self.records.remove(record).owner else {
                        unreachable!("only shares are opened");
                    };
                    let Frame { dir, home, next, end, .. } = frame;
                    let names = Names { dir, home, start: next, end };
                    return self.protocol.hand_back(share, names, false, &mut self.out);
                }
                self.frames[at].is_open = true;
                let dir = self.frames[at].dir;
                self.keep_open(dir);
            }
            Step::Job(job) => self.done_job(job, outcome),
        }
    }

    fn done_job(&mut self, job: Job, outcome: &mut Outcome) {
        match job {
            Job::Finish(record) => {
                let Record { owner, dirs, .. } = self.records.remove(record);
                outcome.useful_ns += u128::from(self.setting.costs.finish_ns() * dirs);
                self.finished(owner, outcome);
            }
            Job::Name { ticket, is_first } => {
                let (record, dir, at) = self.tickets[as_index(ticket)];
                outcome.add_copied(&dir, at, 1);
                self.copied += 1;
                if is_first {
                    let inode = self.setting.faults.inode(&dir, at).expect("it has several names");
                    let is_copied = !self.cancelled && !self.setting.faults.fails(&dir, at);
                    let name = is_copied.then_some((self.id, ticket));
                    name.into_iter().for_each(|name| outcome.copied_first(name, inode));
                    self.protocol.copied(inode, name, &mut self.out);
                }
                self.settle(record, outcome);
            }
        }
    }

    /// Gives names to ranks that wait. Returns the directory that has to be read further first.
    fn give(&mut self) -> Option<RecordId> {
        loop {
            let demand = self.protocol.demand();
            if demand == 0 || self.frames.is_empty() {
                return None;
            }
            let last = self.frames.len() - 1;
            let part = |at: usize, frame: &Frame| {
                // This rank keeps one name of the directory that it is in.
                let names = frame.known().saturating_sub(u64::from(at == last));
                let heavy = self.setting.shape.range_bytes(&frame.dir).is_some()
                    || frame.children.next_dir(frame.next) < frame.next + names;
                let (depth, endless) = (u64::from(frame.dir.depth), !frame.is_read_to_its_end());
                Surplus { names, depth, heavy, endless }.part(demand)
            };
            // Directories between the first and the last ones are closed.
            let near = last.saturating_sub(OPEN_LEVELS).max(1);
            let levels = || std::iter::once(0).chain(near..=last);
            let gives = |at: &usize| self.frames[*at].gives;
            let parts = levels().filter(gives).map(|at| (at, part(at, &self.frames[at])));
            let Some((at, part)) = parts.into_iter().find(|&(_, part)| part > 0) else {
                let unread = levels()
                    .filter(gives)
                    .map(|at| &self.frames[at])
                    .find(|frame| !frame.is_read_to_its_end() && frame.is_open);
                if unread.is_none() {
                    self.protocol.no_surplus(&mut self.out);
                }
                return unread.map(|frame| frame.record);
            };
            let frame = &mut self.frames[at];
            let (dir, home, start) = (frame.dir, frame.home, frame.next);
            let share = Names { dir, home, start, end: start + part };
            frame.next += part;
            let record = frame.record;
            self.records.get(record).pending += 1;
            let offered = self.protocol.offer(share, home, record, &mut self.out);
            offered.expect("a rank waits");
        }
    }

    fn push_directory(&mut self, dir: Dir, owner: Owner, dirs: u64) {
        let children = self.setting.shape.children(&dir);
        let record = self.records.insert(Record { owner, has_frame: true, pending: 0, dirs });
        let (next, end, home) = (0, children.names, self.id);
        // The ranges of a file need not be listed.
        let listed = if self.setting.shape.range_bytes(&dir).is_some() { end } else { 0 };
        let (is_open, gives) = (true, true);
        let frame = Frame { record, dir, home, children, next, listed, end, is_open, gives };
        self.frames.push(frame);
        self.keep_open(dir);
    }

    /// Names of a share come last: until then they can be given to another rank unopened.
    fn push_names(&mut self, names: Names, owner: Owner, is_open: bool) {
        let Names { dir, home, start, end } = names;
        let children = self.setting.shape.children(&dir);
        let record = self.records.insert(Record { owner, has_frame: true, pending: 0, dirs: 0 });
        let (next, listed, gives) = (start, end, !is_open);
        let frame = Frame { record, dir, home, children, next, listed, end, is_open, gives };
        self.frames.insert(0, frame);
    }

    fn keep_open(&mut self, dir: Dir) {
        if !self.kept_open.contains(&dir) {
            self.kept_open.push_front(dir);
            self.kept_open.truncate(KEPT_OPEN);
        }
    }

    fn frame(&mut self, record: RecordId) -> &mut Frame {
        let found = self.frames.iter_mut().rev().find(|frame| frame.record == record);
        found.expect("a frame that is worked on stays")
    }

    /// One thing that `record` waited for is finished.
    fn settle(&mut self, record: RecordId, outcome: &mut Outcome) {
        self.records.get(record).pending -= 1;
        self.check(record, outcome);
    }

    fn check(&mut self, record: RecordId, outcome: &mut Outcome) {
        let &mut Record { owner, has_frame, pending, dirs } = self.records.get(record);
        if has_frame || pending > 0 {
            return;
        }
        if dirs > 0 && !self.cancelled {
            return self.jobs.push_back(Job::Finish(record));
        }
        self.records.remove(record);
        self.finished(owner, outcome);
    }

    fn finished(&mut self, owner: Owner, outcome: &mut Outcome) {
        match owner {
            Owner::Operand => {
                outcome.finished = true;
                self.protocol.finish(&mut self.out);
            }
            Owner::Record(above) => self.settle(above, outcome),
            Owner::Share(share) => self.protocol.done(share, &mut self.out),
        }
    }

    fn drop_everything(&mut self, outcome: &mut Outcome) {
        while let Some(frame) = self.frames.pop() {
            self.records.get(frame.record).has_frame = false;
            self.check(frame.record, outcome);
        }
    }
}

fn as_index(ticket: Ticket) -> usize {
    usize::try_from(ticket).expect("an index")
}
