//! `haulage certify` as a user runs it, and what its protocol ensures: each round has an order of its own, and a cold
//! run is cold.

use std::fs;
use std::path::Path;
use std::process::Output;

use lab::environment::block_device::BlockDevice;
use testfs::{FsKind, json, names_in, only, stderr, stdout};

fn haulage(args: &[&str], dir: &Path) -> Output {
    let mut command = testfs::measuring(env!("CARGO_BIN_EXE_haulage"), args, dir);
    command.output().expect("haulage ran")
}

const SMALL: [&str; 7] = ["certify", "--time", "4", "--cells", "2", "--max-size", "1M"];

#[test]
fn a_certificate_that_cannot_be_kept_is_not_measured() {
    let home = tempfile::tempdir().expect("created");
    let mut command = testfs::measuring(env!("CARGO_BIN_EXE_haulage"), &["certify"], home.path());
    let output = command.env("XDG_STATE_HOME", "/dev/null").output().expect("haulage ran");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let expected = "haulage certify: cannot keep a certificate in '/dev/null/haulage/certificates': Not a \
                    directory; XDG_STATE_HOME=DIR names another directory\n";
    assert_eq!(stderr(&output), expected);
    assert_eq!(names_in(home.path()), Vec::<String>::new());
}

#[test]
fn a_certificate_is_stored_and_found() {
    let home = tempfile::tempdir().expect("created");
    let dir = home.path();
    let output = haulage(&SMALL, dir);
    let text = stdout(&output);
    // It depends on the machine whether this time suffices. The answer and the status must agree.
    let passes = match output.status.code() {
        Some(0) => true,
        Some(1) => false,
        other => panic!("{other:?}: {}", stderr(&output)),
    };
    assert!(
        text.contains("Of two identical variants, one is reported as slower"),
        "{text}{}",
        stderr(&output)
    );
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let kept = json(&only(&dir.join("state/haulage/certificates")));
    let run = only(&dir.join("runs"));
    assert_eq!(json(&run.join("certificate.json")), kept);
    let certificate = &kept["certificate"];
    assert_eq!(certificate["passes"], passes);
    assert!(certificate["deltas"]["warm"].as_f64().expect("a share") >= 0.02);
    let cells = certificate["cells"].as_array().expect("cells");
    assert!(cells.len() >= 10, "{cells:?}");
    let of_kind = |kind: &str| cells.iter().filter(|cell| cell["truth"]["kind"] == kind).count();
    assert_eq!((of_kind("same"), of_kind("slow_at_times")), (2, 2));
    // No scratch files are left behind.
    assert_eq!(names_in(dir), ["runs", "state"]);

    let experiment = experiment("copy", &["sendfile", "sendfile [again]"], "256K", "");
    fs::write(dir.join("x.toml"), experiment).expect("written");
    let output = haulage(&["bench", "./x.toml", "--rounds", "5", "--runs", "later"], dir);
    let text = stdout(&output);
    let badge = if passes { "This machine: certified " } else { "This machine: not certified: " };
    assert!(text.contains(badge), "{text}{}", stderr(&output));
    let run = only(&dir.join("later"));
    assert_eq!(json(&run.join("certificate.json")), kept);
    let verdict = json(&run.join("verdict.json"));
    assert_eq!(verdict["delta"], certificate["deltas"]["warm"]);
}

#[test]
fn bad_usage() {
    let home = tempfile::tempdir().expect("created");
    for (line, status, words) in [
        ("certify --time 0", 2, "time"),
        ("certify --max-size 1K", 2, "at least 4K"),
        ("certify --on . --on . --on .", 2, "once or twice"),
        ("certify --on nowhere", 1, "cannot open 'nowhere'"),
    ] {
        let output = haulage(&line.split(' ').collect::<Vec<_>>(), home.path());
        testfs::assert_refused(line, &output, status, "haulage certify: ", words);
    }
}

fn experiment(workload: &str, variants: &[&str], size: &str, more: &str) -> String {
    format!(
        "schema = 1\nname = \"x\"\ntitle = \"t\"\nquestion = \"Which?\"\nanalysis = \"\"\n[[part]]\n\
         name = \"p\"\nquestion = \"Which?\"\nworkload = \"{workload}\"\nvariants = {variants:?}\n\
         sizes = [\"{size}\"]\nbaseline = {:?}\n{more}",
        variants[0]
    )
}

/// The tests of lab's study of the order show what this does to the answers on a machine that becomes slower.
#[test]
fn each_round_has_each_variant_in_a_shuffled_order_and_consecutive_runs_one_after_the_other() {
    let home = tempfile::tempdir().expect("created");
    let dir = home.path();
    let runs_in = |order: &str| {
        let line = format!("order = \"{order}\"\n");
        let text = experiment("copy", &["read_write:4K", "sendfile"], "4K", &line);
        fs::write(dir.join("x.toml"), text).expect("written");
        let args = ["bench", "./x.toml", "--rounds", "8", "--seed", "3", "--runs", order];
        let output = haulage(&args, dir);
        assert!(output.status.success(), "{}", stderr(&output));
        let samples = csv::Reader::from_path(only(&dir.join(order)).join("samples.csv"));
        let mut samples = samples.expect("opened");
        let names = samples.headers().expect("names").clone();
        let at = |name: &str| names.iter().position(|it| it == name).expect("found");
        let rows = samples.records().map(|row| row.expect("a row"));
        // A round that was disturbed is run again.
        let first = rows.filter(|row| &row[at("repeat")] == "0");
        first.map(|row| row[at("variant")].to_owned()).collect::<Vec<String>>()
    };
    let mut consecutive = runs_in("one_after_another");
    assert_eq!(consecutive.len(), 16);
    consecutive.dedup();
    assert_eq!(consecutive.len(), 2, "{consecutive:?}");
    let shuffled = runs_in("shuffled");
    assert_eq!(shuffled.len(), 16);
    let rounds: Vec<&[String]> = shuffled.chunks(2).collect();
    assert!(rounds.iter().all(|round| round[0] != round[1]), "{rounds:?}");
    assert!(rounds.iter().any(|round| round[0] != rounds[0][0]), "both orders: {rounds:?}");
}

const COLD_BYTES: u64 = 8 << 20;

/// The device's own counter shows that each cold run reads from it.
#[test]
fn the_device_reads_what_cold_runs_read() {
    let Some(scratch) = testfs::fs(FsKind::Ext4) else { return };
    let dir = scratch.path();
    let Some(device) = BlockDevice::under(dir) else {
        return testfs::skip(&testfs::test_name(), "no block device of its own");
    };
    let states = |state: &str| format!("states = [\"{state}\"]\n");
    let run = |state: &str| {
        let text = experiment("copy", &["read_write:64K", "sendfile"], "8M", &states(state));
        fs::write(dir.join("x.toml"), text).expect("written");
        let before = device.read_bytes().expect("it counts");
        let output = haulage(&["bench", "./x.toml", "--rounds", "6", "--runs", state], dir);
        assert!(output.status.success(), "{}", stderr(&output));
        let read = device.read_bytes().expect("it counts") - before;
        let samples = fs::read_to_string(only(&dir.join(state)).join("samples.csv"));
        let proved = format!(",{state},");
        let proved = |line: &&str| line.matches(&proved).count() == 2;
        (read, samples.expect("samples").lines().filter(proved).count() as u64)
    };
    let (cold_read, cold) = run("cold");
    if cold == 0 {
        return testfs::skip(&testfs::test_name(), "the cold state cannot be proved here");
    }
    assert!(cold >= 12, "{cold} runs are cold");
    // The warm-up runs read too.
    assert!(cold_read >= cold * COLD_BYTES, "{cold_read} bytes for {cold} cold runs");
    let (warm_read, warm) = run("warm");
    assert!(warm >= 12, "{warm} runs are warm");
    // Once to try the prover, and once to warm the source.
    assert!(warm_read <= 4 * COLD_BYTES, "{warm_read} bytes for {warm} warm runs");
}
