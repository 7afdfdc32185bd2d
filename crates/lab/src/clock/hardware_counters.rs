//! The processor's instruction and cache-miss counters (perf_event_open(2)), opened once for the
//! process.
//!
//! Many virtual machines have none. Then nothing is counted.

use std::sync::OnceLock;

use sys::{PerfCount, PerfCounter, PerfEvent};

/// The instructions and the cache misses at one moment; `None` for what is not counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts([Option<PerfCount>; 2]);

/// Counters that are open, each for the thread that opened them and what came of it later; `None`
/// for what cannot be counted here.
static OPEN: OnceLock<[Option<PerfCounter>; 2]> = OnceLock::new();

/// Opens the counters for the runs of this process, if that has not been done. To be called by the
/// thread that carries them out, when there are no others yet, and after the other ends of
/// connections were started: a process that is started later is counted as part of this one.
pub fn open() {
    let events = [PerfEvent::Instructions, PerfEvent::CacheMisses];
    OPEN.get_or_init(|| events.map(|event| PerfCounter::open(event).ok()));
}

/// Looks at the counters, which takes a call each where they are open and nothing otherwise.
pub(crate) fn look() -> Counts {
    let read = |counter: &Option<PerfCounter>| counter.as_ref()?.read().ok();
    OPEN.get().map_or_else(Counts::default, |open| Counts(open.each_ref().map(read)))
}

impl Counts {
    /// The instructions and the cache misses since `earlier`; `None` for what was not counted.
    pub(crate) fn since(self, earlier: Counts) -> [Option<u64>; 2] {
        [0_usize, 1].map(|of| self.0[of]?.since(earlier.0[of]?))
    }
}
