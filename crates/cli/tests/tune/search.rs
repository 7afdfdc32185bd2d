//! Searches whose best variant is known.

use std::fs;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use engines::Variant;
use engines::profile::{
    FileSystems, InFlight, Machine, PairChoices, Profile, Residency, Situation, SizeClass,
};
use haulage::prediction::{PlannedFile, Predictor};
use lab::scratch::Scratch;
use lab::tune::case::Case;
use lab::tune::config::Config;
use lab::tune::plan::{Plan, Planned};
use lab::tune::record::Record;
use serde_json::Value;
use testfs::{Costs, FuseFs, names_in, stderr, stdout};

use crate::{Home, alone, text, too_long};

/// Each write takes this long, so that a copy's time depends on the number of its writes.
const WRITE_TAKES: Duration = Duration::from_millis(1);

#[test]
fn tune_finds_a_better_variant_than_the_default_and_cp_uses_it() {
    let _alone = alone();
    let costs = Costs { write_time: WRITE_TAKES, direct_io: true, ..Costs::default() };
    let Some(slow) = FuseFs::mount(costs) else { return };
    let home = Home::new();
    let work = home.work();
    const SRC_BYTES: usize = 8 << 20;
    let situation = Situation {
        size: SizeClass::of(SRC_BYTES as u64),
        residency: Residency::Resident,
        in_flight: InFlight::One,
        no_cache: false,
    };
    let is_better =
        |found: &Value| found["choice"].is_string() && found["choice"] != found["default"];
    let found = found_in_one(&home, [&work, slow.path()], situation, is_better);
    assert!(names_in(slow.path()).is_empty() && names_in(&work).is_empty());
    let choice = found["choice"].as_str().expect("a choice");
    let default = found["default"].as_str().expect("a default");

    // The chosen variant takes hardly more writes than the best of all proposed variants, and the
    // default takes many more.
    let src = work.join("src");
    fs::write(&src, testfs::random_bytes(SRC_BYTES, 1)).expect("written");
    let copy = |more: &[&str]| {
        let before = slow.writes();
        let dst = slow.path().join("dst");
        let receipt = home.dir.path().join("receipt.json");
        let _ = fs::remove_file(&receipt);
        let output = home
            .command(&["cp", "--reflink=never"])
            .args(more)
            .arg(format!("--receipt={}", receipt.display()))
            .args([&src, &dst])
            .output()
            .expect("cp runs");
        assert!(output.status.success(), "{more:?}: {}", stderr(&output));
        let writes = slow.writes() - before;
        assert!(fs::read(&dst).expect("read") == fs::read(&src).expect("read"), "{more:?}");
        fs::remove_file(&dst).expect("removed");
        (writes, fs::read_to_string(&receipt).expect("a receipt"))
    };
    let by_engine = |variant: &str| copy(&[&format!("--engine={variant}")]).0;
    let cheap = |variant: &&str| !["read_write:4K", "stdio:4K"].contains(variant);
    let proposed = engines::Variant::proposed();
    // The files must not be cloned.
    let moves =
        |variant: &&engines::Variant| variant.is_copier() && variant.engine.name != "reflink";
    let proposed: Vec<String> = proposed.iter().filter(moves).map(ToString::to_string).collect();
    let least = proposed.iter().map(String::as_str).filter(cheap).map(by_engine).min();
    let least = least.expect("there are variants");
    let (tuned, receipt) = copy(&[]);
    assert!(receipt.contains(choice), "{choice} in {receipt}");
    assert!(tuned <= least * 3 / 2, "{choice} takes {tuned} writes, the best {least}");
    let (untuned, receipt) = copy(&["--profile=none"]);
    assert!(!receipt.contains(&format!("\"{choice}\"")), "{receipt}");
    assert!(untuned >= 2 * tuned, "{default} takes {untuned} writes, {choice} {tuned}");
}

/// The search of `haulage tune` from one directory to another, in one situation: all of them would
/// take minutes.
fn search_in_one(dirs: [&Path; 2], situation: Situation, time: Duration) -> Record {
    let predictor = Predictor::between(&file_systems(dirs), &[]);
    let jobs = 2;
    let ways = |case: &Case| {
        let (situation, bytes) = (case.situation, case.file_bytes);
        predictor.variants(&PlannedFile { situation, bytes, jobs })
    };
    let config = Config {
        time,
        started: Instant::now(),
        seed: 1,
        at_once: jobs,
        workers_max: jobs,
        variants: Variant::proposed().into_iter().filter(Variant::is_copier).collect(),
        defaults: &ways,
        present: &|_| None,
    };
    let case = Case::of(situation);
    let planned = Planned { case, seconds: time.as_secs_f64(), why_not: None };
    let plan = Plan { cases: vec![planned], src_bytes: 0, dst_bytes: 0 };
    let [src, dst] = dirs.map(|dir| Scratch::create(dir, "tune").expect("a scratch directory"));
    lab::tune::run(&config, &plan, &src, &dst, None, &mut |_| {}).expect("searched")
}

fn file_systems(dirs: [&Path; 2]) -> FileSystems {
    let [src, dst] = dirs.map(|dir| fs::File::open(dir).expect("opened"));
    FileSystems::of(src.as_fd(), dst.as_fd())
}

/// The finding of [`search_in_one`] that is as `expected`, stored in the profile that `haulage cp`
/// reads. A busy machine needs more time for the same number of runs.
fn found_in_one(
    home: &Home,
    dirs: [&Path; 2],
    situation: Situation,
    expected: impl Fn(&Value) -> bool,
) -> Value {
    let mut found = Value::Null;
    for seconds in [10, 30, 90] {
        let record = search_in_one(dirs, situation, Duration::from_secs(seconds));
        found = serde_json::to_value(&record.situations[0]).expect("plain data");
        if expected(&found) {
            enter(home, dirs, &record);
            return found;
        }
    }
    panic!("{found:#}");
}

/// Stores `record`, of a search between `dirs`, in the profile that `haulage cp` reads.
fn enter(home: &Home, dirs: [&Path; 2], record: &Record) {
    let FileSystems { src, dst, same } = file_systems(dirs);
    let (same, lines) = (Some(same), record.lines());
    let mut profile = Profile::default();
    profile.enter(&Machine::this(), PairChoices { src, dst, same, kernel: None, lines });
    profile.write(&home.profile()).expect("written");
}

/// Copies a file of so many bytes within the server with `options`. Returns the bytes that the server
/// copied, and the output of --debug.
fn copied_within(home: &Home, server: &FuseFs, bytes: usize, options: &[&str]) -> (u64, String) {
    let (src, dst) = (server.path().join("src"), server.path().join("dst"));
    let content = testfs::random_bytes(bytes, 1);
    fs::write(&src, &content).expect("written");
    let before = server.served_bytes();
    let mut command = home.command(&["cp", "--debug"]);
    let output = command.args(options).args([&src, &dst]).output().expect("cp runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let served = server.served_bytes() - before;
    assert!(fs::read(&dst).expect("read") == content);
    for path in [&src, &dst] {
        fs::remove_file(path).expect("removed");
    }
    (served, stdout(&output))
}

/// With --no-cache the default moves every byte through this machine, and bypasses its page cache. A
/// server that copies by itself is many times as fast, and leaves no page here either.
#[test]
fn tune_finds_that_a_server_copies_by_itself() {
    let _alone = alone();
    let costs = Costs {
        write_time: Duration::from_millis(3),
        served_mib_time: Some(Duration::from_micros(20)),
        ..Costs::default()
    };
    let Some(server) = FuseFs::mount(costs) else { return };
    let home = Home::new();
    const SRC_BYTES: usize = 4 << 20;
    let copy = || copied_within(&home, &server, SRC_BYTES, &["--no-cache"]);
    let (served, said) = copy();
    assert_eq!(served, 0, "{said}");
    assert!(said.contains("(default"), "{said}");

    let situation = Situation {
        size: SizeClass::of(SRC_BYTES as u64),
        residency: Residency::Resident,
        in_flight: InFlight::One,
        no_cache: true,
    };
    // The number of workers that ask the server makes no significant difference.
    let asks_server = |way: &Value| {
        way.as_str().is_some_and(|way| way.split('@').next() == Some("copy_file_range"))
    };
    let is_much_faster = |found: &Value| {
        let loss = found["default_loss"]["ratio"]["low"].as_f64();
        asks_server(&found["choice"]) && loss.is_some_and(|low| low > 2.0)
    };
    let found = found_in_one(&home, [server.path(); 2], situation, is_much_faster);
    assert!(names_in(server.path()).is_empty());
    assert!(!asks_server(&found["default"]), "{found:#}");

    let (served, said) = copy();
    assert_eq!(served, SRC_BYTES as u64, "{said}");
    let choice = found["choice"].as_str().expect("a way");
    let way = format!(": {choice} (profile: within fuse {}, 1M to 16M, ", text(server.path()));
    assert!(said.contains(&way), "{said}");
}

/// A slow server, to which the default leaves the copy: that is right for most servers.
#[test]
fn tune_finds_that_a_server_is_slow_to_copy_by_itself() {
    let _alone = alone();
    let costs = Costs { served_mib_time: Some(Duration::from_millis(25)), ..Costs::default() };
    let Some(server) = FuseFs::mount(costs) else { return };
    let home = Home::new();
    const SRC_BYTES: usize = 20 << 20;
    let copy = || copied_within(&home, &server, SRC_BYTES, &[]);
    let (served, said) = copy();
    assert_eq!(served, SRC_BYTES as u64, "{said}");
    assert!(said.contains(": copy_file_range (default"), "{said}");

    let json = home.dir.path().join("record.json");
    let is_it = |it: &&Value| {
        let words = ["size", "residency", "in_flight"].map(|name| it[name].as_str());
        words == ["16M to 256M", "resident", "one"].map(Some) && it["no_cache"] == false
    };
    // Other tests may keep the machine busy.
    let found = ["15", "40", "120"].iter().find_map(|time| {
        let output = home.tune(&[text(server.path()), "--time", time, "--json", text(&json)]);
        let record = testfs::json(&json);
        let situations = record["pairs"][0]["situations"].as_array().expect("situations");
        let found = situations.iter().find(is_it).expect("every situation is in the record");
        let is_answered = found["choice"].is_string();
        assert!(!is_answered || output.status.success(), "{}", stderr(&output));
        is_answered.then(|| found.clone())
    });
    let found = found.expect("a choice");
    assert_eq!(found["default"], "copy_file_range", "{found:#}");
    let choice = found["choice"].as_str().expect("a choice");
    assert!(!choice.starts_with("copy_file_range"), "{found:#}");
    let (served, said) = copy();
    assert_eq!(served, 0, "{said}");
    assert!(said.contains(&format!(": {choice} (profile: within fuse ")), "{said}");
}

#[test]
fn the_time_limit_holds_and_the_table_lists_what_was_not_measured() {
    let home = Home::new();
    let work = home.work();
    let started = Instant::now();
    let output = home.tune(&[text(&work), "--time", "6"]);
    let took = started.elapsed();
    // A machine that runs other tests is slow to start and to remove files.
    assert!(took < Duration::from_secs(60), "{took:?}");
    let table = stdout(&output);
    for expected in ["Not measured", "allow --time"] {
        assert!(table.contains(expected), "{expected} in\n{table}");
    }
    assert_eq!(too_long(&table), Vec::<&str>::new());
    assert!(names_in(&work).is_empty());
    // Without a terminal there is a line for each situation.
    assert!(stderr(&output).starts_with("haulage tune: 1 of "), "{}", stderr(&output));
    let stored = Profile::read(&home.profile()).expect("a profile");
    // On a busy machine the time may be too short for every situation.
    assert_eq!(output.status.code(), Some(if stored.is_some() { 0 } else { 1 }), "{output:?}");
    let Some(stored) = stored else { return };
    for expected in ["situation", "best variant", "MB/s", "GNU cp"] {
        assert!(table.contains(expected), "{expected} in\n{table}");
    }
    let pairs: Vec<_> = stored.profile.pairs_of(&Machine::this()).collect();
    assert_eq!(pairs.len(), 1);
    assert!(!pairs[0].lines.is_empty());
    let shown = stdout(&home.tune(&["--show"]));
    let first = &pairs[0].lines[0].choice.variant;
    assert!(shown.contains(first.as_str()), "{first} in\n{shown}");
}

#[test]
fn a_dry_run_prints_time_and_space_and_creates_nothing() {
    let home = Home::new();
    let work = home.work();
    let output = home.tune(&[text(&work), "--dry-run"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let plan = stdout(&output);
    for expected in ["16 MiB to 256 MiB, resident, alone", "3 minutes", "of room"] {
        assert!(plan.contains(expected), "{expected} in\n{plan}");
    }
    assert_eq!(too_long(&plan), Vec::<&str>::new());
    assert!(names_in(&work).is_empty() && !home.profile().exists());
}
