//! The processor's instruction and cache-miss counters (perf_event_open(2)), opened once for the
//! process.
//!
//! Many virtual machines have none. Then nothing is counted.

use std::sync::OnceLock;

use sys::{PerfCount, PerfCounter, PerfEvent};

/// Counters that are open, each for the thread that opened them and what came of it later; `None`
/// for what cannot be counted here.
struct Open {
    instructions: Option<PerfCounter>,
    cache_misses: Option<PerfCounter>,
}

/// What they show at one moment; `None` for what is not counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    instructions: Option<PerfCount>,
    cache_misses: Option<PerfCount>,
}

static OPEN: OnceLock<Open> = OnceLock::new();

/// Opens the counters for the runs of this process, if that has not been done. To be called by the
/// thread that carries them out, when there are no others yet, and after the other ends of
/// connections were started: a process that is started later is counted as part of this one.
pub fn open() {
    OPEN.get_or_init(|| Open {
        instructions: PerfCounter::open(PerfEvent::Instructions).ok(),
        cache_misses: PerfCounter::open(PerfEvent::CacheMisses).ok(),
    });
}

/// Looks at the counters, which takes a call each where they are open and nothing otherwise.
pub(crate) fn look() -> Counts {
    let Some(Open { instructions, cache_misses }) = OPEN.get() else { return Counts::default() };
    let read = |counter: &Option<PerfCounter>| counter.as_ref()?.read().ok();
    Counts { instructions: read(instructions), cache_misses: read(cache_misses) }
}

impl Counts {
    /// The instructions and the cache misses since `earlier`; `None` for what was not counted.
    pub(crate) fn since(self, earlier: Counts) -> [Option<u64>; 2] {
        let since = |later: Option<PerfCount>, earlier: Option<PerfCount>| later?.since(earlier?);
        [
            since(self.instructions, earlier.instructions),
            since(self.cache_misses, earlier.cache_misses),
        ]
    }
}
