//! `haulage report` as a user runs it, on a run that is committed.

use std::fs;
use std::path::{Path, PathBuf};

use testfs::{stderr, stdout};

use crate::haulage;

/// A copy of the committed run directory: by default the page is written into it.
fn small(home: &Path) -> PathBuf {
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/runs/small");
    let run = home.join("small");
    fs::create_dir(&run).expect("made");
    for file in fs::read_dir(committed).expect("the committed run is there") {
        let file = file.expect("an entry");
        fs::copy(file.path(), run.join(file.file_name())).expect("copied");
    }
    run
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

#[test]
fn a_page_text_and_drawings_are_made() {
    let home = tempfile::tempdir().expect("created");
    let run = small(home.path());
    let output = haulage(&["report", text(&run)]);
    assert!(output.status.success(), "{}", stderr(&output));
    let page = fs::read_to_string(run.join("report.html")).expect("the page is in the run");
    assert!(page.starts_with("<!doctype html>") && page.contains("href=\"samples.csv\""));

    let output = haulage(&["report", text(&run), "--text"]);
    let said = stdout(&output);
    assert!(said.contains("A little of everything"), "{said}");
    assert!(!said.contains('\x1b'), "no colour without a terminal");

    let dir = home.path().join("figures");
    let output = haulage(&["report", text(&run), "--svg", text(&dir)]);
    assert!(output.status.success(), "{}", stderr(&output));
    let drawings = fs::read_dir(&dir).expect("listed").count();
    assert!(drawings > 20, "{drawings} drawings");
}

#[test]
fn epsilon_sets_the_overhead_of_the_recommended_buffer() {
    let home = tempfile::tempdir().expect("created");
    let run = small(home.path());
    let recommended = |args: &[&str]| {
        let output = haulage(&[&["report", text(&run), "--text"], args].concat());
        let said = stdout(&output).replace('\n', " ");
        let (_, after) = said.split_once("256 KiB, warm: for ε = ").expect("a recommendation");
        after.split_once(" (").expect("an interval").0.to_owned()
    };
    // Half the overhead takes twice the buffer.
    assert_eq!(recommended(&[]), "1 % the buffer is 1011 KiB");
    assert_eq!(recommended(&["--epsilon", "2"]), "2 % the buffer is 506 KiB");
    assert_eq!(recommended(&["--epsilon", "4%"]), "4 % the buffer is 253 KiB");
}

#[test]
fn two_runs_are_compared() {
    let home = tempfile::tempdir().expect("created");
    let run = small(home.path());
    let file = home.path().join("change.html");
    let output = haulage(&["report", "--compare", text(&run), text(&run), "-o", text(&file)]);
    assert!(output.status.success(), "{}", stderr(&output));
    let page = fs::read_to_string(&file).expect("the page is written");
    let (change, others) = (page.find("id=\"change\""), page.find("id=\"ratio\""));
    assert!(change.is_some() && change < others, "what changed comes first");
}

#[test]
fn mistakes_are_reported() {
    for (line, status, words) in [
        ("report", 2, "RUN"),
        ("report --compare a", 2, "--compare"),
        ("report /nowhere", 1, "'/nowhere': there is no such run directory; "),
        ("report /proc/version", 1, "neither a run directory nor a file of haulage tune --json"),
        ("report /nowhere --epsilon 0", 2, "0.1 to 20"),
        ("report /nowhere --color=sometimes", 2, "--color"),
    ] {
        let output = haulage(&line.split(' ').collect::<Vec<_>>());
        testfs::assert_refused(line, &output, status, "haulage report: ", words);
    }
}

#[test]
fn a_run_of_a_newer_haulage_is_named_with_what_can_read_it() {
    let home = tempfile::tempdir().expect("created");
    let run = small(home.path());
    let file = run.join("experiment.toml");
    let whole = fs::read_to_string(&file).expect("committed");
    let (parts, how) = whole.split_once("[run]\n").expect("a table");
    let newer = how.replacen("schema = 1", "schema = 3", 1);
    assert_ne!(newer, how);
    fs::write(&file, format!("{parts}[run]\n{newer}")).expect("written");
    for args in [["report", text(&run), "--text"], ["compare", text(&run), text(&run)]] {
        let output = haulage(&args);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let expected = "its files have schema 3, and this haulage reads 1 to 2; haulage ";
        assert!(said.contains(expected) && said.ends_with(" made it and can read it\n"), "{said}");
    }
}

/// A page that cannot be written does not destroy the one that is there.
#[test]
fn a_failed_page_leaves_the_last_one() {
    let home = tempfile::tempdir().expect("created");
    let run = small(home.path());
    fs::write(run.join("report.html"), "old").expect("written");
    let limited =
        format!("ulimit -f 8; trap '' XFSZ; exec {} report small", env!("CARGO_BIN_EXE_haulage"));
    let output = testfs::command("bash").args(["-c", &limited]).current_dir(home.path()).output();
    let said = stderr(&output.expect("bash runs"));
    assert!(said.starts_with("haulage report: cannot write 'small/report.html': "), "{said}");
    assert_eq!(fs::read_to_string(run.join("report.html")).expect("read"), "old");
    let left: Vec<String> = testfs::names_in(&run);
    assert!(!left.iter().any(|name| name.contains("part")), "{left:?}");
}

/// The lines of a run directory are also read if another program has damaged them.
#[test]
fn an_impossible_line_of_calls_is_named() {
    let home = tempfile::tempdir().expect("created");
    let run = small(home.path());
    let calls = run.join("calls.csv");
    let whole = fs::read_to_string(&calls).expect("committed");
    let line = "calls/256K,64K,1,1,0,read,30,6016,6080,1,6039\n";
    assert!(whole.contains(line));
    for damaged in [
        // Part of a number is repeated.
        "calls/256K,64K,1,1,0,read,30,6016,6080080,1,6039\n",
        "calls/256K,64K,1,1,0,read,30,60166016,6080,1,6039\n",
        "calls/256K,64K,1,1,0,read,30,6016,6080,1,60396039\n",
        "calls/256K,64K,1,1,0,read,30,6016,6080,0,0\n",
    ] {
        fs::write(&calls, whole.replace(line, damaged)).expect("written");
        for args in [["report", text(&run), "--text"], ["compare", text(&run), text(&run)]] {
            let output = haulage(&args);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{damaged}{said}");
            assert!(said.contains("calls.csv': line "), "{said}");
            assert_eq!(said.lines().count(), 1, "{said}");
        }
    }
}

#[test]
fn a_run_is_not_overwritten_and_is_refused_without_its_samples_or_with_a_damaged_certificate() {
    let home = tempfile::tempdir().expect("created");
    let run = small(home.path());
    for name in lab::run_dir::files::ALL {
        let before = fs::read(run.join(name)).ok();
        let output = haulage(&["report", text(&run), "-o", text(&run.join(name))]);
        let expected = "is read and cannot take the page";
        testfs::assert_refused(name, &output, 1, "haulage report: ", expected);
        assert!(fs::read(run.join(name)).ok() == before, "{name}");
    }
    fs::write(run.join("certificate.json"), "{}").expect("written");
    for expected in ["certificate.json': missing field", "samples.csv': No such file"] {
        for args in [["report", text(&run), "--text"], ["compare", text(&run), text(&run)]] {
            let prefix = format!("haulage {}: ", args[0]);
            testfs::assert_refused(expected, &haulage(&args), 1, &prefix, expected);
        }
        let _ = fs::remove_file(run.join("samples.csv"));
    }
}

/// The run directory may be that of another user.
#[test]
fn a_file_of_a_run_that_is_no_regular_file_is_neither_waited_for_nor_read_without_end() {
    let home = tempfile::tempdir().expect("created");
    let run = small(home.path());
    for name in lab::run_dir::files::ALL.into_iter().filter(|name| *name != "verdict.txt") {
        let (path, kept) = (run.join(name), home.path().join("kept"));
        let is_there = path.exists();
        if is_there {
            fs::rename(&path, &kept).expect("renamed");
        }
        for is_fifo in [true, false] {
            if is_fifo {
                let made = std::process::Command::new("mkfifo").arg(&path).status();
                assert!(made.expect("mkfifo runs").success());
            } else {
                std::os::unix::fs::symlink("/dev/zero", &path).expect("linked");
            }
            let mut command = testfs::command("timeout");
            let haulage = env!("CARGO_BIN_EXE_haulage");
            command.args(["20", haulage, "report", text(&run), "--text"]);
            let output = command.output().expect("timeout runs");
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{name}: {said}");
            let expected = format!("{name}': it is not a regular file");
            assert!(said.contains(&expected), "{name}: {said}");
            fs::remove_file(&path).expect("removed");
        }
        if is_there {
            fs::rename(&kept, &path).expect("renamed");
        }
    }
}

#[test]
fn the_page_of_a_tune_record_is_written_beside_it() {
    let home = tempfile::tempdir().expect("created");
    let committed =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/tuned/ext4-ext4.json");
    let record = home.path().join("tuned.json");
    fs::copy(committed, &record).expect("copied");
    let output = haulage(&["report", text(&record)]);
    assert!(output.status.success(), "{}", stderr(&output));
    let page = fs::read_to_string(home.path().join("tuned.html")).expect("the page");
    for expected in
        ["Which variant is the fastest?", "id=\"best-variants\"", "id=\"losses\"", "within ext4"]
    {
        assert!(page.contains(expected), "{expected}");
    }
    let output = haulage(&["report", text(&record), "--text"]);
    let said = stdout(&output);
    for expected in ["within ext4", "situations measured", "What not using it costs"] {
        assert!(said.contains(expected), "{expected} in\n{said}");
    }
    let dir = home.path().join("figures");
    let output = haulage(&["report", text(&record), "--svg", text(&dir)]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(fs::read_dir(&dir).expect("listed").count() >= 2);

    fs::write(&record, "{}").expect("written");
    let output = haulage(&["report", text(&record)]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.contains("tuned.json' is neither a run") && said.contains(": missing field"),
        "{said}"
    );
}
