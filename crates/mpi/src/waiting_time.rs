//! How long a rank has nothing to do.

use std::time::{Duration, Instant};

/// A sum of times.
#[derive(Debug, Default)]
pub(crate) struct WaitingTime {
    since: Option<Instant>,
    sum: Duration,
}

impl WaitingTime {
    /// There is nothing to do from now on.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// There is something to do again.
    pub(crate) fn end(&mut self, now: Instant) {
        self.sum += self.since.take().map_or(Duration::ZERO, |since| now - since);
    }

    /// Whether there is nothing to do.
    pub(crate) fn is_waiting(&self) -> bool {
        self.since.is_some()
    }

    /// The sum until `now`.
    pub(crate) fn sum(&self, now: Instant) -> Duration {
        self.sum + self.since.map_or(Duration::ZERO, |since| now - since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_without_work_are_summed() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut time = WaitingTime::default();
        time.begin(at(1));
        // A second worker finds nothing either.
        time.begin(at(2));
        assert!(time.is_waiting());
        assert_eq!(time.sum(at(4)), Duration::from_secs(3));
        time.end(at(5));
        time.end(at(6));
        assert!(!time.is_waiting());
        assert_eq!(time.sum(at(9)), Duration::from_secs(4));
        time.begin(at(9));
        assert_eq!(time.sum(at(10)), Duration::from_secs(5));
    }
}
