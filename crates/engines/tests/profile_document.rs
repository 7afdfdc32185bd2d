//! Compares docs/profile.md with the format that it describes.

use engines::profile::{InFlight, Profile, Residency, SizeClass};

const DOCUMENT: &str = include_str!("../../../docs/profile.md");

fn example() -> &'static str {
    let (_, rest) = DOCUMENT.split_once("```toml\n").expect("an example");
    rest.split_once("```").expect("its end").0
}

#[test]
fn the_example_is_read_and_written_unchanged() {
    let parsed = Profile::parse(example()).expect("parsed");
    assert_eq!(parsed.unusable, []);
    assert_eq!(parsed.profile.to_toml(), example());
}

#[test]
fn every_word_and_every_key_is_described() {
    let sizes = SizeClass::ALL.map(|size| size.to_string());
    let residencies = Residency::ALL.map(|residency| residency.name().to_owned());
    let in_flight = InFlight::ALL.map(|in_flight| in_flight.name().to_owned());
    for word in sizes.iter().chain(&residencies).chain(&in_flight) {
        assert!(DOCUMENT.contains(&format!("`{word}`")), "{word}");
    }
    // The error for an unknown key lists the known keys.
    for (table, known) in [
        ("", 2),
        ("[[machine]]\n", 4),
        ("[[machine]]\n[[machine.pair]]\n", 5),
        ("[[machine]]\n[[machine.pair]]\n[machine.pair.src]\n", 5),
        ("[[machine]]\n[[machine.pair]]\n[[machine.pair.choice]]\nvariant = \"splice\"\n", 10),
    ] {
        let text = format!("version = 1\n{table}nonsense = 1\n");
        let problem = Profile::parse(&text).expect_err("no key").to_string();
        let (_, keys) = problem.split_once("expected ").expect("what there is");
        let keys: Vec<&str> = keys.split('`').skip(1).step_by(2).collect();
        assert_eq!(keys.len(), known, "{problem}");
        for key in keys {
            let described = [format!("`{key}`"), format!("[{key}]]"), format!(".{key}]]")];
            assert!(described.iter().any(|key| DOCUMENT.contains(key)), "{key}");
        }
    }
}
