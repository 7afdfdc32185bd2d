//! Counts what there is to copy, in a thread of its own, for the percentage of `--progress`. The copy
//! must not take longer for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haulage::events::PreScan;
use haulage::options::{Options, Request};
use rustix::time::{ClockId, DynamicClockId, clock_gettime_dynamic};

/// Niceness of the counting thread: the kernel gives it 3 % of a processor that the copy wants, and all
/// of an idle one.
const NICENESS: i32 = 15;

/// The counting takes at most 1 / `SHARE` of the processor time of the process. That suffices to count
/// large files at once, and about a third of a tree of tiny files.
const SHARE: u32 = 100;

/// Processor time that it may take at once: enough for some thousand entries, which is all of most trees.
const UNTHROTTLED: Duration = Duration::from_millis(10);

/// A copy that takes this long needs an estimate of its end. From then on only the niceness limits the
/// counting.
const LONG_COPY: Duration = Duration::from_secs(10);

/// A copy that waits for the medium, not for a processor, needs an estimate of its end after this time.
const LONG_WAITING_COPY: Duration = Duration::from_secs(1);

/// How long it sleeps when it has taken more than its share.
const WAIT: Duration = Duration::from_millis(20);

/// Starts to count in a thread of its own.
pub(crate) fn start(request: &Request, options: &Options) -> Arc<PreScan> {
    let scan = Arc::new(PreScan::default());
    let (counting, request, options) = (scan.clone(), request.clone(), options.clone());
    let thread = std::thread::Builder::new().name(String::from("count"));
    // If the thread cannot be started, the progress is shown without a total.
    let _ = thread.spawn(move || {
        // On Linux each thread has its own niceness.
        let _ = rustix::process::nice(NICENESS);
        let begun = Instant::now();
        let long_after = if options.waits_for_medium() { LONG_WAITING_COPY } else { LONG_COPY };
        counting.run(&request, &options, &|| {
            let is_long = || begun.elapsed() >= long_after;
            let own = || processor_time(ClockId::ThreadCPUTime);
            let all = || processor_time(ClockId::ProcessCPUTime);
            while !counting.is_stopped() && !is_long() && is_ahead(own(), all()) {
                std::thread::sleep(WAIT);
            }
        });
    });
    scan
}

/// Whether counting has to sleep, after it took `counting` of the processor time `all` of the process.
fn is_ahead(counting: Duration, all: Duration) -> bool {
    counting > UNTHROTTLED.max(all / SHARE)
}

fn processor_time(clock: ClockId) -> Duration {
    let time = clock_gettime_dynamic(DynamicClockId::Known(clock));
    time.ok().and_then(|time| Duration::try_from(time).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_takes_a_hundredth() {
        let ms = Duration::from_millis;
        assert!(!is_ahead(ms(20), ms(2000)));
        assert!(is_ahead(ms(21), ms(2000)));
        assert!(!is_ahead(ms(9), ms(10)));
        assert!(is_ahead(ms(11), ms(12)));
        assert!(is_ahead(ms(500), ms(20_000)));
    }
}
