//! The record that `haulage tune --json` and `--export` write, and `haulage report` reads.

use lab::tune::record::Records;
use report::Report;

use super::run_directory;
use crate::target::Target;

pub(crate) const TARGET: Target = Target {
    name: "tune_record",
    about: "a record of haulage tune as JSON, and the report on it",
    run,
    input_bytes_max: 16 << 10,
    dictionary: "tune_record",
};

fn run(input: &[u8]) {
    let records = match Records::parse(input) {
        Ok(records) => records,
        Err(problem) => return drop(problem),
    };
    for record in &records.pairs {
        let _ = (record.lines(), record.slow_modes());
        let _ = record.clone().summary().exported();
    }
    run_directory::draw(&Report::of_tuning(records.pairs), input);
}
