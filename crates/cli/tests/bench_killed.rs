//! `haulage bench` killed by SIGKILL at random moments, and resumed: no process survives, no sample is
//! lost or duplicated, and no file is left behind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use testfs::{names_in, only, stderr};

/// A part for each kind of process that an experiment starts.
const EXPERIMENT: &str = r#"schema = 1
name = "killed"
title = "One that is killed"
question = "What is left of it?"
analysis = ""

[[part]]
name = "calls"
question = "And single calls?"
workload = "calls"
variants = ["4K", "64K"]
sizes = ["1M"]

[[part]]
name = "at_once"
question = "And several at once?"
workload = "copy"
variants = ["sendfile", "read_write:64K"]
sizes = ["256K"]
at_once = [2]
baseline = "sendfile"

[[part]]
name = "send"
question = "And connections?"
workload = "send"
variants = ["sendfile"]
sizes = ["1M"]

[[part]]
name = "command"
question = "And whole commands?"
workload = "command"
variants = ["sh SCRIPT {src} {dst}"]
sizes = ["64K"]
"#;

/// The measured command. It records that it runs, and takes some time: very long if a certain file
/// exists.
const SCRIPT: &str = r#"echo run >> "$0.runs"
sleep 0.02
[ ! -e "$0.long" ] || sleep 1000
cat "$1" > "$2"
"#;

/// Rounds of each cell.
const ROUNDS: usize = 20;

/// How often it is killed.
const KILLS: usize = 8;

/// The environment variable by which the test finds all processes that it started, directly or not.
const MARK: &str = "HAULAGE_TEST_KILLED";

fn bench(dir: &Path, args: &[&str]) -> Command {
    let mut command = testfs::measuring(env!("CARGO_BIN_EXE_haulage"), &["bench"], dir);
    command.args(args).env(MARK, dir);
    command
}

/// Processes that the test started.
fn processes(dir: &Path) -> Vec<String> {
    let mark = format!("{MARK}={}", dir.display());
    let is_ours = |pid: &String| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes())
    };
    let name = |pid: &String| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        format!("{pid}: {}", String::from_utf8_lossy(&words).replace('\0', " "))
    };
    names_in(Path::new("/proc")).iter().filter(|pid| is_ours(pid)).map(name).collect()
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The whole lines of a file.
fn whole(text: &str) -> &str {
    &text[..text.rfind('\n').map_or(0, |end| end + 1)]
}

/// The rows of a CSV file without quotes, by the names of its columns.
fn rows(text: &str) -> Vec<BTreeMap<&str, &str>> {
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let Some(names) = lines.next() else { return Vec::new() };
    lines.map(|line| names.iter().copied().zip(line).collect()).collect()
}

/// What identifies a run.
fn key(row: &BTreeMap<&str, &str>) -> String {
    ["cell", "variant", "session", "round", "repeat"].map(|name| row[name]).join(" ")
}

#[test]
fn a_killed_run_is_resumed_where_it_was() {
    let home = tempfile::tempdir().expect("created");
    let dir = home.path();
    let script = dir.join("copy.sh");
    fs::write(&script, SCRIPT).expect("written");
    let experiment = EXPERIMENT.replace("SCRIPT", script.to_str().expect("text"));
    fs::write(dir.join("killed.toml"), experiment).expect("written");
    let rounds = ROUNDS.to_string();
    let begin = ["./killed.toml", "--rounds", &rounds, "--seed", "1"];

    let mut rng = fastrand::Rng::with_seed(5);
    let mut kept = String::new();
    for kill in 0..KILLS {
        let in_command = kill == KILLS - 1;
        if in_command {
            fs::write(dir.join("copy.sh.long"), "").expect("written");
        }
        let run = dir.join("runs");
        let run = run.exists().then(|| only(&run).to_str().expect("text").to_owned());
        let mut command = match &run {
            Some(run) => bench(dir, &["--resume", run]),
            None => bench(dir, &begin),
        };
        let mut child =
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("haulage started");
        // The first run has to create its run directory.
        testfs::wait_until(|| dir.join("runs").exists() && !rows(&text(&samples(dir))).is_empty());
        let sleeps = || processes(dir).iter().any(|process| process.contains("sleep 1000"));
        testfs::wait_until(|| !in_command || sleeps());
        std::thread::sleep(Duration::from_millis(rng.u64(5..400)));
        child.kill().expect("signalled");
        child.wait().expect("ended");
        // The time limit is much less than the 1000 s of the command.
        testfs::wait_until(|| processes(dir).is_empty());
        let now = text(&samples(dir));
        assert!(now.starts_with(&kept), "{kill}: what was kept is no longer there");
        whole(&now).clone_into(&mut kept);
    }

    fs::remove_file(dir.join("copy.sh.long")).expect("removed");
    let run = only(&dir.join("runs"));
    let output = bench(dir, &["--resume", run.to_str().expect("text")]).output().expect("ran");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stderr(&output).matches("left behind").count(), 0, "{}", stderr(&output));
    assert_eq!(names_in(dir), ["copy.sh", "copy.sh.runs", "killed.toml", "runs"]);
    assert_eq!(processes(dir), [] as [String; 0]);

    let samples = text(&samples(dir));
    assert!(samples.starts_with(&kept) && samples.len() > kept.len(), "{samples}");
    let rows_of_samples = rows(&samples);
    let keys: BTreeSet<String> = rows_of_samples.iter().map(key).collect();
    assert_eq!(keys.len(), rows_of_samples.len(), "a sample is there twice");
    for cell in ["calls/1M", "at_once/256K/2-at-once", "send/1M", "command/64K"] {
        let of: Vec<_> = rows_of_samples.iter().filter(|row| row["cell"] == cell).collect();
        let variants: BTreeSet<&str> = of.iter().map(|row| row["variant"]).collect();
        assert!(of.len() >= ROUNDS * variants.len(), "{cell}: {} samples", of.len());
    }
    let commands = rows_of_samples.iter().filter(|row| row["cell"] == "command/64K").count();
    let ran = text(&dir.join("copy.sh.runs")).lines().count();
    // A kill loses the current run. Each process has one warm-up run, which does not count.
    assert!(commands <= ran && ran <= commands + 2 * KILLS + 1, "{commands} samples of {ran} runs");

    // Every run has all its calls: a MiB in pieces, read and written.
    let mut calls: BTreeMap<(String, String), u64> = BTreeMap::new();
    let text_of_calls = text(&run.join("calls.csv"));
    for row in rows(&text_of_calls) {
        let of = (key(&row), row["op"].to_owned());
        *calls.entry(of).or_default() += row["calls"].parse::<u64>().expect("parsed");
    }
    let timed: Vec<_> = rows_of_samples.iter().filter(|row| row["cell"] == "calls/1M").collect();
    for row in &timed {
        let pieces = if row["variant"] == "4K" { 256 } else { 16 };
        for op in ["read", "write"] {
            assert_eq!(calls.get(&(key(row), op.to_owned())), Some(&pieces), "{op} of {row:?}");
        }
    }
    assert_eq!(calls.len(), 2 * timed.len(), "calls of a run that has no sample");
}

fn samples(dir: &Path) -> std::path::PathBuf {
    let run = names_in(&dir.join("runs")).into_iter().next().unwrap_or_default();
    dir.join("runs").join(run).join("samples.csv")
}
