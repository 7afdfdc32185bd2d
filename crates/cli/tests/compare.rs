//! `haulage compare` as a user runs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;
use testfs::{only, stderr, stdout};

fn haulage(args: &[&str], dir: &Path) -> Output {
    let mut command = testfs::measuring(env!("CARGO_BIN_EXE_haulage"), args, dir);
    command.output().expect("haulage ran")
}

/// Runs an experiment of two variants with `slowed` as the last line of its part, and returns its run
/// directory.
fn run(dir: &Path, name: &str, slowed: &str) -> PathBuf {
    let text = format!(
        "schema = 1\nname = \"{name}\"\ntitle = \"t\"\nquestion = \"Which?\"\nanalysis = \"\"\n\
         [[part]]\nname = \"p\"\nquestion = \"Which?\"\nworkload = \"copy\"\n\
         variants = [\"sendfile\", \"read_write:64K\"]\nsizes = [\"256K\"]\n\
         baseline = \"sendfile\"\n{slowed}"
    );
    fs::write(dir.join(format!("{name}.toml")), text).expect("written");
    let output =
        haulage(&["bench", &format!("./{name}.toml"), "--rounds", "40", "--runs", name], dir);
    assert!(output.status.success(), "{}", stderr(&output));
    only(&dir.join(name))
}

#[test]
fn reports_what_is_slower_and_what_else_differs() {
    let home = tempfile::tempdir().expect("created");
    let dir = home.path();
    let before = run(dir, "before", "");
    // A hundred times the time: two runs on a shared machine may differ by a factor of 5 by themselves.
    let after = run(dir, "after", "slowed = { sendfile = { by = 99.0 } }\n");
    let mut environment = testfs::json(&after.join("environment.json"));
    environment["kernel"] = Value::from("Linux 99");
    fs::write(after.join("environment.json"), environment.to_string()).expect("written");

    let (before, after) = (before.to_str().expect("text"), after.to_str().expect("text"));
    let output = haulage(&["compare", before, after, "--delta", "20"], dir);
    let text = stdout(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(text.contains("→ Linux 99"), "{text}");
    assert!(text.contains("not interleaved"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");

    let compare = |args: &[&str]| haulage(&[&["compare"], args].concat(), dir);
    let sendfile = |output: &Output| {
        let mut change: Value = serde_json::from_str(&stdout(output)).expect("parsed");
        let cells = change["cells"].as_array_mut().expect("cells");
        cells.iter_mut().find(|cell| cell["variant"] == "sendfile").expect("found").take()
    };
    let failing = ["--json", "--delta", "20", "--fail-on", "slower"];
    let output = compare(&[&[before, after], &failing[..]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let slower = sendfile(&output);
    assert_eq!(slower["answer"], "slower", "{slower}");
    let ratio = slower["ratio"].as_f64().expect("a ratio");
    assert!((10.0..1000.0).contains(&ratio), "{ratio}");
    // In the other direction it is faster, which is no failure.
    let faster = sendfile(&compare(&[&[after, before], &failing[..]].concat()));
    assert_eq!(faster["answer"], "faster", "{faster}");
    // Without a common cell there is no proof that nothing is slower.
    let other = run(dir, "other", "states = [\"as_it_comes\"]\n");
    let other = other.to_str().expect("text");
    let output = compare(&[before, other, "--fail-on", "slower"]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(stderr(&output).contains("no cell in common"), "{}", stderr(&output));
    assert_eq!(compare(&[before, other]).status.code(), Some(0));
    // Without --fail-on no change is a failure.
    assert_eq!(compare(&[before, after]).status.code(), Some(0));
}
