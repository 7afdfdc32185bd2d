//! `cp --resume` removes stale partial files and journals also if the next run has another entry at
//! their name, and removes no other file.

use std::fs::{create_dir, read, remove_file, write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::LazyLock;
use std::time::Duration;

use rustix::fs::{FlockOperation, XattrFlags, flock, getxattr, setxattr};
use rustix::io::Errno;
use testfs::{Costs, FuseFs, each_fs, random_bytes, set_time_of};

use crate::{HAULAGE, cp, haulage_cp, leftovers};

const LARGE: usize = 24 << 20;

fn part(dir: &Path) -> PathBuf {
    dir.join(".b.haulage-part")
}

fn journal(dir: &Path) -> PathBuf {
    dir.join(".b.haulage-journal")
}

/// The files that a killed run left: read from a run that was killed during a copy.
struct Left {
    part: Vec<u8>,
    journal: Vec<u8>,
}

/// Kills a copy of `a` to `b` that has recorded something.
fn kill_a_copy(dir: &Path) {
    kill_when_recorded(dir, &["--resume", "--reflink=never", "a", "b"], dir);
}

/// Kills a copy with these arguments, of which the whole would take a second, when its journal in `dst`
/// has records.
fn kill_when_recorded(dir: &Path, args: &[&str], dst: &Path) {
    let mut child = haulage_cp(dir, args).arg("--limit-rate=24M").spawn().expect("haulage runs");
    let journal_bytes = || {
        let name = leftovers(dst).into_iter().find(|name| name.ends_with("journal"))?;
        Some(std::fs::metadata(dst.join(name)).ok()?.len())
    };
    while journal_bytes().is_none_or(|bytes| bytes < 150) {
        assert!(child.try_wait().expect("a child").is_none(), "it was too quick");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("a signal");
    child.wait().expect("it has ended");
}

static LEFT: LazyLock<Left> = LazyLock::new(|| {
    let dir = tempfile::tempdir().expect("created");
    let dir = dir.path();
    write(dir.join("a"), random_bytes(LARGE, 1)).expect("written");
    kill_a_copy(dir);
    let read = |path| read(path).expect("it was left");
    Left { part: read(part(dir)), journal: read(journal(dir)) }
});

impl Left {
    fn put(&self, dir: &Path) {
        self.put_with_mode(dir, 0o600);
    }

    /// The mode is another one if the run was killed between the change of the mode and the rename.
    fn put_with_mode(&self, dir: &Path, part_mode: u32) {
        for (path, content) in [(part(dir), &self.part), (journal(dir), &self.journal)] {
            write(&path, content).expect("written");
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).expect("mode set");
        }
        std::fs::set_permissions(part(dir), PermissionsExt::from_mode(part_mode))
            .expect("mode set");
    }
}

/// Makes a source at the first path, and perhaps a file at the second, the destination.
type Prepare = fn(&Path, &Path);

fn large(src: &Path, _: &Path) {
    write(src, random_bytes(LARGE, 1)).expect("written");
}

const CASES: [(&str, &str, Prepare); 9] = [
    ("a symbolic link to the source", "-s", large),
    ("a hard link to the source", "-l", large),
    ("attributes alone", "--attributes-only", large),
    ("a source that is a symbolic link", "-P", |src, _| {
        symlink("anywhere", src).expect("linked");
    }),
    ("a source that is a directory", "-p", |src, _| create_dir(src).expect("created")),
    ("a source that is short", "-p", |src, _| write(src, "short").expect("written")),
    ("a source that is short, and copied", "-p", |src, dst| {
        for path in [src, dst] {
            write(path, "short").expect("written");
        }
        set_time_of(dst, src);
    }),
    ("a newer destination", "-u", |src, dst| {
        large(src, dst);
        write(dst, "newer").expect("written");
    }),
    ("a destination that is a symbolic link", "-p", |src, dst| {
        large(src, dst);
        write(dst.with_file_name("behind"), "old").expect("written");
        symlink("behind", dst).expect("linked");
    }),
];

#[test]
fn a_stale_partial_file_is_removed_when_its_name_is_another_entry() {
    each_fs(|kind, dir| {
        let modes = [0o600, 0o644];
        let cases = CASES.iter().flat_map(|&case| modes.map(|mode| (case, mode)));
        for ((what, option, prepare), mode) in cases {
            let what = &format!("{what}, mode {mode:o}");
            let at = dir.join("named");
            create_dir(&at).expect("created");
            prepare(&at.join("a"), &at.join("b"));
            LEFT.put_with_mode(&at, mode);
            let output = cp(&at, &["-r", "--resume", "--reflink=never", option, "a", "b"]);
            assert!(output.status.success(), "{kind} {what}: {output:?}");
            assert!(at.join("b").symlink_metadata().is_ok(), "{kind} {what}");
            assert_eq!(leftovers(&at), [""; 0], "{kind} {what}");
            std::fs::remove_dir_all(&at).expect("removed");

            if option == "-s" {
                continue;
            }
            for name in ["src", "dst"] {
                create_dir(dir.join(name)).expect("created");
            }
            prepare(&dir.join("src/b"), &dir.join("dst/b"));
            LEFT.put_with_mode(&dir.join("dst"), mode);
            // A link inside a directory is followed if it is older than the run.
            std::thread::sleep(Duration::from_millis(20));
            let options = ["-r", "--resume", "--reflink=never", option];
            let output = cp(dir, &[&options[..], &["-T", "src", "dst"]].concat());
            assert!(output.status.success(), "{kind} {what}, in a tree: {output:?}");
            assert!(dir.join("dst/b").symlink_metadata().is_ok(), "{kind} {what}");
            assert_eq!(leftovers(&dir.join("dst")), [""; 0], "{kind} {what}, in a tree");
            for name in ["src", "dst"] {
                std::fs::remove_dir_all(dir.join(name)).expect("removed");
            }
        }
    });
}

/// A copy through a link is made beside the target of the link, where the run was killed after its rename, or
/// before the source became short.
#[test]
fn what_a_killed_run_left_beside_the_target_of_a_link_is_removed() {
    each_fs(|kind, dir| {
        for (what, src_len, is_complete) in
            [("complete", LARGE, true), ("short and complete", 9, true), ("short", 9, false)]
        {
            for args in [&["src/b", "dst/b"][..], &["-T", "src", "dst"]] {
                let what = format!("{kind} {what} {args:?}");
                for name in ["src", "dst", "target"] {
                    create_dir(dir.join(name)).expect("created");
                }
                let content = random_bytes(src_len, 1);
                let (src, target) = (dir.join("src/b"), dir.join("target/b"));
                write(&src, &content).expect("written");
                write(&target, if is_complete { &content[..] } else { b"old" }).expect("written");
                set_time_of(&target, &src);
                symlink("../target/b", dir.join("dst/b")).expect("linked");
                LEFT.put(&dir.join("target"));
                write(dir.join("target/.b.haulage-new"), "new").expect("written");
                // A link inside a directory is followed if it is older than the run.
                std::thread::sleep(Duration::from_millis(20));
                let options = ["-r", "--resume", "-p", "--reflink=never"];
                let output = cp(dir, &[&options[..], args].concat());
                assert!(output.status.success(), "{what}: {output:?}");
                assert!(dir.join("dst/b").is_symlink(), "{what}");
                assert!(read(&target).expect("read") == content, "{what}");
                assert_eq!(leftovers(&dir.join("target")), [""; 0], "{what}");
                for name in ["src", "dst", "target"] {
                    std::fs::remove_dir_all(dir.join(name)).expect("removed");
                }
            }
        }
    });
}

#[test]
fn a_stale_partial_file_beside_a_directory_is_removed() {
    let dir = tempfile::tempdir().expect("created");
    let dir = dir.path();
    large(&dir.join("a"), dir);
    create_dir(dir.join("b")).expect("created");
    LEFT.put(dir);
    let output = cp(dir, &["--resume", "a", "b"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(read(dir.join("b/a")).expect("read").len(), LARGE);
    assert_eq!(leftovers(dir), [""; 0]);
}

/// A run that was killed shortly before the rename had given it the attributes that the source had then.
#[test]
fn a_partial_file_of_an_earlier_source_gives_no_byte_and_no_attribute_to_the_copy() {
    let content = random_bytes(LARGE, 5);
    each_fs(|kind, dir| {
        write(dir.join("a"), &content).expect("written");
        LEFT.put(dir);
        let attribute = setxattr(part(dir), "user.earlier", b"value", XattrFlags::empty());
        if attribute == Err(Errno::OPNOTSUPP) {
            return;
        }
        attribute.expect("an attribute");
        let output = cp(dir, &["-a", "--resume", "--reflink=never", "a", "b"]);
        assert!(output.status.success(), "{kind}: {output:?}");
        assert!(read(dir.join("b")).expect("read") == content, "{kind}");
        let found = getxattr(dir.join("b"), "user.earlier", &mut [0; 8]);
        assert_eq!(found, Err(Errno::NODATA), "{kind}");
        assert_eq!(leftovers(dir), [""; 0], "{kind}");
    });
}

#[test]
fn partial_files_in_use_or_of_others_stay() {
    let dir = tempfile::tempdir().expect("created");
    let dir = dir.path();
    write(dir.join("a"), "short").expect("written");
    let both = [".b.haulage-journal", ".b.haulage-part"];
    let check = |what: &str, args: &[&str], stays: &[&str]| {
        let output = cp(dir, args);
        assert!(output.status.success(), "{what}: {output:?}");
        assert_eq!(read(dir.join("b")).expect("read"), b"short", "{what}");
        assert_eq!(leftovers(dir), stays, "{what}");
        for name in leftovers(dir).iter().map(String::as_str).chain(["b"]) {
            remove_file(dir.join(name)).expect("removed");
        }
    };
    let resume = ["--resume", "a", "b"];

    LEFT.put(dir);
    let held = std::fs::File::open(part(dir)).expect("the partial file");
    flock(&held, FlockOperation::LockExclusive).expect("a lock");
    check("another run is at it", &resume, &both);
    drop(held);

    LEFT.put(dir);
    check("no --resume", &["a", "b"], &both);
    LEFT.put(dir);
    check("--atomic", &["--atomic", "a", "b"], &both);

    LEFT.put(dir);
    for path in [part(dir), journal(dir)] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o644)).expect("mode set");
    }
    check("files that others may read", &resume, &both);

    LEFT.put(dir);
    remove_file(journal(dir)).expect("removed");
    check("data without a journal", &resume, &both[1..]);

    LEFT.put(dir);
    let open = std::fs::File::options().write(true).open(journal(dir)).expect("opened");
    open.write_all_at(b"anything", 0).expect("written");
    check("no journal of ours", &resume, &both);

    LEFT.put(dir);
    std::fs::File::options().write(true).open(part(dir)).expect("opened").set_len(0).expect("cut");
    remove_file(journal(dir)).expect("removed");
    check("an empty partial file", &resume, &[]);

    LEFT.put(dir);
    remove_file(part(dir)).expect("removed");
    check("a journal alone", &resume, &[]);

    for len in [0, 1, 7] {
        LEFT.put(dir);
        let open = std::fs::File::options().write(true).open(journal(dir)).expect("opened");
        open.set_len(len).expect("cut");
        check("the start of a journal", &resume, &[]);
    }

    // Files of the source, one of which has such a name.
    create_dir(dir.join("src")).expect("created");
    create_dir(dir.join("dst")).expect("created");
    LEFT.put(&dir.join("src"));
    write(dir.join("src/b"), "short").expect("written");
    for pass in 0..2 {
        let output = cp(dir, &["-a", "--resume", "-T", "src", "dst"]);
        assert!(output.status.success(), "{pass}: {output:?}");
        assert_eq!(leftovers(&dir.join("dst")), both, "{pass}");
    }
}

/// Where modes are kept, others may have written what they could write.
#[test]
fn a_partial_file_that_is_not_private_is_not_continued() {
    each_fs(|kind, dir| {
        large(&dir.join("a"), dir);
        for (mode, uid, is_continued) in [
            (0o600, None, true),
            (0o644, None, false),
            (0o660, None, false),
            (0o600, testfs::is_root().then_some(12345), false),
        ] {
            if mode == 0o600 && uid.is_none() && !is_continued {
                testfs::skip(&testfs::test_name(), "only root may give a file to another user");
                continue;
            }
            kill_a_copy(dir);
            std::fs::set_permissions(part(dir), PermissionsExt::from_mode(mode)).expect("mode set");
            std::os::unix::fs::chown(part(dir), uid, None).expect("an owner");
            // Open, so that no other file gets its number.
            let partial = std::fs::File::open(part(dir)).expect("the partial file");
            let output = cp(dir, &["--resume", "--reflink=never", "a", "b"]);
            assert!(output.status.success(), "{kind} {mode:o} {uid:?}: {output:?}");
            let copy = std::fs::metadata(dir.join("b")).expect("looked at");
            let was_continued = copy.ino() == partial.metadata().expect("its state").ino();
            assert_eq!(was_continued, is_continued, "{kind} {mode:o} {uid:?}");
            assert_eq!(leftovers(dir), [""; 0], "{kind} {mode:o} {uid:?}");
            remove_file(dir.join("b")).expect("removed");
        }
    });
}

/// Runs haulage where no file may be longer than so many KiB.
fn run_limited(dir: &Path, kib: u32, args: &[&str]) -> Output {
    let script = format!("trap '' XFSZ; ulimit -f {kib}; exec \"$0\" cp \"$@\"");
    let mut command = testfs::command("bash");
    command.args(["-c", &script, HAULAGE]).args(args).current_dir(dir).output().expect("a shell")
}

#[test]
fn nothing_is_left_of_a_copy_that_is_too_long_for_the_file_system() {
    each_fs(|kind, dir| {
        large(&dir.join("a"), dir);
        let sparse = std::fs::File::create(dir.join("sparse")).expect("created");
        sparse.set_len(5 << 30).expect("length set");
        for args in [
            &["--resume", "--reflink=never", "a", "b"][..],
            &["--resume", "--reflink=never", "--jobs=1", COUNTED, "a", "b"],
            &["--resume", "--reflink=never", "sparse", "b"],
        ] {
            let output = run_limited(dir, 9000, args);
            assert_eq!(output.status.code(), Some(1), "{kind} {args:?}: {output:?}");
            let said = testfs::stderr(&output);
            assert!(said.contains("File too large"), "{kind} {args:?}: {said}");
            assert_eq!(leftovers(dir), [""; 0], "{kind} {args:?}");
            assert!(!dir.join("b").exists(), "{kind} {args:?}");
        }
    });
}

const COUNTED: &str = "--engine=read_write:256K@2";

/// A full disk may have space later.
#[test]
fn what_a_full_disk_ended_is_continued() {
    let Some(full) = FuseFs::mount(Costs { full_after_writes: Some(100), ..Costs::default() })
    else {
        return;
    };
    let dir = full.path();
    let src = tempfile::tempdir().expect("created");
    large(&src.path().join("a"), dir);
    let src = src.path().join("a");
    let output = cp(dir, &["--resume", src.to_str().expect("UTF-8"), "b"]);
    let said = testfs::stderr(&output);
    assert!(said.contains("No space left on device"), "{said}");
    assert_eq!(leftovers(dir), [".b.haulage-journal", ".b.haulage-part"]);
}

/// A hole that could not be made is not in the copy.
#[test]
fn the_bytes_of_an_incomplete_copy_are_those_that_it_has() {
    each_fs(|kind, dir| {
        let mib = random_bytes(1 << 20, 2);
        for (what, at) in
            [("no data", None), ("data at the start", Some(0)), ("a hole", Some(2 << 20))]
        {
            let src = std::fs::File::create(dir.join("a")).expect("created");
            src.set_len(5 << 30).expect("length set");
            at.map_or(Ok(()), |at| src.write_all_at(&mib, at)).expect("written");
            for sparse in ["auto", "always"] {
                let options = ["--reflink=never", "--receipt=receipt", "a", "b"];
                let option = format!("--sparse={sparse}");
                let args = [&[&*option], &options[..]].concat();
                let output = run_limited(dir, 9000, &args);
                let said = testfs::stderr(&output);
                let bytes = std::fs::metadata(dir.join("b")).expect("a part").len();
                let due = format!("'b' is incomplete: {bytes} of 5368709120 bytes");
                assert!(said.contains(&due), "{kind} {what} {option}: {said}");
                let entry = &testfs::json_lines(&dir.join("receipt"))[0];
                let sum = ["data_bytes", "hole_bytes"].map(|key| entry[key].as_u64().unwrap_or(0));
                assert_eq!(sum.iter().sum::<u64>(), bytes, "{kind} {what} {option}: {entry}");
                remove_file(dir.join("b")).expect("removed");
                remove_file(dir.join("receipt")).expect("removed");
            }
        }
    });
}

#[test]
fn a_marker_that_cannot_be_written_is_not_left() {
    let dir = tempfile::tempdir().expect("created");
    create_dir(dir.path().join("src")).expect("created");
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$0\" cp -r --resume src b";
    let mut command = testfs::command("sh");
    command.args(["-c", script, HAULAGE]).current_dir(dir.path());
    let output = command.output().expect("a shell");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = testfs::stderr(&output);
    assert!(said.contains("cannot create directory 'b': File too large"), "{said}");
    assert_eq!(leftovers(dir.path()), [""; 0]);
}

/// The other run has given it its mode, and is about to rename it. It would rename whatever has the name then.
#[test]
fn a_partial_file_that_another_run_is_about_to_rename_stays_and_the_copy_is_made() {
    each_fs(|kind, dir| {
        let content = random_bytes(LARGE, 1);
        write(dir.join("a"), &content).expect("written");
        LEFT.put_with_mode(dir, 0o644);
        let held = std::fs::File::open(part(dir)).expect("the partial file");
        flock(&held, FlockOperation::LockExclusive).expect("a lock");
        let output = cp(dir, &["--resume", "--reflink=never", "a", "b"]);
        assert!(output.status.success(), "{kind}: {output:?}");
        assert!(read(dir.join("b")).expect("read") == content, "{kind}");
        let named = std::fs::metadata(part(dir)).expect("the partial file is there");
        let ino = held.metadata().expect("its state").ino();
        assert_eq!(named.ino(), ino, "{kind}");
        assert!(read(part(dir)).expect("read") == LEFT.part, "{kind}");
        assert!(read(journal(dir)).expect("read") == LEFT.journal, "{kind}");
    });
}

#[test]
fn a_directory_at_the_name_of_a_partial_file_stays_and_the_copy_is_made() {
    each_fs(|kind, dir| {
        let content = random_bytes(LARGE, 1);
        write(dir.join("a"), &content).expect("written");
        for name in [part(dir), journal(dir)] {
            create_dir(&name).expect("created");
            write(name.join("something"), "").expect("written");
            let output = cp(dir, &["--resume", "--reflink=never", "a", "b"]);
            assert!(output.status.success(), "{kind} {name:?}: {output:?}");
            assert!(read(dir.join("b")).expect("read") == content, "{kind} {name:?}");
            assert!(name.join("something").exists(), "{kind} {name:?}");
            assert_eq!(leftovers(dir).len(), 1, "{kind} {name:?}");
            std::fs::remove_dir_all(name).expect("removed");
            remove_file(dir.join("b")).expect("removed");
        }
        // The marker of an incomplete directory has such a name as well.
        create_dir(dir.join("src")).expect("created");
        create_dir(journal(dir)).expect("created");
        let output = cp(dir, &["-r", "--resume", "src", "b"]);
        assert!(output.status.success() && dir.join("b").is_dir(), "{kind}: {output:?}");
    });
}

/// `--atomic` alone was killed at its rename. The next run may have no temporary of its own.
#[test]
fn a_stale_temporary_is_removed_by_every_way_to_complete_a_copy() {
    each_fs(|kind, dir| {
        for (what, len, old_len) in [
            ("made from a partial file", LARGE, 10),
            ("cloned or made by a temporary", 9000, 10),
            ("complete", 9000, 9000),
            ("large and complete", LARGE, LARGE),
        ] {
            for args in [&["src/a", "dst/a"][..], &["-T", "src", "dst"], &["src/a", "dst"]] {
                for name in ["src", "dst"] {
                    create_dir(dir.join(name)).expect("created");
                }
                let (src, dst) = (dir.join("src/a"), dir.join("dst/a"));
                write(&src, random_bytes(len, 1)).expect("written");
                write(&dst, random_bytes(old_len, 1)).expect("written");
                set_time_of(&dst, &src);
                let left = dir.join("dst/.a.haulage-new");
                write(&left, random_bytes(len, 2)).expect("written");
                // In a file system without locks the temporary has to be older than the run.
                std::thread::sleep(Duration::from_millis(20));
                let output = cp(dir, &[&["-a", "--resume"], args].concat());
                assert!(output.status.success(), "{kind} {what} {args:?}: {output:?}");
                assert!(
                    read(&dst).expect("read") == random_bytes(len, 1),
                    "{kind} {what} {args:?}"
                );
                assert_eq!(leftovers(&dir.join("dst")), [""; 0], "{kind} {what} {args:?}");
                for name in ["src", "dst"] {
                    std::fs::remove_dir_all(dir.join(name)).expect("removed");
                }
            }
        }
    });
}

/// The names beside a long name are too long for it, and hold its hash.
#[test]
fn a_killed_copy_of_a_file_with_a_long_name_is_continued_and_leaves_nothing() {
    let name = "n".repeat(255);
    let content = random_bytes(LARGE, 1);
    each_fs(|kind, dir| {
        for name in ["src", "dst"] {
            create_dir(dir.join(name)).expect("created");
        }
        write(dir.join("src").join(&name), &content).expect("written");
        let args = ["-r", "--resume", "--reflink=never", "-T", "src", "dst"];
        let dst = dir.join("dst");
        kill_when_recorded(dir, &args, &dst);
        // As a run with `--atomic` leaves it that is killed at its rename.
        let part =
            leftovers(&dst).into_iter().find(|name| name.ends_with("part")).expect("it is left");
        write(dst.join(part.replace("haulage-part", "haulage-new")), "new").expect("written");
        // In a file system without locks the temporary has to be older than the run.
        std::thread::sleep(Duration::from_millis(20));
        let output = cp(dir, &args);
        assert!(output.status.success(), "{kind}: {output:?}");
        assert!(read(dst.join(&name)).expect("read") == content, "{kind}");
        assert_eq!(leftovers(&dst), [""; 0], "{kind}");
        for name in ["src", "dst"] {
            std::fs::remove_dir_all(dir.join(name)).expect("removed");
        }
    });
}

/// What another source has under the name of a temporary is a file like any other.
#[test]
fn a_copied_file_with_the_name_of_a_temporary_stays() {
    let dir = tempfile::tempdir().expect("created");
    let dir = dir.path();
    for name in ["one", "two", "dst"] {
        create_dir(dir.join(name)).expect("created");
    }
    write(dir.join("one/.a.haulage-new"), "one").expect("written");
    write(dir.join("two/a"), "two").expect("written");
    for sources in [["one/.", "two/."], ["two/.", "one/."], ["one/.a.haulage-new", "two/a"]] {
        for _ in 0..2 {
            let output = cp(dir, &["-a", "--resume", "--jobs=1", sources[0], sources[1], "dst"]);
            assert!(output.status.success(), "{sources:?}: {output:?}");
            assert!(dir.join("dst/a").exists(), "{sources:?}");
            assert!(dir.join("dst/.a.haulage-new").exists(), "{sources:?}");
        }
    }
}
