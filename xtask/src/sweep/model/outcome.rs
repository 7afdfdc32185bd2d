//! Runs a program on a case, and compares what came of it with its meaning.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use rustix::fs::Mode;
use rustix::process::umask;

use super::super::copies::remove;
use super::super::process::{self, Ended};
use super::case::Case;
use super::disk;
use super::meaning::Meaning;
use super::options::Word;
use super::tree::Tree;

/// How long a copy of a few small files may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);

/// A release of GNU coreutils.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Release(pub(super) u32, pub(super) u32);

/// A cp to be compared with the model.
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) path: PathBuf,
    /// Words before those of a case.
    pub(super) before: Vec<OsString>,
    /// Of GNU cp; `None` for haulage.
    pub(super) release: Option<Release>,
}

/// The first release with all options of the model.
const ALL_OPTIONS: Release = Release(9, 5);

impl Program {
    /// The machine's GNU cp, or the one that HAULAGE_GNU_CP names. `None` if that is none.
    pub(super) fn gnu() -> Option<Program> {
        let path = std::env::var_os("HAULAGE_GNU_CP").unwrap_or("/bin/cp".into());
        let output = Command::new(&path).arg0("cp").arg("--version").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let number = text.lines().next()?.strip_prefix("cp (GNU coreutils) ")?;
        let mut parts = number.split('.').map(str::parse);
        let release = Release(parts.next()?.ok()?, parts.next()?.ok()?);
        let (path, before) = (path.into(), Vec::new());
        Some(Program { name: "GNU cp", path, before, release: Some(release) })
    }

    /// The words of `case` as this program knows them. `None` if it lacks one.
    fn line(&self, case: &Case) -> Option<Vec<String>> {
        if self.release.is_none_or(|release| release >= ALL_OPTIONS) {
            return Some(case.line(|word| word.text));
        }
        let older = |word: &'static Word| word.gnu_9_1.unwrap_or_default();
        let line = case.line(older);
        line.iter().all(|word| !word.is_empty()).then_some(line)
    }
}

/// What came of a case.
pub(super) struct Outcome {
    pub(super) ended: Ended,
    pub(super) tree: Tree,
}

/// Runs `case` in a fresh directory in `dir`. `None` if the program lacks an option.
pub(super) fn run(
    program: &Program,
    case: &Case,
    before: &Tree,
    dir: &Path,
) -> anyhow::Result<Option<Outcome>> {
    let Some(line) = program.line(case) else { return Ok(None) };
    let root = dir.join("model");
    remove(&root)?;
    std::fs::create_dir(&root).with_context(|| root.display().to_string())?;
    disk::make(before, &root)?;
    let mut command = testfs::command(&program.path);
    command.args(&program.before).args(line).current_dir(&root).env("LC_ALL", "C");
    if program.before.is_empty() {
        command.arg0("cp");
    }
    let id = case.persona.id();
    if id != 0 {
        command.uid(id).gid(id);
    }
    // Processes inherit it.
    let own = umask(Mode::from(case.umask));
    let ended = process::run(&mut command, LIMIT);
    umask(own);
    let outcome = Outcome { ended: ended?, tree: disk::read(&root)? };
    remove(&root)?;
    Ok(Some(outcome))
}

impl Outcome {
    /// Whether standard error has these words.
    pub(super) fn says(&self, words: &str) -> bool {
        self.ended.stderr.contains(words)
    }

    pub(super) fn is_silent(&self) -> bool {
        self.ended.stderr.is_empty()
    }

    /// What is not as it has to be, a line each.
    pub(super) fn faults(&self, due: &Meaning) -> Vec<String> {
        let mut faults: Vec<String> = self.ended.crash().into_iter().collect();
        let status = self.ended.status.and_then(|status| status.code());
        let due_status = i32::from(due.fails);
        if status != Some(due_status) {
            let said = self.ended.said();
            faults.push(format!("exit status {status:?}, not {due_status}: {said}"));
        }
        faults.extend(due.tree.differences(&self.tree));
        // Of a command line that is refused no file is named.
        if !(due.fails && due.named.is_empty()) {
            faults.extend(self.unnamed(&due.named));
        }
        faults
    }

    /// Files that no message names, and messages besides.
    fn unnamed(&self, due: &[String]) -> Vec<String> {
        let messages: Vec<&str> =
            self.ended.stderr.lines().filter(|line| line.starts_with("cp: ")).collect();
        let names = assigned(due, &messages);
        let lacking = (0..due.len()).filter(|index| !names.contains(&Some(*index)));
        let said = self.ended.said();
        let lacking = lacking.map(|index| format!("no message names '{}': {said}", due[index]));
        let besides = messages.iter().zip(&names).filter(|(_, name)| name.is_none());
        lacking.chain(besides.map(|(line, _)| format!("it says besides: {line}"))).collect()
    }
}

/// For each message the index of the file in `due` that it stands for, so that as many files as
/// possible have one: a message may name several.
fn assigned(due: &[String], messages: &[&str]) -> Vec<Option<usize>> {
    let mut names = vec![None; messages.len()];
    for index in 0..due.len() {
        assign(index, due, messages, &mut names, &mut vec![false; messages.len()]);
    }
    names
}

/// Finds a message for the file `index`, and others for files that had one before.
fn assign(
    index: usize,
    due: &[String],
    messages: &[&str],
    names: &mut [Option<usize>],
    seen: &mut [bool],
) -> bool {
    let forms = [format!("'{}'", due[index]), format!("cp: {}: ", due[index])];
    for (at, message) in messages.iter().enumerate() {
        if seen[at] || !forms.iter().any(|form| message.contains(form)) {
            continue;
        }
        seen[at] = true;
        if names[at].is_none_or(|other| assign(other, due, messages, names, seen)) {
            names[at] = Some(index);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_gets_a_message_of_its_own() {
        let both = "cp: 'a' and './a' are the same file";
        let twice = "cp: warning: source file './a' specified more than once";
        for (due, messages, names) in [
            (&["./a", "a"][..], &[both, twice][..], &[Some(1), Some(0)][..]),
            (&["a"], &[both, twice], &[Some(0), None]),
            (&["b"], &[both], &[None]),
            (&["a", "a"], &[both, "cp: a: gone"], &[Some(1), Some(0)]),
        ] {
            let due: Vec<String> = due.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(assigned(&due, messages), names, "{due:?}");
        }
    }
}
