//! `haulage race` as a user runs it.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use testfs::{FsKind, json, names_in, stderr, stdout};

/// No multiple of a page or a buffer.
const SRC_BYTES: usize = (1 << 20) + 4321;

/// Runs `haulage race` with the words of `line`.
fn race(line: &str, dir: &Path) -> Output {
    command(line, dir).output().expect("haulage ran")
}

fn command(line: &str, dir: &Path) -> Command {
    let mut command = testfs::command(env!("CARGO_BIN_EXE_haulage"));
    command.arg("race").args(line.split_whitespace()).current_dir(dir);
    command
}

/// Writes `source` in `dir`.
fn write_source(dir: &Path) {
    fs::write(dir.join("source"), testfs::random_bytes(SRC_BYTES, 1)).expect("written");
}

fn array<'j>(value: &'j Value, field: &str) -> &'j Vec<Value> {
    value[field].as_array().unwrap_or_else(|| panic!("no array '{field}'"))
}

#[test]
fn races_on_every_file_system_and_leaves_nothing_behind() {
    testfs::each_fs(|kind, dir| {
        write_source(dir);
        let output = race("source . --rounds 3 --json out.json", dir);
        assert!(output.status.success(), "{kind}: {}", stderr(&output));
        assert!(output.stderr.is_empty(), "{kind}: no terminal, no board: {}", stderr(&output));
        assert_eq!(names_in(dir), ["out.json", "source"], "{kind}");
        let table = stdout(&output);
        assert!(table.lines().all(|line| line.chars().count() <= 100), "{kind}:\n{table}");
        assert!(!table.contains('\x1b'), "{kind}: colours without a terminal:\n{table}");

        let report = json(&dir.join("out.json"));
        assert_eq!(report["environment"]["src"]["fs_type"], kind.name());
        assert_eq!(report["environment"]["dst"]["fs_type"], kind.name());
        let sentence = report["verdict"]["sentence"].as_str().expect("a sentence");
        let unwrapped = table.replace('\n', " ");
        assert!(unwrapped.contains(sentence), "{kind}: '{sentence}' is not in\n{table}");

        let samples = array(&report, "samples");
        for sample in samples {
            assert_eq!(sample["bytes"], SRC_BYTES, "{kind}: {sample}");
            assert_eq!(sample["state_wanted"], "warm", "{kind}: {sample}");
            let floor = sample["engine"] == "memory";
            assert_eq!(sample["verified"], !floor, "{kind}: {sample}");
            assert!(sample["elapsed_ns"].as_u64().expect("a number") > 0, "{kind}: {sample}");
            if sample["counted"] == true && !floor {
                assert_eq!(sample["state_proved"], "warm", "{kind}: {sample}");
                assert_eq!(sample["src_resident_bytes_before"], SRC_BYTES, "{kind}: {sample}");
            }
        }
        for row in array(&report, "summary") {
            check_summary(kind, row, samples);
        }
        // Every proposed variant has a row, also one that was refused or dropped.
        assert_eq!(array(&report, "summary").len(), engines::Variant::proposed().len(), "{kind}");
    });
}

fn check_summary(kind: FsKind, row: &Value, samples: &[Value]) {
    let own: Vec<&Value> =
        samples.iter().filter(|sample| sample["variant"] == row["variant"]).collect();
    match row["stage"].as_str().expect("a stage") {
        "refused" => assert!(!row["reason"].as_str().expect("words").is_empty(), "{kind}: {row}"),
        "eliminated" => assert!(own.is_empty(), "{kind}: {row}"),
        _ => {
            assert_eq!(own.len(), 3, "{kind}: {row}");
            let counted: Vec<_> = own.iter().filter(|s| s["counted"] == true).collect();
            assert_eq!(row["runs"], counted.len(), "{kind}: {row}");
            let median = row["elapsed_ns_median"].as_f64();
            let times = counted.iter().filter_map(|sample| sample["elapsed_ns"].as_f64());
            let (low, high) =
                times.fold((f64::INFINITY, 0.0), |(l, h), t: f64| (t.min(l), t.max(h)));
            assert!(median.is_none_or(|m| low <= m && m <= high), "{kind}: {row}");
        }
    }
}

#[test]
fn csv_has_a_line_for_each_sample_with_the_fields_of_json() {
    let dir = tempfile::tempdir().expect("created");
    fs::create_dir_all(dir.path().join("tree/below")).expect("made");
    for (name, bytes) in [("a", 100_000), ("below/b", 5000), ("below/c", 1), ("empty", 0)] {
        let content = testfs::random_bytes(bytes, 2);
        fs::write(dir.path().join("tree").join(name), content).expect("written");
    }
    let line = "tree . --engines read_write:4K,offset=16,copy_file_range:1M --rounds 4 --seed 7 \
                --json out.json --csv out.csv";
    let output = race(line, dir.path());
    assert!(output.status.success(), "{}", stderr(&output));
    let report = json(&dir.path().join("out.json"));
    assert_eq!(report["environment"]["seed"], 7);
    // The files are copied one after another.
    assert_eq!([&report["raced_bytes"], &report["source_files"]], [105_001, 3]);
    assert!(array(&report, "samples").iter().all(|sample| sample["verified"] == true));
    let samples = array(&report, "samples");
    assert_eq!(samples.len(), 8);
    let mut csv = csv::Reader::from_path(dir.path().join("out.csv")).expect("CSV");
    let heads: Vec<String> = csv.headers().expect("heads").iter().map(str::to_owned).collect();
    let fields = samples[0].as_object().expect("an object");
    assert_eq!(heads.len(), fields.len());
    for (record, sample) in csv.records().zip(samples) {
        for (head, cell) in heads.iter().zip(&record.expect("a record")) {
            let expected = match &sample[head] {
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                Value::Array(several) => {
                    several.iter().map(Value::to_string).collect::<Vec<_>>().join(" ")
                }
                other => other.to_string(),
            };
            assert_eq!(cell, expected, "{head}");
        }
    }
    // Each round runs each variant once, in its own order.
    for round in 1..=4 {
        let mut of_round: Vec<_> = samples.iter().filter(|s| s["round"] == round).collect();
        of_round.sort_by_key(|sample| sample["order_in_round"].as_u64());
        assert_eq!(of_round.len(), 2);
        assert_ne!(of_round[0]["variant"], of_round[1]["variant"]);
        assert_eq!(of_round[1]["order_in_round"], 2);
    }
    let output = race("tree . --json out.csv --csv ./out.csv", dir.path());
    let expected = "--json and --csv name one file";
    testfs::assert_refused("one file", &output, 2, "haulage race: ", expected);
}

#[test]
fn a_state_that_cannot_be_reached_is_shown_and_never_counted() {
    let Some(scratch) = testfs::fs(FsKind::Tmpfs) else { return };
    write_source(scratch.path());
    let output = race("source . --state cold --rounds 2 --json out.json", scratch.path());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stdout(&output).contains("no verdict: no run reached the state"));
    assert!(stdout(&output).contains("cold not reached"));
    let report = json(&scratch.join("out.json"));
    assert_eq!(report["verdict"]["kind"], "no_verdict");
    for sample in array(&report, "samples").iter().filter(|sample| sample["verified"] == true) {
        assert_eq!(sample["state_proved"], "not_reached", "{sample}");
        assert_eq!(sample["counted"], false, "{sample}");
    }
}

/// Overlayfs, which containers use, reports no page of any file in the cache.
#[test]
fn copies_without_countable_pages_are_not_reported_as_shared_extents() {
    if !testfs::is_root() {
        return testfs::skip(&testfs::test_name(), "mounting an overlayfs takes root");
    }
    let dir = tempfile::tempdir().expect("created");
    let script = "mount -t tmpfs none . && cd \"$PWD\" && mkdir lower upper work merged && \
        mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work none merged && \
        cd merged && head -c 3000000 /dev/urandom > source && \
        exec \"$0\" race source . --engines sendfile,read_write:64K --rounds 3 --json -";
    let output = testfs::command("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", script])
        .arg(env!("CARGO_BIN_EXE_haulage"))
        .current_dir(dir.path())
        .output()
        .expect("unshare ran");
    if stderr(&output).contains("mount") || stderr(&output).contains("unshare") {
        return testfs::skip(&testfs::test_name(), &format!("no overlayfs: {}", stderr(&output)));
    }
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["environment"]["dst"]["fs_type"], "overlay");
    for sample in array(&report, "samples") {
        assert_eq!(sample["state_proved"], "unverified", "{sample}");
        assert_eq!(sample["shares_extents"], false, "{sample}");
        assert!(sample["dst_resident_bytes_after"].is_null(), "{sample}");
    }
}

#[test]
fn the_time_limit_holds_and_hopeless_variants_are_left_out() {
    let dir = tempfile::tempdir().expect("created");
    fs::write(dir.path().join("source"), testfs::random_bytes(8 << 20, 3)).expect("written");
    let line =
        "source . --engines read_write:1,read_write:64K,read_write:256K --time 6 --json out.json";
    let begun = Instant::now();
    let output = race(line, dir.path());
    assert!(output.status.success(), "{}", stderr(&output));
    // A busy machine is slow to start and to verify.
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    let report = json(&dir.path().join("out.json"));
    let naive = array(&report, "summary").iter().find(|row| row["variant"] == "read_write:1");
    assert_eq!(naive.expect("its line")["stage"], "eliminated");
    assert!(stdout(&output).contains("read_write:1 left out: about"), "{}", stdout(&output));
    let too_short = race("source . --time 0.001", dir.path());
    assert_eq!(too_short.status.code(), Some(1), "{too_short:?}");
    let said = stdout(&too_short);
    assert!(said.contains("no verdict: the time was over before a single run"), "{said}");
}

#[test]
fn an_interrupt_leaves_nothing_behind() {
    use rustix::process::Signal;
    // While the source is made, while it is warmed, and in the elimination rounds.
    for (signal, after_ms) in [(Signal::TERM, 500), (Signal::INT, 50), (Signal::INT, 200)] {
        let dir = tempfile::tempdir().expect("created");
        let child = command("--time 60", dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("haulage started");
        testfs::wait_until(|| !names_in(dir.path()).is_empty());
        std::thread::sleep(Duration::from_millis(after_ms));
        assert_eq!(names_in(dir.path()).len(), 1, "all files are in one directory");
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, signal).expect("sent");
        let output = child.wait_with_output().expect("ended");
        let said = stderr(&output);
        assert_eq!(output.status.signal(), Some(signal.as_raw()), "{after_ms} ms: {said}");
        assert_eq!(said, "haulage race: interrupted; its scratch files are removed\n");
        assert!(names_in(dir.path()).is_empty(), "{:?}", names_in(dir.path()));
    }
}

/// What the parser says in several lines.
const HOT: &str = "invalid value 'hot' for '--state <STATE>' [possible values: warm, cold]; \
                   see haulage race --help";

#[test]
fn bad_usage_is_one_clear_line() {
    let dir = tempfile::tempdir().expect("created");
    write_source(dir.path());
    for (line, status, expected) in [
        ("--state hot", 2, HOT),
        ("--engines warp", 2, "no engine is called 'warp'"),
        ("--engines read_write:4K,pipe=1M", 2, "read_write has no option 'pipe'"),
        ("--rounds 0", 2, "invalid value '0' for '--rounds <N>'"),
        ("--time -1", 2, "a number of seconds over 0"),
        ("--time 0", 2, "a number of seconds over 0"),
        ("--time nan", 2, "a number of seconds over 0"),
        ("--frob", 2, "unexpected argument '--frob'"),
        ("a b c", 2, "unexpected argument 'c'"),
        ("--json - --csv -", 2, "cannot both write to standard output"),
        ("source", 2, "missing directory to copy 'source' into"),
        ("source source", 2, "'source' is not a directory"),
        ("none", 1, "cannot stat 'none': No such file or directory"),
        ("none .", 1, "cannot stat 'none': No such file or directory"),
        ("source none", 1, "cannot stat 'none': No such file or directory"),
        ("/dev/null .", 1, "neither a regular file nor a directory"),
        ("source . --json none/out.json", 1, "cannot open 'none/out.json'"),
        ("source . --csv source", 1, "is the source"),
        (". . --json new.json", 1, "is in the source"),
        ("source . --engines memory", 1, "none of the variants works here"),
    ] {
        let output = race(line, dir.path());
        testfs::assert_refused(line, &output, status, "haulage race: ", expected);
        assert_eq!(names_in(dir.path()), ["source"], "{line}");
    }
    let source = fs::read(dir.path().join("source")).expect("read");
    assert!(source == testfs::random_bytes(SRC_BYTES, 1), "the source is as it was");
}
