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

static TARGETS: [Target; 10] = [
    command_line::CP,
    command_line::LAB,
    variant::TARGET,
    profile::TARGET,
    import::TARGET,
    filter::TARGET,
    journal::TARGET,
    receipt::TARGET,
    experiment::TARGET,
    tune_record::TARGET,
];

/// Every target.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    TARGETS.iter().chain(&run_directory::TARGETS)
}

/// The target called `name`.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Target> {
    targets().find(|target| target.name == name)
}
