//! What was measured in one timed run, of any workload.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::page_cache::state::Proof;

/// One run in figures. Names end in their unit; `None` is what this kernel or workload cannot tell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Measurement {
    /// CLOCK_MONOTONIC when the timed part started.
    pub started_ns: u64,
    /// CLOCK_MONOTONIC when the timed part ended; 0 in a run directory, where it is not kept.
    #[serde(skip_serializing_if = "is_not_kept")]
    pub ended_ns: u64,
    /// From just before the first byte to the return of the last call. With several files one after
    /// another, the sum over them without the opening and closing between; of several runs at once,
    /// from the first start to the last end.
    pub elapsed_ns: u64,
    /// Of that, time in which the thread that ran it was ready to go on and waited for a processor,
    /// which other programs had. `None` where the kernel does not count it, and where threads or
    /// processes of the run itself may have been what it waited for.
    pub processor_wait_ns: Option<u64>,
    /// Until fsync(2) of the destination came back too, counted from the same start.
    pub durable_ns: Option<u64>,
    /// Of several runs at once the time of each; otherwise empty.
    #[serde(deserialize_with = "list")]
    pub each_ns: Vec<u64>,
    /// Processor time in user mode, all threads.
    pub user_ns: u64,
    /// Processor time in the kernel, all threads.
    pub system_ns: u64,
    /// Page faults served from memory, all threads.
    pub minor_faults: u64,
    /// Page faults that waited for a device, all threads.
    pub major_faults: u64,
    /// Times that a thread waited.
    pub voluntary_switches: u64,
    /// Times that the processor was taken from a thread.
    pub involuntary_switches: u64,
    /// Bytes that this process had devices read (/proc/self/io `read_bytes`).
    pub device_read_bytes: Option<u64>,
    /// Bytes that this process made devices write or left dirty in the page cache for writing
    /// (/proc/self/io `write_bytes`: the kernel counts a page when it becomes dirty).
    pub device_written_bytes: Option<u64>,
    /// Pages that the kernel looked at to find memory, on the whole machine (/proc/vmstat).
    pub pages_scanned: Option<u64>,
    /// Pages that it took back, on the whole machine.
    pub pages_reclaimed: Option<u64>,
    /// Pages swapped in and out, on the whole machine.
    pub pages_swapped: Option<u64>,
    /// Misses of the processor's last cache, where the kernel offers hardware counters.
    pub cache_misses: Option<u64>,
    /// Instructions carried out, user mode and kernel, where the kernel offers hardware counters.
    pub instructions: Option<u64>,
    /// Calls that moved bytes, counted on an equal run that is not timed.
    pub calls: Option<u64>,
    /// Bytes of the source in the page cache just before the run.
    pub src_resident_bytes_before: Option<u64>,
    /// Bytes of the source in the page cache just after the run.
    pub src_resident_bytes_after: Option<u64>,
    /// Bytes of the destination in the page cache just before the run; 0 for a new file.
    pub dst_resident_bytes_before: Option<u64>,
    /// Bytes of the destination in the page cache just after the run.
    pub dst_resident_bytes_after: Option<u64>,
    /// The page cache state found.
    pub state_proved: Proof,
    /// Why the state proved is not the one wanted; empty when it is.
    pub state_note: String,
    /// Whether the outcome was compared with what it has to be, and found equal. A floor makes
    /// none.
    pub verified: bool,
    /// Whether the run enters summaries: its state was reached.
    pub counted: bool,
    /// Refusals by the variant, in words; empty for none.
    pub refusals: String,
    /// Bytes that `read_write` moved in the variant's place after a refusal.
    pub last_resort_bytes: u64,
    /// Nothing was moved: the destination then shares the source's extents.
    pub shares_extents: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // As serde wants it.
fn is_not_kept(ended_ns: &u64) -> bool {
    *ended_ns == 0
}

/// A list in JSON, and its items with blanks between in CSV, where a single one looks like a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum List {
    Items(Vec<u64>),
    Item(u64),
    Text(String),
}

fn list<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u64>, D::Error> {
    match List::deserialize(from)? {
        List::Items(items) => Ok(items),
        List::Item(item) => Ok(vec![item]),
        List::Text(text) => text
            .split_ascii_whitespace()
            .map(str::parse)
            .collect::<Result<_, _>>()
            .map_err(D::Error::custom),
    }
}

impl Measurement {
    /// The start of the measurement of a run that reads no file: the page cache plays no part, so
    /// it always counts.
    pub(crate) fn without_source() -> Measurement {
        let state_note = "no file is read, so the page cache plays no part".to_owned();
        Measurement { counted: true, state_note, ..Measurement::default() }
    }

    /// Bytes of source and destination in the page cache after the run.
    pub fn resident_bytes_after(&self) -> Option<u64> {
        Some(self.src_resident_bytes_after? + self.dst_resident_bytes_after?)
    }

    /// Runs that went on at once, as one: from the first start to the last end, with all that they
    /// used.
    ///
    /// # Panics
    /// When there is none.
    pub fn together(runs: &[Measurement]) -> Measurement {
        let mut sum = runs[0].clone();
        let all = |field: fn(&Measurement) -> u64| runs.iter().map(field).sum::<u64>();
        let every = |field: fn(&Measurement) -> Option<u64>| -> Option<u64> {
            runs.iter().map(field).sum()
        };
        sum.started_ns = runs.iter().map(|run| run.started_ns).min().unwrap_or(0);
        sum.ended_ns = runs.iter().map(|run| run.ended_ns).max().unwrap_or(0);
        sum.elapsed_ns = sum.ended_ns - sum.started_ns;
        let durable_end = |run: &Measurement| run.durable_ns.map(|ns| run.started_ns + ns);
        let durable_ends: Option<Vec<u64>> = runs.iter().map(durable_end).collect();
        sum.durable_ns = durable_ends.and_then(|ends| Some(ends.iter().max()? - sum.started_ns));
        sum.each_ns = runs.iter().map(|run| run.elapsed_ns).collect();
        // Runs at once may wait for each other, and that is no disturbance.
        sum.processor_wait_ns = None;
        sum.user_ns = all(|run| run.user_ns);
        sum.system_ns = all(|run| run.system_ns);
        sum.minor_faults = all(|run| run.minor_faults);
        sum.major_faults = all(|run| run.major_faults);
        sum.voluntary_switches = all(|run| run.voluntary_switches);
        sum.involuntary_switches = all(|run| run.involuntary_switches);
        sum.last_resort_bytes = all(|run| run.last_resort_bytes);
        sum.device_read_bytes = every(|run| run.device_read_bytes);
        sum.device_written_bytes = every(|run| run.device_written_bytes);
        sum.src_resident_bytes_before = every(|run| run.src_resident_bytes_before);
        sum.src_resident_bytes_after = every(|run| run.src_resident_bytes_after);
        sum.dst_resident_bytes_before = every(|run| run.dst_resident_bytes_before);
        sum.dst_resident_bytes_after = every(|run| run.dst_resident_bytes_after);
        sum.cache_misses = every(|run| run.cache_misses);
        sum.instructions = every(|run| run.instructions);
        // Every run saw the counters of the whole machine; the run that saw the most saw it all.
        sum.pages_scanned = runs.iter().filter_map(|run| run.pages_scanned).max();
        sum.pages_reclaimed = runs.iter().filter_map(|run| run.pages_reclaimed).max();
        sum.pages_swapped = runs.iter().filter_map(|run| run.pages_swapped).max();
        if let Some(worst) = runs.iter().find(|run| run.state_proved == Proof::NotReached) {
            sum.state_proved = worst.state_proved;
            sum.state_note.clone_from(&worst.state_note);
        }
        sum.verified = runs.iter().all(|run| run.verified);
        sum.counted = runs.iter().all(|run| run.counted);
        sum.shares_extents = runs.iter().all(|run| run.shares_extents);
        sum
    }
}
