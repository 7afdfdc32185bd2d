//! What a disk may have after a loss of power.

use std::fmt;

use fastrand::Rng;
use testfs::{Content, Event};

use super::recorded::Recorded;

/// The states tried of each copy, about.
const STATES: usize = 24;

/// A state: all events before a flush, and some of the parts of those after it.
#[derive(Clone, Debug)]
pub(super) struct State {
    /// All before this event are there.
    flushed: usize,
    /// Parts of the events from there on up to this one may be there.
    reached: usize,
    kept: Kept,
    pub(super) is_after_exit: bool,
}

/// Which parts of what was not flushed are there: each with this chance in 256, as the seed decides.
type Kept = (u16, u64);

const NOTHING: Kept = (0, 0);
const ALL: Kept = (256, 0);

impl State {
    /// The content of the disk.
    pub(super) fn content(&self, recorded: &Recorded) -> Content {
        let mut content = recorded.base.clone();
        recorded.log[..self.flushed].iter().for_each(|event| content.apply(event));
        let later = &recorded.log[self.flushed..self.reached];
        let (chance, seed) = self.kept;
        let mut rng = Rng::with_seed(seed);
        let parts = later.iter().flat_map(Event::parts);
        parts.filter(|_| u16::from(rng.u8(..)) < chance).for_each(|part| content.apply(&part));
        content
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let State { flushed, reached, kept, is_after_exit } = self;
        let when = if *is_after_exit { "after the exit" } else { "during the copy" };
        let kept = match *kept {
            NOTHING => "nothing".to_owned(),
            ALL => "all".to_owned(),
            (chance, seed) => format!("{chance} of 256 (seed {seed})"),
        };
        write!(f, "{when}, events before {flushed} and {kept} of those up to {reached}")
    }
}

/// Some of the states of a copy.
pub(super) fn some(recorded: &Recorded, rng: &mut Rng) -> Vec<State> {
    let log = &recorded.log;
    // Right after each flush, and before the first.
    let flushes = log.iter().enumerate().filter(|(_, event)| matches!(event, Event::Flush));
    let flushes: Vec<usize> = std::iter::once(0).chain(flushes.map(|(at, _)| at + 1)).collect();
    let during: Vec<usize> = flushes.iter().copied().filter(|at| *at <= recorded.exit).collect();
    let last = *during.last().expect("the start of the log is one");
    let mut states = Vec::new();
    let mut add = |flushed: usize, reached: usize, kept: Kept| {
        // What is flushed at the exit is flushed later on too.
        let is_after_exit = flushed >= last && reached >= recorded.exit;
        states.push(State { flushed, reached, kept, is_after_exit });
    };
    // The power is lost at the exit, or later.
    add(last, recorded.exit, NOTHING);
    add(last, recorded.exit, ALL);
    for _ in 0..STATES / 6 {
        add(last, recorded.exit, some_kept(rng));
        let later = *rng.choice(&flushes).expect("the start of the log is one");
        if later > recorded.exit {
            add(later, next(&flushes, later, log.len()), some_kept(rng));
        }
    }
    for _ in 0..STATES / 3 {
        let flushed = *rng.choice(&during).expect("the start of the log is one");
        let next = next(&flushes, flushed, log.len());
        add(flushed, flushed, NOTHING);
        add(flushed, next.min(recorded.exit), some_kept(rng));
    }
    states
}

fn some_kept(rng: &mut Rng) -> Kept {
    ([32, 128, 224][rng.usize(..3)], rng.u64(..))
}

/// The flush after that at `at`, or the end.
fn next(flushes: &[usize], at: usize, end: usize) -> usize {
    flushes.iter().copied().find(|later| *later > at).unwrap_or(end)
}
