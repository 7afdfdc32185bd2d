//! One cheap run of the whole command.

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
    let runs = std::fs::read_to_string(&csv).expect("the runs");
    // In each of two cases two copiers ran three times; and there is a heading.
    assert_eq!(runs.lines().count(), 2 * 2 * 3 + 1, "{runs}");
    // It keeps nothing in the directory that it was given but the file asked for.
    std::fs::remove_file(csv).expect("removed");
    assert_eq!(std::fs::read_dir(home.path()).expect("listed").count(), 0);
}
