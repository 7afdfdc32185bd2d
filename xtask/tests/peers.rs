//! One cheap run of the whole command.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The program as the workspace's tests build it, if they did.
fn haulage() -> Option<std::path::PathBuf> {
    let found = Path::new(env!("CARGO_BIN_EXE_xtask")).with_file_name("haulage");
    found.is_file().then_some(found)
}

#[test]
fn haulage_stands_beside_cp() {
    let Some(haulage) = haulage() else {
        testfs::skip(&testfs::test_name(), "haulage is not built; `cargo xtask test` builds it");
        return;
    };
    let home = tempfile::tempdir().expect("a directory");
    let csv = home.path().join("runs.csv");
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["peers", "--case", "tree,sparse", "--scale", "0.01", "--rounds", "2"])
        .arg("--peers=")
        .args(["--haulage".as_ref(), haulage.as_os_str()])
        .args(["--on".as_ref(), home.path().as_os_str()])
        .args(["--csv".as_ref(), csv.as_os_str()])
        .output()
        .expect("xtask runs");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    let tables = String::from_utf8_lossy(&output.stdout);
    for expected in ["tree: cp -a", "sparse: cp -a"] {
        assert!(tables.contains(expected), "{expected} in\n{tables}");
    }
    let rows = |name: &str| tables.lines().filter(|line| line.starts_with(name)).count();
    assert_eq!((rows("cp "), rows("haulage ")), (2, 2), "{tables}");
    // In each of two cases two copiers ran three times. A run that others on the machine disturbed
    // is listed too, before the one that took its place.
    let mut states_of_run: BTreeMap<[String; 4], Vec<String>> = BTreeMap::new();
    let mut runs = csv::Reader::from_path(&csv).expect("the runs");
    for run in runs.records() {
        let run = run.expect("a run");
        let which = [0, 1, 2, 3].map(|column| run[column].to_owned());
        states_of_run.entry(which).or_default().push(run[8].to_owned());
    }
    assert_eq!(states_of_run.len(), 2 * 2 * 3, "{states_of_run:?}");
    for (which, states) in &states_of_run {
        let (_, replaced) = states.split_last().expect("a run");
        assert!(replaced.iter().all(|state| state == "not_reached"), "{which:?}: {states:?}");
    }
    // It keeps nothing in the directory that it was given but the file asked for.
    std::fs::remove_file(csv).expect("removed");
    assert_eq!(std::fs::read_dir(home.path()).expect("listed").count(), 0);
}
