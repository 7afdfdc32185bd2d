//! `haulage tune` as a user runs it, and what `haulage cp` does with what it found.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use engines::profile::{FileSystem, Machine, PairChoices, Profile};
use serde_json::Value;
use testfs::{Costs, SlowFs, names_in, stdout};

/// A home of its own for each test, so that nobody's own profile is read or written.
struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    fn new() -> Home {
        // In memory, where the time does not depend on what else a disk has to do.
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        Home { dir: dir.expect("a directory") }
    }

    fn profile(&self) -> PathBuf {
        self.dir.path().join("haulage/profile.toml")
    }

    /// A directory to measure in.
    fn work(&self) -> PathBuf {
        let path = self.dir.path().join("work");
        fs::create_dir_all(&path).expect("made");
        path
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_haulage"));
        command.args(args).current_dir(self.dir.path());
        command.env("XDG_CONFIG_HOME", self.dir.path()).env_remove("HAULAGE_PROFILE");
        command
    }

    fn tune(&self, args: &[&str]) -> Output {
        self.command(&["tune"]).args(args).output().expect("haulage runs")
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

/// Lines of a table that a terminal of 80 columns would break.
fn too_long(table: &str) -> Vec<&str> {
    // Escape sequences take no columns.
    let is_long = |line: &&str| {
        let mut parts = line.split('\x1b');
        let plain: usize = parts.next().unwrap_or_default().chars().count();
        let rest =
            parts.map(|part| part.split_once('m').map_or(0, |(_, text)| text.chars().count()));
        plain + rest.sum::<usize>() > 80
    };
    table.lines().filter(is_long).collect()
}

fn finding<'j>(record: &'j Value, size: &str, residency: &str, in_flight: &str) -> &'j Value {
    let situations = record["pairs"][0]["situations"].as_array().expect("situations");
    let is_it = |it: &&Value| {
        it["size"] == size
            && it["residency"] == residency
            && it["in_flight"] == in_flight
            && it["no_cache"] == false
    };
    situations.iter().find(is_it).expect("every situation is in the record")
}

/// Each write takes this long, so that their number is nearly all that matters.
const WRITE_TAKES: Duration = Duration::from_millis(1);

#[test]
fn it_learns_what_is_best_where_the_default_is_not_and_cp_goes_that_way() {
    let costs = Costs { write_takes: WRITE_TAKES, past_the_cache: true, ..Costs::default() };
    let Some(slow) = SlowFs::mount(costs) else { return };
    let home = Home::new();
    let work = home.work();
    let json = home.dir.path().join("record.json");
    let output =
        home.tune(&[text(&work), text(slow.path()), "--time", "60", "--json", text(&json)]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(names_in(slow.path()).is_empty() && names_in(&work).is_empty());
    assert_eq!(too_long(&stdout(&output)), Vec::<&str>::new());
    let record: Value = serde_json::from_slice(&fs::read(&json).expect("read")).expect("JSON");
    let found = finding(&record, "16M to 256M", "resident", "one");
    let choice = found["choice"].as_str().unwrap_or_else(|| panic!("no choice: {found:#}"));
    let default = found["default"].as_str().expect("a default");
    assert_ne!(choice, default, "{found:#}");

    // Every proposed variant, by the number of writes that a copy takes: what is chosen takes hardly
    // more than the best, and the default many more.
    let src = work.join("src");
    const SRC_BYTES: usize = 20 << 20;
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
    let proposed: Vec<String> =
        proposed.iter().filter(|it| it.is_copier()).map(ToString::to_string).collect();
    let least = proposed.iter().map(String::as_str).filter(cheap).map(by_engine).min();
    let least = least.expect("there are variants");
    let (tuned, receipt) = copy(&[]);
    assert!(receipt.contains(choice), "{choice} in {receipt}");
    assert!(tuned <= least * 3 / 2, "{choice} takes {tuned} writes, the best {least}");
    let (untuned, receipt) = copy(&["--profile=none"]);
    assert!(!receipt.contains(&format!("\"{choice}\"")), "{receipt}");
    assert!(untuned >= 2 * tuned, "{default} takes {untuned} writes, {choice} {tuned}");
}

#[test]
fn the_time_is_kept_and_the_table_says_what_was_not_measured() {
    let home = Home::new();
    let work = home.work();
    let begun = Instant::now();
    let output = home.tune(&[text(&work), "--time", "10"]);
    let took = begun.elapsed();
    assert!(output.status.success(), "{}", stderr(&output));
    // Machines that run other tests at the same time are slow to start and to remove files.
    assert!(took < Duration::from_secs(20), "{took:?}");
    let table = stdout(&output);
    for expected in ["situation", "best way", "MB/s", "GNU cp", "Not measured", "allow --time"] {
        assert!(table.contains(expected), "{expected} in\n{table}");
    }
    assert_eq!(too_long(&table), Vec::<&str>::new());
    assert!(names_in(&work).is_empty());
    // A line for each situation, since there is no terminal.
    assert!(stderr(&output).starts_with("haulage tune: 1 of "), "{}", stderr(&output));
    let profile = Profile::read(&home.profile()).expect("a profile").expect("there").profile;
    let pairs: Vec<_> = profile.pairs_of(&Machine::this()).collect();
    assert_eq!(pairs.len(), 1);
    assert!(!pairs[0].lines.is_empty());
    let shown = stdout(&home.tune(&["--show"]));
    let first = &pairs[0].lines[0].choice.variant;
    assert!(shown.contains(first.as_str()), "{first} in\n{shown}");
}

#[test]
fn a_dry_run_says_what_it_would_take_and_makes_nothing() {
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
            .expect("haulage runs");
        let deadline = Instant::now() + Duration::from_secs(20);
        while names_in(&dst).is_empty() {
            assert!(Instant::now() < deadline, "no scratch directory");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(after_ms));
        assert_eq!((names_in(&src).len(), names_in(&dst).len()), (1, 1), "a directory in each");
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal)
            .expect("sent");
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.signal(), Some(signal.as_raw()), "{}", stderr(&output));
        let said = stderr(&output);
        let last = said.lines().last();
        assert_eq!(last, Some("haulage tune: interrupted; its scratch files are removed"));
        assert!(names_in(&src).is_empty() && names_in(&dst).is_empty(), "{after_ms} ms");
        assert!(!home.profile().exists(), "what is not finished is not kept");
    }
}

/// A profile of another machine, and of this one on the file system of `dir`.
fn two_machines(dir: &Path) -> Profile {
    use std::os::fd::AsFd;
    let opened = fs::File::open(dir).expect("a directory");
    let found = FileSystem::of(opened.as_fd());
    let line = |variant: &str| {
        let choice = engines::profile::Choice { variant: variant.to_owned(), ..Default::default() };
        engines::profile::Line { choice, ..Default::default() }
    };
    let pair = |fs: &FileSystem, variant: &str| PairChoices {
        src: fs.clone(),
        dst: fs.clone(),
        same: Some(true),
        lines: vec![line(variant)],
        ..PairChoices::default()
    };
    let elsewhere = FileSystem {
        fs_type: Some("xfs".into()),
        mount_point: Some("/far".into()),
        ..Default::default()
    };
    let other =
        Machine { id: Some("0123456789abcdef".into()), host: Some("far".into()), cpu: None };
    let mut profile = Profile::default();
    profile.enter(&other, pair(&elsewhere, "splice"));
    profile.enter(&Machine::this(), pair(&elsewhere, "sendfile"));
    profile.enter(&Machine::this(), pair(&found, "mmap:8M"));
    profile
}

#[test]
fn a_profile_goes_out_and_in_and_is_forgotten() {
    let (from, to) = (Home::new(), Home::new());
    let work = to.work();
    let profile = two_machines(&work);
    profile.write(&from.profile()).expect("written");
    let file = from.dir.path().join("exported.toml");
    let exported = from.tune(&["--export", text(&file)]);
    assert!(exported.status.success(), "{}", stderr(&exported));
    assert_eq!(stdout(&from.tune(&["--export"])), fs::read_to_string(&file).expect("read"));

    let imported = to.tune(&["--import", text(&file)]);
    assert!(imported.status.success(), "{}", stderr(&imported));
    assert!(stdout(&imported).starts_with("3 pairs of file systems taken over"));
    let read = || Profile::read(&to.profile()).expect("a profile").expect("there").profile;
    let variants = |profile: &Profile| -> Vec<String> {
        let pairs = profile.machines.iter().flat_map(|machine| &machine.pairs);
        let mut all: Vec<String> =
            pairs.flat_map(|pair| &pair.lines).map(|line| line.choice.variant.clone()).collect();
        all.sort();
        all
    };
    assert_eq!(variants(&read()), ["mmap:8M", "sendfile", "splice"]);
    let shown = stdout(&to.tune(&["--show"]));
    for expected in ["mmap:8M", "sendfile", "far, another machine: 1 pair"] {
        assert!(shown.contains(expected), "{expected} in\n{shown}");
    }
    // Once more changes nothing.
    assert!(to.tune(&["--import", text(&file)]).status.success());
    assert_eq!(variants(&read()), ["mmap:8M", "sendfile", "splice"]);

    let forgotten = to.tune(&["--forget", text(&work)]);
    assert_eq!(stdout(&forgotten), "1 pair of file systems forgotten\n", "{}", stderr(&forgotten));
    assert_eq!(variants(&read()), ["sendfile", "splice"]);
    assert_eq!(stdout(&to.tune(&["--forget"])), "1 pair of file systems forgotten\n");
    assert_eq!(variants(&read()), ["splice"], "another machine's stays");
    assert_eq!(stdout(&to.tune(&["--forget"])), "0 pairs of file systems forgotten\n");
}

#[test]
fn of_several_that_change_it_at_once_none_is_lost() {
    const SEVERAL: usize = 12;
    let home = Home::new();
    let children: Vec<_> = (0..SEVERAL)
        .map(|number| {
            let file = home.dir.path().join(format!("{number}.toml"));
            let pair = format!("src = {{ type = \"ext4\", mount_point = \"/{number}\" }}");
            let choice = "[[machine.pair.choice]]\nvariant = \"splice\"";
            let whole = format!("version = 1\n[[machine]]\n[[machine.pair]]\n{pair}\n{choice}\n");
            fs::write(&file, whole).expect("written");
            let mut command = home.command(&["tune", "--import", text(&file)]);
            command.stdout(Stdio::null()).spawn().expect("haulage runs")
        })
        .collect();
    for mut child in children {
        assert!(child.wait().expect("it ends").success());
    }
    let profile = Profile::read(&home.profile()).expect("a profile").expect("there").profile;
    assert_eq!(profile.machines[0].pairs.len(), SEVERAL);
    let beside = names_in(home.profile().parent().expect("a directory"));
    assert_eq!(beside, ["profile.toml"], "nothing is left beside it");
}

#[test]
fn what_a_user_wrote_into_it_stays() {
    let home = Home::new();
    fs::create_dir_all(home.profile().parent().expect("a directory")).expect("made");
    let own = "version = 1\n\n# The archive, by hand.\n[[machine]] # any\n[[machine.pair]]\n\
               src = { type = \"xfs\" }\n[[machine.pair.choice]]\nvariant = 'splice' # see notes\n";
    fs::write(home.profile(), own).expect("written");
    let other = Home::new();
    two_machines(&other.work()).write(&other.profile()).expect("written");
    let output = home.tune(&["--import", text(&other.profile())]);
    assert!(output.status.success(), "{}", stderr(&output));
    let after = fs::read_to_string(home.profile()).expect("read");
    let (head, tail) = own.split_once("\n\n").expect("two parts");
    assert!(after.starts_with(head) && after.ends_with(tail), "{after}");
    let profile = Profile::read(&home.profile()).expect("a profile").expect("there").profile;
    assert_eq!(profile.machines.len(), 3, "{after}");
    // What was there comes back when the rest is forgotten, to the byte.
    assert!(home.tune(&["--forget"]).status.success());
    let forgotten = fs::read_to_string(home.profile()).expect("read");
    assert!(forgotten.ends_with(tail) && !forgotten.contains("mmap:8M"), "{forgotten}");
}

#[test]
fn a_damaged_profile_is_not_written_over() {
    let home = Home::new();
    let work = home.work();
    fs::create_dir_all(home.profile().parent().expect("a directory")).expect("made");
    fs::write(home.profile(), "version = 1\nnonsense").expect("written");
    let work = text(&work);
    let file = home.dir.path().join("good.toml");
    fs::write(&file, "version = 1\n").expect("written");
    for args in [
        &[work, "--time", "1"][..],
        &["--show"],
        &["--export"],
        &["--import", text(&file)],
        &["--forget"],
    ] {
        let output = home.tune(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let said = stderr(&output);
        assert!(said.contains("profile.toml': line 2: "), "{args:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
    }
    assert_eq!(fs::read_to_string(home.profile()).expect("read"), "version = 1\nnonsense");
    // A damaged file is not taken over either.
    fs::remove_file(home.profile()).expect("removed");
    fs::write(&file, "version = 7\n").expect("written");
    let output = home.tune(&["--import", text(&file)]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("version 7 is not known"), "{}", stderr(&output));
    assert!(!home.profile().exists());
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
    ] {
        let output = home.tune(args);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{args:?}: {message}");
        assert!(message.starts_with("haulage tune: "), "{args:?}: {message}");
        assert!(message.contains(expected), "{args:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{args:?}: {message}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
    let output = home.command(&["tune", work]).env("HAULAGE_PROFILE", "").output().expect("runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("HAULAGE_PROFILE is empty"), "{}", stderr(&output));
    assert!(names_in(Path::new(work)).is_empty());
}

#[test]
fn help_is_readable() {
    let home = Home::new();
    let output = home.tune(&["--help"]);
    assert!(output.status.success());
    let flags =
        ["--time", "--seed", "--dry-run", "--json", "--show", "--export", "--import", "--forget"];
    for expected in flags.into_iter().chain(["from the first to each of the others"]) {
        let help = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(help.contains(expected), "{expected} in {help}");
    }
}
