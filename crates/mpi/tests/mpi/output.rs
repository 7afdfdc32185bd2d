//! What a job tells: messages, receipts, statistics and progress.

use std::cell::Cell;
use std::fs::{File, read_dir, read_to_string, remove_dir_all};
use std::time::Duration;

use crate::common::{FLAT_FILES, assert_equal, assert_holes_are_kept, make_tree, scratch};
use crate::{haulage, messages, run, wait_during};
use testfs::stderr;

#[test]
fn a_tree_is_copied_by_any_number_of_ranks_with_receipts_and_statistics_of_all() {
    let dir = scratch();
    make_tree(&dir.path().join("src"), 13);
    let entries = testfs::Tree::read(&dir.path().join("src")).expect("read").paths().count();
    let mut alone = Vec::new();
    for (ranks, jobs) in [(1, "--jobs=1"), (2, "--jobs=2"), (4, "--jobs=1"), (7, "--jobs=2")] {
        let args = ["cp", "-a", jobs, "--receipt=r", "--stats", "src", "dst"];
        let output = run(dir.path(), ranks, &args);
        let shown = format!("{ranks} ranks: {output:?}");
        assert!(output.status.success(), "{shown}");
        assert_eq!(messages(&output), Vec::<String>::new(), "{shown}");
        assert_equal(&dir.path().join("src"), &dir.path().join("dst"), &shown);
        assert_holes_are_kept(&dir.path().join("dst"));
        assert_eq!(testfs::names_in(dir.path()), ["dst", "r", "src"], "{shown}");
        let mut lines = testfs::json_lines(&dir.path().join("r"));
        let summary = lines.pop().expect("found");
        assert_eq!(summary["record"], "summary", "{summary}");
        assert_eq!((&summary["complete"], &summary["failures"]), (&true.into(), &0.into()));
        // Each entry once, with what `haulage cp` would say. Which name of a file is the first, and
        // which engine moved it, may differ.
        let mut each: Vec<String> = lines
            .iter()
            .map(|line| {
                let is_link = line["method"] == "linked";
                let holes = if is_link { 0 } else { line["hole_bytes"].as_u64().expect("bytes") };
                format!(
                    "{} {} {} {} {holes}",
                    line["record"], line["src"], line["dst"], line["type"]
                )
            })
            .collect();
        each.sort();
        assert_eq!(each.len(), entries, "{shown}");
        let sum = |field: &str| lines.iter().filter_map(|line| line[field].as_u64()).sum::<u64>();
        assert_eq!(summary["data_bytes"], sum("data_bytes"), "{summary}");
        let counted = summary["entries"].as_array().expect("a list").iter();
        let counted: u64 = counted.filter_map(|kind| kind["count"].as_u64()).sum();
        assert_eq!(counted, entries as u64, "{summary}");
        if ranks == 1 {
            alone = each;
        } else {
            assert_eq!(each, alone, "{shown}");
        }
        let text = stderr(&output);
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        // It is shown without a domain.
        let host = host.split('.').next().expect("found");
        let row = text.lines().find(|line| line.starts_with(host)).expect("a line of the host");
        let columns: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(columns[1], ranks.to_string(), "{text}");
        assert_eq!(columns[2].replace(',', ""), entries.to_string(), "{text}");
        assert!(text.contains("waited longest"), "{text}");
        remove_dir_all(dir.path().join("dst")).expect("removed");
    }
}

#[test]
fn rank_0_tells_the_progress_of_all_ranks_without_a_terminal() {
    let dir = scratch();
    make_tree(&dir.path().join("src"), 14);
    let args = ["cp", "-a", "--jobs=1", "--progress", "--limit-rate=6M", "src", "dst"];
    let said = dir.path().join("said");
    let stderr = File::create(&said).expect("created");
    let mut child = haulage(dir.path(), 3, &args).stderr(stderr).spawn().expect("mpirun started");
    let pid = rustix::process::Pid::from_child(&child);
    let text = || read_to_string(&said).expect("read");
    let copied = |line: &str| {
        let figure = line.split(", ").find(|figure| figure.ends_with(" files"));
        let copied = figure.and_then(|figure| figure.split(' ').next()).expect("a count");
        copied.replace(',', "").parse::<usize>().expect("parsed")
    };
    let sent = Cell::new(0);
    // Counts of other ranks arrive several times a second. Rank 0 alone copies about a third.
    wait_during(&child, || {
        if read_dir(dir.path().join("dst/flat")).map_or(0, Iterator::count) < FLAT_FILES / 2 {
            return false;
        }
        rustix::process::kill_process(pid, rustix::process::Signal::USR1).expect("sent");
        sent.set(sent.get() + 1);
        std::thread::sleep(Duration::from_millis(100));
        text().lines().any(|line| line.contains(" files") && copied(line) >= FLAT_FILES / 2)
    });
    let status = child.wait().expect("mpirun ended");
    let text = text();
    assert!(status.success(), "{text}");
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("files")).collect();
    assert!(lines.len() <= sent.get(), "rank 0 tells it for all, once: {text}");
    for line in lines {
        assert!(line.starts_with("cp: ") && line.contains("3 ranks"), "{text}");
    }
    assert_equal(&dir.path().join("src"), &dir.path().join("dst"), &text);
}
