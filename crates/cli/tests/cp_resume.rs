//! `cp --resume`: a copy that was killed goes on, and little is copied twice.

use std::fs::{File, create_dir, read, write};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant, UNIX_EPOCH};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use testfs::{
    Aspects, Costs, FsKind, FuseFs, Lies, assert_equal_trees, each_fs, json_lines, random_bytes,
    set_time_of, stderr,
};

use crate::{cp, haulage_cp, leftovers};

const LARGE: usize = 72 << 20;

/// What splice moves is not among the counts of /proc/PID/io, by which copies are killed here.
const COUNTED: &str = "--engine=read_write:256K@2";

fn make_tree(root: &Path) {
    create_dir(root).expect("created");
    create_dir(root.join("d")).expect("created");
    write(root.join("large"), random_bytes(LARGE, 1)).expect("written");
    for number in 0..50 {
        write(root.join(format!("d/{number}")), random_bytes(20_000, number)).expect("written");
    }
    std::fs::hard_link(root.join("d/7"), root.join("again")).expect("linked");
    symlink("large", root.join("link")).expect("linked");
    let sparse = std::fs::File::create(root.join("sparse")).expect("created");
    sparse.set_len(36 << 20).expect("length set");
    let bytes = random_bytes(1 << 20, 9);
    for mib in [0, 14, 30] {
        std::os::unix::fs::FileExt::write_all_at(&sparse, &bytes, mib << 20).expect("written");
    }
}

/// Bytes that the process has asked to write so far.
fn written(pid: u32) -> Option<u64> {
    let io = std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    io.lines().find_map(|line| line.strip_prefix("wchar: "))?.parse().ok()
}

/// Whether the process has ended. Its counts can still be read.
fn has_ended(child: &Child, options: WaitIdOptions) -> bool {
    let options = options | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(Pid::from_child(child)), options).expect("a child").is_some()
}

/// Runs until `bytes` were written and kills it then, or lets it end. Returns what it wrote and
/// whether it ended by itself.
fn run_for(dir: &Path, args: &[&str], bytes: u64) -> (u64, bool) {
    let mut command = haulage_cp(dir, args);
    if bytes < u64::MAX {
        // It must not end before it is killed, even if this process is delayed.
        command.arg("--limit-rate=60M");
    }
    let mut child = command.spawn().expect("haulage runs");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !has_ended(&child, WaitIdOptions::NOHANG) {
        let hangs = Instant::now() > deadline;
        if hangs || written(child.id()).is_some_and(|seen| seen >= bytes) {
            child.kill().expect("a signal");
            assert!(!hangs, "it hangs");
            break;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    assert!(has_ended(&child, WaitIdOptions::empty()));
    let seen = written(child.id()).expect("its counts");
    let status = child.wait().expect("it has ended");
    assert!(status.success() || status.signal() == Some(9), "{status}");
    (seen, status.success())
}

#[test]
fn a_copy_killed_ten_times_ends_equal_and_copies_little_twice() {
    let mut random = fastrand::Rng::with_seed(11);
    let whole = LARGE as u64 + (3 << 20) + 50 * 20_000;
    each_fs(|kind, dir| {
        let sparse = &["-a", "--jobs=1", "--sparse=always"][..];
        for options in [&["-a"][..], sparse] {
            if options == sparse && kind != FsKind::Ext4 {
                continue;
            }
            make_tree(&dir.join("src"));
            let args = [options, &[COUNTED, "--resume", "--reflink=never", "src", "dst"]].concat();
            let mut sum = 0;
            for _ in 0..10 {
                let share = random.u64(whole / 40..whole / 12);
                sum += run_for(dir, &args, share).0;
            }
            let (rest, ended) = run_for(dir, &args, u64::MAX);
            assert!(ended, "{kind} {options:?}");
            sum += rest;
            assert!(sum * 2 < whole * 3, "{kind} {options:?}: {sum} of {whole} bytes");
            assert_equal_trees(
                &dir.join("src"),
                &dir.join("dst"),
                Aspects::ALL,
                format_args!("{kind} {options:?}"),
            );
            assert_eq!(leftovers(dir), [""; 0], "{kind} {options:?}");
            for name in ["src", "dst"] {
                std::fs::remove_dir_all(dir.join(name)).expect("removed");
            }
        }
    });
}

/// As on vfat, exfat and SMB: owner and mode are those of the mount, and no file is private.
#[test]
fn a_killed_copy_goes_on_where_the_file_system_keeps_no_owners_and_modes() {
    let own = rustix::process::geteuid().as_raw();
    for (uid, mode) in [(own, 0o755), (own, 0o777), (own + 12345, 0o600), (own + 12345, 0o644)] {
        let what = format!("{uid} {mode:o}");
        let Some(served) = FuseFs::mount(Costs::default()) else { return };
        served.lie(Lies { owner_and_mode: Some((uid, mode)), ..Lies::default() });
        let dir = tempfile::tempdir().expect("created");
        let (src, dst) = (dir.path().join("src"), served.path().join("dst"));
        create_dir(&src).expect("created");
        let content = random_bytes(LARGE / 2, 1);
        write(src.join("large"), &content).expect("written");
        let args = ["-r", COUNTED, "--resume", "src", dst.to_str().expect("UTF-8")];
        let (_, ended) = run_for(dir.path(), &args, content.len() as u64 / 2);
        assert!(!ended, "{what}");
        let dry_run = cp(dir.path(), &[&["--dry-run", "-v"], &args[..]].concat());
        assert!(!testfs::stdout(&dry_run).contains("dst/src"), "{what}: {dry_run:?}");
        let (rest, ended) = run_for(dir.path(), &args, u64::MAX);
        assert!(ended && rest < content.len() as u64 * 2 / 3, "{what}: {rest} bytes again");
        assert!(read(dst.join("large")).expect("read") == content, "{what}");
        assert_eq!(leftovers(served.path()), [""; 0], "{what}");

        // What is not continued is removed nevertheless.
        std::fs::remove_file(dst.join("large")).expect("removed");
        let args = ["-rT", COUNTED, "--resume", "src", args[4]];
        let (_, ended) = run_for(dir.path(), &args, content.len() as u64 / 2);
        assert!(!ended, "{what}");
        write(src.join("large"), "short").expect("written");
        assert!(cp(dir.path(), &args).status.success());
        assert_eq!(leftovers(&dst), [""; 0], "{what}");
    }
}

#[test]
fn sources_named_like_temporary_files_are_copied_like_others() {
    each_fs(|kind, dir| {
        create_dir(dir.join("src")).expect("created");
        let src = |name: &str| dir.join("src").join(name);
        write(src("large"), random_bytes(5 << 20, 1)).expect("written");
        for name in ["small", "again", ".large.haulage-part", ".large.haulage-journal"] {
            write(src(name), name).expect("written");
            write(src(&format!(".{name}.haulage-new")), "ours by name only").expect("written");
        }
        std::fs::hard_link(src("large"), src("linked")).expect("linked");
        write(src(".linked.haulage-part"), "so is this").expect("written");
        for option in ["--resume", "--atomic", "--atomic -b"] {
            let common = ["-a", "--reflink=never", "-T", "src", "dst"];
            let args: Vec<_> = option.split(' ').chain(common).collect();
            // In the first pass all is new; later, names are replaced and links made again.
            for pass in 0..3 {
                let output = cp(dir, &args);
                assert!(output.status.success(), "{kind} {option}: {output:?}");
                if option != "--atomic -b" {
                    assert_equal_trees(
                        &dir.join("src"),
                        &dir.join("dst"),
                        Aspects::ALL,
                        format_args!("{kind} {option} {pass}"),
                    );
                }
                for entry in std::fs::read_dir(dir.join("src")).expect("listed") {
                    let name = entry.expect("an entry").file_name();
                    let copied = read(dir.join("dst").join(&name)).expect("read");
                    let whole = copied == read(dir.join("src").join(&name)).expect("read");
                    assert!(whole, "{kind} {option} {pass}: {name:?}");
                }
                for name in ["small", "linked"] {
                    std::fs::remove_file(dir.join("dst").join(name)).expect("removed");
                    write(dir.join("dst").join(name), "old").expect("written");
                }
            }
            std::fs::remove_dir_all(dir.join("dst")).expect("removed");
        }
    });
}

#[test]
fn stale_hard_links_at_temporary_names_are_removed() {
    each_fs(|kind, dir| {
        for name in ["src", "dst"] {
            create_dir(dir.join(name)).expect("created");
        }
        let names = ["a", "b", "c", "d", "e"];
        write(dir.join("src/a"), "data").expect("written");
        for name in &names[1..] {
            std::fs::hard_link(dir.join("src/a"), dir.join("src").join(name)).expect("linked");
        }
        // Copies that were complete by themselves, and one of them about to take each name. The
        // last name is new, and its link gives that copy a new time.
        for name in &names[..4] {
            let copy = dir.join("dst").join(name);
            write(&copy, "data").expect("written");
            set_time_of(&copy, &dir.join("src/a"));
        }
        for first in names[..4].iter().map(|name| dir.join("dst").join(name)) {
            for name in &names[..4] {
                let left = dir.join(format!("dst/.{name}.haulage-new"));
                std::fs::hard_link(&first, left).expect("linked");
            }
            let output = cp(dir, &["-a", "--resume", "-T", "src", "dst"]);
            assert!(output.status.success(), "{kind}: {output:?}");
            assert_eq!(leftovers(dir), [""; 0], "{kind}");
            let inode = |name: &str| {
                std::fs::metadata(dir.join("dst").join(name)).expect("looked at").ino()
            };
            assert!(names.iter().all(|name| inode(name) == inode("a")), "{kind}");
            for name in &names[1..] {
                std::fs::remove_file(dir.join("dst").join(name)).expect("removed");
            }
            for name in &names[1..4] {
                std::fs::copy(dir.join("dst/a"), dir.join("dst").join(name)).expect("copied");
                set_time_of(&dir.join("dst").join(name), &dir.join("src/a"));
            }
        }
    });
}

#[test]
fn a_dry_run_leaves_what_a_killed_copy_left_and_other_arguments_can_complete_it() {
    let dir = tempfile::tempdir().expect("created");
    let dir = dir.path();
    make_tree(&dir.join("src"));
    let common = ["-a", COUNTED, "--resume", "--reflink=never"];
    let args = [&common[..], &["src", "dst"]].concat();
    let (_, ended) = run_for(dir, &args, LARGE as u64 / 2);
    assert!(!ended && dir.join(".dst.haulage-journal").exists());
    let before = leftovers(dir);
    assert!(before.len() > 2, "{before:?}");
    assert!(cp(dir, &[&["--dry-run"], &args[..]].concat()).status.success());
    assert_eq!(leftovers(dir), before);
    // As if the source had been mounted again, with another device number: a dry run goes on in the directory.
    let marker = std::fs::File::options().write(true).open(dir.join(".dst.haulage-journal"));
    marker.and_then(|marker| marker.write_all_at(&[0x7f; 8], 16)).expect("written");
    let output = cp(dir, &[&["-v", "--dry-run"], &args[..]].concat());
    assert!(!testfs::stdout(&output).contains("dst/src"), "{}", testfs::stdout(&output));
    assert!(cp(dir, &[&common[..], &["-T", "src", "dst"]].concat()).status.success());
    assert_eq!(leftovers(dir), [""; 0]);
    // The copy is complete, so the first arguments copy into the directory.
    assert!(cp(dir, &args).status.success());
    assert!(dir.join("dst/src/large").exists());
}

#[test]
fn complete_files_are_skipped_and_changed_files_are_copied() {
    let dir = tempfile::tempdir().expect("created");
    let dir = dir.path();
    make_tree(&dir.join("src"));
    create_dir(dir.join("dst")).expect("created");
    assert!(cp(dir, &["-a", "--resume", "-T", "src", "dst"]).status.success());
    let inode = |name: &str| std::fs::metadata(dir.join(name)).expect("looked at").ino();
    let before = (inode("dst/large"), inode("dst/d/3"));
    write(dir.join("src/d/3"), "another").expect("written");
    assert!(cp(dir, &["-a", "--resume", "-T", "src", "dst"]).status.success());
    assert_eq!(inode("dst/large"), before.0, "it was complete");
    assert_ne!(inode("dst/d/3"), before.1, "it was not");
    assert_equal_trees(&dir.join("src"), &dir.join("dst"), Aspects::ALL, "");
    // A pre-existing directory is copied into.
    assert!(cp(dir, &["-a", "--resume", "src", "dst"]).status.success());
    assert!(dir.join("dst/src/large").exists());
}

/// What the copy of another operand has is not taken for what an earlier run has copied.
#[test]
fn the_second_of_two_operands_with_one_name_is_refused() {
    let dir = tempfile::tempdir().expect("created");
    let dir = dir.path();
    for (sub, content) in [("1", "one"), ("2", "two")] {
        create_dir(dir.join(sub)).expect("created");
        let file = File::create(dir.join(sub).join("f")).expect("created");
        (&file).write_all(content.as_bytes()).expect("written");
        file.set_modified(UNIX_EPOCH).expect("the same time");
    }
    create_dir(dir.join("dst")).expect("created");
    for run in 1..=2 {
        let output = cp(dir, &["-a", "--resume", "1/f", "2/f", "dst"]);
        let due = "cp: will not overwrite just-created 'dst/f' with '2/f'\n";
        assert_eq!((stderr(&output).as_str(), output.status.code()), (due, Some(1)), "{run}");
        assert_eq!(std::fs::read(dir.join("dst/f")).expect("read"), b"one", "{run}");
    }
    // With numbered backups both are kept.
    let args = ["-a", "--resume", "--backup=numbered", "1/f", "2/f", "dst"];
    assert!(cp(dir, &args).status.success());
    let names = ["f", "f.~1~"].map(|name| std::fs::read(dir.join("dst").join(name)).ok());
    assert_eq!(names, [Some(b"two".to_vec()), Some(b"one".to_vec())]);
}

#[test]
fn verify_finds_a_damaged_copy_with_the_right_length_and_time() {
    let dir = tempfile::tempdir().expect("created");
    let dir = dir.path();
    create_dir(dir.join("dst")).expect("created");
    for name in ["same", "other"] {
        write(dir.join(name), random_bytes(LARGE, 1)).expect("written");
    }
    let args = ["--resume", "same", "other", "dst"];
    assert!(cp(dir, &args).status.success());
    // Another file of equal length and time, such as a broken disk makes.
    let copy = std::fs::File::options().write(true).open(dir.join("dst/other")).expect("opened");
    copy.write_all_at(b"broken", 12345).expect("written");
    set_time_of(&dir.join("dst/other"), &dir.join("other"));
    let inode = |name: &str| std::fs::metadata(dir.join(name)).expect("looked at").ino();
    let before = inode("dst/same");
    assert!(cp(dir, &args).status.success());
    assert!(read(dir.join("dst/other")).expect("read") != read(dir.join("other")).expect("read"));
    let verifying = [&["--verify", "--receipt=receipt"], &args[..]].concat();
    let output = cp(dir, &verifying);
    assert!(output.status.success(), "{output:?}");
    assert!(read(dir.join("dst/other")).expect("read") == read(dir.join("other")).expect("read"));
    assert_eq!(inode("dst/same"), before, "it was complete");
    let lines = json_lines(&dir.join("receipt"));
    let methods: Vec<(String, bool)> = lines
        .iter()
        .filter(|line| line["record"] == "entry")
        .map(|line| (line["method"].to_string(), line["verified_xxh3_128"].is_string()))
        .collect();
    let expected = |method: &str| (format!("\"{method}\""), true);
    assert_eq!(methods, [expected("skipped"), expected("copied")], "{lines:?}");
}

/// In a directory that the run created nothing stale is looked for. What the run itself made goes as the file
/// gets its name.
#[test]
fn a_run_that_is_not_killed_leaves_nothing_of_its_own() {
    each_fs(|kind, dir| {
        create_dir(dir.join("s")).expect("created");
        write(dir.join("s/large"), random_bytes(5 << 20, 1)).expect("written");
        for args in [
            &["-a", "--resume", "-T", "s", "new"][..],
            &["-a", "--resume", "-T", "s", "new"],
            &["-a", "--resume", "s", "marked"],
            &["-a", "--resume", "s/large", "file"],
            &["-r", "--resume", "-T", "s", "new"],
        ] {
            let output = cp(dir, args);
            assert!(output.status.success(), "{kind} {args:?}: {output:?}");
            assert_eq!(leftovers(dir), [""; 0], "{kind} {args:?}");
        }
    });
}

/// The run that made the copy may not have been able to set them.
#[test]
fn a_complete_file_gets_the_attributes_that_it_does_not_have() {
    let dir = tempfile::tempdir().expect("created");
    let (src, dst) = (dir.path().join("src"), dir.path().join("dst"));
    create_dir(&src).expect("created");
    write(src.join("f"), "content").expect("written");
    std::fs::set_permissions(src.join("f"), PermissionsExt::from_mode(0o640)).expect("mode set");
    let flags = rustix::fs::XattrFlags::empty();
    if rustix::fs::setxattr(src.join("f"), "user.a", b"value", flags).is_err() {
        return testfs::skip(&testfs::test_name(), "no extended attributes here");
    }
    let args = ["-aT", "--resume", "src", "dst"];
    assert!(cp(dir.path(), &args).status.success());
    let copy = dst.join("f");
    let inode = std::fs::metadata(&copy).expect("looked at").ino();
    rustix::fs::removexattr(&copy, "user.a").expect("removed");
    std::fs::set_permissions(&copy, PermissionsExt::from_mode(0o666)).expect("mode set");
    assert!(cp(dir.path(), &args).status.success());
    let now = std::fs::metadata(&copy).expect("looked at");
    assert_eq!((now.ino(), now.mode() & 0o777), (inode, 0o640));
    let mut value = [0; 9];
    let len = rustix::fs::getxattr(&copy, "user.a", &mut value).expect("there");
    assert_eq!(&value[..len], b"value");
    // What an option keeps, and a file of another time, stays as it is.
    for (option, seconds) in [("-n", 0), ("-u", 60)] {
        std::fs::set_permissions(&copy, PermissionsExt::from_mode(0o666)).expect("mode set");
        let time = now.modified().expect("a time") + Duration::from_secs(seconds);
        File::open(&copy).and_then(|file| file.set_modified(time)).expect("its time");
        assert!(cp(dir.path(), &[&[option], &args[..]].concat()).status.success());
        let found = std::fs::metadata(&copy).expect("looked at");
        assert_eq!(found.modified().expect("a time"), time, "{option}");
        assert_eq!(found.mode() & 0o777, 0o666, "{option}");
    }
}
