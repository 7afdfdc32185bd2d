//! Completion in shells: a script for each, which asks the program what may stand at the cursor.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;

use clap::{Arg, Command, ValueEnum};
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate, complete};
use engines::ENGINES;
use lab::experiment::library::{BUILT_IN, BuiltIn};
use lab::run_dir::files::SAMPLES;
use toml_edit::DocumentMut;

use super::of_clap::phrase;

/// A shell that has completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// The tag of a candidate that stands for the names of files, which the shell completes itself.
const FILE: &str = "file";

/// The tag of a candidate that stands for the names of directories.
const DIRECTORY: &str = "directory";

/// What `program` prints for `shell`: without `words` the script, which calls the program with the
/// arguments `call` and the words of a line up to the cursor; else the answer to such a call.
pub(crate) fn text(shell: Shell, program: Command, call: &str, words: Vec<OsString>) -> String {
    if !words.is_empty() {
        return answer(shell, program, words);
    }
    let script = match shell {
        Shell::Bash => include_str!("completions/bash"),
        Shell::Zsh => include_str!("completions/zsh"),
        Shell::Fish => include_str!("completions/fish"),
    };
    script.replace("@NAME@", program.get_name()).replace("@CALL@", call)
}

/// A line with [`FILE`], [`DIRECTORY`] or nothing, then a line for each candidate for the last word.
fn answer(shell: Shell, program: Command, words: Vec<OsString>) -> String {
    let last = words.len() - 1;
    let current = words[last].to_string_lossy().into_owned();
    let is_option = current.starts_with('-') && !words[..last].iter().any(|word| word == "--");
    let is_command = last == 1 && program.has_subcommands();
    let mut program = with_values(program, &words.clone().into());
    let candidates = complete(&mut program, words, last, None).unwrap_or_default();
    let (mut kind, mut lines) = ("", String::new());
    for candidate in &candidates {
        let value = candidate.get_value().to_string_lossy();
        // clap offers options among operands. They would hide the names of files.
        if value.starts_with('-') != is_option && !is_command {
            continue;
        }
        match candidate.get_tag().map(ToString::to_string).as_deref() {
            Some(FILE) => kind = FILE,
            Some(DIRECTORY) => kind = DIRECTORY,
            _ if value.starts_with(&current) => lines.push_str(&line(shell, &value, candidate)),
            _ => {}
        }
    }
    format!("{kind}\n{lines}")
}

fn line(shell: Shell, value: &str, candidate: &CompletionCandidate) -> String {
    let help = candidate.get_help().map(|help| phrase(&help.to_string()));
    match (shell, help) {
        (Shell::Bash, _) | (Shell::Fish, None) => format!("{value}\n"),
        (Shell::Fish, Some(help)) => format!("{value}\t{help}\n"),
        (Shell::Zsh, None) => format!("{}\n", value.replace(':', "\\:")),
        (Shell::Zsh, Some(help)) => format!("{}:{help}\n", value.replace(':', "\\:")),
    }
}

/// `command` with what completes the values of its arguments and of those of its subcommands.
fn with_values(command: Command, line: &Arc<[OsString]>) -> Command {
    command.mut_args(|arg| with_value(arg, line)).mut_subcommands(|it| with_values(it, line))
}

/// `arg` with what completes it. clap knows the values of an enum; others are known by their name in
/// the help.
fn with_value(arg: Arg, line: &Arc<[OsString]>) -> Arg {
    let name = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    match name.as_deref().unwrap_or_default() {
        "FILE" | "PATH" | "SRC" => {
            arg.add(ArgValueCompleter::new(|_: &OsStr| vec![by_shell(FILE)]))
        }
        "DIR" | "DSTDIR" | "DIRECTORY" => {
            arg.add(ArgValueCompleter::new(|_: &OsStr| vec![by_shell(DIRECTORY)]))
        }
        "RUN" | "FIRST" | "SECOND" | "A" => arg.add(ArgValueCompleter::new(runs)),
        // A variant begins with the name of its engine.
        "VARIANT" => arg.add(ArgValueCandidates::new(engines)),
        "LIST" => arg.add(ArgValueCandidates::new(engines)).value_delimiter(','),
        "EXPERIMENT" => arg.add(ArgValueCompleter::new(experiments)),
        "PART" => {
            let line = line.clone();
            arg.add(ArgValueCandidates::new(move || parts(&line)))
        }
        _ => arg,
    }
}

/// The candidate that has the shell complete names of files or directories.
fn by_shell(tag: &'static str) -> CompletionCandidate {
    CompletionCandidate::new("").tag(Some(tag.into()))
}

fn engines() -> Vec<CompletionCandidate> {
    ENGINES.iter().map(|engine| engine.name.into()).collect()
}

fn experiments(_: &OsStr) -> Vec<CompletionCandidate> {
    let built_in = BUILT_IN.iter().map(|built_in| built_in.name.into());
    built_in.chain([by_shell(FILE)]).collect()
}

/// The parts of the experiments on the line, else of all.
fn parts(line: &[OsString]) -> Vec<CompletionCandidate> {
    let mut parts: BTreeSet<String> = line.iter().flat_map(parts_of).collect();
    if parts.is_empty() {
        parts = BUILT_IN.iter().flat_map(|built_in| parts_in(built_in.text)).collect();
    }
    parts.into_iter().map(CompletionCandidate::from).collect()
}

fn parts_of(word: &OsString) -> Vec<String> {
    let is_file = Path::new(word).extension().is_some_and(|extension| extension == "toml");
    let text = is_file.then(|| std::fs::read_to_string(word).ok()).flatten();
    let built_in = word.to_str().and_then(BuiltIn::by_name);
    text.as_deref().or(built_in.map(|it| it.text)).map(parts_in).unwrap_or_default()
}

/// The names of parts in the text of an experiment, which need not be right in all else.
fn parts_in(text: &str) -> Vec<String> {
    let document = text.parse::<DocumentMut>().unwrap_or_default();
    let parts = document.get("part").and_then(|part| part.as_array_of_tables());
    let names = parts.into_iter().flatten().filter_map(|part| part.get("name")?.as_str());
    names.map(str::to_owned).collect()
}

/// Run directories below the word so far, and in runs/, where they are made; else files.
fn runs(current: &OsStr) -> Vec<CompletionCandidate> {
    let begun = current.to_string_lossy();
    let dir = begun.rfind('/').map_or("", |end| &begun[..=end]);
    let entries = |dir| std::fs::read_dir(Path::new(".").join(dir)).into_iter().flatten().flatten();
    let paths = |dir| entries(dir).map(move |entry| Path::new(dir).join(entry.file_name()));
    let paths = paths(dir).chain(paths("runs/")).filter(|path| path.join(SAMPLES).is_file());
    let mut runs: BTreeSet<_> = paths.collect();
    runs.retain(|path| path.to_string_lossy().starts_with(&*begun));
    if runs.is_empty() {
        return vec![by_shell(FILE)];
    }
    runs.into_iter().map(CompletionCandidate::from).collect()
}
