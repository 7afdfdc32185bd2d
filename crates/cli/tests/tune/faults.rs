//! Faults around a search.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use engines::profile::Machine;
use testfs::{Costs, FuseFs, Lies, names_in, stderr, stdout};

use crate::{HAULAGE, Home, alone, text};

#[test]
fn an_interrupt_leaves_nothing_behind() {
    use rustix::process::Signal;
    for (signal, after_ms) in [(Signal::INT, 50), (Signal::TERM, 700), (Signal::INT, 2500)] {
        let home = Home::new();
        let (src, dst) = (home.work(), home.dir.path().join("dst"));
        fs::create_dir(&dst).expect("made");
        let child = home
            .command(&["tune", text(&src), text(&dst), "--time", "60"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("haulage started");
        testfs::wait_until(|| !names_in(&dst).is_empty());
        std::thread::sleep(Duration::from_millis(after_ms));
        assert_eq!((names_in(&src).len(), names_in(&dst).len()), (1, 1), "a directory in each");
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal)
            .expect("sent");
        let output = child.wait_with_output().expect("ended");
        assert_eq!(output.status.signal(), Some(signal.as_raw()), "{}", stderr(&output));
        let said = stderr(&output);
        let last = said.lines().last();
        let expected = "haulage tune: interrupted; its scratch files are removed; the profile is \
                        unchanged";
        assert_eq!(last, Some(expected));
        assert!(names_in(&src).is_empty() && names_in(&dst).is_empty(), "{after_ms} ms");
        assert!(!home.profile().exists(), "an unfinished search is not stored");
    }
}

#[test]
fn a_search_without_memory_leaves_nothing_behind() {
    let _alone = alone();
    let home = Home::new();
    let work = home.work();
    let within = |args: &[&str], mib: u64| {
        let limit = format!("--as={}", mib << 20);
        home.command_of("prlimit", &[&[limit.as_str(), HAULAGE], args].concat()).output()
    };
    if within(&["--version"], 4096).is_err() {
        return testfs::skip(&testfs::test_name(), "prlimit cannot be run here");
    }
    let begins =
        |&mib: &u64| within(&["--version"], mib).expect("prlimit ran before").status.success();
    let least_mib = (8..4096).find(begins).expect("it runs within 4 GiB");
    let mut exhausted = 0;
    // Some of these suffice for the start and not for what comes right after it, however slow the machine is.
    for mib in least_mib..least_mib + 8 {
        let output =
            within(&["tune", text(&work), "--time", "1"], mib).expect("prlimit ran before");
        let said = stderr(&output);
        exhausted += u32::from(said.contains("haulage: memory exhausted\n"));
        if said.contains("Fatal glibc error: failed to register TLS destructor") {
            // glibc ends the process at the start of a thread, and no code of the program runs any more.
            eprintln!("{mib} MiB: {said}");
            for name in names_in(&work) {
                fs::remove_dir_all(work.join(name)).expect("a directory of scratch files");
            }
        }
        assert!(names_in(&work).is_empty(), "{mib} MiB: {said}");
    }
    assert!(exhausted > 0, "from {least_mib} MiB on there was always enough memory");
}

/// A full disk proves nothing about the variant that found it, and stores no result.
#[test]
fn a_full_disk_is_reported_and_stores_no_result() {
    let Some(full) = FuseFs::mount(Costs::default()) else { return };
    full.lie(Lies { full_at_write: Some(301), ..Lies::default() });
    let _alone = alone();
    let home = Home::new();
    let work = home.work();
    let good = home.dir.path().join("good");
    fs::create_dir(&good).expect("made");
    let json = home.dir.path().join("record.json");
    let dirs = [text(&work), text(full.path()), text(&good)];
    let mut said = String::new();
    // A busy machine needs more time for the same number of runs.
    for time in ["10", "30", "90"] {
        let output = home.tune(&[&dirs[..], &["--time", time, "--json", text(&json)]].concat());
        said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        if home.profile().exists() {
            break;
        }
    }
    let complaint = said.lines().find(|line| line.contains("No space left on device"));
    let between = format!("haulage tune: '{}' to '{}': ", text(&work), text(full.path()));
    assert!(complaint.is_some_and(|line| line.starts_with(&between)), "{said}");
    // The next pair succeeds, and is in the profile and the record.
    let profile = home.read_profile();
    let pairs: Vec<_> = profile.pairs_of(&Machine::this()).collect();
    assert_eq!(pairs.len(), 1, "{said}");
    assert_eq!(pairs[0].same, Some(true));
    let record = testfs::json(&json);
    assert_eq!(record["pairs"].as_array().map(Vec::len), Some(1));
    assert!(names_in(&work).is_empty() && names_in(full.path()).is_empty());
    assert!(names_in(&good).is_empty());
}

#[test]
fn a_search_without_an_answer_fails() {
    let home = Home::new();
    let output = home.tune(&[text(&home.work()), "--time", "0.001"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stdout(&output).contains("nothing could be measured"), "{}", stdout(&output));
    assert!(!home.profile().exists());
}

#[test]
fn the_directories_of_a_killed_search_are_reported_once() {
    let home = Home::new();
    let work = home.work();
    let mut child = home
        .command(&["tune", text(&work), "--time", "60"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("haulage started");
    testfs::wait_until(|| names_in(&work).len() >= 2);
    child.kill().and_then(|()| child.wait()).expect("killed");
    let left = names_in(&work);
    assert_eq!(left.len(), 2, "sources and copies");
    // Source and destination are the same directory. The time may be too short for an answer.
    let said = stderr(&home.tune(&[text(&work), "--time", "1"]));
    for name in &left {
        let line = format!(
            "haulage tune: '{}' was left behind by a run that was killed; remove it",
            work.join(name).display()
        );
        assert_eq!(said.lines().filter(|said| **said == line).count(), 1, "{said}");
    }
    assert_eq!(names_in(&work), left, "they may belong to another process");
}

#[test]
fn bad_usage_is_one_clear_line() {
    let home = Home::new();
    let work = home.work();
    let work = text(&work);
    for (args, status, expected) in [
        (&[][..], 2, "missing directory to measure in"),
        (&[work, "--time", "0"], 2, "a number of seconds over 0"),
        (&[work, "--time", "-1"], 2, "a number of seconds over 0"),
        (&[work, "--frob"], 2, "unexpected argument '--frob'"),
        (&["--show", "--export"], 2, "cannot be used with"),
        (&["--show", work], 2, "cannot be used with"),
        (&["--forget", "none"], 1, "cannot open 'none': No such file or directory"),
        (&["--import", "none"], 1, "cannot read 'none': No such file or directory"),
        (&["none"], 1, "cannot open the directory 'none': No such file or directory"),
        (&[work, "none"], 1, "cannot open the directory 'none': No such file or directory"),
        (&["/proc/self/status"], 1, "Not a directory"),
        (&[work, "--json", "none/out.json"], 1, "cannot open 'none/out.json'"),
        (&["--show", "--time", "3"], 2, "cannot be used with"),
        (&["--forget", "--seed", "3"], 2, "cannot be used with"),
    ] {
        let output = home.tune(args);
        testfs::assert_refused(&args.join(" "), &output, status, "haulage tune: ", expected);
    }
    for (name, value, expected) in [
        ("HAULAGE_PROFILE", "", "HAULAGE_PROFILE is empty"),
        ("XDG_CONFIG_HOME", "relative", "neither XDG_CONFIG_HOME nor HOME is an absolute path"),
        ("HAULAGE_PROFILE", "/dev/null/below", "cannot write '/dev/null/below': Not a directory"),
        ("HAULAGE_PROFILE", "/sys/profile.toml", "cannot write '/sys/profile.toml': "),
    ] {
        // Root can create the last one where /sys is not mounted read-only.
        let writable = value.starts_with("/sys") && rustix::process::geteuid().is_root();
        if writable {
            continue;
        }
        let output = home
            .command(&["tune", work])
            .env_remove("HOME")
            .env(name, value)
            .output()
            .expect("ran");
        let what = format!("{name}={value}");
        testfs::assert_refused(&what, &output, 1, "haulage tune: ", expected);
    }
    assert!(names_in(Path::new(work)).is_empty());
}
