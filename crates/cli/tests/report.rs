//! `haulage report` as a user runs it, on a run that is committed, and what `haulage compare` refuses.

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
    let page = fs::read_to_string(&file).expect("read");
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
        ("compare one", 2, "SECOND"),
        ("compare a b --fail-on faster", 2, "slower"),
        ("compare a b --delta=-1", 2, "delta"),
        ("compare a b", 1, "'a': there is no such run directory"),
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let prefix = format!("haulage {}: ", args[0]);
        testfs::assert_refused(line, &haulage(&args), status, &prefix, words);
    }
}

/// Another program may have damaged a run, or a newer haulage may have made it.
#[test]
fn a_run_that_cannot_be_read_is_refused() {
    let calls = "calls/256K,64K,1,1,0,read,30,6016,6080,1,6039\n";
    for (name, part, instead, expected) in [
        (
            "experiment.toml",
            "[run]\nschema = 1",
            "[run]\nschema = 3",
            "schema 3, and this haulage reads 1 to 2; haulage 0.1.0 made it and can read it\n",
        ),
        // Part of a number is repeated.
        ("calls.csv", calls, &calls.replace("6080", "6080080"), "calls.csv': line "),
        ("certificate.json", "", "{}", "certificate.json': missing field"),
    ] {
        let home = tempfile::tempdir().expect("created");
        let run = small(home.path());
        // The committed run has no certificate.
        let whole = fs::read_to_string(run.join(name)).unwrap_or_default();
        assert!(whole.contains(part), "{name}");
        fs::write(run.join(name), whole.replacen(part, instead, 1)).expect("written");
        assert_refused_by_both(&run, expected);
    }
    let home = tempfile::tempdir().expect("created");
    let run = small(home.path());
    fs::remove_file(run.join("samples.csv")).expect("removed");
    assert_refused_by_both(&run, "samples.csv': No such file");
}

/// `haulage report` and `haulage compare` refuse the run.
fn assert_refused_by_both(run: &Path, expected: &str) {
    for args in [["report", text(run), "--text"], ["compare", text(run), text(run)]] {
        let prefix = format!("haulage {}: ", args[0]);
        testfs::assert_refused(expected, &haulage(&args), 1, &prefix, expected);
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

#[test]
fn a_run_is_not_overwritten() {
    let home = tempfile::tempdir().expect("created");
    let run = small(home.path());
    for name in lab::run_dir::files::ALL {
        let before = fs::read(run.join(name)).ok();
        let output = haulage(&["report", text(&run), "-o", text(&run.join(name))]);
        let expected = "is read and cannot take the page";
        testfs::assert_refused(name, &output, 1, "haulage report: ", expected);
        assert!(fs::read(run.join(name)).ok() == before, "{name}");
    }
}

/// The run directory may be that of another user.
#[test]
fn a_file_of_a_run_that_is_no_regular_file_is_neither_waited_for_nor_read_without_end() {
    for name in lab::run_dir::files::ALL.into_iter().filter(|name| *name != "verdict.txt") {
        for is_fifo in [true, false] {
            let home = tempfile::tempdir().expect("created");
            let run = small(home.path());
            let path = run.join(name);
            // Some files of a run are optional.
            let _ = fs::remove_file(&path);
            if is_fifo {
                let made = std::process::Command::new("mkfifo").arg(&path).status();
                assert!(made.expect("mkfifo runs").success());
            } else {
                std::os::unix::fs::symlink("/dev/zero", &path).expect("linked");
            }
            let mut command = testfs::command("timeout");
            let haulage = env!("CARGO_BIN_EXE_haulage");
            command.args(["20", haulage, "report", text(&run), "--text"]);
            let output = command.output().expect("timeout ran");
            let expected = format!("{name}': it is not a regular file");
            testfs::assert_refused(name, &output, 1, "haulage report: ", &expected);
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
    let page = fs::read_to_string(home.path().join("tuned.html")).expect("read");
    for expected in
        ["Which variant is the fastest?", "id=\"best-variants\"", "id=\"losses\"", "within ext4"]
    {
        assert!(page.contains(expected), "{expected}");
    }
}
