//! The count of what there is to copy, in a thread of its own beside the copy. It is for the eyes of
//! whoever waits, and the copy is to take no longer for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tree::{Options, PreScan, Request};

/// How far the counting stands back for the copy: the kernel gives it 3 % of a processor that the copy
/// wants, and all of one that it leaves.
const NICENESS: i32 = 15;

/// Of the processor time of the whole process the counting takes one part in so many. Files with much
/// in them are counted at once at that; of tiny ones a third, unless the copy lasts.
const PARTS: u32 = 100;

/// So much it may take at once: thousands of entries, which is all of most trees.
const AT_ONCE: Duration = Duration::from_millis(10);

/// A copy of this length is worth an end in sight. From then on niceness is all that holds it back.
const LONG: Duration = Duration::from_secs(10);

/// How long it waits for the copy to have done more.
const WAIT: Duration = Duration::from_millis(20);

/// Finds out in a thread of its own how much there is to copy.
pub(super) fn count_beside(request: &Request, options: &Options) -> Arc<PreScan> {
    let count = Arc::new(PreScan::default());
    let (counting, request, options) = (count.clone(), request.clone(), options.clone());
    let thread = std::thread::Builder::new().name(String::from("count"));
    // Without a thread the end is not known, and that is said.
    let _ = thread.spawn(move || {
        // On Linux this is the niceness of a thread.
        let _ = rustix::process::nice(NICENESS);
        let begun = Instant::now();
        counting.run(&request, &options, &|| {
            while !counting.is_stopped() && is_ahead(begun.elapsed(), thread_time(), process_time())
            {
                std::thread::sleep(WAIT);
            }
        });
    });
    count
}

/// Whether a count that has taken `counting` of the time `all` of all processors has to wait.
fn is_ahead(elapsed: Duration, counting: Duration, all: Duration) -> bool {
    elapsed < LONG && counting > AT_ONCE.max(all / PARTS)
}

fn thread_time() -> Duration {
    processor_time(ClockId::ThreadCPUTime)
}

fn process_time() -> Duration {
    processor_time(ClockId::ProcessCPUTime)
}

fn processor_time(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counting_takes_a_hundredth_until_the_copy_lasts() {
        let ms = Duration::from_millis;
        assert!(!is_ahead(ms(1000), ms(20), ms(2000)));
        assert!(is_ahead(ms(1000), ms(21), ms(2000)));
        assert!(!is_ahead(ms(1), ms(9), ms(10)));
        assert!(is_ahead(ms(1), ms(11), ms(12)));
        assert!(is_ahead(ms(9999), ms(500), ms(20_000)));
        assert!(!is_ahead(ms(10_000), ms(500), ms(20_000)));
    }
}
