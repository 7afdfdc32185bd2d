//! The built-in profile, `default.toml`, which `cargo xtask default-profile` writes.
//!
//! A copy needs one or two of its pairs, so only those are parsed: each starts with the line
//! `[[machine.pair]]`, and each of its choices with the line `[[machine.pair.choice]]`.
//! `tree/data/engine_choice/profiles.rs` reads it.

use super::choices::{PairChoices, Profile};
use super::file_system::Pair as FileSystems;

const BUILT_IN: &str = include_str!("default.toml");

const PAIR: &str = "[[machine.pair]]\n";
const CHOICE: &str = "[[machine.pair.choice]]\n";

impl Profile {
    /// The whole built-in profile, which `cargo xtask default-profile` derives from measurements.
    ///
    /// # Panics
    /// Never: a test parses it.
    #[must_use]
    pub fn built_in() -> Profile {
        Profile::parse(BUILT_IN).expect("a test parses it").profile
    }

    /// The pairs of the built-in profile that fit `found`. Parses only those, which takes a tenth
    /// of a millisecond instead of several.
    #[must_use]
    pub fn built_in_between(found: &FileSystems) -> Vec<PairChoices> {
        fitting_pairs(BUILT_IN, found)
    }
}

/// The pairs of `text` that fit, in their order.
fn fitting_pairs(text: &str, found: &FileSystems) -> Vec<PairChoices> {
    let pairs = text.split(PAIR).skip(1);
    pairs
        .filter(|pair| {
            let head = pair.split_once(CHOICE).map_or(*pair, |(head, _)| head);
            parse_pair(head).iter().any(|pair| pair.fits(found))
        })
        .flat_map(parse_pair)
        .collect()
}

/// Parses a pair from the text that follows its first line.
fn parse_pair(pair: &str) -> Vec<PairChoices> {
    // The text may end with the header of the next machine, without its pairs.
    let text = format!("version = 1\n[[machine]]\n{PAIR}{pair}");
    let parsed = Profile::parse(&text).expect("what is built in is right, as a test tells");
    parsed.profile.machines.into_iter().flat_map(|machine| machine.pairs).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Choice, FileSystem, Line, Machine, MachineChoices};
    use super::*;

    #[test]
    fn every_choice_of_the_built_in_profile_is_usable() {
        let parsed = Profile::parse(BUILT_IN).expect("right");
        assert_eq!(parsed.unusable, []);
        for machine in &parsed.profile.machines {
            assert_eq!(machine.machine, Machine::default(), "it is for every machine");
            for pair in &machine.pairs {
                for side in [&pair.src, &pair.dst] {
                    let by_type =
                        FileSystem { fs_type: side.fs_type.clone(), ..Default::default() };
                    assert_eq!(*side, by_type, "it knows file systems by type only");
                }
            }
        }
    }

    fn side(fs_type: Option<&str>) -> FileSystem {
        FileSystem { fs_type: fs_type.map(str::to_owned), ..FileSystem::default() }
    }

    fn pair(src: Option<&str>, dst: Option<&str>, same: Option<bool>, lines: usize) -> PairChoices {
        let line = |number: usize| Line {
            choice: Choice { variant: format!("read_write:{number}K"), ..Choice::default() },
            ..Line::default()
        };
        let lines = (1..=lines).map(line).collect();
        PairChoices { src: side(src), dst: side(dst), same, lines, kernel: None }
    }

    /// Every pair of types that any of the pairs names, and one that no pair names.
    fn check(text: &str) {
        let whole = Profile::parse(text).expect("right").profile;
        let all: Vec<&PairChoices> = whole.pairs_of(&Machine::default()).collect();
        let mut types: Vec<Option<String>> = all
            .iter()
            .flat_map(|pair| [&pair.src, &pair.dst])
            .map(|side| side.fs_type.clone())
            .collect();
        types.push(Some(String::from("unheard-of")));
        for src in &types {
            for dst in &types {
                for same in [true, false] {
                    let (src, dst) = (side(src.as_deref()), side(dst.as_deref()));
                    let found = FileSystems { src, dst, same };
                    let expected: Vec<PairChoices> = all
                        .iter()
                        .filter(|pair| pair.fits(&found))
                        .map(|pair| (*pair).clone())
                        .collect();
                    assert_eq!(fitting_pairs(text, &found), expected, "{found:?}");
                }
            }
        }
    }

    #[test]
    fn a_part_equals_the_same_part_of_the_whole() {
        check(BUILT_IN);
        let machine = |pairs| MachineChoices { machine: Machine::default(), pairs };
        let some = vec![
            pair(Some("ext4"), Some("ext4"), Some(true), 2),
            pair(Some("ext4"), Some("xfs"), None, 1),
            pair(Some("*"), Some("tmpfs"), Some(false), 0),
        ];
        let others = vec![pair(None, None, None, 3), pair(Some("xfs"), Some("*"), None, 1)];
        let profile = Profile { machines: vec![machine(some), machine(others)] };
        check(&profile.to_toml());
    }
}
