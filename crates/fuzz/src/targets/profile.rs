//! The profile of `haulage tune`, which users edit.

use engines::profile::{Profile, text_of};

use crate::target::Target;

pub(crate) const TARGET: Target = Target {
    name: "profile",
    about: "a profile as TOML",
    run,
    input_bytes_max: 4096,
    dictionary: "profile",
};

fn run(input: &[u8]) {
    match text_of(input, input.len() as u64) {
        Ok(text) => check(&text),
        Err(problem) => drop(format!("{problem:?}")),
    }
}

fn check(text: &str) {
    let Ok(parsed) = Profile::parse(text) else { return };
    let written = parsed.profile.to_toml();
    let again = Profile::parse(&written).expect("what was written can be read");
    assert_eq!(again.profile, parsed.profile, "what was written is what was read");
}
