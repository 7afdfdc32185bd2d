//! What the commands print on terminals of 60 to 200 columns, in pipes, and with colours off or on.

use std::path::{Path, PathBuf};
use std::process::Command;

use testfs::{names_in, on_terminal, stdout, without_control_sequences};

const PROGRAM: &str = env!("CARGO_BIN_EXE_haulage");

const COLUMNS: [u16; 3] = [60, 80, 200];

/// Commands that only look and print. `RUN` stands for a run directory.
const PRINTING: &[&[&str]] = &[
    &["engines", ".", "/dev/shm"],
    &["doctor", ".", "/dev/shm"],
    &["bench", "--list"],
    &["bench", "engines", "--part", "warm", "--scale", "0.01", "--dry-run"],
    &["tune", "--dry-run", "."],
    &["compare", "RUN", "RUN"],
    &["report", "--text", "RUN"],
];

/// A run directory that is kept for tests.
fn run_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/runs/small")
}

fn command(args: &[&str], dir: &Path) -> Command {
    let run = run_dir();
    let args = args.iter().map(|&arg| if arg == "RUN" { run.as_os_str() } else { arg.as_ref() });
    let mut command = testfs::command(PROGRAM);
    command.args(args).current_dir(dir).env_remove("NO_COLOR").env("XDG_STATE_HOME", "/missing");
    command
}

/// What it prints on a terminal of `columns` columns. Every line fits.
fn fitting(args: &[&str], command: Command, columns: u16) -> String {
    let (status, text) = on_terminal(command, columns);
    assert!(status.success(), "{args:?}: {status}: {text}");
    for line in without_control_sequences(&text).lines() {
        // Paths, commands to type and names of machines are words that cannot be broken.
        let is_one_word = line.split_whitespace().count() <= 2;
        let width = line.chars().count();
        assert!(width <= usize::from(columns) || is_one_word, "{args:?}, {columns}: {line}");
    }
    text
}

#[test]
fn every_line_fits_and_colours_obey() {
    let dir = tempfile::tempdir().expect("created");
    for args in PRINTING {
        for columns in COLUMNS {
            let text = fitting(args, command(args, dir.path()), columns);
            // One that has no colours would obey without doing anything.
            assert!(text.contains("\x1b["), "{args:?} has no styles: {text}");
        }
        let mut without = command(args, dir.path());
        without.env("NO_COLOR", "1");
        let plain = fitting(args, without, 80);
        assert!(!plain.contains('\x1b'), "{args:?}: {plain}");
        let piped = command(args, dir.path()).output().expect("haulage ran");
        assert!(!stdout(&piped).contains('\x1b'), "{args:?}");
    }
    assert_eq!(names_in(dir.path()), Vec::<String>::new());
}

/// All commands ask the same function. What the user says here comes before what is said everywhere.
#[test]
fn an_option_comes_before_the_environment() {
    let dir = tempfile::tempdir().expect("created");
    let args = PRINTING[0];
    let mut always = command(args, dir.path());
    let always = always.arg("--color=always").env("NO_COLOR", "1").output();
    assert!(stdout(&always.expect("haulage runs")).contains("\x1b["));
    let forced = command(args, dir.path()).env("CLICOLOR_FORCE", "1").output();
    assert!(stdout(&forced.expect("haulage runs")).contains("\x1b["));
    let mut never = command(args, dir.path());
    never.arg("--color=never").env("CLICOLOR_FORCE", "1");
    assert!(!fitting(args, never, 80).contains('\x1b'));
}

#[test]
fn every_help_fits() {
    let dir = tempfile::tempdir().expect("created");
    let names = crate::commands();
    assert!(names.len() > 10, "{names:?}");
    for columns in COLUMNS {
        fitting(&["--help"], command(&["--help"], dir.path()), columns);
        for (name, _) in &names {
            let args = [name.as_str(), "--help"];
            fitting(&args, command(&args, dir.path()), columns);
        }
    }
}
