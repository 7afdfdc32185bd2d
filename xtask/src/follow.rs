//! `cargo xtask follow DOCUMENT`: does what a document says, in a scratch clone.
//!
//! The worked examples in docs/contribute/ are kept true with it. A code block is a step if it is marked
//! `diff`, which is applied, or `sh`, which is run, or if the line before it is the path of a file and a
//! colon, which is written.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, ensure};

use crate::command::quietly;
use crate::dist::checkout::Checkout;

/// Do what a document says, in a clone of the present commit: write its files, apply its diffs and run its
/// commands, in order.
///
/// The clone is removed at the end. It is compiled in target/follow, which is kept.
#[derive(clap::Parser, Debug)]
#[command(name = "cargo xtask follow", bin_name = "cargo xtask follow")]
pub(crate) struct Args {
    /// The document, such as docs/contribute/engine.md
    #[arg(value_name = "DOCUMENT")]
    document: PathBuf,
    /// Print the steps, and do nothing
    #[arg(long)]
    list: bool,
}

/// Something to do.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Write { path: PathBuf, text: String },
    Apply { diff: String },
    Run { script: String },
}

/// Runs the command. Exit status 1 at the first step that fails.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let shown = args.document.display();
    let text = std::fs::read_to_string(&args.document)
        .with_context(|| format!("cannot read '{shown}'"))?;
    let steps = steps(&text);
    ensure!(!steps.is_empty(), "'{shown}' has no steps");
    if args.list {
        steps.iter().for_each(|step| println!("{}", in_words(step)));
        return Ok(ExitCode::SUCCESS);
    }
    let checkout = Checkout::own()?;
    let target = checkout.root.join("target/follow");
    std::fs::create_dir_all(&target).with_context(|| format!("'{}'", target.display()))?;
    let dir = tempfile::Builder::new().prefix("clone-").tempdir_in(&target)?;
    let clone = checkout.clone_into(&dir.path().join("haulage"))?;
    for (index, step) in steps.iter().enumerate() {
        eprintln!("xtask: step {} of {}: {}", index + 1, steps.len(), in_words(step));
        follow(step, &clone.root, &target)
            .with_context(|| format!("step {} of '{shown}'", index + 1))?;
    }
    println!("'{shown}': {} steps, as they are written", steps.len());
    Ok(ExitCode::SUCCESS)
}

fn in_words(step: &Step) -> String {
    match step {
        Step::Write { path, .. } => format!("write {}", path.display()),
        Step::Apply { diff } => {
            let file = diff.lines().find_map(|line| line.strip_prefix("+++ b/"));
            format!("change {}", file.unwrap_or("a file"))
        }
        Step::Run { script } => format!("run\n{script}"),
    }
}

fn follow(step: &Step, root: &Path, target: &Path) -> anyhow::Result<()> {
    match step {
        Step::Write { path, text } => {
            let path = root.join(path);
            ensure!(!path.exists(), "'{}' exists", path.display());
            std::fs::write(&path, text).with_context(|| format!("'{}'", path.display()))
        }
        Step::Apply { diff } => apply(diff, root, &[]),
        Step::Run { script } => {
            let mut bash = Command::new("bash");
            bash.args(["-euo", "pipefail", "-c", script]).current_dir(root);
            // Cargo sets variables for xtask that are wrong for the clone.
            let own = std::env::vars_os().map(|(name, _)| name);
            for name in own.filter(|name| name.as_encoded_bytes().starts_with(b"CARGO_")) {
                bash.env_remove(name);
            }
            // What commands write below `target` is in the clone; what cargo compiles is not.
            std::fs::create_dir_all(root.join("target"))?;
            let status = bash.env("CARGO_TARGET_DIR", target.join("target")).status();
            let status = status.context("bash cannot be started")?;
            ensure!(status.success(), "bash: {status}");
            Ok(())
        }
    }
}

/// Applies a diff, whose line numbers may be those of an earlier commit.
fn apply(diff: &str, root: &Path, options: &[&str]) -> anyhow::Result<()> {
    let file = tempfile::NamedTempFile::new().context("a file for the diff")?;
    std::fs::write(&file, diff).context("the file for the diff")?;
    let mut git = Command::new("git");
    git.args(["apply", "--recount"]).args(options).arg(file.path()).current_dir(root);
    quietly(&mut git).context("git apply").map(drop)
}

/// The steps of a document.
fn steps(document: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut before = "";
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else {
            if !line.is_empty() {
                before = line;
            }
            continue;
        };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let text = block.join("\n") + "\n";
        let path = before.strip_prefix('`').and_then(|rest| rest.strip_suffix("`:"));
        match (kind, path) {
            ("diff", _) => steps.push(Step::Apply { diff: text }),
            ("sh", _) => steps.push(Step::Run { script: text }),
            (_, Some(path)) => steps.push(Step::Write { path: path.into(), text }),
            _ => {}
        }
        before = "";
    }
    steps
}

#[cfg(test)]
mod tests {
    use testfs::{skip, test_name};

    use super::*;

    #[test]
    fn marked_blocks_are_steps() {
        let document = "A text.\n\n```\noutput\n```\n\n`a/file`:\n\n```toml\nx = 1\n\ny = 2\n```\n\n\
            And:\n\n```diff\n--- a/f\n+++ b/f\n```\n```sh\ntrue\n```\n\n```rust\nfn f() {}\n```\n";
        let expected = [
            Step::Write { path: "a/file".into(), text: "x = 1\n\ny = 2\n".to_owned() },
            Step::Apply { diff: "--- a/f\n+++ b/f\n".to_owned() },
            Step::Run { script: "true\n".to_owned() },
        ];
        assert_eq!(steps(document), expected);
    }

    /// A sample of `cargo xtask follow`, which compiles and runs them.
    #[test]
    fn the_worked_examples_fit_the_present_sources() {
        let checkout = match Checkout::own() {
            Ok(checkout) => checkout,
            Err(why) => return skip(&test_name(), &format!("{why:#}")),
        };
        let dir = checkout.root.join("docs/contribute");
        let mut documents = 0;
        for name in testfs::names_in(&dir) {
            let text = std::fs::read_to_string(dir.join(&name)).expect("read");
            let steps = steps(&text);
            assert!(steps.iter().any(|step| matches!(step, Step::Run { .. })), "{name}");
            for step in &steps {
                match step {
                    Step::Apply { diff } => apply(diff, &checkout.root, &["--check"])
                        .unwrap_or_else(|why| panic!("{name}: {why:#}")),
                    Step::Write { path, .. } => {
                        assert!(!checkout.root.join(path).exists(), "{name}: {}", path.display());
                    }
                    Step::Run { .. } => {}
                }
            }
            documents += 1;
        }
        assert_eq!(documents, 2);
    }
}
