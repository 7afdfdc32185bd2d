//! For tests: samples of an experiment that never ran, with times that are known.

use super::view::{Rules, Samples, View};
use crate::bench::cell::Cell;
use crate::bench::definition::{Definition, Part};
use crate::bench::record::{CallRecord, Place, Record, SequenceRecord};
use crate::measurement::Measurement;
use crate::stats::normal;

pub(in crate::bench) struct Synthetic {
    pub(in crate::bench) definition: Definition,
    pub(in crate::bench) samples: Vec<Record>,
    pub(in crate::bench) calls: Vec<CallRecord>,
    pub(in crate::bench) sequences: Vec<SequenceRecord>,
    pub(in crate::bench) rules: Rules,
    rng: fastrand::Rng,
}

impl Synthetic {
    /// One part, `part`, whose first variant is the baseline.
    pub(in crate::bench) fn new(workload: &str, variants: &[&str], sizes: &[&str]) -> Synthetic {
        let text = format!(
            "schema = 1\nname = \"made\"\ntitle = \"t\"\nquestion = \"q\"\nanalysis = \"\"\n\
             [[part]]\nname = \"part\"\nquestion = \"q\"\nworkload = \"{workload}\"\n\
             variants = {variants:?}\nsizes = {sizes:?}\nbaseline = {:?}\n",
            variants[0]
        );
        Synthetic {
            definition: Definition::parse(&text, "made").expect("right"),
            samples: Vec::new(),
            calls: Vec::new(),
            sequences: Vec::new(),
            rules: Rules::default(),
            rng: fastrand::Rng::with_seed(7),
        }
    }

    pub(in crate::bench) fn part(&mut self) -> &mut Part {
        &mut self.definition.parts[0]
    }

    /// Runs with these typical times, of which single runs differ by 1 % and sessions by 2 %.
    pub(in crate::bench) fn measure(
        &mut self,
        sessions: u32,
        rounds: u32,
        time_ns: impl Fn(&Cell, &str) -> f64,
    ) {
        self.measure_with(sessions, rounds, |cell, variant, _| time_ns(cell, variant));
    }

    /// The same with times that may depend on the place in the order, and may set other fields.
    pub(in crate::bench) fn measure_with(
        &mut self,
        sessions: u32,
        rounds: u32,
        time_ns: impl Fn(&Cell, &str, &mut Record) -> f64,
    ) {
        let mut now_ns = 0;
        for (part, cell) in self.definition.cells() {
            for session in 1..=sessions {
                let shift = 0.02 * normal(&mut self.rng);
                for round in 1..=rounds {
                    for (order, variant) in (1..).zip(&self.definition.parts[part].variants) {
                        let place = Place {
                            session,
                            round,
                            repeat: 0,
                            order_in_round: order,
                            probe_ns: 100,
                        };
                        let measured = Measurement { counted: true, ..Measurement::default() };
                        let mut record = Record::of(&cell, variant, place, measured);
                        let noise = (shift + 0.01 * normal(&mut self.rng)).exp();
                        let ns = time_ns(&cell, variant, &mut record) * noise;
                        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                        let elapsed_ns = ns.round() as u64;
                        record.measured.elapsed_ns = elapsed_ns;
                        record.measured.begun_ns = now_ns;
                        now_ns += elapsed_ns;
                        record.measured.ended_ns = now_ns;
                        self.samples.push(record);
                    }
                }
            }
        }
    }

    pub(in crate::bench) fn samples(&self) -> Samples<'_> {
        Samples {
            samples: &self.samples,
            calls: &self.calls,
            sequences: &self.sequences,
            ..Samples::default()
        }
    }

    pub(in crate::bench) fn view(&self) -> View<'_> {
        View::all(&self.definition, self.samples(), self.rules).swap_remove(0)
    }
}
