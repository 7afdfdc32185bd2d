//! The manual pages: complete, and without a mistake that their readers would report.

use std::path::{Path, PathBuf};
use std::process::Command;

use testfs::{skip, test_name};

use crate::{commands, haulage};

/// What haulage prints.
fn printed(args: &[&str]) -> String {
    let output = haulage(args);
    assert!(output.status.success(), "{args:?}: {}", testfs::stderr(&output));
    String::from_utf8(output.stdout).expect("text")
}

/// All pages, in a directory.
fn pages() -> (tempfile::TempDir, Vec<PathBuf>) {
    let dir = tempfile::tempdir().expect("created");
    printed(&["man", "--all", dir.path().to_str().expect("text")]);
    let entries = std::fs::read_dir(dir.path()).expect("listed");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    (dir, files)
}

#[test]
fn each_command_has_a_page() {
    let (dir, files) = pages();
    let mut expected: Vec<PathBuf> =
        commands().iter().map(|(name, _)| dir.path().join(format!("haulage-{name}.1"))).collect();
    expected.push(dir.path().join("haulage.1"));
    expected.sort();
    assert_eq!(files, expected);
    assert!(files.len() > 10, "{files:?}");
    for (name, _) in commands() {
        let file = dir.path().join(format!("haulage-{name}.1"));
        let written = std::fs::read_to_string(file).expect("read");
        assert_eq!(written, printed(&["man", &name]), "{name}");
    }
    assert_eq!(printed(&["cp", "--generate=man"]), printed(&["man", "cp"]));
}

#[test]
fn a_page_has_all_options_of_the_help() {
    for (name, _) in commands() {
        let page = printed(&["man", &name]).replace("\\-", "-");
        let help = printed(&[&name, "--help"]);
        // `      --state <STATE>` and `  -o, --output <FILE>` begin an option.
        let is_option = |line: &&str| {
            let option = line.trim_start();
            option.starts_with('-') && (2..=6).contains(&(line.len() - option.len()))
        };
        let lines = help.lines().filter(is_option).map(str::trim_start);
        let options = lines.flat_map(|line| line.split([' ', ',', '=', '[']));
        let options: Vec<&str> = options.filter(|word| word.starts_with("--")).collect();
        assert!(options.contains(&"--help"), "{name}: {options:?}");
        for option in options {
            assert!(page.contains(&format!("{option}\\fR")), "{option} is missing in {name}");
        }
        assert!(!page.contains("[default"), "{name}: defaults are sentences");
    }
}

/// Runs a checker on all pages. It must print nothing.
fn check(checker: &[&str], is_known: fn(&str) -> bool) {
    let (_dir, files) = pages();
    for file in files {
        let output = Command::new(checker[0]).args(&checker[1..]).arg(&file).output();
        let Ok(output) = output else {
            return skip(&test_name(), &format!("there is no {} here", checker[0]));
        };
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        let complaints: Vec<&str> = text.lines().filter(|line| !is_known(line)).collect();
        assert!(complaints.is_empty(), "{complaints:#?}");
    }
}

#[test]
fn mandoc_finds_nothing() {
    // Without a repository the date is unknown.
    let is_known: fn(&str) -> bool = match in_repository() {
        true => |_| false,
        false => |line| line.contains("missing date"),
    };
    check(&["mandoc", "-T", "lint"], is_known);
}

#[test]
fn groff_finds_nothing() {
    check(&["groff", "-man", "-Tascii", "-ww", "-z"], |_| false);
}

/// Whether this is in its own git repository: the directory may be in one of something else.
pub(crate) fn in_repository() -> bool {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let args = ["ls-files", "--error-unmatch", "build.rs"];
    let output = Command::new("git").args(args).current_dir(dir).output();
    output.is_ok_and(|output| output.status.success())
}

#[test]
fn an_unknown_page_is_a_mistake() {
    let words = "no command is called 'rm'; see haulage --help\n";
    testfs::assert_refused("rm", &haulage(&["man", "rm"]), 2, "haulage man: ", words);
}
