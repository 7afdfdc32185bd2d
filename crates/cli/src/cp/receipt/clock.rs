//! The time that a run took.

use std::time::{Duration, Instant};

use engines::sys::{Usage, Whose, usage};

/// When a run started, and the processor time that the process had used by then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    begun: Instant,
    used_before: Usage,
}

/// The time that a run took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) elapsed: Duration,
    pub(crate) user: Duration,
    pub(crate) system: Duration,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { begun: Instant::now(), used_before: used() }
    }

    pub(crate) fn cost(&self) -> Cost {
        let Usage { user_ns, system_ns, .. } = used().since(self.used_before);
        Cost {
            elapsed: self.begun.elapsed(),
            user: Duration::from_nanos(user_ns),
            system: Duration::from_nanos(system_ns),
        }
    }
}

/// getrusage(2) documents no error for these arguments.
fn used() -> Usage {
    usage(Whose::Process).unwrap_or_default()
}
