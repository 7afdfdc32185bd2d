//! Runs one input of a target within limits of time and memory.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::target::Target;

/// The processor time that an input may take. The clock on the wall would count other programs.
pub const TIME_MAX: Duration = Duration::from_secs(1);

/// The memory that the process may have resident.
pub const MEMORY_BYTES_MAX: u64 = 256 << 20;

/// What is wrong with how an input was handled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A panic, with its message.
    Panic(String),
    /// More than [`TIME_MAX`].
    Slow(Duration),
    /// More than [`MEMORY_BYTES_MAX`].
    Memory(u64),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::Panic(what) => write!(f, "panic: {what}"),
            Fault::Slow(took) => {
                write!(f, "{:.1} s of processor time, over {:?}", took.as_secs_f64(), TIME_MAX)
            }
            Fault::Memory(bytes) => {
                write!(f, "{} MiB of memory, over {}", bytes >> 20, MEMORY_BYTES_MAX >> 20)
            }
        }
    }
}

/// Runs `target` on `input` and returns what is wrong, if anything is.
#[must_use]
pub fn check(target: &Target, input: &[u8]) -> Option<Fault> {
    forget_peak();
    let begun = processor_time();
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| (target.run)(input))) {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        return Some(Fault::Panic(text.unwrap_or("without a text").to_owned()));
    }
    let took = processor_time().saturating_sub(begun);
    if took > TIME_MAX {
        return Some(Fault::Slow(took));
    }
    let peak = peak_bytes();
    (peak > MEMORY_BYTES_MAX).then_some(Fault::Memory(peak))
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
