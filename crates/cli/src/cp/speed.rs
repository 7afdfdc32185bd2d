//! How fast a run is, and how long its rest will take. Nothing here looks at a clock.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tree::{Progress, Totals};

/// How much of the past the rate is taken from at most. Less jumps with every file; more believes for
/// long what has ceased to be so.
const WINDOW: Duration = Duration::from_secs(15);

/// And at least, of a run that is longer.
const WINDOW_MIN: Duration = Duration::from_millis(1500);

/// The least time between two samples of it.
const SAMPLE_EVERY: Duration = Duration::from_millis(500);

/// As many as the window may hold, and one before it, where it begins.
const SAMPLES_MAX: usize = (WINDOW.as_millis() / SAMPLE_EVERY.as_millis()) as usize + 2;

/// What an entry costs beside its bytes, in bytes that could have been copied meanwhile. With it a
/// thousand tiny files count for what they take, and the estimate stays when they come to an end.
const ENTRY_BYTES: f64 = 128.0 * 1024.0;

/// A time left that was made of less than this would be a guess.
const ESTIMATE_AFTER: Duration = Duration::from_secs(1);

/// How often it is noted that the process runs.
pub(super) const RUNS_EVERY: Duration = Duration::from_millis(100);

/// Who does not run for less than this was not stopped, or so shortly that nobody has written to the
/// terminal.
const STOP_MIN: Duration = Duration::from_millis(300);

/// How late a signal may tell that the process runs again, on a machine that is busy.
const SIGNAL_TAKES: Duration = Duration::from_secs(1);

/// The speed of a run, from what it did in the last seconds.
#[derive(Debug)]
pub(super) struct Speed {
    begun: Instant,
    samples: VecDeque<(Instant, Progress)>,
    /// When the process was last seen to run.
    seen: Option<Instant>,
    /// The longest time of late in which it was not.
    gap: Option<(Instant, Instant)>,
}

impl Speed {
    pub(super) fn new(begun: Instant) -> Speed {
        let samples = VecDeque::from([(begun, Progress::default())]);
        Speed { begun, samples, seen: None, gap: None }
    }

    /// The process runs, which is noted every [`RUNS_EVERY`]. Returns whether it may have been stopped
    /// since the last time.
    pub(super) fn runs(&mut self, now: Instant) -> bool {
        let Some(last) = self.seen.replace(now) else { return false };
        let outlived =
            self.gap.is_none_or(|(from, to)| now - to > SIGNAL_TAKES || to - from <= now - last);
        if outlived {
            self.gap = Some((last, now));
        }
        now - last >= STOP_MIN
    }

    /// The process was told to run again, and is so far. If it was stopped, that time is none of the
    /// copy's, which goes on as if it had been begun later. Returns whether it was.
    pub(super) fn runs_again(&mut self, now: Instant, progress: Progress) -> bool {
        if self.seen.is_none() {
            // Nobody draws, and so nobody knows how long it was. What is measured from now on is
            // right.
            self.begun = now;
            self.samples = VecDeque::from([(now, progress)]);
            return true;
        }
        // It may have been seen to run before the signal came through.
        self.runs(now);
        let stopped = self.gap.take().filter(|(from, to)| *to - *from >= STOP_MIN);
        let Some((from, to)) = stopped else { return false };
        // Something was done before the stop and behind it.
        let stop = (to - from).saturating_sub(RUNS_EVERY);
        self.begun += stop;
        // What was last drawn before the stop was noted an instant behind its beginning.
        for (at, _) in self.samples.iter_mut().filter(|(at, _)| *at < to) {
            *at += stop;
        }
        true
    }

    /// Takes note of how far the run is `now`.
    pub(super) fn note(&mut self, now: Instant, progress: Progress) {
        let due = self.samples.back().is_none_or(|(last, _)| now - *last >= SAMPLE_EVERY);
        if due {
            self.samples.push_back((now, progress));
        }
        // By number, and not by time: a stop ages all of them until it is known for one.
        if self.samples.len() > SAMPLES_MAX {
            self.samples.pop_front();
        }
    }

    /// Bytes a second of late.
    pub(super) fn bytes_per_second(&self, now: Instant, progress: Progress) -> f64 {
        let (seconds, before) = self.since(now);
        progress.bytes.saturating_sub(before.bytes) as f64 / seconds
    }

    /// Entries a second of late.
    pub(super) fn entries_per_second(&self, now: Instant, progress: Progress) -> f64 {
        let (seconds, before) = self.since(now);
        progress.entries.saturating_sub(before.entries) as f64 / seconds
    }

    /// How long the rest of `all` takes at this speed.
    pub(super) fn left(&self, now: Instant, progress: Progress, all: Totals) -> Option<Duration> {
        if now - self.begun < ESTIMATE_AFTER || !all.all {
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
        // Nothing was done, so that nothing can be said.
        left.is_finite().then(|| Duration::from_secs_f64(left.min(1e9)))
    }

    fn since(&self, now: Instant) -> (f64, Progress) {
        // Half of the run so far: a copy begins with what memory takes at once, which says little of
        // how long the rest will take a disk.
        let window = ((now - self.begun) / 2).clamp(WINDOW_MIN, WINDOW);
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

    /// The time left, while a run goes at a steady speed, is what is left: with many tiny files and
    /// with a large one after them.
    #[test]
    fn the_time_left_does_not_jump() {
        let begun = Instant::now();
        let mut speed = Speed::new(begun);
        let (tiny, large) = (100_000, 10 * GIB);
        let all = Totals { entries: tiny + 1, bytes: tiny * 100 + large, all: true };
        // Ten seconds of tiny files and ten of the large one.
        let at = |tenths: u64| {
            let entries = tenths.min(100) * tiny / 100;
            let part = tenths.saturating_sub(100) * large / 100;
            Progress { entries, bytes: entries * 100 + part, skipped_bytes: 0 }
        };
        for tenths in 1..200 {
            let now = begun + Duration::from_millis(100 * tenths);
            let seconds = (now - begun).as_secs_f64();
            speed.note(now, at(tenths));
            let left = speed.left(now, at(tenths), all).map(|left| left.as_secs_f64());
            if seconds < 1.0 {
                assert_eq!(left, None);
                continue;
            }
            let left = left.expect("the whole is known");
            let due = 20.0 - seconds;
            assert!((left - due).abs() <= 0.25 * due + 0.5, "{left} for {due}");
        }
    }

    /// A file of 5 GiB into a page cache that takes 2 GiB in a second, and then onto a disk.
    #[test]
    fn the_time_left_forgets_what_memory_took() {
        let begun = Instant::now();
        let mut speed = Speed::new(begun);
        let all = Totals { entries: 1, bytes: 5 * GIB, all: true };
        for tenths in 1..85 {
            let now = begun + Duration::from_millis(100 * tenths);
            let seconds = (now - begun).as_secs_f64();
            let moved = tenths.min(10) * GIB / 5 + tenths.saturating_sub(10) * GIB / 25;
            let progress = Progress { entries: 0, bytes: moved, skipped_bytes: 0 };
            speed.note(now, progress);
            if seconds < 3.0 {
                continue;
            }
            let left = speed.left(now, progress, all).expect("the whole is known");
            let due = 8.5 - seconds;
            let told = left.as_secs_f64();
            assert!((told - due).abs() <= 0.25 * due + 0.5, "{told} for {due}");
        }
    }

    /// Twenty seconds of copying with a minute in their middle in which the process was stopped. Who
    /// draws may notice the end of that before the signal does.
    #[test]
    fn a_stop_is_no_time_of_the_copy() {
        for signal_at_millis in [10_050, 10_101, 10_350] {
            let begun = Instant::now();
            let mut speed = Speed::new(begun);
            let all = Totals { entries: 1, bytes: 20 * GIB, all: true };
            let stop = Duration::from_secs(60);
            for tenths in 1..200 {
                let stopped = if tenths > 100 { stop } else { Duration::ZERO };
                let now = begun + stopped + Duration::from_millis(100 * tenths);
                let progress = Progress { entries: 0, bytes: tenths * GIB / 10, skipped_bytes: 0 };
                let signal = begun + stop + Duration::from_millis(signal_at_millis);
                let last = now - Duration::from_millis(100);
                if last < signal && signal <= now {
                    assert!(speed.runs_again(signal, progress));
                }
                speed.runs(now);
                let now = now + Duration::from_micros(10);
                speed.note(now, progress);
                // Until the signal has come nobody knows.
                if tenths < 10 || (stopped == stop && now < signal) {
                    continue;
                }
                let per_second = speed.bytes_per_second(now, progress) / GIB as f64;
                assert!((per_second - 1.0).abs() < 0.15, "{per_second} at {tenths}");
                let left = speed.left(now, progress, all).expect("the whole is known");
                let due = 20.0 - tenths as f64 / 10.0;
                let told = left.as_secs_f64();
                assert!((told - due).abs() <= 0.15 * due, "{told} for {due} at {tenths}");
            }
        }
    }

    #[test]
    fn a_signal_without_a_stop_changes_nothing() {
        let begun = Instant::now();
        let mut speed = Speed::new(begun);
        for tenths in 1..100 {
            let now = begun + Duration::from_millis(100 * tenths);
            let bytes = tenths * MIB / 10;
            let progress = Progress { entries: 5 * tenths, bytes, skipped_bytes: 0 };
            assert!(!speed.runs(now));
            speed.note(now, progress);
            assert!(!speed.runs_again(now + Duration::from_millis(50), progress));
            let per_second = speed.bytes_per_second(now, progress) / MIB as f64;
            assert!((per_second - 1.0).abs() < 0.1, "{per_second} at {tenths}");
            let per_second = speed.entries_per_second(now, progress) / 50.0;
            assert!((per_second - 1.0).abs() < 0.1, "{per_second} at {tenths}");
        }
    }

    /// Ten seconds, an hour's stop, and two seconds more: nobody has looked before.
    #[test]
    fn the_rate_of_a_run_that_nobody_watched_is_that_since_it_came_back() {
        let begun = Instant::now();
        let mut speed = Speed::new(begun);
        let at = |bytes| Progress { entries: 0, bytes, skipped_bytes: 0 };
        let back = begun + Duration::from_secs(3610);
        speed.runs_again(back, at(10 * MIB));
        let now = back + Duration::from_secs(2);
        speed.note(now, at(12 * MIB));
        assert_eq!(speed.bytes_per_second(now, at(12 * MIB)), MIB as f64);
    }

    #[test]
    fn a_run_that_stands_still_says_nothing_of_its_end() {
        let begun = Instant::now();
        let mut speed = Speed::new(begun);
        let progress = Progress { entries: 5, bytes: 5 * MIB, skipped_bytes: 0 };
        for seconds in 1..60 {
            speed.note(begun + Duration::from_secs(seconds), progress);
        }
        let now = begun + Duration::from_secs(60);
        let all = Totals { entries: 10, bytes: 10 * MIB, all: true };
        assert_eq!(speed.left(now, progress, all), None);
        assert_eq!(speed.bytes_per_second(now, progress), 0.0);
    }
}
