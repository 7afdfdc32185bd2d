//! `mpirun haulage-mpi cp` with Open MPI: on this host, and on two hosts that are network namespaces.

mod common;

use std::ffi::OsString;
use std::fs::{
    File, FileTimes, create_dir, create_dir_all, hard_link, read_dir, remove_dir_all,
    set_permissions, write,
};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

use common::{FLAT_FILES, assert_holes_are_kept, make_tree, scratch};
use testfs::{Aspects, Costs, SlowFs, random_bytes, stderr, tree_differences};

/// mpirun with `options` of its own, in `dir`. It may run as root, and more ranks than processors.
fn mpirun(dir: &Path, ranks: usize, options: &[&str]) -> Command {
    let mut command = Command::new("mpirun");
    command
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        // Its default for small jobs gives each rank one processor.
        .args(["--oversubscribe", "--bind-to", "none"])
        .args(options)
        .args(["-n", &ranks.to_string()])
        .current_dir(dir);
    command
}

fn haulage(dir: &Path, ranks: usize, args: &[&str]) -> Command {
    let mut command = mpirun(dir, ranks, &[]);
    command.arg(env!("CARGO_BIN_EXE_haulage-mpi")).args(args);
    command
}

fn run(dir: &Path, ranks: usize, args: &[&str]) -> Output {
    haulage(dir, ranks, args).output().expect("mpirun runs")
}

/// Starts a copy that will be killed. What it says then is not looked at.
fn start_quietly(dir: &Path, ranks: usize, args: &[&str]) -> Child {
    let mut command = haulage(dir, ranks, args);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("mpirun runs")
}

fn assert_equal(src: &Path, dst: &Path, shown: &str) {
    let differences = tree_differences(src, dst, Aspects::ALL).expect("both are read");
    assert_eq!(differences, Vec::<String>::new(), "{shown}");
}

/// The lines of messages of `cp`, without what mpirun adds.
fn messages(output: &Output) -> Vec<String> {
    let text = stderr(output);
    text.lines().filter(|line| line.contains("cp: ")).map(str::to_owned).collect()
}

#[test]
fn a_tree_is_copied_by_any_number_of_ranks() {
    let dir = scratch();
    make_tree(&dir.path().join("src"), 3);
    for ranks in [1, 2, 4, 7] {
        let output = run(dir.path(), ranks, &["cp", "-a", "src", "dst"]);
        let shown = format!("{ranks} ranks: {output:?}");
        assert!(output.status.success(), "{shown}");
        assert_eq!(messages(&output), Vec::<String>::new(), "{shown}");
        assert_equal(&dir.path().join("src"), &dir.path().join("dst"), &shown);
        assert_holes_are_kept(&dir.path().join("dst"));
        remove_dir_all(dir.path().join("dst")).expect("removed");
    }
}

#[test]
fn messages_have_host_and_rank_and_the_status_is_1() {
    let dir = scratch();
    make_tree(&dir.path().join("src"), 4);
    std::fs::create_dir_all(dir.path().join("dst/src/flat/file 1500")).expect("a directory");
    let output = run(dir.path(), 3, &["cp", "-a", "src", "dst"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let messages = messages(&output);
    let [message] = &messages[..] else { panic!("{messages:?}") };
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let (name, message) = message.split_once("] ").expect("a name in brackets");
    let rank = name.strip_prefix(&format!("[{host} ")).expect("the host");
    assert!(rank.parse::<usize>().expect("a rank") < 3, "{rank}");
    let expected = "cp: cannot overwrite directory 'dst/src/flat/file 1500' with non-directory 'src/flat/file 1500'";
    assert_eq!(message, expected);
}

#[test]
fn what_cannot_be_kept_right_is_refused_once() {
    let dir = scratch();
    create_dir(dir.path().join("src")).expect("a directory");
    for (args, expected) in [
        (&["cp", "-ai", "src", "dst"][..], "--interactive"),
        (&["cp", "-av", "src", "dst"], "--verbose"),
        (&["cp", "-a", "--debug", "src", "dst"], "--debug"),
        (&["cp", "-a", "--backup=numbered", "src", "dst"], "--backup"),
        (&["cp", "-ab", "src", "dst"], "--backup"),
        (&["cp", "-a", "--dry-run", "src", "dst"], "--dry-run"),
        (&["cp", "-a", "--parents", "src", "."], "--parents"),
        (&["cp", "-aL", "src", "dst"], "--dereference"),
        (&["cp", "-a", "--receipt=src/r", "src", "dst"], "is below 'src'"),
        (&["cp", "-a", "--receipt=no/r", "src", "dst"], "cannot open 'no/r' for writing"),
        (&["cp", "-a", "--no-such-option", "src", "dst"], "no-such-option"),
    ] {
        let output = run(dir.path(), 2, args);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {output:?}");
        let messages = messages(&output);
        assert!(!messages.is_empty() && messages[0].contains(expected), "{args:?}: {messages:?}");
        assert!(messages.iter().all(|line| line.contains(" 0] ")), "{args:?}: {messages:?}");
        assert!(!dir.path().join("dst").exists(), "{args:?}");
    }
}

#[test]
fn ranks_in_different_directories_copy_nothing() {
    let dir = scratch();
    let (here, there) = (dir.path().join("here"), dir.path().join("there"));
    create_dir(&here).expect("a directory");
    create_dir(&there).expect("a directory");
    write(here.join("f"), "x").expect("a file");
    let program = env!("CARGO_BIN_EXE_haulage-mpi");
    let output = mpirun(&here, 1, &[])
        .args([program, "cp", "-a", "f", "g", ":", "-n", "1", "--wdir"])
        .arg(&there)
        .args([program, "cp", "-a", "f", "g"])
        .output()
        .expect("mpirun runs");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let messages = messages(&output);
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].contains("cp: rank 1 is haulage"), "{messages:?}");
    assert!(!here.join("g").exists());
}

#[test]
fn ranks_with_different_umasks_copy_nothing() {
    let dir = scratch();
    write(dir.path().join("f"), "x").expect("a file");
    let program = env!("CARGO_BIN_EXE_haulage-mpi");
    let copy = format!("umask 027; exec {program} cp -a f g");
    let output = mpirun(dir.path(), 1, &[])
        .args([program, "cp", "-a", "f", "g", ":", "-n", "1", "sh", "-c", &copy])
        .output()
        .expect("mpirun runs");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let messages = messages(&output);
    let [message] = &messages[..] else { panic!("{messages:?}") };
    assert!(message.contains("with umask 0027, and rank 0 is haulage"), "{message}");
    assert!(!dir.path().join("g").exists());
}

/// A rank that receives names of many operands keeps none of their destinations open.
#[test]
fn many_operands_need_no_more_descriptors_than_a_few() {
    let dir = scratch();
    let (src, dst) = (dir.path().join("src"), dir.path().join("dst"));
    create_dir(&dst).expect("a directory");
    for number in 0..300 {
        let operand = src.join(number.to_string());
        create_dir_all(&operand).expect("a directory");
        for file in 0..40 {
            write(operand.join(file.to_string()), "x").expect("a file");
        }
        // Links to files of the operand before, of whose destination each rank has to know.
        if number > 0 {
            let other = src.join(format!("{}/0", number - 1));
            hard_link(other, operand.join("link")).expect("a link");
        }
    }
    let program = env!("CARGO_BIN_EXE_haulage-mpi");
    let copy = format!("ulimit -n 64; exec {program} cp -a --jobs=1 --stats src/* dst");
    let output =
        mpirun(dir.path(), 3, &[]).args(["sh", "-c", &copy]).output().expect("mpirun runs");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(messages(&output), Vec::<String>::new(), "{output:?}");
    // Of the target directory itself only the entries are copied.
    let times = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
    for top in [&src, &dst] {
        File::open(top).and_then(|top| top.set_times(times)).expect("times");
    }
    assert_equal(&src, &dst, "300 operands");
}

/// Open MPI tells which of its message layers it opens. `cm` is for networks that have their own.
#[test]
fn ranks_of_one_host_look_for_no_network_unless_they_are_told_to() {
    let dir = scratch();
    write(dir.path().join("f"), "x").expect("a file");
    let program = env!("CARGO_BIN_EXE_haulage-mpi");
    for (options, looks) in [(&[][..], false), (&["--mca", "pml", "ob1,cm"], true)] {
        let mut command = mpirun(dir.path(), 2, options);
        command.env("OMPI_MCA_pml_base_verbose", "10");
        let output = command.args([program, "cp", "-a", "f", "g"]).output().expect("mpirun runs");
        assert!(output.status.success(), "{output:?}");
        let told = stderr(&output);
        assert!(told.contains("component ob1"), "{told}");
        assert_eq!(told.contains("component cm"), looks, "{told}");
    }
}

/// The lines of receipts.
fn receipts(path: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path).expect("receipts");
    text.lines().map(|line| serde_json::from_str(line).expect("a whole line")).collect()
}

#[test]
fn receipts_and_statistics_are_those_of_all_ranks() {
    let dir = scratch();
    make_tree(&dir.path().join("src"), 13);
    let entries = testfs::Tree::read(&dir.path().join("src")).expect("read").len();
    let mut alone = Vec::new();
    for ranks in [1, 4] {
        let args = ["cp", "-a", "--jobs=1", "--receipt=r", "--stats", "src", "dst"];
        let output = run(dir.path(), ranks, &args);
        let shown = format!("{ranks} ranks: {output:?}");
        assert!(output.status.success(), "{shown}");
        assert_eq!(testfs::names_in(dir.path()), ["dst", "r", "src"], "{shown}");
        let mut lines = receipts(&dir.path().join("r"));
        let summary = lines.pop().expect("a summary");
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
        let host = host.split('.').next().expect("a name");
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
    let mut child =
        haulage(dir.path(), 3, &args).stderr(Stdio::piped()).spawn().expect("mpirun runs");
    let deadline = Instant::now() + Duration::from_secs(90);
    while read_dir(dir.path().join("dst/flat")).map_or(0, Iterator::count) < FLAT_FILES / 2 {
        assert!(Instant::now() < deadline, "the copy does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    // Counts of other ranks arrive several times a second.
    std::thread::sleep(Duration::from_millis(600));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::USR1).expect("sent");
    let status = child.wait().expect("mpirun ends");
    let output = child.wait_with_output().expect("its output");
    assert!(status.success(), "{output:?}");
    let text = stderr(&output);
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("files")).collect();
    let [line] = lines[..] else { panic!("rank 0 tells it for all, once: {text}") };
    assert!(line.starts_with("cp: ") && line.contains("3 ranks"), "{text}");
    // Rank 0 alone has copied about a third of them.
    let (before, _) = line.split_once(" files").expect("a count");
    let count = before.rsplit(' ').next().expect("a word").replace(',', "");
    assert!(count.parse::<usize>().expect("a number") >= FLAT_FILES / 2, "{text}");
    assert_equal(&dir.path().join("src"), &dir.path().join("dst"), &text);
}

#[test]
fn receipts_of_a_killed_job_are_named_and_no_file_looks_complete() {
    let dir = scratch();
    make_tree(&dir.path().join("src"), 15);
    let args = ["cp", "-a", "--resume", "--jobs=1", "--receipt=r"];
    let slow = [&args[..], &["--limit-rate=4M", "src", "dst"]].concat();
    write(dir.path().join("r"), "of an older job\n").expect("a file");
    let mut child = start_quietly(dir.path(), 3, &slow);
    let part = || {
        let names = testfs::names_in(dir.path());
        names.into_iter().find(|name| name.starts_with("r.part-"))
    };
    let length =
        || part().and_then(|part| dir.path().join(part).metadata().ok()).map(|it| it.len());
    let deadline = Instant::now() + Duration::from_secs(90);
    while ranks_of(&child).len() < 3 || length().unwrap_or(0) < 20_000 {
        assert!(Instant::now() < deadline, "no receipts are written");
        std::thread::sleep(Duration::from_millis(5));
    }
    kill_one(&ranks_of(&child), 1);
    assert!(!child.wait().expect("mpirun ends").success());
    let left = part().expect("what is left");
    let text = std::fs::read_to_string(dir.path().join("r")).expect("the older receipts");
    assert_eq!(text, "of an older job\n");
    let told = std::fs::read_to_string(dir.path().join(&left)).expect("receipts");
    assert!(told.lines().count() > 20 && told.starts_with("{\"record\":\"entry\""), "{told}");
    let output = run(dir.path(), 3, &[&args[..], &["src", "dst"]].concat());
    assert!(output.status.success(), "{output:?}");
    let told = messages(&output);
    let [named] = &told[..] else { panic!("{told:?}") };
    assert!(named.contains(&left) && named.contains("did not end"), "{told:?}");
    let lines = receipts(&dir.path().join("r"));
    assert_eq!(lines.last().expect("a summary")["complete"], true);
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

/// Kills the process of this index.
fn kill_one(ranks: &[u32], victim: usize) {
    let victim = rustix::process::Pid::from_raw(ranks[victim].cast_signed()).expect("a process");
    rustix::process::kill_process(victim, rustix::process::Signal::KILL).expect("killed");
}

#[test]
fn a_killed_rank_ends_the_job_and_the_next_run_goes_on() {
    let dir = scratch();
    let (src, dst) = (dir.path().join("src"), dir.path().join("dst"));
    make_tree(&src, 5);
    let args = ["cp", "-a", "--resume", "--jobs=1", "--limit-rate=4M", "src", "dst"];
    for (turn, victim) in [0, 2, 1].into_iter().enumerate() {
        let mut child = start_quietly(dir.path(), 3, &args);
        let deadline = Instant::now() + Duration::from_secs(90);
        let is_under_way = || read_dir(dst.join("flat")).is_ok_and(|names| names.count() > 10);
        while ranks_of(&child).len() < 3 || !is_under_way() {
            assert!(Instant::now() < deadline, "turn {turn}: the copy does not begin");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(100 * turn as u64));
        kill_one(&ranks_of(&child), victim);
        let status = child.wait().expect("mpirun ends");
        assert!(!status.success(), "turn {turn}");
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
    let file = std::fs::File::create(&src).expect("a file");
    for at in (0..400).step_by(4) {
        let bytes = testfs::random_bytes(4 << 20, at);
        std::os::unix::fs::FileExt::write_all_at(&file, &bytes, at << 20).expect("written");
    }
    let args = ["cp", "-a", "--resume", "--jobs=1", "--limit-rate=300M", "src", "dst"];
    for victim in [0, 2, 1] {
        let mut child = start_quietly(dir.path(), 3, &args);
        let deadline = Instant::now() + Duration::from_secs(90);
        // Bytes that each rank has written, by write(2) and the like, or that the kernel has for it.
        let written = || -> Vec<u64> {
            let of = |pid: u32| {
                let text = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
                let number = |line: &str| line.split_once(": ").and_then(|(_, n)| n.parse().ok());
                text.lines().find(|line| line.starts_with("wchar")).and_then(number).unwrap_or(0)
            };
            ranks_of(&child).into_iter().map(of).collect()
        };
        let journal = dir.path().join(".dst.haulage-journal");
        let are_at_it = || {
            let written = written();
            written.len() == 3 && written.iter().all(|&bytes| bytes > 5 << 20)
        };
        while !are_at_it() || journal.metadata().is_ok_and(|found| found.len() < 200) {
            assert!(Instant::now() < deadline, "not all ranks copy: {:?}", written());
            std::thread::sleep(Duration::from_millis(5));
        }
        kill_one(&ranks_of(&child), victim);
        assert!(!child.wait().expect("mpirun ends").success());
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
    let child = haulage(dir.path(), 2, &args).stderr(Stdio::piped()).spawn().expect("mpirun runs");
    let deadline = Instant::now() + Duration::from_secs(90);
    while ranks_of(&child).len() < 2 || !dir.path().join("dst/flat").exists() {
        assert!(Instant::now() < deadline, "the copy does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("sent");
    let begun = Instant::now();
    let output = child.wait_with_output().expect("mpirun ends");
    assert!(!output.status.success(), "{output:?}");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

/// Two network namespaces, joined by a pair of interfaces. Removed when it is dropped.
struct Hosts {
    names: [String; 2],
}

impl Hosts {
    /// `None` after a reported skip.
    fn new() -> Option<Hosts> {
        let unique = std::process::id();
        let names = [format!("haulage{unique}a"), format!("haulage{unique}b")];
        let hosts = Hosts { names };
        let [first, second] = &hosts.names;
        let steps = [
            format!("netns add {first}"),
            format!("netns add {second}"),
            format!(
                "link add veth{unique}a netns {first} type veth peer name veth{unique}b netns {second}"
            ),
            format!("-n {first} addr add 10.98.76.1/24 dev veth{unique}a"),
            format!("-n {second} addr add 10.98.76.2/24 dev veth{unique}b"),
            format!("-n {first} link set veth{unique}a up"),
            format!("-n {second} link set veth{unique}b up"),
            format!("-n {first} link set lo up"),
            format!("-n {second} link set lo up"),
        ];
        for step in steps {
            let done = Command::new("ip").args(step.split(' ')).output();
            if !done.as_ref().is_ok_and(|done| done.status.success()) {
                testfs::skip(&testfs::test_name(), &format!("ip {step}: {done:?}"));
                return None;
            }
        }
        Some(hosts)
    }

    /// A script that starts processes on the second host, in place of ssh.
    fn agent(&self, dir: &Path) -> PathBuf {
        let script = dir.join("agent");
        let text = format!(
            "#!/bin/sh\nshift\nexec ip netns exec {} unshare --uts sh -c 'hostname second; exec \"$@\"' sh sh -c \"$*\"\n",
            self.names[1]
        );
        write(&script, text).expect("a script");
        set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("a mode");
        script
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).stderr(Stdio::null()).status();
        }
    }
}

#[test]
fn two_hosts_copy_one_tree() {
    if !testfs::is_root() {
        return testfs::skip(&testfs::test_name(), "only root can make network namespaces");
    }
    let Some(hosts) = Hosts::new() else { return };
    let dir = scratch();
    make_tree(&dir.path().join("src"), 7);
    std::fs::create_dir_all(dir.path().join("src/more")).expect("a directory");
    for number in 0..3000 {
        write(dir.path().join(format!("src/more/{number}")), "x").expect("a file");
    }
    let agent = hosts.agent(dir.path());
    for ranks in [2, 6] {
        let slots = ranks / 2;
        let first = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let file = format!("{first} slots={slots}\nsecond slots={slots}\n");
        let hostfile = dir.path().join("hosts");
        write(&hostfile, file).expect("a file");
        let options: Vec<OsString> = [
            "--mca",
            "plm_rsh_agent",
            agent.to_str().expect("a name"),
            "--mca",
            "plm",
            "rsh",
            "--mca",
            "btl",
            "tcp,self",
            "--mca",
            "btl_tcp_if_include",
            "10.98.76.0/24",
            "--mca",
            "oob_tcp_if_include",
            "10.98.76.0/24",
            "--hostfile",
            hostfile.to_str().expect("a name"),
        ]
        .into_iter()
        .map(OsString::from)
        .collect();
        let options: Vec<&str> = options.iter().map(|word| word.to_str().expect("UTF-8")).collect();
        let copy = |src: &str| {
            let mut inner = mpirun(dir.path(), ranks, &options);
            let program = env!("CARGO_BIN_EXE_haulage-mpi");
            inner.arg(program).args(["cp", "-a", "--jobs=1", src, "dst"]);
            let mut command = Command::new("ip");
            command.args(["netns", "exec", &hosts.names[0]]);
            command.arg(inner.get_program()).args(inner.get_args()).current_dir(dir.path());
            command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
            command.output().expect("ip runs")
        };
        let output = copy("src");
        assert!(output.status.success(), "{ranks} ranks: {output:?}");
        assert_equal(&dir.path().join("src"), &dir.path().join("dst"), &format!("{ranks} ranks"));
        remove_dir_all(dir.path().join("dst")).expect("removed");
        // Now each file fails, and each message names a host.
        for number in 0..3000 {
            let in_the_way = dir.path().join(format!("dst/more/{number}"));
            std::fs::create_dir_all(in_the_way).expect("a directory");
        }
        let output = copy("src/more");
        assert_eq!(output.status.code(), Some(1), "{ranks} ranks: {output:?}");
        let messages = messages(&output);
        assert_eq!(messages.len(), 3000, "{ranks} ranks: each failure is told once");
        for host in [&first, "second"] {
            let named = format!("[{host} ");
            let told = messages.iter().filter(|line| line.starts_with(&named)).count();
            assert!(told > 200, "{ranks} ranks: {host} copied {told} files");
        }
        remove_dir_all(dir.path().join("dst")).expect("removed");
    }
}

/// A tree of files, directories and hard links between them, which a store can have.
fn make_plain_tree(root: &Path) {
    create_dir(root).expect("a directory");
    for number in 0..24_u64 {
        let dir = root.join(format!("d{number}/below"));
        create_dir_all(&dir).expect("directories");
        for file in 0..8 {
            write(dir.join(file.to_string()), random_bytes(3000, number * 100 + file))
                .expect("a file");
        }
        // Of the directory before it, so that different ranks come to the names.
        if number > 0 {
            for file in 0..4 {
                let other = root.join(format!("d{}/below/{file}", number - 1));
                hard_link(other, dir.join(format!("link {file}"))).expect("a link");
            }
        }
    }
    for number in 0..24 {
        let top = root.join(format!("d{number}"));
        for (dir, seconds) in [(top.join("below"), 1_000_000_000), (top, 1_100_000_000)] {
            set_permissions(&dir, PermissionsExt::from_mode(0o750)).expect("a mode");
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds + number);
            let times = FileTimes::new().set_modified(time).set_accessed(time);
            File::open(&dir).and_then(|dir| dir.set_times(times)).expect("times");
        }
    }
}

/// mpirun of one rank for each of `mounts` of one store, which all call it `shared`. Each runs `before` there
/// and then `haulage-mpi` with `args`.
fn on_mounts(shared: &Path, mounts: &[SlowFs], before: &str, args: &str) -> Command {
    let program = env!("CARGO_BIN_EXE_haulage-mpi");
    // Each rank enters a mount namespace in which the store has the same name.
    let rank = |mount: &SlowFs| {
        let script = format!(
            "mount --bind '{}' '{}' && cd '{}' && {before}; exec '{program}' {args}",
            mount.path().display(),
            shared.display(),
            shared.display(),
        );
        ["unshare", "--mount", "sh", "-c"].map(str::to_owned).into_iter().chain([script])
    };
    let mut command = mpirun(Path::new("/"), 1, &[]);
    for (index, mount) in mounts.iter().enumerate() {
        if index > 0 {
            command.args([":", "-n", "1"]);
        }
        command.args(rank(mount));
    }
    command
}

/// Two ranks as on two hosts that mount one store: each sees for a second what its own mount has seen
/// before, names that are missing included.
#[test]
fn ranks_with_mounts_of_their_own_copy_one_tree() {
    if !testfs::is_root() {
        return testfs::skip(&testfs::test_name(), "only root can mount");
    }
    let latency = Duration::from_millis(1);
    let costs = Costs { latency, caches_for: Duration::from_secs(1), ..Costs::default() };
    let Some(first) = SlowFs::mount(costs) else { return };
    let Some(second) = first.mount_again() else { return };
    make_plain_tree(&first.path().join("src"));
    let here = scratch();
    let shared = here.path().join("store");
    create_dir(&shared).expect("a directory");
    let mounts = [first, second];
    for turn in 0..2 {
        let dst = format!("dst{turn}");
        // Each mount learns that the copy does not exist.
        let looks = format!("ls {dst} 2>/dev/null");
        let args = format!("cp -a --jobs=1 src {dst}");
        let output = on_mounts(&shared, &mounts, &looks, &args).output().expect("mpirun runs");
        assert!(output.status.success(), "{output:?}");
        assert_eq!(messages(&output), Vec::<String>::new(), "{output:?}");
        // A mount that has seen nothing yet.
        let Some(third) = mounts[0].mount_again() else { return };
        let (src, dst) = (third.path().join("src"), third.path().join(&dst));
        assert_equal(&src, &dst, &format!("turn {turn}"));
    }
}

/// Files in each directory of the store. A mount makes one name at a time in a directory, so many in one would be
/// made one after the other.
const STORE_FILES: usize = 8;

/// A store on which each request takes 2 ms, with a tree `src` of that many directories.
fn store(dirs: usize) -> Option<SlowFs> {
    let store = SlowFs::mount(Costs { latency: Duration::from_millis(2), ..Costs::default() })?;
    std::thread::scope(|scope| {
        for dir in 0..dirs {
            let dir = store.path().join(format!("src/{dir}"));
            scope.spawn(move || {
                create_dir_all(&dir).expect("a directory");
                for file in 0..STORE_FILES {
                    write(dir.join(file.to_string()), format!("contents of {file}"))
                        .expect("a file");
                }
            });
        }
    });
    Some(store)
}

/// Seconds of a copy by that many ranks of one worker each. The start of the ranks is left out.
fn seconds_on_the_store(store: &SlowFs, ranks: usize) -> f64 {
    let dst = format!("dst{ranks}");
    let seconds = seconds_of(store, ranks, &["cp", "-r", "--jobs=1", "src", &dst]);
    let contents = store.contents();
    let below = |top: &str| -> Vec<_> {
        let inside = |(path, data): (&PathBuf, &Option<Vec<u8>>)| {
            Some((path.strip_prefix(top).ok()?.to_owned(), data.clone()))
        };
        contents.iter().filter_map(inside).collect()
    };
    assert!(below("src").len() > STORE_FILES && below("src") == below(&dst), "{ranks} ranks");
    seconds
}

/// Seconds of a command of the program without the start of the ranks.
fn seconds_of(store: &SlowFs, ranks: usize, args: &[&str]) -> f64 {
    let timed = |args: &[&str]| {
        let start = Instant::now();
        let output = run(store.path(), ranks, args);
        assert!(output.status.success(), "{ranks} ranks: {output:?}");
        start.elapsed().as_secs_f64()
    };
    let start = timed(&["--version"]);
    let all = timed(args);
    (all - start).max(f64::EPSILON)
}

/// Four ranks wait for four requests at the same time. `cargo xtask mpi` may run beside other programs, so less is
/// asked than what the table of docs/scale.md shows.
#[test]
fn ranks_wait_for_a_slow_store_at_the_same_time() {
    let Some(store) = store(16) else { return };
    let (one, four) = (seconds_on_the_store(&store, 1), seconds_on_the_store(&store, 4));
    assert!(one / four > 2.0, "one rank takes {one:.2} s, four take {four:.2} s");
}

#[test]
#[ignore = "prints the table of docs/scale.md"]
fn print_speed_up_on_a_slow_store() {
    let Some(store) = store(48) else { return };
    let one = seconds_on_the_store(&store, 1);
    println!("1 rank: {one:.2} s");
    for ranks in [2, 4, 8] {
        let seconds = seconds_on_the_store(&store, ranks);
        println!("{ranks} ranks: {seconds:.2} s, speed-up {:.2}", one / seconds);
    }
}

/// Mounts of one store, and a directory for [`on_mounts`]. `None` after a reported skip.
fn mounts_of_a_store(costs: Costs, count: usize) -> Option<(Vec<SlowFs>, tempfile::TempDir)> {
    if !testfs::is_root() {
        testfs::skip(&testfs::test_name(), "only root can mount");
        return None;
    }
    let mut mounts = vec![SlowFs::mount(costs)?];
    while mounts.len() < count {
        mounts.push(mounts[0].mount_again()?);
    }
    Some((mounts, scratch()))
}

#[test]
fn ranks_with_mounts_of_their_own_copy_one_large_file() {
    let costs = Costs { caches_for: Duration::from_secs(1), ..Costs::default() };
    let Some((mounts, shared)) = mounts_of_a_store(costs, 3) else { return };
    write(mounts[0].path().join("src"), random_bytes(200 << 20, 9)).expect("a file");
    for options in ["-a", "-a --atomic --verify", "-a --resume"] {
        let args = format!("cp {options} --jobs=1 src dst");
        let output = on_mounts(shared.path(), &mounts, "ls", &args).output().expect("mpirun runs");
        assert!(output.status.success(), "{options}: {output:?}");
        assert_eq!(messages(&output), Vec::<String>::new(), "{options}: {output:?}");
        let Some(other) = mounts[0].mount_again() else { return };
        assert_equal(&other.path().join("src"), &other.path().join("dst"), options);
        assert_eq!(testfs::names_in(other.path()), ["dst", "src"], "{options}");
        std::fs::remove_file(other.path().join("dst")).expect("removed");
    }
}

#[test]
#[ignore = "prints a table of docs/scale.md, and takes 3 GiB of memory"]
fn print_speed_up_of_one_large_file() {
    // Ranks with one mount would wait for one another: the kernel has one write to a file at a time.
    let costs = Costs { latency: Duration::from_millis(2), ..Costs::default() };
    let Some((mounts, shared)) = mounts_of_a_store(costs, 8) else { return };
    let (src, dst) = (mounts[0].path().join("src"), mounts[0].path().join("dst"));
    write(&src, random_bytes(1 << 30, 5)).expect("a file");
    let mut one = None;
    for ranks in [1, 2, 4, 8] {
        let seconds = |args: &str| {
            let start = Instant::now();
            let mut command = on_mounts(shared.path(), &mounts[..ranks], "true", args);
            let output = command.output().expect("mpirun runs");
            assert!(output.status.success(), "{ranks} ranks: {output:?}");
            start.elapsed().as_secs_f64()
        };
        let start = seconds("--version");
        let seconds = seconds("cp --jobs=1 src dst") - start;
        let one = *one.get_or_insert(seconds);
        println!("{ranks} ranks: {seconds:.2} s, speed-up {:.2}", one / seconds);
        assert_eq!(std::fs::metadata(&dst).expect("a file").len(), 1 << 30, "{ranks} ranks");
        std::fs::remove_file(&dst).expect("removed");
    }
}
