//! The processor's instruction and cache-miss counters (perf_event_open(2)), opened once for the
//! process.
//!
//! Many virtual machines have none. Then nothing is counted, and [`why_not`] returns the reason.

use std::sync::OnceLock;

use engines::Errno;
use engines::sys::{PerfCount, PerfCounter, PerfEvent};

/// Counters that are open, each for the thread that opened them and what came of it later.
struct Open {
    instructions: Result<PerfCounter, Errno>,
    cache_misses: Result<PerfCounter, Errno>,
}

/// What they show at one moment; `None` for what is not counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    instructions: Option<PerfCount>,
    cache_misses: Option<PerfCount>,
}

/// What was counted, over one or several parts; `None` for what was not.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) instructions: Option<u64>,
    pub(crate) cache_misses: Option<u64>,
}

static OPEN: OnceLock<Open> = OnceLock::new();

impl Open {
    fn new() -> Open {
        Open {
            instructions: PerfCounter::open(PerfEvent::Instructions),
            cache_misses: PerfCounter::open(PerfEvent::CacheMisses),
        }
    }
}

/// Opens the counters for the runs of this process, if that has not been done. To be called by the
/// thread that carries them out, when there are no others yet, and after the other ends of
/// connections were started: a process that is started later is counted as part of this one.
pub fn open() {
    OPEN.get_or_init(Open::new);
}

/// Why instructions or cache misses are not counted, or not all of them; `None` when they are.
#[must_use]
pub fn why_not() -> Option<String> {
    // Closed again at once: counters that stay open slow down whatever is started.
    let Open { instructions, cache_misses } = Open::new();
    let whys = [("instructions", instructions), ("cache misses", cache_misses)]
        .map(|(what, counter)| words(what, counter.map(|counter| counter.is_user_only())));
    let whys: Vec<String> = whys.into_iter().flatten().collect();
    (!whys.is_empty()).then(|| whys.join("; "))
}

/// What to know of one counter: why it is not there, or that it counts in user mode only.
fn words(what: &str, is_user_only: Result<bool, Errno>) -> Option<String> {
    let why = match is_user_only {
        Ok(false) => return None,
        Ok(true) => {
            return Some(format!(
                "{what} are counted in user mode only: /proc/sys/kernel/perf_event_paranoid \
                 forbids more"
            ));
        }
        Err(Errno::NOENT | Errno::OPNOTSUPP | Errno::NODEV) => {
            "the processor, or the virtual machine, offers no such counter".to_owned()
        }
        Err(Errno::ACCESS | Errno::PERM) => "counting is forbidden here".to_owned(),
        Err(Errno::NOSYS) => "this kernel does not count".to_owned(),
        Err(errno) => engines::describe(errno),
    };
    Some(format!("{what} are not counted: {why}"))
}

/// Looks at the counters, which takes a call each where they are open and nothing otherwise.
pub(crate) fn look() -> Counts {
    let Some(Open { instructions, cache_misses }) = OPEN.get() else { return Counts::default() };
    let read = |counter: &Result<PerfCounter, Errno>| counter.as_ref().ok()?.read().ok();
    Counts { instructions: read(instructions), cache_misses: read(cache_misses) }
}

impl Counts {
    pub(crate) fn since(self, earlier: Counts) -> Counted {
        let since = |later: Option<PerfCount>, earlier: Option<PerfCount>| later?.since(earlier?);
        Counted {
            instructions: since(self.instructions, earlier.instructions),
            cache_misses: since(self.cache_misses, earlier.cache_misses),
        }
    }
}

impl Counted {
    /// Both parts together; unknown when one of them is.
    pub(crate) fn plus(self, other: Counted) -> Counted {
        let plus = |one: Option<u64>, other: Option<u64>| Some(one? + other?);
        Counted {
            instructions: plus(self.instructions, other.instructions),
            cache_misses: plus(self.cache_misses, other.cache_misses),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_counted_is_told() {
        let check = |is_user_only: Result<bool, Errno>, expected: &str| {
            let words = words("instructions", is_user_only).unwrap_or_default();
            assert!(words.contains(expected) && words.is_empty() == expected.is_empty(), "{words}");
        };
        check(Ok(false), "");
        check(Ok(true), "in user mode only");
        check(Err(Errno::NOENT), "not counted: the processor, or the virtual machine");
        check(Err(Errno::ACCESS), "forbidden");
        check(Err(Errno::MFILE), "Too many open files");
    }

    #[test]
    fn counts_and_words_agree() {
        open();
        let before = look();
        let counted = look().since(before);
        let all = counted.instructions.is_some() && counted.cache_misses.is_some();
        assert!(all || why_not().is_some(), "{counted:?}");
        let some = Counted { instructions: Some(2), cache_misses: None };
        let sum = some.plus(Counted { instructions: Some(3), cache_misses: Some(1) });
        assert_eq!((sum.instructions, sum.cache_misses), (Some(5), None));
    }
}
