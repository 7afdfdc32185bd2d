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
    words: WORDS,
    starts_program: false,
};

pub(super) const WORDS: &[&str] = &[
    "schema = 1\n",
    "name = ",
    "title = ",
    "question = ",
    "analysis = ",
    "minutes = ",
    "[[part]]\n",
    "workload = ",
    "\"copy\"",
    "\"calls\"",
    "\"create\"",
    "variants = [",
    "sizes = [",
    "files = ",
    "shape = ",
    "\"file\"",
    "\"tree\"",
    "\"flat\"",
    "states = [",
    "\"warm\"",
    "\"cold\"",
    "at_once = [",
    "destinations = [",
    "\"fresh\"",
    "durable = true\n",
    "order = ",
    "\"shuffled\"",
    "baseline = ",
    "compare = [",
    "measure = ",
    "\"elapsed\"",
    "scaled = true\n",
    "analyses = [",
    "\"size_fit\"",
    "\"per_call\"",
    "\"buffer\"",
    "\"page\"",
    "\"scaling\"",
    "[part.reference]\n",
    "data = ",
    "[part.reference.series]\n",
    "4294967295",
    "18446744073709551615",
    "\"16E\"",
    "]\n",
];

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
