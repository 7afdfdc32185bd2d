//! The rows of a run directory: `samples.csv`, `rounds.csv`, `calls.csv` and `sequences.csv`.

use serde::{Deserialize, Serialize};

use super::call_times::{Bucket, CallTimes};
use super::measurement::Measurement;

/// One timed run of a cell: a line of `samples.csv`. What follows from the cell stands in the definition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The cell's short name.
    pub cell: String,
    /// The variant.
    pub variant: String,
    /// The session, from 1; each is a process of its own.
    pub session: u32,
    /// The round of the session, from 1.
    pub round: u32,
    /// How often the round had been run before, because something disturbed it. Of the runs of one
    /// round those with the highest number count.
    pub repeat: u32,
    /// The run's place in the round, from 1.
    pub order_in_round: u32,
    /// What the machine's speed probe took just before, in nanoseconds.
    pub probe_ns: u64,
    /// What was measured.
    #[serde(flatten, skip_deserializing)]
    pub measured: Measurement,
}

/// One round, and what else the machine did: a line of `rounds.csv`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RoundRecord {
    /// The cell's short name.
    pub cell: String,
    /// The session, from 1.
    pub session: u32,
    /// The round of the session, from 1.
    pub round: u32,
    /// How often it had been run before.
    pub repeat: u32,
    /// Whether it was run again after this.
    pub again: bool,
    /// Length of the round.
    pub round_ns: u64,
    /// Processor time that the host of a virtual machine gave to others; all processors.
    pub steal_ns: u64,
    /// Processor time in user mode of programs other than this experiment.
    pub foreign_user_ns: u64,
    /// Time during which some task waited for memory (/proc/pressure/memory); empty where unknown.
    pub memory_pressure_ns: Option<u64>,
    /// Time during which some task waited for a device; our own runs are in it.
    pub io_pressure_ns: Option<u64>,
    /// Bytes that others read from disks.
    pub foreign_read_bytes: u64,
    /// What disturbed the round, in words; empty when nothing did.
    pub breach: String,
}

/// Single calls of one run that took about as long: a line of `calls.csv`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// The cell's short name.
    pub cell: String,
    /// The variant.
    pub variant: String,
    /// The session, from 1.
    pub session: u32,
    /// The round of the session, from 1.
    pub round: u32,
    /// How often the round had been run before.
    pub repeat: u32,
    /// `read` or `write`.
    pub op: String,
    /// What the reading of the clock between two calls takes; it is contained in each call.
    pub clock_ns: u64,
    /// The bucket and the calls in it.
    #[serde(flatten)]
    pub bucket: Bucket,
}

/// One call in its order: a line of `sequences.csv`, for the first run of each variant in a
/// session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SequenceRecord {
    /// The cell's short name.
    pub cell: String,
    /// The variant.
    pub variant: String,
    /// The session, from 1.
    pub session: u32,
    /// `read` or `write`.
    pub op: String,
    /// Which call of its kind, from 0; of very many, every second, third and so on is kept.
    pub call: u64,
    /// What it took, with the reading of the clock.
    pub elapsed_ns: u64,
}

/// The lines of one run's calls.
pub fn of_calls(run: &Sample, times: &CallTimes) -> (Vec<CallRecord>, Vec<SequenceRecord>) {
    let (mut calls, mut sequence) = (Vec::new(), Vec::new());
    for (op, of) in [("read", &times.read), ("write", &times.write)] {
        calls.extend(of.buckets.iter().map(|&bucket| CallRecord {
            cell: run.cell.clone(),
            variant: run.variant.clone(),
            session: run.session,
            round: run.round,
            repeat: run.repeat,
            op: op.to_owned(),
            clock_ns: times.clock_ns,
            bucket,
        }));
        sequence.extend((0..).zip(&of.sequence_ns).map(|(index, &elapsed_ns)| SequenceRecord {
            cell: run.cell.clone(),
            variant: run.variant.clone(),
            session: run.session,
            op: op.to_owned(),
            call: index * of.sequence_step,
            elapsed_ns,
        }));
    }
    (calls, sequence)
}
