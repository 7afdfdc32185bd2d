//! `--dry-run` prints what a real run prints, and changes nothing.

use std::collections::BTreeMap;
use std::fs::{create_dir_all, hard_link, set_permissions, symlink_metadata, write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, SystemTime};

use rustix::fs::{
    AtFlags, CWD, IFlags, Timespec, Timestamps, UTIME_OMIT, ioctl_getflags, ioctl_setflags,
    utimensat,
};

/// The files before each case; a name that ends in a slash is a directory, `->` makes a symbolic
/// link, `=` a hard link, and `!` a file from the future.
const FIXTURE: &str = "a b old ! newer s/x s/y s/d/z s/d/e/deep s/empty/ s/link->x s/broken->nowhere \
                       s/hard=s/x to/x to/d/z to/only to/s/x to/s/d other/a other/s/x full/s/x->to \
                       dangling->nowhere linkdir->to toa->a s2/d to2/a/ to2/s up/ file->a v.~1~ v";

fn build(dir: &Path) {
    for (number, word) in FIXTURE.split_whitespace().filter(|word| *word != "!").enumerate() {
        if let Some((name, to)) = word.split_once("->") {
            symlink(to, with_parent(dir, name)).expect("linked");
        } else if let Some((name, to)) = word.split_once('=') {
            hard_link(dir.join(to), with_parent(dir, name)).expect("a hard link");
        } else if let Some(name) = word.strip_suffix('/') {
            create_dir_all(dir.join(name)).expect("created");
        } else {
            let path = with_parent(dir, word);
            write(&path, format!("{word} {number}")).expect("written");
            let age = if word == "newer" { 0 } else { 1000 - number as u64 };
            let time = SystemTime::now() - Duration::from_secs(age);
            let file = std::fs::File::options().write(true).open(&path).expect("opened");
            file.set_modified(time).expect("time set");
        }
    }
    rustix::fs::mknodat(CWD, dir.join("s/fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .expect("created");
}

fn with_parent(dir: &Path, name: &str) -> PathBuf {
    let path = dir.join(name);
    create_dir_all(path.parent().expect("a parent")).expect("created");
    path
}

fn names(dir: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (vec![dir.to_owned()], vec![dir.to_owned()]);
    while let Some(below) = open.pop() {
        for entry in std::fs::read_dir(below).expect("listed") {
            let path = entry.expect("an entry").path();
            if symlink_metadata(&path).expect("looked at").is_dir() {
                open.push(path.clone());
            }
            found.push(path);
        }
    }
    found.sort();
    found
}

/// All attributes of each inode. The access time of a symbolic link is left out: following the link
/// changes it.
fn stats(names: &[PathBuf]) -> BTreeMap<PathBuf, String> {
    let stat = |path: &PathBuf| {
        let stat = symlink_metadata(path).expect("looked at");
        let atime = (!stat.is_symlink()).then(|| (stat.atime(), stat.atime_nsec()));
        let times = (stat.mtime(), stat.mtime_nsec(), stat.ctime(), stat.ctime_nsec(), atime);
        let rest = (stat.ino(), stat.mode(), stat.nlink(), stat.len(), stat.uid());
        (path.clone(), format!("{times:?} {rest:?}"))
    };
    names.iter().map(stat).collect()
}

/// Sets access times back, so that every read changes them.
fn reset_access_times(names: &[PathBuf]) {
    let omitted = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let times =
        Timestamps { last_access: Timespec { tv_sec: 1, tv_nsec: 0 }, last_modification: omitted };
    for name in names {
        utimensat(CWD, name, &times, AtFlags::SYMLINK_NOFOLLOW).expect("times are set");
    }
}

fn cp(dir: &Path, option: &str, words: &str) -> Output {
    let mut command = testfs::command(env!("CARGO_BIN_EXE_haulage"));
    command.args(["cp", option]).args(words.split(' ')).current_dir(dir).env("LC_ALL", "C");
    command.stdin(std::process::Stdio::null());
    command.output().expect("haulage runs")
}

/// Standard output, standard error and exit status.
fn results(output: &Output) -> (String, String, Option<i32>) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.code())
}

/// How the dry run of this command differs from the real run.
fn check(words: &str) -> Option<String> {
    let dir = tempfile::tempdir().expect("created");
    build(dir.path());
    let before_names = names(dir.path());
    reset_access_times(&before_names);
    let before = stats(&before_names);
    let dry = results(&cp(dir.path(), "--dry-run", words));
    let after = stats(&before_names);
    if let Some((name, stat)) = after.iter().find(|(name, stat)| before[*name] != **stat) {
        return Some(format!("{words}: {}: {} then {stat}", name.display(), before[name]));
    }
    assert_eq!(names(dir.path()), before_names, "{words}");
    let done = results(&cp(dir.path(), "-v", words));
    (dry != done).then(|| format!("{words}: {dry:?}, real run {done:?}"))
}

#[test]
fn a_dry_run_reports_what_is_done_and_changes_nothing() {
    let commands = [
        // Something new.
        "a new",
        "-r s new",
        "-a s new",
        "-a s to2/new",
        "-rL s/d new",
        "-a s a to",
        "-a s/. to",
        "-rl s new",
        "-rs /nowhere new",
        "-s a new",
        "-s a to",
        "-rs s new",
        "-rs s to",
        "a newdir/",
        "a nowhere/new",
        "a b nowhere",
        "nowhere new",
        "s new",
        "-a s/fifo new",
        // An existing destination.
        "a b",
        "-a s/x s/d/z to",
        "-aT s to",
        "-u a newer",
        "-u newer a",
        "-u old newer to",
        "-n a b",
        "--update=none-fail a b",
        "-b a b",
        "--backup=numbered a b",
        "-b a v",
        "--backup=t a v to",
        "-b a~ a",
        "-bf a a",
        "-f a b",
        "--remove-destination a b",
        "--remove-destination -a s/x s/link to",
        "-l a b",
        "-lf a b",
        "-sf /etc/passwd b",
        "-s /etc/passwd nowhere/new",
        "-s /etc/passwd new/",
        "-l a nowhere/new",
        "-l a new/",
        "-d s/link nowhere/new",
        "-a s/fifo nowhere/new",
        "-s a b",
        "-d s/link b",
        "-a s/x s/hard to",
        "-d s/x s/hard to",
        "--attributes-only a b",
        "--atomic a b",
        "--atomic -b a b",
        "--atomic -l a b",
        "--atomic -aT s to",
        "--atomic --remove-destination a b",
        // Destinations that cannot be replaced or created.
        "a a",
        "a ./a",
        "file a",
        "-r s s",
        "a to2",
        "-r s to2",
        "-rT s a",
        "-rb s to2",
        "-rT s2 to",
        "s2/d to",
        "a dangling",
        "a toa",
        "--remove-destination b toa",
        "-r s full",
        // Operands with the same destination.
        "a other/a up",
        "-n a other/a up",
        "--backup=t a other/a up",
        "--backup=t a other/a up/../s/d to2/s/../a up",
        "--backup=t -l a other/a up",
        "-b a other/a up",
        "--backup=t --atomic a other/a up",
        "--backup=t v other/a v.~1~ a to",
        "--backup=t -P s/link other/s/x s/x up",
        "-u a other/a up",
        "-u --backup=t a other/a up",
        "a a up",
        "-r s s up",
        "-r s other/s up",
        "-r s/d up",
        "-t up a b newer",
        // Names with their directories.
        "--parents s/d/z up",
        "--parents s/d/z s/d/e/deep s/x up",
        "--parents -a s/d up",
        "--parents s/x to/",
        "--parents -r s/d up",
        "--parents nowhere/x up",
        "--parents -r s/. up",
        "--parents s/d/../x up",
        "--parents s/d/./../d/z up",
        "--parents -r s/../s up",
        "--parents -r s/d/e/../../d/e up",
        // Filters.
        "-r --exclude=d s up",
        "-r --include=x --exclude=* s up",
        // Not a copy into itself, because a filter leaves out the destination.
        "-r --exclude=e s s/d/e",
        "-r --exclude=/d/e/ s s/d/e",
        "-r --exclude=d s s/d/e",
        "-r --include=new --exclude=* s s/new",
        "-rT --exclude=new s s/new",
    ];
    let wrong: Vec<_> = commands.iter().filter_map(|words| check(words)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_dry_run_reports_a_copy_into_itself() {
    for (words, is_reported) in [
        ("-r s s/new", true),
        ("-r --parents s/d s/d/e", true),
        ("-r --parents s s/d/e", true),
        ("-a --parents s/d/e s/d/e", true),
        ("-r --parents s/d/z s/d other s/d/e", true),
        ("-r --parents s/x s/d s s/d/e", true),
        ("-rL --parents looped c", true),
        ("-r --parents s/d other", false),
        ("-r --parents --exclude=e s/d s/d/e", false),
        ("-r --parents --exclude=s s/d s/d/e", false),
        // Messages that are those of GNU cp.
        ("-rH sl s/d", true),
        ("-rH sl s", false),
        ("-rH --parents sl s/d", true),
        ("-rHT sl s/new", false),
        ("-r sl/ s", false),
        // Through a link that leads to where the copy goes, or to something above that.
        ("-rL looped c", true),
        ("-rL looped c/below", true),
        ("-rL looped looped/d c", true),
        ("-r looped c", false),
        ("-rL --exclude=l looped c", false),
        ("-rL --exclude=below looped c/below", false),
    ] {
        let dir = tempfile::tempdir().expect("created");
        build(dir.path());
        for name in ["c/below", "looped/d"] {
            std::fs::create_dir_all(dir.path().join(name)).expect("created");
        }
        symlink("../c", dir.path().join("looped/l")).expect("linked");
        symlink("s", dir.path().join("sl")).expect("linked");
        let dry = cp(dir.path(), "--dry-run", words);
        let done = cp(dir.path(), "-v", words);
        assert_eq!((&dry.stderr, dry.status), (&done.stderr, done.status), "{words}");
        assert_eq!(
            results(&done).1.contains("into itself"),
            is_reported,
            "{words}: {:?}",
            results(&done)
        );
    }
}

#[test]
fn a_dry_run_reports_files_that_cannot_be_hard_linked() {
    let dir = tempfile::tempdir().expect("created");
    build(dir.path());
    let Ok(elsewhere) = tempfile::tempdir_in("/dev/shm") else {
        return testfs::skip(&testfs::test_name(), "there is no other file system");
    };
    let device = |path: &Path| symlink_metadata(path).expect("looked at").dev();
    if device(dir.path()) == device(elsewhere.path()) {
        return testfs::skip(&testfs::test_name(), "there is no other file system");
    }
    symlink("a", dir.path().join("linked")).expect("linked");
    let there = elsewhere.path().to_str().expect("a plain name");
    for words in ["-l a", "-lP s/link", "-l linked", "-l a b", "-rl s"] {
        check_failure(dir.path(), &format!("{words} {there}"), "Invalid cross-device link");
    }
    for (name, flag) in [("s/x", IFlags::IMMUTABLE), ("s/d/z", IFlags::APPEND)] {
        let file = std::fs::File::open(dir.path().join(name)).expect("opened");
        let flags = ioctl_getflags(&file);
        if flags.and_then(|flags| ioctl_setflags(&file, flags | flag)).is_err() {
            return testfs::skip(&testfs::test_name(), "files cannot be protected here");
        }
        for words in [
            format!("-l {name} up"),
            format!("-l {name} b"),
            format!("-lf {name} b"),
            "-rl s up".to_owned(),
        ] {
            let meets = words.starts_with("-l ") && words.ends_with(" b");
            let reason = if meets { "File exists" } else { "Operation not permitted" };
            check_failure(dir.path(), &words, reason);
        }
        ioctl_setflags(&file, flags.expect("those that it had")).expect("as it was");
    }
}

/// The dry run fails with the message of the real run, which contains `reason`.
fn check_failure(dir: &Path, words: &str, reason: &str) {
    let dry = results(&cp(dir, "--dry-run", words));
    let done = results(&cp(dir, "-v", words));
    assert_eq!((&dry.1, dry.2), (&done.1, done.2), "{words}");
    assert!(done.1.contains(reason), "{words}: {}", done.1);
    let made = dir.join("up/s");
    if made.exists() {
        std::fs::remove_dir_all(made).expect("removed");
    }
}

#[test]
fn a_dry_run_does_not_open_a_fifo() {
    let dir = tempfile::tempdir().expect("created");
    build(dir.path());
    for words in ["s/fifo b", "-b s/fifo b", "--remove-destination s/fifo b", "--atomic s/fifo b"] {
        // A dry run that waits for a writer of the fifo continues as soon as there is one.
        let dry = std::thread::scope(|scope| {
            let dry_run = scope.spawn(|| cp(dir.path(), "--dry-run", words));
            let deadline = std::time::Instant::now() + Duration::from_secs(60);
            while !dry_run.is_finished() {
                if std::time::Instant::now() > deadline {
                    write(dir.path().join("s/fifo"), "").expect("the fifo");
                    panic!("{words}: it waits");
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            dry_run.join().expect("it ended")
        });
        assert_eq!(results(&dry).1, "", "{words}");
        assert!(dry.status.success(), "{words}");
    }
}

#[test]
fn a_dry_run_asks_no_question() {
    let dir = tempfile::tempdir().expect("created");
    build(dir.path());
    let output = results(&cp(dir.path(), "--dry-run", "-i a b"));
    assert_eq!(output, ("'a' -> 'b'\n".into(), String::new(), Some(0)));
}

#[test]
fn a_dry_run_walks_a_deep_tree_and_changes_no_mode() {
    let dir = tempfile::tempdir().expect("created");
    let mut deep = dir.path().join("s");
    for _ in 0..300 {
        deep = deep.join("d");
    }
    create_dir_all(&deep).expect("directories");
    write(deep.join("f"), "text").expect("written");
    write(dir.path().join("s/last"), "text").expect("written");
    set_permissions(dir.path().join("s"), PermissionsExt::from_mode(0o500)).expect("mode set");
    let dry = results(&cp(dir.path(), "--dry-run", "-a s t"));
    assert!(!dir.path().join("t").exists());
    let done = results(&cp(dir.path(), "-v", "-a s t"));
    assert_eq!(dry, done);
    assert_eq!(done.0.lines().count(), 303, "{}", done.0);
}

#[test]
fn a_dry_run_with_stats_or_a_receipt_is_refused() {
    let dir = tempfile::tempdir().expect("created");
    build(dir.path());
    for option in ["--stats", "--receipt=r"] {
        let output = results(&cp(dir.path(), option, "--dry-run a new"));
        let words = "cp: --dry-run cannot be combined with --receipt or --stats\n";
        assert!(output.1.starts_with(words) && output.2 == Some(1), "{output:?}");
        assert!(!dir.path().join("r").exists());
    }
}
