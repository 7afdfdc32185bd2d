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
    words: &[
        "--archive\n",
        "-a\n",
        "-r\n",
        "--backup=",
        "numbered\n",
        "--suffix=",
        "-S\n",
        "--sparse=",
        "always\n",
        "--reflink=",
        "--preserve=",
        "mode,xattr,links,all\n",
        "--no-preserve=",
        "--update=",
        "none-fail\n",
        "--parents\n",
        "-t\n",
        "--target-directory=",
        "-T\n",
        "--\n",
        "--engine=",
        "splice:1M,pipe=1M@2\n",
        "--jobs=",
        "--limit-rate=",
        "18446744073709551615\n",
        "1.5G\n",
        "--exclude=",
        "--include=",
        "--ignore-file=",
        "rules\n",
        "--receipt=",
        "--stats\n",
        "--progress=",
        "--profile=",
        "profile.toml\n",
        "--atomic\n",
        "--resume\n",
        "--verify\n",
        "--durable\n",
        "--no-cache\n",
        "--dry-run\n",
        "--debug\n",
        "-v\n",
        "a\n",
        "b\n",
        "d\n",
        "link\n",
        ".\n",
        "..\n",
        "-\n",
        "\n",
        "--help\n",
        "--version\n",
        "--completions=",
        "POSIXLY_CORRECT=1\n",
        "VERSION_CONTROL=",
        "SIMPLE_BACKUP_SUFFIX=",
        "-bfilnpsuvxLPHRSTZ\n",
    ],
    starts_program: true,
};

pub(crate) const LAB: Target = Target {
    name: "command_line",
    about: "words of the other commands, a line each",
    run: lab,
    input_bytes_max: 512,
    words: &[
        "race\n",
        "bench\n",
        "certify\n",
        "compare\n",
        "report\n",
        "tune\n",
        "engines\n",
        "man\n",
        "completions\n",
        "--help\n",
        "--version\n",
        "help\n",
        "--variants\n",
        "--rounds\n",
        "--time\n",
        "--seed\n",
        "--json\n",
        "--csv\n",
        "--list\n",
        "--on\n",
        "--scale\n",
        "--dry-run\n",
        "--details\n",
        "--resume\n",
        "--show\n",
        "--export\n",
        "--import\n",
        "--forget\n",
        "--compare\n",
        "--output=",
        "--svg\n",
        "--png\n",
        "--text\n",
        "--epsilon\n",
        "--delta\n",
        "--fail-on\n",
        "slower\n",
        "bash\n",
        "zsh\n",
        "fish\n",
        "1e308\n",
        "nan\n",
        "-1\n",
        "18446744073709551616\n",
        "cold\n",
        "--\n",
        "-\n",
        "read_write:4K,splice\n",
    ],
    starts_program: true,
};

/// The variables that cp reads.
const VARIABLES: [&[u8]; 3] = [b"POSIXLY_CORRECT", b"VERSION_CONTROL", b"SIMPLE_BACKUP_SUFFIX"];

fn cp(input: &[u8]) {
    let dir = scratch::empty_dir("cp").join("work");
    std::fs::create_dir(&dir).expect("a directory");
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
        std::fs::write(dir.join(name), "").expect("a file");
    }
    std::fs::create_dir(dir.join("d")).expect("a directory");
    std::fs::write(dir.join("d/a"), "").expect("a file");
    std::os::unix::fs::symlink("a", dir.join("link")).expect("a link");
}
