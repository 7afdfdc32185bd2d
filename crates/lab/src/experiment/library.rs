//! The built-in experiments.

use super::parse::DefinitionError;
use crate::definition::Definition;

/// An experiment in `experiments/`.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        &[$(BuiltIn {
            name: $name,
            text: include_str!(concat!("../../../../experiments/", $name, ".toml")),
        }),*]
    };
}

/// All of them, the broadest question first.
pub static BUILT_IN: &[BuiltIn] = built_in![
    "engines",
    "copying-disk-bytes",
    "closson-2007",
    "teterin-2004",
    "nordstrom-1998",
    "scaling",
    "peers",
];

impl BuiltIn {
    /// The one called `name`.
    #[must_use]
    pub fn by_name(name: &str) -> Option<&'static BuiltIn> {
        BUILT_IN.iter().find(|built_in| built_in.name == name)
    }

    /// What it says.
    ///
    /// # Errors
    /// None: a test parses all of them.
    pub fn definition(&self) -> Result<Definition, DefinitionError> {
        Definition::parse(self.text, &format!("experiments/{}.toml", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_them_are_right_and_there() {
        for built_in in BUILT_IN {
            let definition = built_in.definition().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(definition.name, built_in.name);
            for part in definition.parts.iter().filter(|part| !part.baseline.is_empty()) {
                assert!(part.compared().next().is_some(), "{}: {}", definition.name, part.name);
            }
        }
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");
        let files = std::fs::read_dir(dir).expect("the directory").flatten();
        let toml = files.filter(|file| file.path().extension().is_some_and(|e| e == "toml"));
        assert_eq!(toml.count(), BUILT_IN.len(), "each file is a row here");
    }
}
