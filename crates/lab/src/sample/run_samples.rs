//! All samples of a run, as analyses read them, and the facts of the machine that analyses need.

use serde::Deserialize;

use super::record::{CallRecord, Sample, SequenceRecord};

/// Where samples come from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Samples<'r> {
    /// Every sample.
    pub samples: &'r [Sample],
    /// Single calls, where they were timed.
    pub calls: &'r [CallRecord],
    /// Single calls in their order.
    pub sequences: &'r [SequenceRecord],
}

/// What has to be known of a machine to judge samples of it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default)]
pub struct MachineFacts {
    /// What one reading of the clock costs.
    pub clock_ns: f64,
    /// Whether it is a virtual machine.
    pub virtual_machine: bool,
    /// Whether that gives free memory back to its host.
    pub reports_free_pages: bool,
    /// Whether the program was built with optimisation.
    pub optimized_build: bool,
}

impl Default for MachineFacts {
    fn default() -> MachineFacts {
        MachineFacts {
            clock_ns: 25.0,
            virtual_machine: false,
            reports_free_pages: false,
            optimized_build: true,
        }
    }
}

impl MachineFacts {
    /// The facts in an `environment.json`; the usual ones where it has none.
    pub fn of(environment: &serde_json::Value) -> MachineFacts {
        MachineFacts::deserialize(environment).unwrap_or_default()
    }
}
