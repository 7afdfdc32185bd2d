//! The built-in experiments.

use crate::definition::Definition;

/// An experiment in `experiments/`.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// The name of the experiment.
    pub name: &'static str,
    /// The text of the experiment.
    pub text: &'static str,
}

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        &[$(BuiltIn {
            name: $name,
            text: include_str!(concat!("../../experiments/", $name, ".toml")),
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
    pub fn by_name(name: &str) -> Option<&'static BuiltIn> {
        BUILT_IN.iter().find(|built_in| built_in.name == name)
    }

    /// What it says.
    ///
    /// # Panics
    /// Never: a test parses all of them.
    pub fn definition(&self) -> Definition {
        let definition = Definition::parse(self.text, &format!("experiments/{}.toml", self.name));
        definition.expect("a test parses all of them")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::reference;

    #[test]
    fn all_of_them_are_right_and_there() {
        for built_in in BUILT_IN {
            let definition = built_in.definition();
            assert_eq!(definition.name, built_in.name);
            for part in definition.parts.iter().filter(|part| !part.baseline.is_empty()) {
                assert!(part.compared().next().is_some(), "{}: {}", definition.name, part.name);
            }
        }
        let claims = BUILT_IN.iter().flat_map(|built_in| built_in.definition().claims);
        let names: Vec<String> = claims.map(|claim| claim.name).collect();
        let unique: std::collections::BTreeSet<&String> = names.iter().collect();
        assert_eq!(unique.len(), names.len(), "--claim takes the name alone");
        assert!(names.len() > 20, "{names:?}");
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");
        let files = std::fs::read_dir(dir).expect("listed").flatten();
        let toml = files.filter(|file| file.path().extension().is_some_and(|e| e == "toml"));
        assert_eq!(toml.count(), BUILT_IN.len(), "each file is a row here");
    }

    /// The study's methods, each with the part and the variant that stand for it.
    #[test]
    fn the_replay_has_all_methods_of_its_study() {
        let methods = [
            ("stdio", "methods", "stdio:1"),
            ("stdio_lb", "methods", "stdio:1,setvbuf=8K"),
            ("posix", "methods", "read_write:1"),
            ("posix_buffered", "methods", "read_write:4K,offset=16"),
            ("posix_buffered_aligned", "methods", "read_write:4K"),
            ("memcpy", "methods", "memory:1M,untouched"),
            ("memcpy_aligned", "methods", "memory:1M"),
            ("mmap", "methods", "mmap:8M"),
            ("sendfile", "methods", "sendfile"),
            ("splice", "methods", "splice"),
            ("cp", "command", "cp {src} {dst}"),
            ("copy_file_range", "methods", "copy_file_range"),
            ("splice_lb", "methods", "splice:1M,pipe=1M"),
        ];
        let replay = BuiltIn::by_name("copying-disk-bytes").expect("there").definition();
        let data = reference::by_name("copying-disk-bytes").expect("there");
        for (method, part, variant) in methods {
            let part = replay.parts.iter().find(|found| found.name == part).expect(part);
            assert!(part.variants.iter().any(|text| text == variant), "{method}: {variant}");
            // Its published figures, if there are any, are shown beside that variant.
            let series = format!("size:{method}");
            let shown = part.reference.as_ref().and_then(|shown| shown.series.get(variant));
            let published = !data.figures(&series).is_empty();
            assert_eq!(shown, published.then_some(&series), "{method}");
        }
    }
}
