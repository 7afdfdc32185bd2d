//! Jobs that are killed or interrupted, and the next run.

use std::fs::{read_dir, write};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::common::{assert_equal, make_tree, scratch};
use crate::{haulage, messages, run, start_quietly, wait_during};

#[test]
fn receipts_of_a_killed_job_are_named_and_no_file_looks_complete() {
    let dir = scratch();
    make_tree(&dir.path().join("src"), 15);
    let args = ["cp", "-a", "--resume", "--jobs=1", "--receipt=r"];
    let slow = [&args[..], &["--limit-rate=4M", "src", "dst"]].concat();
    write(dir.path().join("r"), "of an older job\n").expect("written");
    let mut child = start_quietly(dir.path(), 3, &slow);
    let part = || {
        let names = testfs::names_in(dir.path());
        names.into_iter().find(|name| name.starts_with("r.part-"))
    };
    let length =
        || part().and_then(|part| dir.path().join(part).metadata().ok()).map(|it| it.len());
    wait_during(&child, || ranks_of(&child).len() >= 3 && length().unwrap_or(0) >= 20_000);
    assert!(!kill_one(&mut child, 1).success());
    let left = part().expect("what is left");
    let text = std::fs::read_to_string(dir.path().join("r")).expect("read");
    assert_eq!(text, "of an older job\n");
    let told = std::fs::read_to_string(dir.path().join(&left)).expect("read");
    assert!(told.lines().count() > 20 && told.starts_with("{\"record\":\"entry\""), "{told}");
    let output = run(dir.path(), 3, &[&args[..], &["src", "dst"]].concat());
    assert!(output.status.success(), "{output:?}");
    let told = messages(&output);
    let [named] = &told[..] else { panic!("{told:?}") };
    assert!(named.contains(&left) && named.contains("did not end"), "{told:?}");
    let lines = testfs::json_lines(&dir.path().join("r"));
    assert_eq!(lines.last().expect("found")["complete"], true);
    assert_equal(&dir.path().join("src"), &dir.path().join("dst"), "after the second run");
}

/// The processes of ranks below mpirun.
fn ranks_of(mpirun: &Child) -> Vec<u32> {
    let children = format!("/proc/{0}/task/{0}/children", mpirun.id());
    let children = std::fs::read_to_string(children).unwrap_or_default();
    let is_rank = |pid: &u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim() == "haulage-mpi"
    };
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).filter(is_rank).collect()
}

/// Kills the rank of this index, and waits for the end of the job.
fn kill_one(job: &mut Child, victim: usize) -> ExitStatus {
    const ENDS_WITHIN: Duration = Duration::from_secs(60);
    let victim = ranks_of(job)[victim].cast_signed();
    let victim = rustix::process::Pid::from_raw(victim).expect("a process");
    rustix::process::kill_process(victim, rustix::process::Signal::KILL).expect("killed");
    let deadline = Instant::now() + ENDS_WITHIN;
    while Instant::now() < deadline {
        if let Some(status) = job.try_wait().expect("a child") {
            return status;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    // When all ranks have ended, mpirun may wait for a lock for ever (Open MPI 4.1.4, PMIx_server_finalize).
    let stat = |pid| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let runs = |pid: &u32| !matches!(stat(*pid), stat if stat.is_empty() || stat.contains(") Z "));
    let running: Vec<u32> = ranks_of(job).into_iter().filter(runs).collect();
    assert_eq!(running, [0; 0], "ranks that have not ended");
    job.kill().expect("killed");
    job.wait().expect("ended")
}

#[test]
fn a_killed_rank_ends_the_job_and_the_next_run_goes_on() {
    let dir = scratch();
    let (src, dst) = (dir.path().join("src"), dir.path().join("dst"));
    make_tree(&src, 5);
    let args = ["cp", "-a", "--resume", "--jobs=1", "--limit-rate=4M", "src", "dst"];
    for (turn, victim) in [0, 2, 1].into_iter().enumerate() {
        let mut child = start_quietly(dir.path(), 3, &args);
        let is_under_way = || read_dir(dst.join("flat")).is_ok_and(|names| names.count() > 10);
        wait_during(&child, || ranks_of(&child).len() >= 3 && is_under_way());
        std::thread::sleep(Duration::from_millis(100 * turn as u64));
        assert!(!kill_one(&mut child, victim).success(), "turn {turn}");
    }
    let output = run(dir.path(), 3, &["cp", "-a", "--resume", "src", "dst"]);
    assert!(output.status.success(), "{output:?}");
    assert_equal(&src, &dst, "after the last run");
    let left: Vec<_> = testfs::names_in(dir.path());
    assert_eq!(left, ["dst", "src"], "nothing stays beside the copy");
}

#[test]
fn one_large_file_is_copied_by_several_ranks_and_goes_on_after_one_was_killed() {
    let dir = scratch();
    let (src, dst) = (dir.path().join("src"), dir.path().join("dst"));
    let file = std::fs::File::create(&src).expect("created");
    for at in (0..400).step_by(4) {
        let bytes = testfs::random_bytes(4 << 20, at);
        std::os::unix::fs::FileExt::write_all_at(&file, &bytes, at << 20).expect("written");
    }
    let engine = "--engine=read_write:256K";
    let args = ["cp", "-a", "--resume", "--jobs=1", engine, "--limit-rate=300M", "src", "dst"];
    for victim in [0, 2, 1] {
        let mut child = start_quietly(dir.path(), 3, &args);
        // Bytes that each rank has written by write(2). Those of splice(2) are not counted in a tmpfs.
        let written = || -> Vec<u64> {
            let of = |pid: u32| {
                let text = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
                let number = |line: &str| line.split_once(": ").and_then(|(_, n)| n.parse().ok());
                let is_one =
                    |line: &&str| line.starts_with("wchar") || line.starts_with("write_bytes");
                text.lines().filter(is_one).filter_map(number).max().unwrap_or(0)
            };
            ranks_of(&child).into_iter().map(of).collect()
        };
        let journal = dir.path().join(".dst.haulage-journal");
        let are_at_it = || {
            let written = written();
            written.len() == 3 && written.iter().all(|&bytes| bytes > 5 << 20)
        };
        wait_during(&child, || {
            are_at_it() && !journal.metadata().is_ok_and(|found| found.len() < 200)
        });
        assert!(!kill_one(&mut child, victim).success());
        assert!(!dst.exists(), "it has no name yet");
    }
    let output = run(dir.path(), 3, &["cp", "-a", "--resume", "--verify", "src", "dst"]);
    assert!(output.status.success(), "{output:?}");
    assert_equal(&src, &dst, "after the last run");
    assert_eq!(testfs::names_in(dir.path()), ["dst", "src"], "nothing stays beside the copy");
}

#[test]
fn a_signal_ends_the_job_in_order() {
    let dir = scratch();
    make_tree(&dir.path().join("src"), 6);
    let args = ["cp", "-a", "--jobs=1", "--limit-rate=2M", "src", "dst"];
    let child =
        haulage(dir.path(), 2, &args).stderr(Stdio::piped()).spawn().expect("mpirun started");
    wait_during(&child, || ranks_of(&child).len() >= 2 && dir.path().join("dst/flat").exists());
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("sent");
    let begun = Instant::now();
    let output = child.wait_with_output().expect("mpirun ended");
    assert!(!output.status.success(), "{output:?}");
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}
