//! Carries an experiment out: which cell gets the next session, and when it has had enough.
//!
//! Cells take turns, a session each, so that whatever the machine does over the minutes falls on all of
//! them. The next session is that of the cell that has had the least time, so that all have about the
//! same: small files get as many more runs as they are shorter and noisier. A variant leaves its
//! cell when its comparison is answered, at one of a few looks that were fixed before, and a cell
//! when all are; the time then goes to those that are not.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

use super::cell::Cell;
use super::definition::{Definition, Order, Part};
use super::hands::SUBCOMMAND;
use super::points::Points;
use super::record::{self, Place, Record, RoundRecord};
use super::run_dir::{RefusalRecord, Run, RunDir, RunError};
use super::session::{self, Event};
use crate::state::State;
use crate::stats::{Answer, Looks, rounds_per_session};

/// Sessions before the first look: fewer cannot tell noise from effect.
pub const SESSIONS_MIN: u32 = 5;

/// Sessions after which a cell has had enough, whatever it shows.
pub const SESSIONS_MAX: u32 = 320;

/// Sessions that given rounds are divided into.
const SESSIONS_OF_GIVEN_ROUNDS: u32 = 10;

/// Rounds of one session at most: what makes sessions differ needs sessions to be seen.
const ROUNDS_MAX: u32 = 64;

/// What the first session of a cell takes for its rounds, about: it finds out what a round costs.
const FIRST_SESSION: Duration = Duration::from_millis(30);

/// Sessions after which the rounds of the next ones are planned anew.
const PLANNED_AFTER: [u32; 5] = [3, 5, 10, 20, 40];

/// Runs of each variant where they follow one after another.
const RUNS_ONE_AFTER_ANOTHER: usize = 10;

/// How often a disturbed round is run again.
const REPEATS: u32 = 2;

/// The share of a cell's rounds beyond which disturbance is what this machine is like: to run them
/// again would cost time and find the same.
const DISTURBED_SHARE_MAX: f64 = 0.3;

/// Runs that take longer than this have none before them that does not count, but in the first
/// session of a cell: what a new process has to warm up takes microseconds.
const WARM_UP_MAX: Duration = Duration::from_millis(20);

/// How long, and how precisely.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time for everything.
    pub time: Option<Duration>,
    /// Rounds of each cell, exactly; otherwise as many as the noise asks for.
    pub rounds: Option<u32>,
    /// Differences up to these shares do not matter.
    pub deltas: Deltas,
}

/// Differences up to these shares do not matter. Cold and warm are never mixed: what comes from a device
/// varies more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Deltas {
    /// Of runs whose source is in the page cache, or is read from no device.
    pub warm: f64,
    /// Of runs whose source comes from a device.
    pub cold: f64,
}

impl Deltas {
    /// That of runs in `state`.
    #[must_use]
    pub fn of(&self, state: State) -> f64 {
        if state == State::Cold { self.cold } else { self.warm }
    }
}

/// An experiment under way.
#[derive(Debug)]
pub struct Conduct<'c> {
    definition: &'c Definition,
    cells: Vec<CellRun>,
    /// The looks at the cells of each part.
    looks: Vec<Looks>,
    dir: RunDir,
    places: Places<'c>,
    limits: Limits,
    seed: u64,
    begun: Instant,
    /// The process group of the session that runs, 0 between sessions: for whoever handles signals.
    running: Arc<AtomicI32>,
}

/// The scratch directories.
#[derive(Clone, Copy, Debug)]
pub struct Places<'c> {
    /// For sources.
    pub src: &'c Path,
    /// For what runs make.
    pub dst: &'c Path,
}

/// A cell and what is known of it so far.
#[derive(Debug)]
pub struct CellRun {
    /// The index of its part.
    pub part: usize,
    /// The cell.
    pub cell: Cell,
    /// Its runs.
    pub points: Points,
    /// For each variant why it does not work here, where it does not.
    pub refused: Vec<Option<String>>,
    /// For each variant whether its comparison is answered, so that it runs no more.
    pub answered: Vec<bool>,
    /// Sessions begun.
    pub sessions: u32,
    /// Why it gets no more sessions.
    pub ended: Option<Ended>,
    /// Rounds disturbed and run again.
    pub rounds_again: u32,
    /// Rounds disturbed and kept, since they had been run again often enough.
    pub rounds_disturbed: u32,
    /// Rounds measured.
    pub rounds: u32,
    /// Time spent on its sessions.
    pub spent: Duration,
    /// First runs of rounds, and how many of them were disturbed.
    rounds_tried: u32,
    rounds_tried_disturbed: u32,
    round_cost: Option<Duration>,
    session_cost: Duration,
    /// Rounds of a session that make the most of the time, as far as the noise is known.
    rounds_wanted: Option<u32>,
    /// Calls that move bytes in one run of each variant; empty before the first session.
    calls: Vec<Option<u64>>,
}

/// Why a cell got no more sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All that was asked is answered.
    Answered,
    /// It had as many as it may have.
    Full,
    /// Nothing, or the baseline alone, or not the baseline, works here.
    NothingToCompare,
    /// No run had the state asked for.
    OutOfReach,
}

/// For whoever watches; called between sessions and never while something is timed.
#[derive(Debug)]
pub struct Progress<'p> {
    /// The cell whose session is about to run.
    pub cell: &'p Cell,
    /// Cells that have ended.
    pub ended: usize,
    /// All cells.
    pub cells: usize,
    /// Samples so far.
    pub samples: usize,
    /// Sessions so far.
    pub sessions: u32,
    /// Time since the beginning.
    pub elapsed: Duration,
    /// Time left at most, where that is known.
    pub left: Option<Duration>,
}

/// Called before each session.
pub type Watch<'w> = dyn FnMut(&Progress<'_>) + 'w;

/// What can end an experiment.
#[derive(Debug, thiserror::Error)]
pub enum ConductError {
    /// The run directory cannot be written.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A session failed, in its own words.
    #[error("{cell}: {why}")]
    Session {
        /// The cell.
        cell: String,
        /// In words.
        why: String,
        /// Whether something that a run made was wrong.
        wrong: bool,
    },
}

impl<'c> Conduct<'c> {
    /// Gets ready to run `definition`; what `before` holds, an interrupted run of it, counts.
    #[must_use]
    pub fn new(
        definition: &'c Definition,
        dir: RunDir,
        places: Places<'c>,
        limits: Limits,
        seed: u64,
        before: Option<&Run>,
    ) -> Conduct<'c> {
        let cells = cells(definition, before);
        let looks = looks(definition, limits.rounds);
        let running = Arc::new(AtomicI32::new(0));
        let begun = Instant::now();
        Conduct { definition, cells, looks, dir, places, limits, seed, begun, running }
    }

    /// The process group of the session that runs, 0 between sessions.
    #[must_use]
    pub fn running(&self) -> Arc<AtomicI32> {
        Arc::clone(&self.running)
    }

    /// The cells and what is known of them.
    #[must_use]
    pub fn cells(&self) -> &[CellRun] {
        &self.cells
    }

    /// The directory that it is written to.
    #[must_use]
    pub fn dir(&self) -> &RunDir {
        &self.dir
    }

    /// Runs sessions until every cell has ended or the time is over.
    ///
    /// # Errors
    /// When a sample cannot be written, or a session failed: a wrong copy, a full disk.
    pub fn run(&mut self, watch: &mut Watch<'_>) -> Result<(), ConductError> {
        let mut rng = fastrand::Rng::with_seed(self.seed);
        for turn in 0_u64.. {
            let Some(cell) = self.next(&mut rng) else { break };
            self.announce(cell, watch);
            self.session(cell, self.seed.wrapping_add(turn))?;
            self.look(cell);
        }
        Ok(())
    }

    /// The cell that has had the least time of those that have not ended and still fit into it.
    fn next(&self, rng: &mut fastrand::Rng) -> Option<usize> {
        let mut open: Vec<usize> = (0..self.cells.len())
            .filter(|&cell| self.cells[cell].ended.is_none() && !self.is_too_late(cell))
            .collect();
        rng.shuffle(&mut open);
        open.into_iter().min_by_key(|&cell| self.cells[cell].spent)
    }

    fn announce(&self, cell: usize, watch: &mut Watch<'_>) {
        let elapsed = self.begun.elapsed();
        watch(&Progress {
            cell: &self.cells[cell].cell,
            ended: self.cells.iter().filter(|cell| cell.ended.is_some()).count(),
            cells: self.cells.len(),
            samples: self.cells.iter().map(|cell| cell.points.len()).sum(),
            sessions: self.cells.iter().map(|cell| cell.sessions).sum(),
            elapsed,
            left: self.limits.time.map(|time| time.saturating_sub(elapsed)),
        });
    }

    fn is_too_late(&self, cell: usize) -> bool {
        let Some(time) = self.limits.time else { return false };
        let cell = &self.cells[cell];
        let expected = cell.round_cost.unwrap_or_default() + cell.session_cost;
        self.begun.elapsed() + expected > time
    }

    /// Rounds for the next session of a cell.
    fn rounds_for(&self, cell: usize) -> u32 {
        let run = &self.cells[cell];
        if let Some(rounds) = self.limits.rounds {
            let (each, last) = (self.sessions_max(), rounds);
            return last.div_ceil(each).min(last.saturating_sub(run.rounds)).max(1);
        }
        // The first session ends by time.
        let Some(round) = run.round_cost else { return ROUNDS_MAX };
        // Beginning a session should not take longer than what it is begun for.
        let by_overhead = run.session_cost.as_secs_f64() / round.as_secs_f64().max(1e-6);
        let wanted = by_overhead.ceil().max(run.rounds_wanted.map_or(0.0, f64::from));
        // The sessions still needed for a first look have to fit into the time.
        let open = self.cells.iter().filter(|cell| cell.ended.is_none()).count().max(1);
        let left = self
            .limits
            .time
            .map_or(f64::INFINITY, |time| time.saturating_sub(self.begun.elapsed()).as_secs_f64());
        let needed = f64::from(SESSIONS_MIN.saturating_sub(run.sessions).max(1)) * open as f64;
        let by_time =
            (left / needed - run.session_cost.as_secs_f64()) / round.as_secs_f64().max(1e-6);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Within 1 to 64.
        let rounds = wanted.min(by_time).clamp(1.0, f64::from(ROUNDS_MAX)) as u32;
        rounds
    }

    fn sessions_max(&self) -> u32 {
        self.limits.rounds.map_or(SESSIONS_MAX, |rounds| rounds.min(SESSIONS_OF_GIVEN_ROUNDS))
    }

    /// Runs one session of a cell and keeps what it tells.
    fn session(&mut self, index: usize, seed: u64) -> Result<(), ConductError> {
        let rounds = self.rounds_for(index);
        let order = self.order(index, rounds, seed);
        let begun = Instant::now();
        let run = &mut self.cells[index];
        run.sessions += 1;
        let mut first_event: Option<Instant> = None;
        let mut rounds_done = 0;
        let dir = &mut self.dir;
        let part = &self.definition.parts[run.part];
        converse(&order, &self.running, |event| {
            first_event.get_or_insert_with(Instant::now);
            rounds_done += u32::from(matches!(event, Event::Round { .. }));
            run.take(event, part, dir)
        })?;
        let spent = begun.elapsed();
        run.spent += spent;
        // Each round was shuffled, so that the first event comes after the session's preparations and
        // the first run.
        let before = first_event.map_or(spent, |first| first - begun);
        run.session_cost = before;
        if rounds_done > 0 {
            run.round_cost = Some((spent - before.min(spent)).max(MICRO) / rounds_done);
        }
        if run.round_cost.is_none() {
            run.ended = Some(Ended::NothingToCompare);
        }
        Ok(())
    }

    fn order(&self, index: usize, rounds: u32, seed: u64) -> session::Order {
        let run = &self.cells[index];
        let part = &self.definition.parts[run.part];
        let runs_on = |&variant: &usize| run.refused[variant].is_none() && !run.answered[variant];
        let works: Vec<usize> = (0..part.variants.len()).filter(runs_on).collect();
        let mut rng = fastrand::Rng::with_seed(seed);
        let rounds = match part.order {
            Order::Shuffled => (0..rounds)
                .map(|_| {
                    let mut order = works.clone();
                    rng.shuffle(&mut order);
                    order
                })
                .collect(),
            Order::OneAfterAnother => {
                let runs = self.limits.rounds.map_or(RUNS_ONE_AFTER_ANOTHER, |n| n as usize);
                vec![works.iter().flat_map(|&variant| vec![variant; runs]).collect()]
            }
        };
        let injected = |field: fn(&super::definition::Slowed) -> f64| -> Vec<f64> {
            let of = |variant: &String| part.slowed.get(variant).map_or(0.0, field);
            if part.slowed.is_empty() { Vec::new() } else { part.variants.iter().map(of).collect() }
        };
        let shuffled = part.order == Order::Shuffled;
        let runs = u32::try_from(works.len()).unwrap_or(u32::MAX);
        session::Order {
            cell: run.cell.clone(),
            variants: part.variants.clone(),
            rounds,
            src_dir: self.places.src.to_owned(),
            dst_dir: self.places.dst.to_owned(),
            seed,
            // Rounds that were asked for are run whatever they take.
            rounds_ns: (shuffled && run.round_cost.is_none() && self.limits.rounds.is_none())
                .then_some(u64::try_from(FIRST_SESSION.as_nanos()).unwrap_or(u64::MAX)),
            // What most measurements do has no run before the first one either.
            warm_up: shuffled && run.round_cost.is_none_or(|cost| cost < WARM_UP_MAX * runs),
            count_calls: shuffled && run.calls.is_empty(),
            repeats: if shuffled && !run.is_always_disturbed() { REPEATS } else { 0 },
            slowed_by: injected(|slowed| slowed.by),
            slow_share: injected(|slowed| slowed.sometimes),
            hand: None,
        }
    }

    /// Decides whether a cell has had enough.
    fn look(&mut self, index: usize) {
        let sessions_max = self.sessions_max();
        let part = &self.definition.parts[self.cells[index].part];
        let run = &mut self.cells[index];
        if run.ended.is_some() {
            return;
        }
        if part.order == Order::OneAfterAnother {
            run.ended = Some(Ended::Full);
            return;
        }
        if run.rounds > 0 && run.points.counted().next().is_none() && run.sessions >= 2 {
            run.ended = Some(Ended::OutOfReach);
            return;
        }
        if PLANNED_AFTER.contains(&run.sessions) {
            run.plan_rounds(part);
        }
        let compared = run.compared(part);
        if !part.baseline.is_empty() && compared.is_empty() {
            // What works is still measured, but not for long.
            if run.sessions >= SESSIONS_MIN {
                run.ended = Some(Ended::NothingToCompare);
            }
            return;
        }
        let full = match self.limits.rounds {
            Some(rounds) => run.rounds >= rounds,
            None => run.sessions >= sessions_max,
        };
        if compared.is_empty() {
            run.ended = full.then_some(Ended::Full);
            return;
        }
        // Rounds that were asked for are all run, and looked at once.
        let looks = &self.looks[run.part];
        let delta = self.limits.deltas.of(run.cell.state);
        if let Some(alpha) = looks.alpha_at(run.sessions).filter(|_| self.limits.rounds.is_none()) {
            for &(one, other) in &compared {
                let sessions = run.points.compare(one, other);
                run.answered[one] |= Answer::of(&sessions, delta, alpha) != Answer::Unresolved;
            }
            if compared.iter().all(|&(one, _)| run.answered[one]) {
                run.ended = Some(Ended::Answered);
                return;
            }
            // Nothing is asked of these, and their share of the time is better spent.
            for (floor, _) in run.floors(part) {
                run.answered[floor] = true;
            }
        }
        if full {
            run.ended = Some(Ended::Full);
        }
    }
}

/// The chance of any false answer to one part's question.
pub const ERROR: f64 = 0.05;

/// The least that a clock of ours tells apart.
const MICRO: Duration = Duration::from_micros(1);

/// The cells of a definition with what `before`, a run of it, holds.
#[must_use]
pub fn cells(definition: &Definition, before: Option<&Run>) -> Vec<CellRun> {
    let cells = definition.cells().into_iter();
    cells.map(|(part, cell)| CellRun::new(definition, part, cell, before)).collect()
}

/// The looks at the cells of each part, for an error of 5 % in all comparisons of the part together.
#[must_use]
pub fn looks(definition: &Definition, rounds: Option<u32>) -> Vec<Looks> {
    let of = |part: &Part| looks_of(rounds, definition.comparisons(part));
    definition.parts.iter().map(of).collect()
}

/// The looks at a cell whose part makes `family` comparisons in all its cells.
#[must_use]
pub fn looks_of(rounds: Option<u32>, family: usize) -> Looks {
    let error = ERROR / family.max(1) as f64;
    match rounds {
        Some(rounds) => {
            let sessions = rounds.clamp(2, SESSIONS_OF_GIVEN_ROUNDS);
            Looks::with_error(sessions, sessions, error)
        }
        None => Looks::with_error(SESSIONS_MAX, SESSIONS_MIN, error),
    }
}

impl Definition {
    /// Comparisons that a part makes in all its cells together.
    #[must_use]
    pub fn comparisons(&self, part: &Part) -> usize {
        let cells = self.cells().iter().filter(|(_, cell)| cell.part == part.name).count();
        (cells * part.compared().count()).max(1)
    }
}

impl CellRun {
    fn new(definition: &Definition, part: usize, cell: Cell, before: Option<&Run>) -> CellRun {
        let of = &definition.parts[part];
        let id = cell.id();
        let mut run = CellRun {
            part,
            cell,
            points: Points::default(),
            refused: vec![None; of.variants.len()],
            answered: vec![false; of.variants.len()],
            sessions: 0,
            ended: None,
            rounds_again: 0,
            rounds_disturbed: 0,
            rounds: 0,
            spent: Duration::ZERO,
            rounds_tried: 0,
            rounds_tried_disturbed: 0,
            round_cost: None,
            session_cost: Duration::ZERO,
            rounds_wanted: None,
            calls: Vec::new(),
        };
        let Some(before) = before else { return run };
        let samples = before.samples.iter().filter(|sample| sample.cell == id);
        run.sessions = samples.clone().map(|sample| sample.session).max().unwrap_or(0);
        run.points = Points::of(samples, &of.variants, of.measure);
        for round in before.rounds.iter().filter(|round| round.cell == id) {
            run.count(round);
            run.spent += Duration::from_nanos(round.gate.round_ns);
        }
        for refusal in before.refusals.iter().filter(|refusal| refusal.cell == id) {
            if let Some(index) = of.variants.iter().position(|name| *name == refusal.variant) {
                run.refused[index] = Some(refusal.refusals.clone());
            }
        }
        run
    }

    /// Pairs of variants that are compared and work here: the one and the baseline.
    #[must_use]
    pub fn compared(&self, part: &Part) -> Vec<(usize, usize)> {
        self.with_baseline(part, part.compared())
    }

    /// Pairs of floors that work here and the baseline.
    #[must_use]
    pub fn floors(&self, part: &Part) -> Vec<(usize, usize)> {
        self.with_baseline(part, part.floors())
    }

    fn with_baseline<'p>(
        &self,
        part: &Part,
        variants: impl Iterator<Item = &'p String>,
    ) -> Vec<(usize, usize)> {
        let index = |name: &String| part.variants.iter().position(|variant| variant == name);
        let works = |&variant: &usize| self.refused[variant].is_none();
        let Some(baseline) = index(&part.baseline).filter(works) else { return Vec::new() };
        let variants = variants.filter_map(index).filter(works);
        variants.map(|variant| (variant, baseline)).collect()
    }

    /// Keeps what a session tells.
    fn take(&mut self, event: Event, part: &Part, dir: &mut RunDir) -> Result<(), ConductError> {
        let number = |index: usize| u32::try_from(index).unwrap_or(u32::MAX) + 1;
        match event {
            Event::Refused { variant, why } => {
                if self.refused[variant].is_none() {
                    dir.add_refusal(&RefusalRecord {
                        cell: self.cell.id(),
                        variant: part.variants[variant].clone(),
                        refusals: why.clone(),
                    })?;
                    self.refused[variant] = Some(why);
                }
            }
            Event::Ran { variant, round, repeat, place, probe_ns, mut measured } => {
                self.calls.resize(part.variants.len(), None);
                self.calls[variant] = measured.calls.or(self.calls[variant]);
                measured.calls = self.calls[variant];
                let place = Place {
                    session: self.sessions,
                    round: number(round),
                    repeat,
                    order_in_round: number(place),
                    probe_ns,
                };
                let record = Record::of(&self.cell, &part.variants[variant], place, *measured);
                dir.add_sample(&record)?;
                self.points.add(&record, variant, part.measure);
            }
            Event::Calls { variant, round, repeat, times } => {
                let place = Place {
                    session: self.sessions,
                    round: number(round),
                    repeat,
                    order_in_round: 0,
                    probe_ns: 0,
                };
                let variant = &part.variants[variant];
                dir.add_calls(&record::of_calls(&self.cell, variant, place, &times))?;
            }
            Event::Round { round, repeat, gate, again } => {
                let record = RoundRecord {
                    cell: self.cell.id(),
                    session: self.sessions,
                    round: number(round),
                    repeat,
                    again,
                    gate,
                };
                dir.add_round(&record)?;
                self.count(&record);
            }
            Event::Failed { why, wrong } => {
                return Err(ConductError::Session { cell: self.cell.id(), why, wrong });
            }
        }
        Ok(())
    }

    fn is_always_disturbed(&self) -> bool {
        f64::from(self.rounds_tried_disturbed) > DISTURBED_SHARE_MAX * f64::from(self.rounds_tried)
    }

    /// Learns from what was measured how many rounds a session should have.
    fn plan_rounds(&mut self, part: &Part) {
        let Some(round) = self.round_cost else { return };
        let (session_ns, round_ns) = (self.session_cost.as_nanos(), round.as_nanos());
        let wanted = self.compared(part).into_iter().filter_map(|(one, other)| {
            let deviations = self.points.compare(one, other).deviations()?;
            Some(rounds_per_session(session_ns as f64, round_ns as f64, deviations, ROUNDS_MAX))
        });
        self.rounds_wanted = wanted.max().or(self.rounds_wanted);
    }

    fn count(&mut self, round: &RoundRecord) {
        self.rounds_again += u32::from(round.again);
        self.rounds += u32::from(!round.again);
        self.rounds_disturbed += u32::from(!round.again && !round.gate.breach.is_empty());
        self.rounds_tried += u32::from(round.repeat == 0);
        self.rounds_tried_disturbed +=
            u32::from(round.repeat == 0 && !round.gate.breach.is_empty());
    }
}

/// Runs a session in a process of its own and hands on what it tells.
fn converse(
    order: &session::Order,
    running: &AtomicI32,
    mut take: impl FnMut(Event) -> Result<(), ConductError>,
) -> Result<(), ConductError> {
    let failed = |why: String| ConductError::Session { cell: order.cell.id(), why, wrong: false };
    let program = std::env::current_exe()
        .map_err(|error| failed(format!("cannot tell where this program lies: {error}")))?;
    // A process group, so that all that runs below it can be ended together.
    let mut child =
        std::os::unix::process::CommandExt::process_group(&mut Command::new(program), 0)
            .arg(SUBCOMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(format!("cannot start a session: {error}")))?;
    running.store(i32::try_from(child.id()).unwrap_or(0), Ordering::SeqCst);
    let mut line = serde_json::to_vec(order).expect("plain data");
    line.push(b'\n');
    let mut input = child.stdin.take().expect("it is piped");
    let told = input.write_all(&line);
    let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut result = told.map_err(|error| failed(format!("cannot tell it what to do: {error}")));
    let mut text = String::new();
    while result.is_ok() {
        text.clear();
        match output.read_line(&mut text) {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        result = match serde_json::from_str(&text) {
            Ok(event) => take(event),
            Err(error) => Err(failed(format!("said what is no event: {error}"))),
        };
    }
    if result.is_err() {
        end(running);
    }
    let status = child.wait();
    running.store(0, Ordering::SeqCst);
    result?;
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed(format!("the session ended with {status}"))),
        Err(error) => Err(failed(format!("cannot wait for the session: {error}"))),
    }
}

/// Ends the session that runs, and all that it started.
pub fn end(running: &AtomicI32) {
    if let Some(group) = Pid::from_raw(running.load(Ordering::SeqCst)) {
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
}

/// Where the sources of a definition lie and what is made of them fit; otherwise what is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Bytes of all sources together, which last as long as the experiment.
    pub src_bytes: u64,
    /// Bytes that the largest cell makes in the destination's directory.
    pub dst_bytes: u64,
    /// Bytes of memory that the largest cell needs to keep its files in the page cache.
    pub memory_bytes: u64,
}

impl Room {
    /// What `definition` needs.
    #[must_use]
    pub fn of(definition: &Definition) -> Room {
        let mut room = Room::default();
        let mut sources: Vec<(u64, u32, super::cell::Shape, u32)> = Vec::new();
        for (_, cell) in definition.cells() {
            let Some(workload) = super::workload::by_name(&cell.workload) else { continue };
            let needs = (workload.needs)(&cell);
            let at_once = u64::from(cell.at_once);
            // Blocks, directories and inodes take room besides.
            let slack = 8192 * u64::from(cell.files);
            for nth in 0..cell.at_once {
                let source = (cell.file_bytes, cell.files, cell.shape, nth);
                if needs.src_bytes > 0 && !sources.contains(&source) {
                    sources.push(source);
                    room.src_bytes += needs.src_bytes + slack;
                }
            }
            if needs.dst_bytes > 0 {
                room.dst_bytes = room.dst_bytes.max((needs.dst_bytes + slack) * at_once);
            }
            let mut memory = needs.memory_bytes * at_once;
            if cell.state == State::Warm {
                memory += (needs.src_bytes + needs.dst_bytes) * at_once;
            }
            room.memory_bytes = room.memory_bytes.max(memory);
        }
        room
    }
}
