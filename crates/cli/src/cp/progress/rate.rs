//! Estimates the rate of a run and the time left. Pure: the caller passes the time.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use haulage::events::{Progress, Totals};

/// The longest window that the rate is computed over. A shorter one changes with every file; a longer
/// one takes too long to notice a change.
const WINDOW: Duration = Duration::from_secs(15);

/// The shortest window, once the run is longer than that.
const WINDOW_MIN: Duration = Duration::from_millis(1500);

/// The shortest time between two samples.
const SAMPLE_EVERY: Duration = Duration::from_millis(500);

/// As many as fit into the window, and one before it.
const SAMPLES_MAX: usize = (WINDOW.as_millis() / SAMPLE_EVERY.as_millis()) as usize + 2;

/// What an entry costs besides its data, in bytes that could have been copied in that time. With it the
/// estimate stays steady when a run of tiny files ends.
const ENTRY_BYTES: f64 = 128.0 * 1024.0;

/// No time left is given for a run shorter than this.
const ESTIMATE_AFTER: Duration = Duration::from_secs(1);

/// How often the progress is redrawn, and [`RateEstimator::tick`] called.
pub(crate) const REDRAW_EVERY: Duration = Duration::from_millis(100);

/// A gap between two ticks that is shorter than this is no stop, or one so short that no other process
/// wrote to the terminal.
const STOP_MIN: Duration = Duration::from_millis(300);

/// How late SIGCONT may be handled on a busy machine.
const SIGNAL_LATENCY_MAX: Duration = Duration::from_secs(1);

/// The rate of a run over the last seconds.
#[derive(Debug)]
pub(crate) struct RateEstimator {
    start: Instant,
    samples: VecDeque<(Instant, Progress)>,
    /// The last tick.
    last_tick: Option<Instant>,
    /// The longest recent time between two ticks.
    gap: Option<(Instant, Instant)>,
}

impl RateEstimator {
    pub(crate) fn new(start: Instant) -> RateEstimator {
        let samples = VecDeque::from([(start, Progress::default())]);
        RateEstimator { start, samples, last_tick: None, gap: None }
    }

    /// Notes that the process runs; called every [`REDRAW_EVERY`]. Returns whether it may have been stopped
    /// since the last call.
    pub(crate) fn tick(&mut self, now: Instant) -> bool {
        let Some(last) = self.last_tick.replace(now) else { return false };
        let replaces = self
            .gap
            .is_none_or(|(from, to)| now - to > SIGNAL_LATENCY_MAX || to - from <= now - last);
        if replaces {
            self.gap = Some((last, now));
        }
        now - last >= STOP_MIN
    }

    /// SIGCONT arrived at `now`. If the process was stopped, the time that it was stopped for is taken out
    /// of all figures. Returns whether it was stopped.
    pub(crate) fn resume(&mut self, now: Instant, progress: Progress) -> bool {
        if self.last_tick.is_none() {
            // Without ticks the length of the stop is unknown. The rate is measured again.
            self.start = now;
            self.samples = VecDeque::from([(now, progress)]);
            return true;
        }
        // A tick may have come before the signal.
        self.tick(now);
        let stopped = self.gap.take().filter(|(from, to)| *to - *from >= STOP_MIN);
        let Some((from, to)) = stopped else { return false };
        // The process ran for a part of the gap, before the stop and after it.
        let stop = (to - from).saturating_sub(REDRAW_EVERY);
        self.start += stop;
        // The last sample before the stop was taken just after the tick that begins the gap.
        for (at, _) in self.samples.iter_mut().filter(|(at, _)| *at < to) {
            *at += stop;
        }
        true
    }

    /// Adds a sample of the progress, if one is due.
    pub(crate) fn add_sample(&mut self, now: Instant, progress: Progress) {
        let due = self.samples.back().is_none_or(|(last, _)| now - *last >= SAMPLE_EVERY);
        if due {
            self.samples.push_back((now, progress));
        }
        // Bounded by number, not by age: until SIGCONT is handled, a stop makes all samples look old.
        if self.samples.len() > SAMPLES_MAX {
            self.samples.pop_front();
        }
    }

    /// Bytes a second over the window.
    pub(crate) fn bytes_per_second(&self, now: Instant, progress: Progress) -> f64 {
        let (seconds, before) = self.since(now);
        progress.bytes.saturating_sub(before.bytes) as f64 / seconds
    }

    /// Entries a second over the window.
    pub(crate) fn entries_per_second(&self, now: Instant, progress: Progress) -> f64 {
        let (seconds, before) = self.since(now);
        progress.entries.saturating_sub(before.entries) as f64 / seconds
    }

    /// How long the rest of `all` takes at this rate.
    pub(crate) fn time_left(
        &self,
        now: Instant,
        progress: Progress,
        all: Totals,
    ) -> Option<Duration> {
        if now - self.start < ESTIMATE_AFTER || !all.all {
            return None;
        }
        let work = |entries: u64, bytes: u64| entries as f64 * ENTRY_BYTES + bytes as f64;
        let (seconds, before) = self.since(now);
        let done = work(
            progress.entries.saturating_sub(before.entries),
            progress.bytes.saturating_sub(before.bytes),
        );
        let gone = progress.bytes + progress.skipped_bytes;
        let rest =
            work(all.entries.saturating_sub(progress.entries), all.bytes.saturating_sub(gone));
        let left = rest * seconds / done;
        // Without progress in the window there is no estimate.
        left.is_finite().then(|| Duration::from_secs_f64(left.min(1e9)))
    }

    fn since(&self, now: Instant) -> (f64, Progress) {
        // Half of the run so far: the first data goes to the page cache, at a rate that says little about
        // the disk.
        let window = ((now - self.start) / 2).clamp(WINDOW_MIN, WINDOW);
        let within = self.samples.partition_point(|(at, _)| now - *at >= window);
        let begins = self.samples.get(within.saturating_sub(1));
        let (at, before) = begins.copied().unwrap_or((now, Progress::default()));
        ((now - at).as_secs_f64().max(1e-3), before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    #[test]
    fn the_time_left_is_about_right() {
        let (tiny, large) = (100_000, 10 * GIB);
        // Ten seconds of tiny files, and ten of a large one at the same rate.
        let steady = |tenths: u64| {
            let entries = tenths.min(100) * tiny / 100;
            let part = tenths.saturating_sub(100) * large / 100;
            Progress { entries, bytes: entries * 100 + part, ..Progress::default() }
        };
        // A file of 5 GiB into a page cache that takes 2 GiB in a second, and then onto a disk.
        let cached = |tenths: u64| {
            let bytes = tenths.min(10) * GIB / 5 + tenths.saturating_sub(10) * GIB / 25;
            Progress { bytes, ..Progress::default() }
        };
        let all = |entries, bytes| Totals { entries, bytes, all: true };
        type At<'a> = &'a dyn Fn(u64) -> Progress;
        for (what, all, at, right_from, until) in [
            ("steady", all(tiny + 1, tiny * 100 + large), &steady as At<'_>, 10, 200),
            ("cached", all(1, 5 * GIB), &cached, 30, 85),
        ] {
            let start = Instant::now();
            let mut rate = RateEstimator::new(start);
            for tenths in 1..until {
                let now = start + Duration::from_millis(100 * tenths);
                rate.add_sample(now, at(tenths));
                let left = rate.time_left(now, at(tenths), all).map(|left| left.as_secs_f64());
                assert_eq!(left.is_some(), tenths >= 10, "{what}, {tenths}");
                let due = (until - tenths) as f64 / 10.0;
                let is_right = left.is_none_or(|left| (left - due).abs() <= 0.25 * due + 0.5);
                assert!(is_right || tenths < right_from, "{what}: {left:?} for {due}");
            }
        }
    }

    /// Twenty seconds of copying, with a stop of a minute in the middle. A tick may come before the signal.
    #[test]
    fn a_stop_does_not_count_as_time_of_the_copy() {
        for signal_at_millis in [10_050, 10_101, 10_350] {
            let start = Instant::now();
            let mut rate = RateEstimator::new(start);
            let all = Totals { entries: 1, bytes: 20 * GIB, all: true };
            let stop = Duration::from_secs(60);
            for tenths in 1..200 {
                let stopped = if tenths > 100 { stop } else { Duration::ZERO };
                let now = start + stopped + Duration::from_millis(100 * tenths);
                let progress =
                    Progress { entries: 0, bytes: tenths * GIB / 10, ..Progress::default() };
                let signal = start + stop + Duration::from_millis(signal_at_millis);
                let last = now - Duration::from_millis(100);
                if last < signal && signal <= now {
                    assert!(rate.resume(signal, progress));
                }
                rate.tick(now);
                let now = now + Duration::from_micros(10);
                rate.add_sample(now, progress);
                // Before the signal the stop is unknown.
                if tenths < 10 || (stopped == stop && now < signal) {
                    continue;
                }
                let per_second = rate.bytes_per_second(now, progress) / GIB as f64;
                assert!((per_second - 1.0).abs() < 0.15, "{per_second} at {tenths}");
                let left = rate.time_left(now, progress, all).expect("the whole is known");
                let due = 20.0 - tenths as f64 / 10.0;
                let told = left.as_secs_f64();
                assert!((told - due).abs() <= 0.15 * due, "{told} for {due} at {tenths}");
            }
        }
    }

    #[test]
    fn a_signal_without_a_stop_changes_nothing() {
        let start = Instant::now();
        let mut rate = RateEstimator::new(start);
        for tenths in 1..100 {
            let now = start + Duration::from_millis(100 * tenths);
            let bytes = tenths * MIB / 10;
            let progress = Progress { entries: 5 * tenths, bytes, ..Progress::default() };
            assert!(!rate.tick(now));
            rate.add_sample(now, progress);
            assert!(!rate.resume(now + Duration::from_millis(50), progress));
            let per_second = rate.bytes_per_second(now, progress) / MIB as f64;
            assert!((per_second - 1.0).abs() < 0.1, "{per_second} at {tenths}");
            let per_second = rate.entries_per_second(now, progress) / 50.0;
            assert!((per_second - 1.0).abs() < 0.1, "{per_second} at {tenths}");
        }
    }

    /// Ten seconds, a stop of an hour, and two seconds more, without a tick.
    #[test]
    fn without_ticks_the_rate_is_measured_from_the_resumption() {
        let start = Instant::now();
        let mut rate = RateEstimator::new(start);
        let at = |bytes| Progress { entries: 0, bytes, ..Progress::default() };
        let back = start + Duration::from_secs(3610);
        rate.resume(back, at(10 * MIB));
        let now = back + Duration::from_secs(2);
        rate.add_sample(now, at(12 * MIB));
        assert_eq!(rate.bytes_per_second(now, at(12 * MIB)), MIB as f64);
    }

    #[test]
    fn a_run_without_progress_has_no_time_left() {
        let start = Instant::now();
        let mut rate = RateEstimator::new(start);
        let progress = Progress { entries: 5, bytes: 5 * MIB, ..Progress::default() };
        for seconds in 1..60 {
            rate.add_sample(start + Duration::from_secs(seconds), progress);
        }
        let now = start + Duration::from_secs(60);
        let all = Totals { entries: 10, bytes: 10 * MIB, all: true };
        assert_eq!(rate.time_left(now, progress, all), None);
        assert_eq!(rate.bytes_per_second(now, progress), 0.0);
    }
}
