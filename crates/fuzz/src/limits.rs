//! Runs one input of a target within limits of time and memory.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::target::Target;

/// The processor time that an input may take. The clock on the wall would count other programs.
pub const TIME_MAX: Duration = Duration::from_secs(1);

/// The memory that the process may have resident.
pub const MEMORY_BYTES_MAX: u64 = 256 << 20;

/// Runs `target` on `input` and returns what is wrong in words, if anything is.
#[must_use]
pub fn check(target: &Target, input: &[u8]) -> Option<String> {
    forget_peak();
    let begun = processor_time();
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| (target.run)(input))) {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        return Some(format!("panic: {}", text.unwrap_or("without a text")));
    }
    let took = processor_time().saturating_sub(begun);
    if took > TIME_MAX {
        let seconds = took.as_secs_f64();
        return Some(format!("{seconds:.1} s of processor time, over {TIME_MAX:?}"));
    }
    let (peak, most) = (peak_bytes(), MEMORY_BYTES_MAX);
    (peak > most).then(|| format!("{} MiB of memory, over {}", peak >> 20, most >> 20))
}

/// That of all threads of the process.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Sets the peak to what is resident now (proc_pid_clear_refs(5)).
fn forget_peak() {
    std::fs::write("/proc/self/clear_refs", "5").expect("/proc is mounted");
}

fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc is mounted");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it has a peak");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib << 10
}
