//! The protocol between the conductor and a session process: JSON, one object a line.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::definition::Slowed;
use crate::definition::cell::Cell;
use crate::sample::call_times::CallTimes;
use crate::sample::measurement::Measurement;
use crate::sample::record::{RoundRecord, Sample};

/// The order of a session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Order {
    /// The cell.
    pub cell: Cell,
    /// The number of the session in its cell, from 1.
    pub session: u32,
    /// The variants of the cell.
    pub variants: Vec<String>,
    /// For each round, which variants run and in what order.
    pub rounds: Vec<Vec<usize>>,
    /// The scratch directory for sources.
    pub src_dir: PathBuf,
    /// The scratch directory for what runs make.
    pub dst_dir: PathBuf,
    /// The seed of all random bytes.
    pub seed: u64,
    /// Time after which no other round begins; `None` for no such limit.
    pub rounds_ns: Option<u64>,
    /// Time after which no disturbed round is run again; `None` for no such limit.
    pub repeats_ns: Option<u64>,
    /// Whether each variant runs once before, uncounted.
    pub warm_up: bool,
    /// Whether the calls of each variant are counted.
    pub count_calls: bool,
    /// How often a disturbed round is run again.
    pub repeats: u32,
    /// The variants that are slowed on purpose.
    #[serde(default)]
    pub slowed: BTreeMap<String, Slowed>,
    /// The number of this worker process, from 0; `None` for the session itself.
    pub worker: Option<u32>,
    /// The id of the process that gives the order.
    pub parent: Option<i32>,
}

/// An event that a session reports.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A variant does not work here and takes no further part.
    Refused {
        /// The index of the variant.
        variant: usize,
        /// In words.
        why: String,
    },
    /// A variant ran.
    Ran {
        /// The index of the variant.
        variant: usize,
        /// The run.
        #[serde(deserialize_with = "whole_sample")]
        sample: Box<Sample>,
        /// The times of its single calls, where they are timed; with the sequences in the first round
        /// of a session only.
        times: Option<CallTimes>,
    },
    /// A round is complete.
    Round {
        /// The round, and what else the machine did meanwhile.
        record: RoundRecord,
    },
    /// The session cannot go on, in words.
    Failed {
        /// What happened.
        why: String,
    },
}

/// A sample with what was measured, which [`Sample`] leaves out: a row of a CSV file has no types.
fn whole_sample<'de, D: Deserializer<'de>>(from: D) -> Result<Box<Sample>, D::Error> {
    let fields = Value::deserialize(from)?;
    let measured = Measurement::deserialize(&fields).map_err(D::Error::custom)?;
    let sample = Sample::deserialize(&fields).map_err(D::Error::custom)?;
    Ok(Box::new(Sample { measured, ..sample }))
}
