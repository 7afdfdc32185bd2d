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
use lab::tune::record::{Finding, Loss, Record};
use testfs::{Costs, FuseFs, names_in, stderr, stdout};

use crate::{Home, alone, text};

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
    let is_better =
        |found: &Finding| found.choice.as_ref().is_some_and(|choice| *choice != found.default);
    let situation = resident_and_alone(SRC_BYTES, false);
    let found = found_in_one(&home, [&work, slow.path()], situation, is_better);
    assert!(names_in(slow.path()).is_empty() && names_in(&work).is_empty());
    let (choice, default) = (found.choice.expect("a choice"), found.default);

    // The default takes twice the writes of the chosen variant, and that at most twice those of the best of all
    // proposed variants: on a busy machine other things than writes take time, too.
    let src = work.join("src");
    fs::write(&src, testfs::random_bytes(SRC_BYTES, 1)).expect("written");
    let copy = |options: &[&str]| {
        let before = slow.writes();
        let said = copied(&home, &src, slow.path(), &[&["--reflink=never"], options].concat());
        (slow.writes() - before, said)
    };
    let by_engine = |variant: &str| copy(&[&format!("--engine={variant}")]).0;
    let cheap = |variant: &&str| !["read_write:4K", "stdio:4K"].contains(variant);
    // The files must not be cloned.
    let moves = |variant: &Variant| variant.is_copier() && variant.engine.name != "reflink";
    let proposed = Variant::proposed().into_iter().filter(moves);
    let proposed: Vec<String> = proposed.map(|variant| variant.to_string()).collect();
    let least = proposed.iter().map(String::as_str).filter(cheap).map(by_engine).min();
    let least = least.expect("there are variants");
    let (tuned, said) = copy(&[]);
    assert!(said.contains(&choice) && said.contains(" (profile: "), "{choice} in {said}");
    assert!(tuned <= least * 2, "{choice} takes {tuned} writes, the best {least}");
    let (untuned, said) = copy(&["--profile=none"]);
    assert!(!said.contains(&format!(": {choice} (")), "{said}");
    assert!(untuned >= 2 * tuned, "{default} takes {untuned} writes, {choice} {tuned}");
}

/// Files of so many bytes, of which one is copied at a time, and which are in the page cache.
fn resident_and_alone(bytes: usize, no_cache: bool) -> Situation {
    let (size, residency) = (SizeClass::of(bytes as u64), Residency::Resident);
    Situation { size, residency, in_flight: InFlight::One, no_cache }
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
    let case = Case::of(situation).shortened();
    let planned = Planned { case, seconds: time.as_secs_f64(), why_not: None };
    let plan = Plan { cases: vec![planned], src_bytes: 0, dst_bytes: 0 };
    let [src, dst] = dirs.map(|dir| Scratch::create(dir, "tune").expect("created"));
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
    expected: impl Fn(&Finding) -> bool,
) -> Finding {
    let mut last = None;
    for seconds in [10, 30, 90] {
        let record = search_in_one(dirs, situation, Duration::from_secs(seconds));
        let found = record.situations[0].clone();
        if expected(&found) {
            enter(home, dirs, &record);
            return found;
        }
        last = Some(found);
    }
    panic!("{last:#?}");
}

/// Stores `record`, of a search between `dirs`, in the profile that `haulage cp` reads.
fn enter(home: &Home, dirs: [&Path; 2], record: &Record) {
    let FileSystems { src, dst, same } = file_systems(dirs);
    let (same, lines) = (Some(same), record.lines());
    let mut profile = Profile::default();
    profile.enter(&Machine::this(), PairChoices { src, dst, same, kernel: None, lines });
    profile.write(&home.profile()).expect("written");
}

/// Copies `src` into the directory `dst_dir` with `options`, and removes the copy. Returns the output of --debug.
fn copied(home: &Home, src: &Path, dst_dir: &Path, options: &[&str]) -> String {
    let dst = dst_dir.join("dst");
    let mut command = home.command(&["cp", "--debug"]);
    let output = command.args(options).args([src, &dst]).output().expect("cp ran");
    assert!(output.status.success(), "{options:?}: {}", stderr(&output));
    assert!(fs::read(&dst).expect("read") == fs::read(src).expect("read"), "{options:?}");
    fs::remove_file(&dst).expect("removed");
    stdout(&output)
}

/// Copies a file of so many bytes within the server with `options`. Returns the bytes that the server
/// copied, and the output of --debug.
fn copied_within(home: &Home, server: &FuseFs, bytes: usize, options: &[&str]) -> (u64, String) {
    let src = server.path().join("src");
    fs::write(&src, testfs::random_bytes(bytes, 1)).expect("written");
    let before = server.served_bytes();
    let said = copied(home, &src, server.path(), options);
    fs::remove_file(&src).expect("removed");
    (server.served_bytes() - before, said)
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

    // The number of workers that ask the server makes no significant difference.
    let asks_server = |way: &str| way.split('@').next() == Some("copy_file_range");
    let is_much_faster = |found: &Finding| {
        let loss = found.default_loss;
        found.choice.as_deref().is_some_and(asks_server)
            && matches!(loss, Some(Loss::Ratio { low, .. }) if low > 2.0)
    };
    let situation = resident_and_alone(SRC_BYTES, true);
    let found = found_in_one(&home, [server.path(); 2], situation, is_much_faster);
    assert!(names_in(server.path()).is_empty());
    assert!(!asks_server(&found.default), "{found:#?}");

    let (served, said) = copy();
    assert_eq!(served, SRC_BYTES as u64, "{said}");
    let choice = found.choice.expect("a way");
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

    let is_another = |found: &Finding| {
        found.choice.as_deref().is_some_and(|choice| !choice.starts_with("copy_file_range"))
    };
    let situation = resident_and_alone(SRC_BYTES, false);
    let found = found_in_one(&home, [server.path(); 2], situation, is_another);
    assert_eq!(found.default, "copy_file_range", "{found:#?}");
    let choice = found.choice.expect("a choice");
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
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(names_in(&work).is_empty());
    // Without a terminal there is a line for each situation.
    assert!(stderr(&output).starts_with("haulage tune: 1 of "), "{}", stderr(&output));
    let stored = Profile::read(&home.profile()).expect("read");
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
    assert!(names_in(&work).is_empty() && !home.profile().exists());
}
