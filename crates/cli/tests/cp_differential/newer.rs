//! What GNU cp does since releases later than 9.1, which is what many machines still have: outcomes
//! as seen with 9.10, expected of ours anywhere and of a GNU cp that is new enough.

use std::path::Path;

use testfs::fixture;

use super::run::{Case, Outcome};

/// Seen with GNU cp 9.10.
pub(crate) const SEEN: &str = include_str!("newer.txt");

/// Documented by GNU.
pub(crate) const DOCUMENTED: &str = include_str!("documented.txt");

/// A case and all that is expected of it.
#[derive(Default)]
pub(crate) struct Expected {
    pub(crate) case: Case,
    status: i32,
    stdout: String,
    stderr: String,
    /// Facts of the tree afterwards, in the language of [`fixture`].
    after: String,
}

/// The cases of a text whose head tells its form.
pub(crate) fn parse(text: &str) -> Vec<Expected> {
    let mut all: Vec<Expected> = Vec::new();
    let mut tree = "";
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(named) = line.strip_prefix("in ") {
            tree = named;
            continue;
        }
        if let Some(words) = line.strip_prefix("$ cp ") {
            let (tree, line) = (tree.to_owned(), words.to_owned());
            all.push(Expected { case: Case { tree, line }, ..Expected::default() });
            continue;
        }
        let last = all.last_mut().expect("a command line comes first");
        if let Some(said) = line.strip_prefix("1> ") {
            push_line(&mut last.stdout, said);
        } else if let Some(said) = line.strip_prefix("2> ") {
            push_line(&mut last.stderr, said);
        } else if let Some(after) = line.strip_prefix("=> ") {
            after.clone_into(&mut last.after);
        } else {
            let status = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            last.status = status.and_then(|text| text.parse().ok()).expect("a form that is told");
        }
    }
    all
}

fn push_line(text: &mut String, line: &str) {
    match line.strip_suffix('\\') {
        Some(unfinished) => text.push_str(unfinished),
        None => *text += &format!("{line}\n"),
    }
}

impl Expected {
    /// What of `outcome` is not as expected.
    pub(crate) fn faults(&self, outcome: &Outcome) -> Vec<String> {
        let [said] = &outcome.said[..] else { panic!("{}: one command each", self.case.line) };
        let mut faults = Vec::new();
        let mut compare = |what: &str, expected: String, found: String| {
            if expected != found {
                faults.push(format!("{what}: {found}\n  expected: {expected}"));
            }
        };
        compare("status", format!("{:?}", Some(self.status)), format!("{:?}", said.status));
        // Entries come in the order in which a directory lists them.
        compare("stdout", lines_sorted(&self.stdout), lines_sorted(&without_how(&said.stdout)));
        compare("stderr", self.stderr.clone(), String::from_utf8_lossy(&said.stderr).into());
        faults.extend(fixture::unmet(&self.after, &outcome.tree, Path::new("/nowhere")));
        faults
    }
}

fn lines_sorted(text: &str) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    lines.sort_unstable();
    lines.concat()
}

/// How a file was copied depends on the file system, and what we say of it besides is not GNU's.
fn without_how(stdout: &[u8]) -> String {
    let text = String::from_utf8_lossy(stdout);
    let lines = text
        .split_inclusive('\n')
        .filter(|line| !line.starts_with("haulage: "))
        .map(|line| if line.starts_with("copy offload: ") { "copy offload: \n" } else { line });
    lines.collect()
}
