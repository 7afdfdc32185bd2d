//! The documents: their links lead somewhere, the book has all of them, tables are those of the code, and
//! the code blocks of README.md and of the tutorials run as they are written.
//!
//! Every block of `sh` is run, unless a comment above it says `<!-- not run: WHY -->`. A comment
//! `<!-- run with: NAME... -->` names directories with a few files that the block takes for granted. All
//! blocks of a document run in one directory, in their order. The programs `haulage` and `cargo` on their
//! PATH shorten what takes minutes, and nothing else.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

/// Takes the place of `--time` of the commands that measure, which then end soon.
const HAULAGE: &str = r#"#!/bin/sh
command=$1
shift
short=no
case $command in
race) short=1 ;;
bench) short=2 ;;
tune) short=2 ;;
esac
for arg; do
    case $arg in --list|--dry-run|--show|--forget|--help) short=no ;; esac
done
if [ $short = no ]; then exec "$HAULAGE_TESTED" "$command" "$@"; fi
left=$#
while [ "$left" -gt 0 ]; do
    if [ "$1" = --time ]; then
        shift 2
        left=$((left - 2))
    else
        set -- "$@" "$1"
        shift
        left=$((left - 1))
    fi
done
# In so little time the commands may find no answer, which is status 1.
"$HAULAGE_TESTED" "$command" "$@" --time $short >"$HOME/out" 2>"$HOME/err" && status=0 || status=$?
cat "$HOME/out"
cat "$HOME/err" >&2
[ $status = 0 ] || grep -q 'no verdict: the time was over\|profile is unchanged\|nothing was measured' "$HOME/out" "$HOME/err"
"#;

/// Runs what `cargo run` would compile first.
const CARGO: &str = r#"#!/bin/sh
if [ "$1 $2 $3" != "run --release --" ]; then
    echo "cargo $*: not expected in a document" >&2
    exit 1
fi
shift 3
exec haulage "$@"
"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("resolved")
}

/// The Markdown files of the repository, relative to it.
fn documents() -> Vec<PathBuf> {
    let root = root();
    let mut found = Vec::new();
    let mut dirs = vec![PathBuf::from("docs"), PathBuf::from("experiments/reference")];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(root.join(&dir)).expect("listed") {
            let entry = entry.expect("an entry");
            let path = dir.join(entry.file_name());
            if entry.file_type().expect("looked at").is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    for name in [
        "README",
        "ARCHITECTURE",
        "METHODOLOGY",
        "CONTRIBUTING",
        "CHANGELOG",
        "ROADMAP",
        "SECURITY",
    ] {
        found.push(PathBuf::from(name).with_extension("md"));
    }
    found
}

fn read(document: &Path) -> String {
    let path = root().join(document);
    fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

/// The text without its code blocks and `code`.
fn prose(text: &str) -> String {
    let mut prose = String::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            // Code within a line is between two backticks. What follows an odd one is text again.
            let pieces: Vec<&str> = line.split('`').collect();
            let texts = pieces.iter().step_by(2).copied();
            writeln!(prose, "{}", texts.collect::<Vec<_>>().join("`")).expect("a string");
        }
    }
    prose
}

/// The targets of the links in a text, which may go over the end of a line.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    let after = prose.split("](").skip(1);
    after.filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
}

/// The anchors of the headings of a text, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut is_code = false;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        let Some((_, title)) = line.split_once("# ").filter(|_| line.starts_with('#') && !is_code)
        else {
            continue;
        };
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept.flat_map(char::to_lowercase).collect();
        found.insert(anchor.replace(' ', "-"));
    }
    found
}

/// `target` as seen from the directory of `document`, without `..`.
fn resolved(document: &Path, target: &str) -> PathBuf {
    let mut path = PathBuf::new();
    let from = document.parent().unwrap_or(Path::new("")).join(target);
    for part in from.components() {
        match part {
            Component::ParentDir => assert!(path.pop(), "{target} leads out of the repository"),
            part => path.push(part),
        }
    }
    path
}

#[test]
fn every_link_leads_somewhere() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for document in documents() {
        let text = read(&document);
        for link in links(&text).into_iter().filter(|link| !link.contains("://")) {
            count += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match path {
                "" => document.clone(),
                path => resolved(&document, path),
            };
            let is_there = root().join(&target).exists()
                && (anchor.is_empty() || anchors(&read(&target)).contains(anchor));
            if !is_there {
                wrong.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(count > 150, "{count} links");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The files that the summary of the book names.
fn in_the_book() -> BTreeSet<PathBuf> {
    let summary = Path::new("docs/SUMMARY.md");
    links(&read(summary)).iter().map(|link| resolved(summary, link)).collect()
}

#[test]
fn the_book_has_every_document() {
    let summary = PathBuf::from("docs/SUMMARY.md");
    let expected: BTreeSet<PathBuf> =
        documents().into_iter().filter(|document| *document != summary).collect();
    assert_eq!(in_the_book(), expected);
}

#[test]
fn the_document_of_the_commands_has_all_of_them() {
    let text = read(Path::new("docs/commands.md"));
    for (name, about) in crate::commands() {
        let row = format!("| `{name}` | {about} |");
        assert!(text.contains(&row), "no {row}");
    }
}

#[test]
fn the_document_of_the_rule_has_its_rows() {
    let text = read(Path::new("docs/design/engine-selection.md"));
    let (_, table) = text.split_once("## The rule\n").expect("the section of the rule");
    let rows = table.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let found: Vec<&str> = rows.take_while(|line| line.starts_with('|')).collect();
    let expected = haulage::prediction::RULE.iter().map(|row| {
        let variants: Vec<String> = row.variants.iter().map(|it| format!("`{it}`")).collect();
        let shared = if row.is_shared { "yes" } else { "no" };
        format!("| {} | {} | {shared} |", row.condition, variants.join(", "))
    });
    assert_eq!(found, expected.collect::<Vec<_>>());
}

/// The command lines of haulage in the code blocks of a text, as words.
fn command_lines(text: &str) -> Vec<Vec<&str>> {
    let code = text.split("```").skip(1).step_by(2);
    let lines = code.flat_map(str::lines).filter_map(|line| line.strip_prefix("haulage "));
    lines.map(|line| line.split_whitespace().take_while(|word| *word != "#").collect()).collect()
}

#[test]
fn every_option_of_a_command_line_exists() {
    let mut count = 0;
    for document in documents() {
        for words in command_lines(&read(&document)) {
            let help = testfs::stdout(&crate::haulage(&[words[0], "--help"]));
            let options = words.iter().filter(|word| word.starts_with("--"));
            for name in options.map(|word| word.split(['=', '[']).next().expect("found")) {
                count += 1;
                assert!(help.contains(name), "{}: haulage {words:?}", document.display());
            }
        }
    }
    assert!(count > 20, "{count} options");
}

/// The greatest lengths of documents in KiB. The reader's time is the measure.
const LIMITS: &[(&str, usize)] = &[("METHODOLOGY.md", 16), ("docs/speed.md", 12)];

/// The same of all documents together.
const LIMIT_OF_ALL: usize = 230;

#[test]
fn documents_are_short() {
    for (name, limit) in LIMITS {
        let length = read(Path::new(name)).len();
        assert!(length <= limit << 10, "{name} has {length} bytes, more than {limit} KiB");
    }
    let length: usize = documents().iter().map(|document| read(document).len()).sum();
    assert!(length <= LIMIT_OF_ALL << 10, "{length} bytes, more than {LIMIT_OF_ALL} KiB");
}

/// A block of commands.
struct Block {
    line: usize,
    /// Directories that it takes for granted.
    with: Vec<String>,
    commands: String,
}

/// The blocks of a document that are run.
fn blocks(document: &Path) -> Vec<Block> {
    let text = read(document);
    let mut blocks: Vec<Block> = Vec::new();
    let (mut above, mut is_code) = ("", false);
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(language) = line.strip_prefix("```") else {
            above = line;
            continue;
        };
        let code: Vec<&str> =
            lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        let comment = above.strip_prefix("<!-- ").and_then(|text| text.strip_suffix(" -->"));
        let place = format!("{}:{}", document.display(), number + 1);
        is_code |= language == "sh";
        match language {
            "sh" => {
                let not_run = comment.and_then(|text| text.strip_prefix("not run: "));
                let with = comment.and_then(|text| text.strip_prefix("run with: "));
                assert!(not_run.is_none_or(|why| why.len() > 10), "{place}: a reason is missing");
                if not_run.is_none() {
                    blocks.push(Block {
                        line: number + 1,
                        with: with.unwrap_or("").split_whitespace().map(str::to_owned).collect(),
                        commands: code.join("\n"),
                    });
                }
            }
            "" | "toml" => {
                let is_command = |line: &&str| {
                    ["haulage ", "cargo ", "$ "].iter().any(|it| line.starts_with(it))
                };
                assert!(!code.iter().any(is_command), "{place}: commands are in ```sh");
            }
            // crates/haulage/tests/copies.rs finds it in an example, which is run.
            "rust" => {}
            // crates/capi/tests/readme.rs compiles and runs it.
            "c" => {}
            other => panic!("{place}: {other} is not known here"),
        }
    }
    assert!(is_code, "{} has no block of sh", document.display());
    blocks
}

/// Runs the blocks of a document in a directory of their own.
fn run(document: &str) {
    let home = tempfile::tempdir().expect("created");
    let (bin, dir) = (home.path().join("bin"), home.path().join("dir"));
    fs::create_dir(&bin).expect("made");
    fs::create_dir(&dir).expect("made");
    for (name, text) in [("haulage", HAULAGE), ("cargo", CARGO)] {
        fs::write(bin.join(name), text).expect("written");
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).expect("set");
    }
    let path = std::env::var("PATH").expect("a PATH");
    for Block { line, with, commands } in blocks(Path::new(document)) {
        for name in with {
            let dir = dir.join(name);
            fs::create_dir_all(dir.join("sub")).expect("made");
            fs::write(dir.join("a"), testfs::random_bytes(100_000, 1)).expect("written");
            fs::write(dir.join("sub/b"), testfs::random_bytes(100, 2)).expect("written");
        }
        let output = testfs::command("bash")
            .args(["-e", "-c", &commands])
            .current_dir(&dir)
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("HAULAGE_TESTED", env!("CARGO_BIN_EXE_haulage"))
            .env_remove("HAULAGE_PROFILE")
            .env("HOME", home.path())
            .env_remove("XDG_STATE_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .output()
            .expect("bash ran");
        assert!(
            output.status.success(),
            "{document}:{line}: {}\n{commands}\n{}\n{}",
            output.status,
            testfs::stdout(&output),
            testfs::stderr(&output)
        );
    }
    let hidden = |name: &String| name.starts_with('.');
    let left: Vec<String> = testfs::names_in(&dir).into_iter().filter(hidden).collect();
    assert!(left.is_empty(), "{document} leaves {left:?}");
}

#[test]
fn the_readme_runs() {
    run("README.md");
}

#[test]
fn the_tutorials_run() {
    let tutorials = documents().into_iter().filter(|it| it.starts_with("docs/tutorials"));
    let count = tutorials.map(|tutorial| run(tutorial.to_str().expect("a name"))).count();
    assert!(count >= 3, "{count} tutorials");
}
