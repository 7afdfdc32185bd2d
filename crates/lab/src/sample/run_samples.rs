//! All samples of a run, as analyses read them, and the facts of the machine that analyses need.

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
    /// Where they were taken.
    pub machine: MachineFacts,
}

/// What has to be known of a machine to judge samples of it.
#[derive(Clone, Copy, Debug)]
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
    /// The facts in an `environment.json`.
    pub fn of(environment: &serde_json::Value) -> MachineFacts {
        let usual = MachineFacts::default();
        let is = |name: &str, usual: bool| environment[name].as_bool().unwrap_or(usual);
        MachineFacts {
            clock_ns: environment["clock_ns"].as_f64().unwrap_or(usual.clock_ns),
            virtual_machine: is("virtual_machine", usual.virtual_machine),
            reports_free_pages: is("reports_free_pages", usual.reports_free_pages),
            optimized_build: is("optimized_build", usual.optimized_build),
        }
    }
}
