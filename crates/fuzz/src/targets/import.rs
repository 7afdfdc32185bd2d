//! `haulage tune --import`: a profile of another machine becomes part of the user's own.

use engines::profile::Profile;

use super::program;
use crate::scratch;
use crate::target::Target;

pub(crate) const TARGET: Target = Target {
    name: "import",
    about: "an exported profile, for tune --import",
    run,
    input_bytes_max: 4096,
    dictionary: "profile",
};

/// A profile with comments, which an import keeps.
const OWN: &str = include_str!("../../tests/profile.toml");

fn run(input: &[u8]) {
    let dir = scratch::empty_dir("import");
    let own = dir.join("own.toml");
    std::fs::write(&own, OWN).expect("a profile");
    let mut command = program::command(&dir);
    command.args(["tune", "--import", "-"]).env("HAULAGE_PROFILE", &own);
    let output = program::run(command, input);
    let after = Profile::read(&own).expect("it can still be read").expect("it is there");
    if !output.status.success() {
        let before = Profile::parse(OWN).expect("it is right");
        assert_eq!(after.profile, before.profile, "a refused import changes nothing");
    }
}
