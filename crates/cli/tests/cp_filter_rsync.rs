//! `--exclude` and `--include` beside rsync's options of the same names: where docs/filter.md says that
//! they mean the same, and where it says that they do not.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use testfs::{skip, test_name};

use crate::cp_filter::paths;
use crate::{check_success, fixture, haulage_cp};

type Paths = BTreeSet<Vec<u8>>;

/// How many lists of rules are tried.
const CASES: u32 = 25;

/// A directory with some hundreds of names to copy in `src`, in directories three deep, if there is rsync to copy
/// them.
fn planted() -> Option<tempfile::TempDir> {
    if Command::new("rsync").arg("--version").output().is_err() {
        skip(&test_name(), "there is no rsync here");
        return None;
    }
    // A disk would take long for some hundreds of files in each of a hundred copies.
    let in_memory = tempfile::tempdir_in("/dev/shm");
    let home = in_memory.or_else(|_| tempfile::tempdir()).expect("a directory");
    let mut dirs = vec!["src".to_owned()];
    for level in 0..4 {
        let mut below = Vec::new();
        for dir in dirs {
            for name in ["x", "ax", "b1", "x.c", "{o,c}", "x.{o,c}"] {
                fixture::add(&format!("{dir}/{name}=1"), home.path());
            }
            // In the lowest directories names of directories are those of files and links.
            if level == 3 {
                fixture::add(&format!("{dir}/a=a; {dir}/b->x; {dir}/ab->.."), home.path());
            } else {
                below.extend(["a", "b", "ab", "c.o"].map(|name| format!("{dir}/{name}")));
            }
        }
        dirs = below;
    }
    Some(home)
}

/// The paths that `command` makes of `src` in `dir` with these rules.
fn copied(dir: &Path, command: &mut Command, rules: &[String], src: &str) -> Paths {
    let output = command.args(rules).args([src, "copy"]).current_dir(dir).output();
    check_success(&output.expect("the copier runs"), rules.join(" "));
    let found = paths(&dir.join("copy"));
    let _ = std::fs::remove_dir_all(dir.join("copy"));
    found
}

fn by_rsync(dir: &Path, rules: &[String]) -> Paths {
    copied(dir, Command::new("rsync").arg("-a"), rules, "src/")
}

fn by_haulage(dir: &Path, rules: &[String]) -> Paths {
    copied(dir, &mut haulage_cp(dir, "-a"), rules, "src")
}

/// Globs of the forms that docs/filter.md says mean the same.
fn glob() -> impl Strategy<Value = String> {
    let part = "[abx1]|ab|x\\.|\\*|\\?|\\[ab\\]|\\[a-c\\]|\\[!x\\]|\\[\\^a\\]|\\[\\[:digit:\\]\\]";
    let name = format!("({part}){{1,3}}|\\*\\.[oc]|c\\.o|a|b");
    let anchored = format!("(/({name})){{1,3}}");
    let forms = [
        name.clone(),
        format!("({name})/"),
        anchored.clone(),
        format!("({anchored})/"),
        format!("\\*\\*/({name})"),
        format!("({anchored})/\\*\\*"),
    ];
    // Two stars beside each other are another matter.
    proptest::sample::select(forms.to_vec())
        .prop_flat_map(|form| proptest::string::string_regex(&form).expect("an expression"))
        .prop_filter("two stars within a name", |glob| {
            let name = glob.strip_prefix("**/").unwrap_or(glob);
            !name.strip_suffix("/**").unwrap_or(name).contains("**")
        })
}

#[test]
fn rules_mean_what_they_mean_to_rsync() {
    let Some(dir) = planted() else { return };
    let all = paths(&dir.path().join("src")).len();
    let rule = (proptest::sample::select(vec!["exclude", "exclude", "include"]), glob())
        .prop_map(|(option, glob)| format!("--{option}={glob}"));
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let partly = std::cell::Cell::new(0);
    TestRunner::new_with_rng(config, rng)
        .run(&proptest::collection::vec(rule, 1..5), |rules| {
            let due = by_rsync(dir.path(), &rules);
            partly.set(partly.get() + u32::from((1..all).contains(&due.len())));
            prop_assert_eq!(by_haulage(dir.path(), &rules), due, "{:?}", rules);
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
    // Rules that leave out nothing, or all, say little.
    assert!(partly.get() >= CASES / 2, "{}", partly.get());
}

/// The globs in the table of differences: rsync's, and the one that means the same here.
fn translations() -> Vec<(String, String)> {
    let text = include_str!("../../../docs/filter.md");
    let (_, table) = text.split_once("| rsync | here | why |").expect("the table");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cell = |cell: Option<&str>| {
        let cell = cell.expect("a cell").trim();
        cell.strip_prefix('`').and_then(|cell| cell.strip_suffix('`')).expect("a glob").to_owned()
    };
    rows.map(|row| {
        let mut cells = row.split('|').skip(1);
        (cell(cells.next()), cell(cells.next()))
    })
    .collect()
}

#[test]
fn where_they_differ_the_manual_says_how() {
    let Some(dir) = planted() else { return };
    let translations = translations();
    assert!(translations.len() >= 5, "{translations:?}");
    for (theirs, ours) in translations {
        let exclude = |glob: &str| [format!("--exclude={glob}")];
        let due = by_rsync(dir.path(), &exclude(&theirs));
        assert_eq!(by_haulage(dir.path(), &exclude(&ours)), due, "{theirs}, {ours}");
        assert_ne!(by_haulage(dir.path(), &exclude(&theirs)), due, "{theirs} means the same");
    }
}
