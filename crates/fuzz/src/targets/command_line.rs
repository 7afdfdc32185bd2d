//! Command lines.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::program;
use crate::scratch;
use crate::target::Target;

pub(crate) const CP: Target = Target {
    name: "cp_command_line",
    about: "words of cp, a line each; lines NAME=VALUE at the start are its environment",
    run: cp,
    input_bytes_max: 512,
    dictionary: "cp_command_line",
};

pub(crate) const LAB: Target = Target {
    name: "command_line",
    about: "words of the other commands, a line each",
    run: lab,
    input_bytes_max: 512,
    dictionary: "command_line",
};

/// The variables that cp reads.
const VARIABLES: [&[u8]; 3] = [b"POSIXLY_CORRECT", b"VERSION_CONTROL", b"SIMPLE_BACKUP_SUFFIX"];

fn cp(input: &[u8]) {
    let dir = scratch::empty_dir("cp").join("work");
    std::fs::create_dir(&dir).expect("created");
    fill(&dir);
    let mut command = program::command(&dir);
    command.arg("cp");
    let mut words = words(input).peekable();
    while let Some(word) = words.peek() {
        let Some(at) = word.iter().position(|&byte| byte == b'=') else { break };
        if !VARIABLES.contains(&&word[..at]) {
            break;
        }
        command.env(OsStr::from_bytes(&word[..at]), OsStr::from_bytes(&word[at + 1..]));
        words.next();
    }
    command.args(words.map(|word| OsStr::from_bytes(&word).to_owned()));
    program::run(command, b"");
}

fn lab(input: &[u8]) {
    let dir = scratch::empty_dir("lab");
    let mut command = program::command(&dir);
    let words: Vec<Vec<u8>> = words(input).collect();
    command.args(words.iter().map(|word| OsStr::from_bytes(word)));
    // These measure for minutes. An unknown option ends them, after all words before it were parsed.
    let measures = [&b"race"[..], b"bench", b"certify", b"tune"];
    if words.first().is_some_and(|word| measures.contains(&word.as_slice())) {
        command.arg("--no-such-option");
    }
    program::run(command, b"");
}

/// The words of `input`. They name nothing outside of the directory that the program runs in.
fn words(input: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    let input = input.strip_suffix(b"\n").unwrap_or(input);
    let inside = |&byte: &u8| match byte {
        // No argument can hold it.
        0 => b'0',
        b'/' => b'%',
        byte => byte,
    };
    input.split(|&byte| byte == b'\n').map(move |word| word.iter().map(inside).collect())
}

/// Files without data: a limit of one byte a second would make a copy of some slow.
fn fill(dir: &Path) {
    for name in ["a", "b", "rules", "profile.toml"] {
        std::fs::write(dir.join(name), "").expect("written");
    }
    std::fs::create_dir(dir.join("d")).expect("created");
    std::fs::write(dir.join("d/a"), "").expect("written");
    std::os::unix::fs::symlink("a", dir.join("link")).expect("linked");
}
