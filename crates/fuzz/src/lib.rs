//! Fuzz targets: what haulage parses, as functions that take any bytes.
//!
//! A target panics if the product does: if it panics, if a program that it starts ends by a signal,
//! or if a property does not hold, such as that a profile which was written can be read. `cargo
//! xtask fuzz` searches for such inputs with libFuzzer; [`limits`] runs single inputs. The inputs in
//! `corpus/` are run with the tests.

pub mod limits;
pub mod scratch;
mod target;
mod targets;

pub use target::Target;
use targets::{
    command_line, experiment, filter, import, journal, profile, receipt, run_directory,
    tune_record, variant,
};

/// Every target.
pub static TARGETS: &[Target] = &[
    command_line::CP,
    command_line::LAB,
    variant::TARGET,
    profile::TARGET,
    import::TARGET,
    filter::TARGET,
    journal::TARGET,
    receipt::TARGET,
    experiment::TARGET,
    run_directory::SAMPLES,
    run_directory::ROUNDS,
    run_directory::CALLS,
    run_directory::SEQUENCES,
    run_directory::REFUSALS,
    run_directory::ENVIRONMENT,
    run_directory::DEFINITION,
    run_directory::VERDICT,
    run_directory::CERTIFICATE,
    tune_record::TARGET,
];

/// The target called `name`.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
