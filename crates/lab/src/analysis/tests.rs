//! For tests: samples of an experiment that never ran, with known times.

use super::view::{Rules, View};
use crate::definition::cell::Cell;
use crate::definition::{Definition, Part};
use crate::run_dir::{HowRun, Run, SCHEMA};
use crate::sample::measurement::Measurement;
use crate::sample::record::{CallRecord, Sample, SequenceRecord};
use crate::sample::run_samples::Samples;
use crate::stats::normal;

pub(crate) struct Synthetic {
    pub(crate) definition: Definition,
    pub(crate) samples: Vec<Sample>,
    pub(crate) calls: Vec<CallRecord>,
    pub(crate) sequences: Vec<SequenceRecord>,
    pub(crate) rules: Rules,
    rng: fastrand::Rng,
}

impl Synthetic {
    /// One part, `part`, whose first variant is the baseline.
    pub(crate) fn new(workload: &str, variants: &[&str], sizes: &[&str]) -> Synthetic {
        let text = format!(
            "schema = 1\nname = \"made\"\ntitle = \"t\"\nquestion = \"q\"\nanalysis = \"\"\n\
             [[part]]\nname = \"part\"\nquestion = \"q\"\nworkload = \"{workload}\"\n\
             variants = {variants:?}\nsizes = {sizes:?}\nbaseline = {:?}\n",
            variants[0]
        );
        Synthetic {
            definition: Definition::parse(&text, "made").expect("parsed"),
            samples: Vec::new(),
            calls: Vec::new(),
            sequences: Vec::new(),
            rules: Rules::default(),
            rng: fastrand::Rng::with_seed(7),
        }
    }

    pub(crate) fn part(&mut self) -> &mut Part {
        &mut self.definition.parts[0]
    }

    /// Runs with these typical times, of which single runs differ by 1 % and sessions by 2 %.
    pub(crate) fn measure(
        &mut self,
        sessions: u32,
        rounds: u32,
        time_ns: impl Fn(&Cell, &str) -> f64,
    ) {
        self.measure_with(sessions, rounds, |cell, variant, _| time_ns(cell, variant));
    }

    /// Measures with times that may depend on the place in the order. `time_ns` may set other
    /// fields.
    pub(crate) fn measure_with(
        &mut self,
        sessions: u32,
        rounds: u32,
        time_ns: impl Fn(&Cell, &str, &mut Sample) -> f64,
    ) {
        let mut now_ns = 0;
        for (part, cell) in self.definition.cells() {
            for session in 1..=sessions {
                let shift = 0.02 * normal(&mut self.rng);
                for round in 1..=rounds {
                    for (order, variant) in (1..).zip(&self.definition.parts[part].variants) {
                        let mut record = Sample {
                            cell: cell.id(),
                            variant: variant.clone(),
                            session,
                            round,
                            repeat: 0,
                            order_in_round: order,
                            probe_ns: 100,
                            measured: Measurement { counted: true, ..Measurement::default() },
                        };
                        let noise = (shift + 0.01 * normal(&mut self.rng)).exp();
                        let ns = time_ns(&cell, variant, &mut record) * noise;
                        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                        let elapsed_ns = ns.round() as u64;
                        record.measured.elapsed_ns = elapsed_ns;
                        record.measured.started_ns = now_ns;
                        now_ns += elapsed_ns;
                        record.measured.ended_ns = now_ns;
                        self.samples.push(record);
                    }
                }
            }
        }
    }

    pub(crate) fn samples(&self) -> Samples<'_> {
        Samples { samples: &self.samples, calls: &self.calls, sequences: &self.sequences }
    }

    /// A run with these samples.
    pub(crate) fn run(&self) -> Run {
        let how = HowRun {
            schema: SCHEMA,
            src_dir: "/a".into(),
            dst_dir: "/a".into(),
            seed: 1,
            seconds: Some(1.0),
            rounds: None,
            scale: 1.0,
            haulage_version: "0".to_owned(),
            scratch: "bench-0".to_owned(),
        };
        Run {
            path: "runs/it".into(),
            definition: self.definition.clone(),
            how,
            environment: serde_json::Value::Null,
            samples: self.samples.clone(),
            rounds: Vec::new(),
            refusals: Vec::new(),
            calls: Vec::new(),
            sequences: Vec::new(),
        }
    }

    pub(crate) fn view(&self) -> View<'_> {
        View::all(&self.definition, self.samples(), self.rules).swap_remove(0)
    }
}
