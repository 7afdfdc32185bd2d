//! Experiments of `haulage bench`, which users write.

use lab::definition::Definition;
use lab::experiment::estimate;
use lab::experiment::space::SpaceNeeded;

use crate::target::Target;

pub(crate) const TARGET: Target = Target {
    name: "experiment",
    about: "an experiment as TOML",
    run,
    input_bytes_max: 4096,
    dictionary: "experiment",
};

fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match Definition::parse(text, "an experiment") {
        Ok(definition) => {
            // What --dry-run tells.
            let _ = definition.cells();
            let _ = SpaceNeeded::of(&definition);
            let _ = estimate::seconds_of_rounds(&definition);
        }
        Err(error) => drop(error.to_string()),
    }
}
