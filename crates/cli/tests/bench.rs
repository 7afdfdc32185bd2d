//! `haulage bench` as a user runs it. Its files have the fields that docs/runs.md lists.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testfs::{FsKind, documented_fields, fields_of, json, names_in, only, stderr, stdout};

const DOCUMENT: &str = include_str!("../../../docs/runs.md");

/// An experiment with a part for each analysis and for each file of a run directory.
const EVERYTHING: &str = r#"schema = 1
name = "everything"
title = "A little of everything"
question = "Does all of it work?"
analysis = "It is a test."

[[part]]
name = "warm"
question = "Which buffer?"
workload = "copy"
variants = ["read_write:{buffer}", "memory"]
each = { buffer = ["4K", "16K", "64K"] }
sizes = ["4K", "64K", "256K"]
baseline = "read_write:64K"
analyses = ["size_fit", "buffer", "split", "floor", "order"]
[part.reference]
data = "copying-disk-bytes"
not_controlled = "the order of runs."
series = { "read_write:{buffer}" = "bufsiz:posix_buffered@{buffer}" }

[[part]]
name = "in_turn"
question = "And one after the other?"
workload = "copy"
variants = ["read_write:64K", "read_write:4K"]
sizes = ["64K"]
states = ["as_it_comes"]
order = "one_after_another"
baseline = "read_write:64K"
analyses = ["order"]

[[part]]
name = "calls"
question = "What does a call cost?"
workload = "calls"
variants = ["4K", "16K", "64K"]
sizes = ["1M"]
analyses = ["per_call"]

[[part]]
name = "page"
question = "And a page more?"
workload = "copy"
variants = ["read_write:4K"]
sizes = ["4096", "4097"]
analyses = ["page"]

[[part]]
name = "two"
question = "And two at once?"
workload = "copy"
variants = ["sendfile"]
sizes = ["64K"]
at_once = [1, 2]
analyses = ["scaling"]

[[part]]
name = "commands"
question = "And whole commands?"
workload = "command"
variants = ["haulage cp {src} {dst}", "no-such-program-anywhere {src} {dst}"]
sizes = ["64K"]

[[claim]]
name = "small-buffers"
says = "A buffer of 4 KiB takes longer"
published = "1.5 x"
part = "warm"
variants = ["read_write:4K"]
than = "read_write:64K"
sizes = ["256K"]
at_least = 1.0
"#;

/// A short experiment of one part. A test refers to its lines by number.
const SMALL: &str = r#"schema = 1
name = "small"
title = "A small one"
question = "Which?"
analysis = ""
[[part]]
name = "copies"
question = "Which copies?"
workload = "copy"
variants = ["read_write:64K", "sendfile"]
sizes = ["64K"]
baseline = "read_write:64K"
"#;

fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = testfs::measuring(env!("CARGO_BIN_EXE_haulage"), &["bench"], dir);
    command.args(args);
    command
}

fn bench(dir: &Path, args: &[&str]) -> Output {
    command(dir, args).output().expect("haulage ran")
}

fn only_run(dir: &Path) -> PathBuf {
    only(&dir.join("runs"))
}

/// Every field of `value` is in the section, by its own name or below one that is, and vice versa.
fn check_fields(section: &str, value: &Value) {
    let (documented, written) = (&documented_fields(DOCUMENT)[section], fields_of(value));
    let is_below = |field: &str, parent: &str| {
        field
            .strip_prefix(parent)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    for field in &written {
        // An empty list has only its own name.
        let known = |known: &String| is_below(field, known) || is_below(known, field);
        assert!(documented.iter().any(known), "{section}: {field} is new");
    }
    for field in documented {
        let list = field.strip_suffix("[]");
        let known = |own: &String| is_below(own, field) || list == Some(own);
        assert!(written.iter().any(known), "{section}: no {field}");
    }
}

fn check_columns(run: &Path, file: &str) {
    let text = std::fs::read_to_string(run.join(file)).expect(file);
    let header = text.lines().next().expect("found");
    let columns: BTreeSet<String> = header.split(',').map(str::to_owned).collect();
    assert_eq!(columns, documented_fields(DOCUMENT)[file], "{file}");
    assert!(text.lines().count() > 1, "{file} has lines");
}

#[test]
fn a_run_directory_is_as_documented() {
    let Some(scratch) = testfs::fs(FsKind::Ext4) else { return };
    let dir = scratch.path();
    std::fs::write(dir.join("everything.toml"), EVERYTHING).expect("written");
    let output = bench(dir, &["everything.toml", "--rounds", "3", "--details"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(names_in(dir), ["everything.toml", "runs"]);

    let run = only_run(dir);
    let files = DOCUMENT.lines().skip_while(|line| *line != "| file | what it is |").skip(2);
    let files = files.take_while(|line| line.starts_with('|'));
    let files = files.filter_map(|line| line.split('`').nth(1)).map(str::to_owned);
    // The state directory of the tests has no certificate.
    let files = files.filter(|file| file != "certificate.json");
    let files: BTreeSet<String> = files.collect();
    assert_eq!(BTreeSet::from_iter(names_in(&run)), files, "{DOCUMENT}");
    for file in ["samples.csv", "rounds.csv", "refusals.csv", "calls.csv", "sequences.csv"] {
        check_columns(&run, file);
    }
    let mut environment = json(&run.join("environment.json"));
    // The names in it depend on the kernel.
    environment["mitigations"] = Value::Null;
    check_fields("environment.json", &environment);
    let mut verdict = json(&run.join("verdict.json"));
    let mut analyses: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for part in verdict["parts"].as_array_mut().expect("parts") {
        for mut of in part["analyses"].take().as_array().expect("a list").clone() {
            let name = of.as_object_mut().expect("an object").remove("analysis").expect("a name");
            analyses.entry(name.as_str().expect("a word").to_owned()).or_default().push(of);
        }
        part["analyses"] = Value::Array(vec![Value::Null]);
    }
    check_fields("verdict.json", &verdict);
    assert_eq!(analyses.len(), 9, "{:?}", analyses.keys());
    for (name, mut all) in analyses {
        // It depends on the part which lists are empty.
        let last = all.pop().expect("found");
        let joined = all.into_iter().fold(last, |mut joined, other| {
            for (field, value) in other.as_object().expect("an object") {
                if joined[field].as_array().is_some_and(Vec::is_empty) {
                    joined[field] = value.clone();
                }
            }
            joined
        });
        check_fields(&name, &joined);
    }
    let said = stdout(&output);
    for expected in [
        "A little of everything\n",
        "t = c + f n",
        "Then and now: ",
        "What single calls cost",
        "Not controlled then: the order of runs.",
    ] {
        assert!(said.contains(expected), "no {expected:?} in\n{said}");
    }
    let kept = std::fs::read_to_string(run.join("verdict.txt")).expect("read");
    assert_eq!(kept, said);

    // Without --details only the summary is printed, here of the same samples.
    let again = bench(dir, &["--resume", run.to_str().expect("text"), "--time", "0.001"]);
    let short = stdout(&again);
    assert!(short.starts_with("Summary\nDoes all of it work?\n"), "{short}");
    // The answer to the question is that of the first part. It fits on a screen of 24 lines. What to do about
    // comparisons that noise left unresolved is a paragraph more, before the answer or after it.
    let answer = short.find("\nOn this machine ").map(|at| &short[at + 1..]);
    let answer = answer.unwrap_or_else(|| panic!("no answer in\n{short}"));
    let paragraphs =
        answer.split("\n\n").filter(|paragraph| !paragraph.starts_with("Unresolved: "));
    let lines: usize = paragraphs.map(|paragraph| paragraph.lines().count() + 1).sum();
    assert!(lines <= 24, "{lines} lines:\n{short}");
    for part in ["in_turn", "calls", "page", "two", "commands"] {
        let line = short.lines().find(|line| line.starts_with(&format!("{part} ")));
        assert!(line.is_some(), "no {part} in\n{short}");
    }
    let kept = std::fs::read_to_string(run.join("verdict.txt")).expect("read");
    assert!(kept.ends_with(&short) && kept.len() > 4 * short.len(), "{kept}");
}

#[test]
fn an_interrupted_run_leaves_no_scratch_files_and_names_the_command_that_resumes_it() {
    let home = tempfile::tempdir().expect("created");
    let dir = home.path();
    std::fs::write(dir.join("small.toml"), SMALL).expect("written");
    // With a limit of time it would end as soon as the comparison is answered.
    let child = command(dir, &["small.toml", "--rounds", "100000"])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("haulage started");
    // The parent of the run directory exists before it.
    let has_run = || dir.join("runs").exists() && !names_in(&dir.join("runs")).is_empty();
    let lines = || match has_run() {
        true => std::fs::read_to_string(only_run(dir).join("samples.csv")).unwrap_or_default(),
        false => String::new(),
    };
    testfs::wait_until(|| lines().lines().count() >= 6);
    kill_process(Pid::from_child(&child), Signal::INT).expect("signalled");
    let output = child.wait_with_output().expect("ended");
    assert_eq!(output.status.signal(), Some(2), "{output:?}");
    let said = stderr(&output);
    let run = only_run(dir);
    let words = "its scratch files are removed; its samples are kept; continue with: haulage bench --resume";
    assert!(said.contains(words), "{said}");
    assert_eq!(names_in(dir), ["runs", "small.toml"]);
    assert!(!run.join("verdict.json").exists());
}

#[test]
fn a_dry_run_prints_the_plan_and_creates_nothing() {
    let home = tempfile::tempdir().expect("created");
    let output = bench(home.path(), &["closson-2007", "--dry-run", "--scale", "0.1"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("windows (copy): Is a mapped window"), "{said}");
    assert!(said.contains("for sources and") && said.contains("at most 40 minutes"), "{said}");
    assert!(names_in(home.path()).is_empty());
}

#[test]
fn an_experiment_that_cannot_run_is_refused_with_a_reason() {
    let home = tempfile::tempdir().expect("created");
    let dir = home.path();
    std::fs::write(dir.join("small.toml"), SMALL).expect("written");
    std::fs::write(dir.join("wrong.toml"), SMALL.replace("sendfile", "sendfil")).expect("written");
    // Two files of it have more bytes than a number holds.
    let large = SMALL.replace("64K\"]", "16000000T\"]\nfiles = 2\nshape = \"flat\"");
    std::fs::write(dir.join("large.toml"), large).expect("written");
    for (line, status, expected) in [
        ("wrong.toml --rounds=2", 1, "haulage bench: wrong.toml:10: variant 'sendfil': "),
        ("large.toml --rounds=2", 1, "not enough room"),
        ("no-such-one", 1, "there is no experiment 'no-such-one', and no such file;"),
        ("small.toml --rounds=0", 2, "invalid value '0' for '--rounds <N>'"),
        ("small.toml --seed=18446744073709551615", 2, "invalid value '18446744073709551615'"),
        ("small.toml --on=missing", 1, "'missing': No such file or directory; make it, "),
        ("small.toml --runs=/proc", 1, "; name another directory for runs: --runs DIR"),
        ("small.toml --ruonds=2", 2, "argument exists: '--rounds'; see haulage bench --help"),
        ("--resume=missing", 1, "'missing': there is no such run directory; "),
        ("--resume=small.toml", 1, "'small.toml': it is a file, and no run directory"),
        ("small.toml --on=/proc", 1, "; name a directory that takes new files"),
        ("small.toml --part=other", 2, "small.toml has no part 'other'; its parts are copies"),
        ("--resume=.", 1, "it is no run directory of haulage bench"),
        ("--claim no-such-claim", 2, "there is no claim 'no-such-claim'; see haulage bench --list"),
    ] {
        let output = bench(dir, &line.split(' ').collect::<Vec<_>>());
        testfs::assert_refused(line, &output, status, "haulage bench: ", expected);
        assert!(!dir.join("runs").exists(), "{line} began a run");
    }
}

#[test]
fn a_run_without_a_counted_sample_fails_and_is_not_resumed_with_impossible_values() {
    let home = tempfile::tempdir().expect("created");
    let dir = home.path();
    std::fs::write(dir.join("small.toml"), SMALL).expect("written");
    // The time limit holds beside a number of rounds.
    let output = bench(dir, &["small.toml", "--rounds", "5", "--time", "0.000001"]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let said = stderr(&output);
    assert!(said.ends_with("haulage bench: nothing was measured: no run was counted\n"), "{said}");

    let run = only_run(dir);
    let resume =
        |args: &[&str]| bench(dir, &[&["--resume", run.to_str().expect("text")], args].concat());
    let plan = stdout(&resume(&["--time", "9", "--dry-run"]));
    assert!(plan.contains("5 rounds of each cell"), "{plan}");
    std::fs::write(run.join("certificate.json"), "{}").expect("written");
    let output = resume(&[]);
    testfs::assert_refused(
        "certificate",
        &output,
        1,
        "haulage bench: ",
        "certificate.json': missing",
    );
    let file = run.join("experiment.toml");
    let whole = std::fs::read_to_string(&file).expect("read");
    for (key, value) in
        [("seconds", "1e300"), ("rounds", "100001"), ("scale", "-1.0"), ("scratch", "\"other\"")]
    {
        let (fault, start) = (format!("{key} = {value}"), format!("{key} = "));
        let edited = whole.lines().map(|line| if line.starts_with(&start) { &fault } else { line });
        std::fs::write(&file, edited.collect::<Vec<_>>().join("\n")).expect("written");
        let expected = format!("experiment.toml: [run]: {fault} is impossible");
        testfs::assert_refused(key, &resume(&["--time", "1"]), 1, "haulage bench: ", &expected);
    }
}

/// A claim alone is measured in its own cells, and answered.
#[test]
fn a_claim_is_measured_alone() {
    let home = tempfile::tempdir().expect("created");
    let args = ["--claim", "page-of-8k", "--rounds", "4", "--on", ".", "--runs", "runs"];
    let output = bench(home.path(), &args);
    let said = stdout(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(said.contains("published 1 x"), "{said}");
    let verdict = json(&only_run(home.path()).join("verdict.json"));
    let claims = verdict["claims"].as_array().expect("claims");
    assert_eq!((claims.len(), &claims[0]["name"]), (1, &"page-of-8k".into()), "{claims:?}");
    assert!(claims[0]["here"].as_str().is_some_and(|here| here.contains(" x (")), "{claims:?}");
}

#[test]
fn the_built_in_experiments_and_claims_are_listed() {
    let home = tempfile::tempdir().expect("created");
    let experiments =
        ["copying-disk-bytes", "closson-2007", "teterin-2004", "nordstrom-1998", "peers"];
    for (args, names) in
        [(&["--list"][..], &experiments[..]), (&["--list", "claims"], &["page-of-8k"])]
    {
        let output = bench(home.path(), args);
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        let said = stdout(&output);
        for name in names {
            assert!(said.lines().any(|line| line.trim() == *name), "{name} in\n{said}");
        }
    }
}

#[test]
fn a_full_disk_loses_no_sample() {
    let Some(small) = testfs::small_fs(FsKind::Ext4) else { return };
    let on = small.join("on");
    std::fs::create_dir(&on).expect("made");
    let home = tempfile::tempdir().expect("created");
    let dir = home.path();
    // A command that fills the file system before its seventh copy.
    let script = dir.join("fill.sh");
    let lines = "n=$(cat \"$0.count\" 2>/dev/null || echo 0)\necho $((n + 1)) > \"$0.count\"\n\
        [ $n -lt 6 ] || dd if=/dev/zero of=\"$3/hog\" bs=64K 2>/dev/null\n\
        cat \"$1\" > \"$2\"\n";
    std::fs::write(&script, lines).expect("written");
    let line = format!("sh {} {{src}} {{dst}} {}", script.display(), on.display());
    let experiment = SMALL
        .replace("workload = \"copy\"", "workload = \"command\"")
        .replace("\"read_write:64K\"", &format!("{line:?}"))
        .replace(", \"sendfile\"", "");
    std::fs::write(dir.join("full.toml"), experiment).expect("written");
    let on = on.to_str().expect("text");
    let output = bench(dir, &["full.toml", "--on", on, "--rounds", "10"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
    assert!(said.contains("its samples are kept; continue with: haulage bench --resume"), "{said}");
    assert_eq!(names_in(Path::new(on)), ["hog"], "no scratch is left");
    let samples = std::fs::read_to_string(only_run(dir).join("samples.csv")).expect("read");
    assert!(samples.lines().count() > 3, "{samples}");

    std::fs::remove_file(Path::new(on).join("hog")).expect("removed");
    std::fs::write(&script, "cat \"$1\" > \"$2\"\n").expect("written");
    let run = only_run(dir);
    let output = bench(dir, &["--resume", run.to_str().expect("text")]);
    assert!(output.status.success(), "{}", stderr(&output));
    let after = std::fs::read_to_string(run.join("samples.csv")).expect("read");
    assert!(after.starts_with(&samples) && after.len() > samples.len(), "{after}");
}
