//! What one run came to, in units that the field names state.

use serde::Serialize;

use crate::state::{Proof, State};

/// One run of one variant: a line of the CSV file, an object of the JSON file.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// The variant in its text form.
    pub variant: String,
    /// Its engine.
    pub engine: &'static str,
    /// Workers that shared each file.
    pub workers: usize,
    /// The part of the race that it belongs to.
    pub stage: Stage,
    /// The round, from 1.
    pub round: u32,
    /// Its place in the shuffled order of the round, from 1.
    pub order_in_round: u32,
    /// Bytes of the source that were copied, all files together.
    pub bytes: u64,
    /// From just before the first byte to the return of the last call. With several files, the sum
    /// over them without the opening and closing between.
    pub elapsed_ns: u64,
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
    /// Bytes of the source in the page cache just before the run.
    pub src_resident_bytes_before: Option<u64>,
    /// The same just after it.
    pub src_resident_bytes_after: Option<u64>,
    /// Bytes of the destination in the page cache just before the run; it is a new file each time.
    pub dst_resident_bytes_before: Option<u64>,
    /// The same just after it.
    pub dst_resident_bytes_after: Option<u64>,
    /// The page cache state asked for.
    pub state_wanted: State,
    /// The page cache state found.
    pub state_proved: Proof,
    /// Why the state proved is not the one wanted; empty when it is.
    pub state_note: String,
    /// Whether the copy was compared with the source and found equal. A floor copies no file.
    pub verified: bool,
    /// Whether the run enters the summary: its state was reached.
    pub counted: bool,
    /// Refusals by the variant, in words; empty for none.
    pub refusals: String,
    /// Bytes that `read_write` moved in the variant's place after a refusal.
    pub last_resort_bytes: u64,
    /// Nothing was moved: the destination came to share the source's extents.
    pub shares_extents: bool,
}

impl Sample {
    /// Bytes of source and destination in the page cache after the run.
    #[must_use]
    pub fn resident_bytes_after(&self) -> Option<u64> {
        Some(self.src_resident_bytes_after? + self.dst_resident_bytes_after?)
    }
}

/// The parts of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Short runs on the start of the source, by which the field is narrowed.
    Heat,
    /// One run on the whole load that warms up and is never counted.
    WarmUp,
    /// Runs that count.
    Final,
}
