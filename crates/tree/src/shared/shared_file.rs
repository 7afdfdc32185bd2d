//! A large file that several processes copy, as the one that owns it keeps account of it: which process
//! copies which range, and which are complete.
//!
//! The owner takes ranges itself, and partners claim theirs by messages, each one range at a time.
//! With a claim a partner tells what became of its last range. So each range that is not complete is being
//! copied at that moment, and the owner waits for no partner that is busy with something else.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::messages::{
    ByteRange, ChunkRecord, Claim, CopiedRange, Done, Grant, Task, decode, encode,
};
use crate::hash::HashMap;
use crate::lock::lock;

/// The answer to a claim of a file that is not there.
pub(crate) const NOTHING: Grant = Grant::Nothing { tells: true };

/// What the owner does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Task(Task),
    /// Partners are not done yet.
    Wait,
    /// All ranges are copied, or all verified, or the copy has failed, and no process is at one.
    Over,
}

/// Why the copy of a file ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Of the owner.
    Own,
    /// Of a partner, which tells it.
    Told,
    Interrupted,
}

/// Wrote what was there before.
const NOBODY: u32 = u32::MAX;

/// A process takes its equal part of what is left in so many ranges: processes differ in speed, and begin at
/// different times.
const PARTS_EACH: u64 = 2;

/// Bounds of the lengths of ranges of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeBytes {
    /// The longest range. A shorter file is copied by one process.
    pub most: u64,
    /// The shortest range, but for the end of the file. Ranges begin at multiples of it.
    pub least: u64,
}

/// How a file is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// The copy is complete up to this offset.
    pub(crate) from: u64,
    pub(crate) file_bytes: u64,
    /// Ranges become shorter as less is left, so that all processes end at about the same time.
    pub(crate) range_bytes: RangeBytes,
    /// The ranges are verified after all of them are copied.
    pub(crate) verifies: bool,
}

/// Answers a claim.
pub type Answer = Box<dyn FnOnce(Vec<u8>) + Send>;

/// A file that this process owns and partners help to copy.
pub(crate) struct SharedFile {
    pub(crate) number: u64,
    owner: u32,
    cut: Cut,
    state: Mutex<State>,
    /// A partner is done with a range.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    phase: Phase,
    /// Where the first range begins that no process has taken.
    next: u64,
    /// What processes are at.
    taken: Vec<(u32, Task)>,
    /// Complete ranges after the first that is not complete, by their start.
    apart: BTreeMap<u64, CopiedRange>,
    /// Up to here all is complete.
    complete_to: u64,
    records: Vec<ChunkRecord>,
    records_to: u64,
    /// What is still to be verified, and who wrote it.
    written: Vec<(ByteRange, u32)>,
    differs_at: Option<u64>,
    /// The source has ended within a range.
    has_ended: bool,
    failure: Option<Failure>,
    /// What partners have copied: data, holes.
    by_others: (u64, u64),
    /// Partners that have claimed and were not told that nothing is left, one for each of their workers.
    helpers: Vec<u32>,
    /// Claims without an answer yet, and whether their partner has to tell its failure.
    waiting: Vec<(u32, Answer, bool)>,
    /// Partners to which the file was offered, and that have not claimed yet.
    offers: usize,
    was_offered: bool,
    /// A partner could not open the files.
    is_refused: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Copying,
    Verifying,
    Closed,
}

impl SharedFile {
    fn new(number: u64, owner: u32, cut: Cut) -> SharedFile {
        // What an earlier run has written no process of this one has.
        let most = cut.range_bytes.most;
        let before = (0..cut.from.div_ceil(most)).filter(|_| cut.verifies).map(|index| {
            let start = index * most;
            let end = cut.from.min(start + most);
            (ByteRange { start, end }, NOBODY)
        });
        let (next, complete_to, records_to) = (cut.from, cut.from, cut.from);
        let written = before.collect();
        let state = State { next, complete_to, records_to, written, ..State::default() };
        SharedFile { number, owner, cut, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// What the owner does next. It tells [`done`](SharedFile::done) what became of it.
    pub(crate) fn next(&self) -> Next {
        lock(&self.state).choose(&self.cut, self.owner, true)
    }

    /// The owner is done with `task`.
    pub(crate) fn done(&self, task: Task, done: Done) {
        let mut state = lock(&self.state);
        state.settle(&self.cut, self.owner, (task, done));
        self.answer(&mut state);
    }

    /// The owner has failed, at `task` if it had one. Nothing more is begun. Returns whether that is the
    /// first failure.
    pub(crate) fn failed(&self, task: Option<Task>, failure: Failure) -> bool {
        let mut state = lock(&self.state);
        if let Some(task) = task {
            state.forget(self.owner, task);
        }
        let is_first = state.failure.is_none();
        state.fail(failure);
        self.answer(&mut state);
        is_first
    }

    /// Waits until a partner is done with a range, or `time` is over.
    pub(crate) fn wait(&self, time: Duration) {
        let state = lock(&self.state);
        if !state.taken.is_empty() || state.phase == Phase::Verifying {
            drop(self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Whether there is something to do for one process more than it was offered to.
    pub(crate) fn wants_help(&self) -> bool {
        let state = lock(&self.state);
        if state.is_refused || state.failure.is_some() {
            return false;
        }
        match state.phase {
            Phase::Copying => state.left(&self.cut) > state.offers as u64,
            Phase::Verifying => state.written.len() > state.offers,
            Phase::Closed => false,
        }
    }

    /// The file is offered to a partner.
    pub(crate) fn offered(&self) {
        let mut state = lock(&self.state);
        state.offers += 1;
        state.was_offered = true;
    }

    /// Whether the file was offered to a partner.
    pub(crate) fn was_offered(&self) -> bool {
        lock(&self.state).was_offered
    }

    /// A partner to which the file was offered helps no more, or has `refused` to.
    pub(crate) fn returned(&self, refused: bool) {
        let mut state = lock(&self.state);
        state.is_refused |= refused;
        if refused {
            state.offers = state.offers.saturating_sub(1);
        }
    }

    /// A partner asks for a range, and tells what became of its last one.
    fn claim(&self, from: u32, answer: Answer, done: Option<(Task, Done)>) {
        let mut state = lock(&self.state);
        let mut tells = false;
        if let Some((task, done)) = done {
            tells = done == Done::Failed && state.failure.is_none();
            if let Done::Copied(copied) = &done {
                state.by_others.0 += copied.data_bytes;
                state.by_others.1 += copied.hole_bytes;
            }
            state.settle(&self.cut, from, (task, done));
        } else {
            state.offers = state.offers.saturating_sub(1);
            state.helpers.push(from);
        }
        state.waiting.push((from, answer, tells));
        self.answer(&mut state);
        self.changed.notify_all();
    }

    /// Answers the claims that can be answered.
    fn answer(&self, state: &mut State) {
        for (partner, answer, tells) in std::mem::take(&mut state.waiting) {
            let grant = match state.choose(&self.cut, partner, false) {
                Next::Wait => {
                    state.waiting.push((partner, answer, tells));
                    continue;
                }
                Next::Over => {
                    if let Some(at) = state.helpers.iter().position(|&helper| helper == partner) {
                        state.helpers.swap_remove(at);
                    }
                    Grant::Nothing { tells }
                }
                Next::Task(task) => Grant::Task { task, more: state.left(&self.cut) > 0 },
            };
            answer(encode(&grant));
        }
    }

    /// Up to here all is copied.
    pub(crate) fn complete_to(&self) -> u64 {
        lock(&self.state).complete_to
    }

    /// The bytes of data and of holes that partners have copied.
    pub(crate) fn by_others(&self) -> (u64, u64) {
        lock(&self.state).by_others
    }

    pub(crate) fn failure(&self) -> Option<Failure> {
        lock(&self.state).failure
    }

    /// What the journal can record since the last call. All before it is complete.
    pub(crate) fn take_records(&self) -> Vec<ChunkRecord> {
        std::mem::take(&mut lock(&self.state).records)
    }

    /// All ranges are copied. Now they are verified, each by another process than the one that wrote it,
    /// if there is one.
    pub(crate) fn start_verifying(&self) {
        let mut state = lock(&self.state);
        state.phase = Phase::Verifying;
        // Offers of the copy may have found nothing to do.
        state.offers = 0;
        self.answer(&mut state);
    }

    /// The first offset at which a process has found a difference.
    pub(crate) fn differs_at(&self) -> Option<u64> {
        lock(&self.state).differs_at
    }

    /// Nothing more is to be done.
    ///
    /// # Panics
    /// If a process is at a range.
    fn close(&self) {
        let mut state = lock(&self.state);
        state.phase = Phase::Closed;
        self.answer(&mut state);
    }
}

impl State {
    /// How many ranges no process has taken, if all are as short as can be.
    fn left(&self, cut: &Cut) -> u64 {
        if self.phase != Phase::Copying || self.has_ended || self.failure.is_some() {
            return 0;
        }
        let bytes = cut.file_bytes;
        // The first may begin within a range.
        if self.next < bytes {
            bytes.div_ceil(cut.range_bytes.least) - self.next / cut.range_bytes.least
        } else {
            0
        }
    }

    fn take_range(&mut self, cut: &Cut) -> Option<Task> {
        if self.left(cut) == 0 {
            return None;
        }
        let RangeBytes { most, least } = cut.range_bytes;
        let start = self.next;
        let processes = 1 + self.helpers.len() + self.offers;
        let part = (cut.file_bytes - start) / (PARTS_EACH * processes as u64);
        let end = start.saturating_add(part.clamp(least, most)) / least * least;
        self.next = end.min(cut.file_bytes);
        Some(Task::Copy(ByteRange { start, end: self.next }))
    }

    fn choose(&mut self, cut: &Cut, process: u32, is_owner: bool) -> Next {
        let is_at_work = !self.taken.is_empty();
        let over = if is_owner && is_at_work { Next::Wait } else { Next::Over };
        if self.failure.is_some() || self.phase == Phase::Closed {
            return over;
        }
        // The owner leaves what it has written itself to partners, which will come back for it.
        let takes_own = is_owner && self.helpers.iter().all(|&helper| helper == process);
        let task = match self.phase {
            Phase::Copying => self.take_range(cut),
            _ => {
                let by_others = self.take_written(|writer| writer != process);
                by_others.or_else(|| self.take_written(|_| takes_own))
            }
        };
        if let Some(task) = task {
            self.taken.push((process, task));
            return Next::Task(task);
        }
        match (self.phase, is_owner) {
            // It verifies ranges of others later.
            (Phase::Copying, false) if cut.verifies => Next::Wait,
            (Phase::Verifying, true) if !self.written.is_empty() => Next::Wait,
            _ => over,
        }
    }

    fn take_written(&mut self, by: impl Fn(u32) -> bool) -> Option<Task> {
        let at = self.written.iter().position(|&(_, writer)| by(writer))?;
        Some(Task::Verify(self.written.remove(at).0))
    }

    /// The process is no longer at the task. Returns whether it was.
    fn forget(&mut self, process: u32, task: Task) -> bool {
        let at = self.taken.iter().position(|&taken| taken == (process, task));
        at.map(|at| self.taken.swap_remove(at)).is_some()
    }

    /// The first failure counts. After that nothing more is begun.
    fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    /// # Panics
    /// If the process is not at the task.
    fn settle(&mut self, cut: &Cut, process: u32, (task, done): (Task, Done)) {
        assert!(self.forget(process, task), "process {process} is not at {task:?}");
        match done {
            Done::Copied(copied) => {
                self.has_ended |= copied.to < copied.range.end;
                if cut.verifies {
                    self.written.push((copied.range, process));
                }
                self.apart.insert(copied.range.start, copied);
                self.join();
            }
            Done::Differs(at) => {
                let before = self.differs_at.unwrap_or(u64::MAX);
                self.differs_at = Some(at.min(before));
                // Only a difference before this one is of interest.
                self.written.retain(|(range, _)| range.start < at);
            }
            Done::Verified => {}
            Done::Failed => self.fail(Failure::Told),
            Done::Interrupted => self.fail(Failure::Interrupted),
        }
    }

    /// Adds ranges to the complete part that follow it.
    fn join(&mut self) {
        while let Some(copied) = self.apart.remove(&self.complete_to) {
            if self.records_to == self.complete_to {
                self.records_to = copied.recorded_to;
                self.records.extend(copied.records);
            }
            self.complete_to = copied.to;
            if copied.to < copied.range.end {
                break;
            }
        }
    }
}

/// The files that this process owns and of which others know, by their numbers.
#[derive(Default)]
pub(crate) struct SharedFiles(Mutex<Known>);

#[derive(Default)]
struct Known {
    files: HashMap<u64, Arc<SharedFile>>,
    numbered: u64,
}

impl SharedFiles {
    /// A file of this process, `owner`. Others may claim ranges of it until it is removed.
    pub(crate) fn add(&self, owner: u32, cut: Cut) -> Arc<SharedFile> {
        let mut known = lock(&self.0);
        let number = known.numbered;
        known.numbered += 1;
        let file = Arc::new(SharedFile::new(number, owner, cut));
        known.files.insert(number, file.clone());
        file
    }

    /// The copy of the file has ended.
    pub(crate) fn remove(&self, file: &SharedFile) {
        lock(&self.0).files.remove(&file.number);
        file.close();
    }

    /// The partner `from` has sent `claim`. It is answered now or later.
    pub(crate) fn claim(&self, from: u32, claim: &[u8], answer: Answer) {
        let claim = decode::<Claim>(claim);
        let known = claim.and_then(|claim| {
            let file = lock(&self.0).files.get(&claim.file).cloned()?;
            Some((file, claim))
        });
        // If there is none, the copy has ended.
        match known {
            Some((file, claim)) => file.claim(from, answer, claim.done),
            None => answer(encode(&NOTHING)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    const NO_MORE: Grant = Grant::Nothing { tells: false };

    /// The file of process 0, as partners claim from it by messages.
    struct Job {
        granted: Arc<Mutex<Vec<(u32, Grant)>>>,
        files: SharedFiles,
        file: Arc<SharedFile>,
    }

    /// All ranges but the last have 64 MiB.
    fn job(from: u64, file_bytes: u64, verifies: bool) -> Job {
        let range_bytes = RangeBytes { most: 64 * MIB, least: 64 * MIB };
        job_of(Cut { from, file_bytes, range_bytes, verifies })
    }

    fn job_of(cut: Cut) -> Job {
        let granted = Arc::new(Mutex::new(Vec::new()));
        let files = SharedFiles::default();
        let file = files.add(0, cut);
        Job { granted, files, file }
    }

    impl Job {
        fn claim(&self, partner: u32, done: Option<(Task, Done)>) {
            let claim = Claim { file: self.file.number, done };
            let granted = self.granted.clone();
            let answer = move |grant: Vec<u8>| {
                lock(&granted).push((partner, decode(&grant).expect("a grant")));
            };
            self.files.claim(partner, &encode(&claim), Box::new(answer));
        }

        /// The grants since the last call.
        fn granted(&self) -> Vec<(u32, Grant)> {
            std::mem::take(&mut *lock(&self.granted))
        }

        /// The task of the only grant, which is for the partner.
        fn task(&self, partner: u32) -> Task {
            match self.granted()[..] {
                [(to, Grant::Task { task, .. })] if to == partner => task,
                ref other => panic!("{other:?}"),
            }
        }

        /// The next task of the owner.
        fn own(&self) -> Task {
            let Next::Task(task) = self.file.next() else { panic!("the owner has nothing to do") };
            task
        }
    }

    fn copied(task: Task, records: Vec<ChunkRecord>) -> (Task, Done) {
        let Task::Copy(range) = task else { panic!("{task:?}") };
        let data_bytes = range.end - range.start;
        let recorded_to = records.last().map_or(range.start, |record| record.0);
        let (to, hole_bytes) = (range.end, 0);
        let copied = CopiedRange { range, to, data_bytes, hole_bytes, records, recorded_to };
        (task, Done::Copied(copied))
    }

    fn range(start: u64, end: u64) -> ByteRange {
        ByteRange { start: start * MIB, end: end * MIB }
    }

    #[test]
    fn each_byte_is_given_once_in_aligned_ranges() {
        // Where the file is complete to, its length, how many ranges.
        for (from, bytes, count) in [
            (0, 64 * MIB + 1, 2),
            (0, 128 * MIB, 2),
            (5 * MIB, 128 * MIB, 2),
            (64 * MIB, 128 * MIB, 1),
            (127 * MIB, 128 * MIB + 1, 2),
            (128 * MIB, 128 * MIB, 0),
        ] {
            let job = job(from, bytes, false);
            let (mut at, mut ranges) = (from, 0);
            loop {
                assert_eq!(job.file.wants_help(), ranges < count, "{from} of {bytes}");
                let Next::Task(task) = job.file.next() else { break };
                let Task::Copy(range) = task else { panic!("{task:?}") };
                assert!(range.start == at && range.end > at, "{range:?}");
                assert!(range.end % (64 * MIB) == 0 || range.end == bytes, "{range:?}");
                (at, ranges) = (range.end, ranges + 1);
                let (task, done) = copied(task, Vec::new());
                job.file.done(task, done);
                assert_eq!(job.file.complete_to(), at);
            }
            assert_eq!((at, ranges), (bytes, count), "{from} of {bytes}");
            assert_eq!(job.file.next(), Next::Over);
        }
    }

    #[test]
    fn ranges_become_shorter_and_all_begin_at_a_multiple_of_the_shortest() {
        // Where the file is complete to, its length in MiB, partners that help; where ranges begin.
        for (from, mib, helpers, starts) in [
            (0, 1024, 0, &[0, 64, 128][..]),
            (0, 200, 0, &[0, 64, 128, 160, 176, 184, 192]),
            (3, 100, 1, &[3, 24, 40, 48, 56, 64, 72, 80, 88, 96]),
            (0, 160, 3, &[0, 16, 32, 48, 56, 64]),
        ] {
            let range_bytes = RangeBytes { most: 64 * MIB, least: 8 * MIB };
            let (from, file_bytes) = (from * MIB, mib * MIB);
            let job = job_of(Cut { from, file_bytes, range_bytes, verifies: false });
            (0..helpers).for_each(|_| job.file.offered());
            let mut found = Vec::new();
            while let Next::Task(Task::Copy(range)) = job.file.next() {
                found.push(range.start / MIB);
                let (task, done) = copied(Task::Copy(range), Vec::new());
                job.file.done(task, done);
            }
            assert_eq!(found[..starts.len()], *starts, "{mib} MiB, {helpers} help: {found:?}");
            assert_eq!(job.file.complete_to(), file_bytes);
        }
    }

    #[test]
    fn the_owner_waits_for_claimed_ranges_and_for_nothing_else() {
        let job = job(0, 192 * MIB, false);
        job.file.offered();
        job.file.offered();
        job.claim(1, None);
        let theirs = job.task(1);
        let (first, last) = (job.own(), job.own());
        assert_eq!((theirs, last), (Task::Copy(range(0, 64)), Task::Copy(range(128, 192))));
        for task in [first, last] {
            let (task, done) = copied(task, Vec::new());
            job.file.done(task, done);
        }
        assert_eq!((job.file.next(), job.file.complete_to()), (Next::Wait, 0));
        // A partner that comes late gets nothing. The offer that nobody has taken is not waited for.
        job.claim(2, None);
        assert_eq!(job.granted(), [(2, NO_MORE)]);
        job.claim(1, Some(copied(theirs, Vec::new())));
        assert_eq!(job.granted(), [(1, NO_MORE)]);
        assert_eq!((job.file.next(), job.file.complete_to()), (Next::Over, 192 * MIB));
        assert_eq!(job.file.by_others(), (64 * MIB, 0));
        job.files.remove(&job.file);
        job.claim(3, None);
        assert_eq!(job.granted(), [(3, NOTHING)]);
    }

    #[test]
    fn the_journal_gets_what_is_complete_without_a_gap() {
        let job = job(0, 256 * MIB, false);
        job.claim(1, None);
        let first = job.task(1);
        let rest: Vec<Task> = (0..3).map(|_| job.own()).collect();
        let ends = [128, 192, 256].map(|end| end * MIB);
        for (&task, end) in rest.iter().zip(ends) {
            // Of the second the writer knows no hash.
            let records = if end == ends[1] { vec![] } else { vec![(end, 1)] };
            let (task, done) = copied(task, records);
            job.file.done(task, done);
        }
        assert_eq!(job.file.take_records(), []);
        job.claim(1, Some(copied(first, vec![(32 * MIB, 2), (64 * MIB, 3)])));
        assert_eq!(
            job.file.take_records(),
            [(32 * MIB, 2), (64 * MIB, 3), (128 * MIB, 1)],
            "what follows a gap in the records is left out"
        );
        assert_eq!(job.file.complete_to(), 256 * MIB);
    }

    #[test]
    fn after_a_failure_nothing_is_granted_and_claimed_ranges_are_waited_for() {
        for (done, failure) in
            [(Done::Failed, Failure::Told), (Done::Interrupted, Failure::Interrupted)]
        {
            let job = job(0, 640 * MIB, true);
            job.claim(1, None);
            let theirs = job.task(1);
            let own = job.own();
            job.claim(2, None);
            let others = job.task(2);
            let tells = done == Done::Failed;
            job.claim(1, Some((theirs, done)));
            assert_eq!(job.granted(), [(1, Grant::Nothing { tells })]);
            let (own, done) = copied(own, Vec::new());
            job.file.done(own, done);
            assert_eq!((job.file.next(), job.file.wants_help()), (Next::Wait, false));
            job.claim(2, Some((others, Done::Failed)));
            assert_eq!(job.granted(), [(2, NO_MORE)], "only the first failure is told");
            assert!(!job.file.failed(None, Failure::Own));
            assert_eq!((job.file.next(), job.file.failure()), (Next::Over, Some(failure)));
            assert_eq!(job.file.complete_to(), 0, "the first range has failed");
        }
    }

    #[test]
    fn a_range_is_verified_by_another_process_than_its_writer() {
        let job = job(0, 192 * MIB, true);
        job.claim(1, None);
        let theirs = job.task(1);
        let own = [job.own(), job.own()];
        job.claim(1, Some(copied(theirs, Vec::new())));
        assert_eq!(job.granted(), [], "it is to verify later");
        for task in own {
            let (task, done) = copied(task, Vec::new());
            job.file.done(task, done);
        }
        assert_eq!(job.file.next(), Next::Over);
        job.file.start_verifying();
        assert_eq!(job.task(1), Task::Verify(range(64, 128)));
        assert_eq!(job.own(), Task::Verify(range(0, 64)));
        job.file.done(Task::Verify(range(0, 64)), Done::Verified);
        assert_eq!(job.file.next(), Next::Wait, "it leaves its own to the other");
        job.claim(1, Some((Task::Verify(range(64, 128)), Done::Differs(99 * MIB))));
        assert_eq!(job.granted(), [(1, NO_MORE)], "only what is before is of interest");
        assert_eq!((job.file.next(), job.file.differs_at()), (Next::Over, Some(99 * MIB)));
    }

    #[test]
    fn without_partners_the_owner_verifies_all_and_what_was_there() {
        let job = job(100 * MIB, 192 * MIB, true);
        let mut verified = Vec::new();
        while let Next::Task(task) = job.file.next() {
            let (task, done) = copied(task, Vec::new());
            job.file.done(task, done);
        }
        job.file.start_verifying();
        while let Next::Task(task) = job.file.next() {
            let Task::Verify(range) = task else { panic!("{task:?}") };
            verified.push(range);
            job.file.done(task, Done::Verified);
        }
        verified.sort_by_key(|range| range.start);
        assert_eq!(verified, [range(0, 64), range(64, 100), range(100, 128), range(128, 192)]);
    }
}
