//! `cp --resume` removes stale partial files and journals also if the next run has another entry at
//! their name, and removes no other file.

use std::fs::{File, metadata, read, remove_dir_all, remove_file, set_permissions, write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::LazyLock;
use std::time::Duration;

use rustix::fs::{
    FlockOperation, IFlags, XattrFlags, flock, getxattr, ioctl_getflags, ioctl_setflags, setxattr,
};
use rustix::io::Errno;
use testfs::{Costs, FuseFs, Lies, each_fs, names_in, random_bytes, skip, test_name};

use crate::{
    check_content, check_failed, copy, cp, dir_with, fixture, haulage_cp, leftovers, shell,
};

const LARGE: usize = 24 << 20;

/// The item of a fixture for a source of that length.
const A: &str = "a#24M:1";

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
    kill_when_recorded(dir, RESUME_A_B, dir);
}

const RESUME_A_B: &str = "--resume --reflink=never a b";

/// Kills a copy with these arguments, of which the whole would take a second, when its journal in `dst`
/// has records.
fn kill_when_recorded(dir: &Path, line: &str, dst: &Path) {
    let mut child = haulage_cp(dir, line).arg("--limit-rate=24M").spawn().expect("haulage started");
    let journal_bytes = || {
        let name = leftovers(dst).into_iter().find(|name| name.ends_with("journal"))?;
        Some(metadata(dst.join(name)).ok()?.len())
    };
    while journal_bytes().is_none_or(|bytes| bytes < 150) {
        assert!(child.try_wait().expect("a child").is_none(), "it was too quick");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("signalled");
    child.wait().expect("ended");
}

static LEFT: LazyLock<Left> = LazyLock::new(|| {
    let dir = dir_with(A);
    kill_a_copy(dir.path());
    let read = |path| read(path).expect("read");
    Left { part: read(part(dir.path())), journal: read(journal(dir.path())) }
});

impl Left {
    /// The mode is another one if the run was killed between the change of the mode and the rename.
    fn put(&self, dir: &Path, part_mode: u32) {
        for (path, content, mode) in
            [(part(dir), &self.part, part_mode), (journal(dir), &self.journal, 0o600)]
        {
            write(&path, content).expect("written");
            set_permissions(path, PermissionsExt::from_mode(mode)).expect("mode set");
        }
    }
}

/// What an option leaves nothing to resume for, with the items of a source `src/b` and perhaps of its
/// destination `dst/b`.
const CASES: [(&str, &str); 9] = [
    ("-s", "src/b#9M:1"),
    ("-l", "src/b#9M:1"),
    ("--attributes-only", "src/b#9M:1"),
    ("-P", "src/b->anywhere"),
    ("-p", "src/b/"),
    ("-p", "src/b=short"),
    ("-p", "src/b=short t=1; dst/b=short t=1"),
    ("-u", "src/b#9M:1 t=1; dst/b=newer"),
    ("-p", "src/b#9M:1; dst/behind=old; dst/b->behind"),
];

#[test]
fn a_stale_partial_file_is_removed_when_its_name_is_another_entry() {
    each_fs(|kind, dir| {
        for (option, items) in CASES {
            let of_file = if option == "-s" { "{}/src/b dst/b" } else { "src/b dst/b" };
            for (mode, operands) in
                [(0o600, of_file), (0o644, of_file), (0o600, "-T src dst"), (0o644, "-T src dst")]
            {
                // Symbolic links to what a directory holds would need absolute names.
                if option == "-s" && operands != of_file {
                    continue;
                }
                let what = format!("{kind} {option} {items}, mode {mode:o}, {operands}");
                fixture::add("src/; dst/", dir);
                fixture::add(items, dir);
                LEFT.put(&dir.join("dst"), mode);
                // A link inside a directory is followed if it is older than the run.
                std::thread::sleep(Duration::from_millis(20));
                let operands = operands.replace("{}", &dir.display().to_string());
                copy(dir, &format!("-r --resume --reflink=never {option} {operands}"));
                assert!(dir.join("dst/b").symlink_metadata().is_ok(), "{what}");
                assert_eq!(leftovers(dir.join("dst")), [""; 0], "{what}");
                remove_all(dir, &["src", "dst"]);
            }
        }
    });
}

fn remove_all(dir: &Path, names: &[&str]) {
    for name in names {
        remove_dir_all(dir.join(name)).expect("removed");
    }
}

/// A copy through a link is made beside the target of the link, where the run was killed after its rename, or
/// before the source became short.
#[test]
fn what_a_killed_run_left_beside_the_target_of_a_link_is_removed() {
    each_fs(|kind, dir| {
        for (source, target) in [("#9M:1", "#9M:1"), ("#9:1", "#9:1"), ("#9:1", "=old")] {
            for operands in ["src/b dst/b", "-T src dst"] {
                let what = format!("{kind} {source} over {target}, {operands}");
                let items = format!("src/b{source} t=1; target/b{target} t=1");
                fixture::add(
                    &format!("{items}; target/.b.haulage-new=new; dst/b->../target/b"),
                    dir,
                );
                LEFT.put(&dir.join("target"), 0o600);
                // A link inside a directory is followed if it is older than the run.
                std::thread::sleep(Duration::from_millis(20));
                copy(dir, &format!("-r --resume -p --reflink=never {operands}"));
                assert!(dir.join("dst/b").is_symlink(), "{what}");
                let content = read(dir.join("src/b")).expect("read");
                check_content(dir.join("target/b"), content, &what);
                assert_eq!(leftovers(dir.join("target")), [""; 0], "{what}");
                remove_all(dir, &["src", "dst", "target"]);
            }
        }
    });
}

#[test]
fn a_stale_partial_file_beside_a_directory_is_removed() {
    let dir = dir_with("a#5M:1; b/");
    LEFT.put(dir.path(), 0o600);
    copy(&dir, "--resume a b");
    check_content(dir.path().join("b/a"), random_bytes(5 << 20, 1), "");
    assert_eq!(leftovers(&dir), [""; 0]);
}

/// A run that was killed shortly before the rename had given it the attributes that the source had then.
#[test]
fn a_partial_file_of_an_earlier_source_gives_no_byte_and_no_attribute_to_the_copy() {
    let content = random_bytes(LARGE, 5);
    each_fs(|kind, dir| {
        write(dir.join("a"), &content).expect("written");
        LEFT.put(dir, 0o600);
        let attribute = setxattr(part(dir), "user.earlier", b"value", XattrFlags::empty());
        if attribute == Err(Errno::OPNOTSUPP) {
            return;
        }
        attribute.expect("an attribute");
        copy(dir, "-a --resume --reflink=never a b");
        check_content(dir.join("b"), &content, kind);
        let found = getxattr(dir.join("b"), "user.earlier", &mut [0; 8]);
        assert_eq!(found, Err(Errno::NODATA), "{kind}");
        assert_eq!(leftovers(dir), [""; 0], "{kind}");
    });
}

#[test]
fn partial_files_in_use_or_of_others_stay() {
    let dir = dir_with("a=short");
    let dir = dir.path();
    let both = &[".b.haulage-journal", ".b.haulage-part"][..];
    let set_mode = |path: PathBuf| set_permissions(path, PermissionsExt::from_mode(0o644));
    let open = |path| File::options().write(true).open(path).expect("opened");
    let cut = |len| open(journal(dir)).set_len(len);
    let check =
        |what: &str, prepare: &dyn Fn() -> std::io::Result<()>, line: &str, stays: &[&str]| {
            LEFT.put(dir, 0o600);
            prepare().expect(what);
            copy(dir, line);
            check_content(dir.join("b"), "short", what);
            assert_eq!(leftovers(dir), stays, "{what}");
            for name in leftovers(dir).iter().map(String::as_str).chain(["b"]) {
                remove_file(dir.join(name)).expect("removed");
            }
        };
    let resume = "--resume a b";
    check("no --resume", &|| Ok(()), "a b", both);
    check("--atomic", &|| Ok(()), "--atomic a b", both);
    let open_to_others = || set_mode(part(dir)).and_then(|()| set_mode(journal(dir)));
    check("files that others may read", &open_to_others, resume, both);
    check("data without a journal", &|| remove_file(journal(dir)), resume, &both[1..]);
    let overwrite = || open(journal(dir)).write_all_at(b"anything", 0);
    check("no journal of ours", &overwrite, resume, both);
    let empty = || open(part(dir)).set_len(0).and_then(|()| remove_file(journal(dir)));
    check("an empty partial file", &empty, resume, &[]);
    check("a journal alone", &|| remove_file(part(dir)), resume, &[]);
    for len in [0, 1, 7] {
        check("the start of a journal", &|| cut(len), resume, &[]);
    }
    let held = std::cell::OnceCell::new();
    let lock = || {
        let file = held.get_or_init(|| File::open(part(dir)).expect("opened"));
        Ok(flock(file, FlockOperation::LockExclusive)?)
    };
    check("another run is at it", &lock, resume, both);

    // Files of the source, one of which has such a name.
    fixture::add("src/b=short; dst/", dir);
    LEFT.put(&dir.join("src"), 0o600);
    for pass in 0..2 {
        copy(dir, "-a --resume -T src dst");
        assert_eq!(leftovers(dir.join("dst")), both, "{pass}");
    }
}

/// Where modes are kept, others may have written what they could write.
#[test]
fn a_partial_file_that_is_not_private_is_not_continued() {
    each_fs(|kind, dir| {
        fixture::add(A, dir);
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
            set_permissions(part(dir), PermissionsExt::from_mode(mode)).expect("mode set");
            std::os::unix::fs::chown(part(dir), uid, None).expect("owner set");
            // Open, so that no other file gets its number.
            let partial = File::open(part(dir)).expect("opened");
            copy(dir, RESUME_A_B);
            let made = metadata(dir.join("b")).expect("looked at");
            let was_continued = made.ino() == partial.metadata().expect("looked at").ino();
            assert_eq!(was_continued, is_continued, "{kind} {mode:o} {uid:?}");
            assert_eq!(leftovers(dir), [""; 0], "{kind} {mode:o} {uid:?}");
            remove_file(dir.join("b")).expect("removed");
        }
    });
}

/// Runs haulage where no file may be longer than so many KiB.
fn run_limited(dir: &Path, kib: u32, line: &str) -> Output {
    let script = format!("trap '' XFSZ; ulimit -f {kib}; exec \"$0\" cp {line}");
    shell(dir, &script).output().expect("ran")
}

#[test]
fn nothing_is_left_of_a_copy_that_is_too_long_for_the_file_system() {
    each_fs(|kind, dir| {
        fixture::add(A, dir);
        fixture::add("sparse~5120M", dir);
        for words in ["a", "--jobs=1 --engine=read_write:256K@2 a", "sparse"] {
            let output = run_limited(dir, 9000, &format!("--resume --reflink=never {words} b"));
            check_failed(&output, "File too large", format_args!("{kind} {words}"));
            assert_eq!(leftovers(dir), [""; 0], "{kind} {words}");
            assert!(!dir.join("b").exists(), "{kind} {words}");
        }
    });
}

/// A full disk may have space later.
#[test]
fn what_a_full_disk_ended_is_continued() {
    let Some(full) = FuseFs::mount(Costs::default()) else { return };
    full.lie(Lies { full_at_write: Some(101), ..Lies::default() });
    let src = dir_with(A);
    let output = cp(full.path(), &format!("--resume {}/a b", src.path().display()));
    check_failed(&output, "No space left on device", "");
    assert_eq!(leftovers(full.path()), [".b.haulage-journal", ".b.haulage-part"]);
}

/// A hole that could not be made is not in the copy.
#[test]
fn the_bytes_of_an_incomplete_copy_are_those_that_it_has() {
    each_fs(|kind, dir| {
        let mib = random_bytes(1 << 20, 2);
        for (what, at) in
            [("no data", None), ("data at the start", Some(0)), ("a hole", Some(2 << 20))]
        {
            let src = File::create(dir.join("a")).expect("created");
            src.set_len(5 << 30).expect("length set");
            at.map_or(Ok(()), |at| src.write_all_at(&mib, at)).expect("written");
            for sparse in ["auto", "always"] {
                let what = format!("{kind} {what} {sparse}");
                let line = format!("--sparse={sparse} --reflink=never --receipt=receipt a b");
                let output = run_limited(dir, 9000, &line);
                let bytes = metadata(dir.join("b")).expect("looked at").len();
                let due = format!("'b' is incomplete: {bytes} of 5368709120 bytes");
                check_failed(&output, &due, &what);
                let entry = &testfs::json_lines(&dir.join("receipt"))[0];
                let sum = ["data_bytes", "hole_bytes"].map(|key| entry[key].as_u64().unwrap_or(0));
                assert_eq!(sum.iter().sum::<u64>(), bytes, "{what}: {entry}");
                remove_file(dir.join("b")).expect("removed");
                remove_file(dir.join("receipt")).expect("removed");
            }
        }
    });
}

#[test]
fn a_marker_that_cannot_be_written_is_not_left() {
    let dir = dir_with("src/");
    let output = run_limited(dir.path(), 0, "-r --resume src b");
    check_failed(&output, "cannot create directory 'b': File too large", "");
    assert_eq!(leftovers(&dir), [""; 0]);
}

#[test]
fn no_marker_is_left_of_a_directory_that_was_not_made() {
    let dir = dir_with("src/f=1; file=old; dangle->nothing");
    for (operands, said) in [
        ("src file", "cannot overwrite non-directory 'file'"),
        ("src dangle", "cannot overwrite non-directory 'dangle'"),
        ("--parents src new", "with --parents, the destination must be a directory"),
    ] {
        check_failed(&cp(&dir, &format!("-r --resume {operands}")), said, operands);
        assert_eq!(leftovers(&dir), [""; 0], "{operands}");
    }
}

/// The other run has given it its mode, and is about to rename it. It would rename whatever has the name then.
#[test]
fn a_partial_file_that_another_run_is_about_to_rename_stays_and_the_copy_is_made() {
    each_fs(|kind, dir| {
        fixture::add(A, dir);
        LEFT.put(dir, 0o644);
        let held = File::open(part(dir)).expect("opened");
        flock(&held, FlockOperation::LockExclusive).expect("a lock");
        copy(dir, RESUME_A_B);
        check_content(dir.join("b"), random_bytes(LARGE, 1), kind);
        let named = metadata(part(dir)).expect("the partial file is there");
        assert_eq!(named.ino(), held.metadata().expect("looked at").ino(), "{kind}");
        check_content(part(dir), &LEFT.part, kind);
        check_content(journal(dir), &LEFT.journal, kind);
    });
}

#[test]
fn a_directory_at_the_name_of_a_partial_file_stays_and_the_copy_is_made() {
    each_fs(|kind, dir| {
        fixture::add("a#5M:1", dir);
        for name in [".b.haulage-part", ".b.haulage-journal"] {
            fixture::add(&format!("{name}/something="), dir);
            copy(dir, RESUME_A_B);
            check_content(dir.join("b"), random_bytes(5 << 20, 1), format_args!("{kind} {name}"));
            assert!(dir.join(name).join("something").exists(), "{kind} {name}");
            assert_eq!(leftovers(dir), [name], "{kind}");
            remove_dir_all(dir.join(name)).expect("removed");
            remove_file(dir.join("b")).expect("removed");
        }
        // The marker of an incomplete directory has such a name as well.
        fixture::add("src/; .b.haulage-journal/", dir);
        copy(dir, "-r --resume src b");
        assert!(dir.join("b").is_dir(), "{kind}");
    });
}

#[test]
fn nothing_is_left_in_a_directory_that_keeps_every_name() {
    each_fs(|kind, dir| {
        fixture::add("new=new; large#5M:1; s/x=x; kept/f=old; kept/g=old", dir);
        let kept = File::open(dir.join("kept")).expect("opened");
        let flags = ioctl_getflags(&kept);
        if flags.and_then(|flags| ioctl_setflags(&kept, flags | IFlags::APPEND)).is_err() {
            return skip(&test_name(), "directories cannot be protected here");
        }
        let results = [
            "--atomic new kept/f",
            "-b --atomic new kept/g",
            "--resume large kept/f",
            "-r --resume s kept/s",
            "-lf new kept/f",
        ]
        .map(|line| cp(dir, line).status.code());
        ioctl_setflags(&kept, flags.expect("those that it had")).expect("as it was");
        assert_eq!(results, [1, 1, 1, 0, 1].map(Some), "{kind}");
        assert_eq!(names_in(&dir.join("kept")), ["f", "g", "s"], "{kind}");
    });
}

/// `--atomic` alone was killed at its rename. The next run may have no temporary of its own.
#[test]
fn a_stale_temporary_is_removed_by_every_way_to_complete_a_copy() {
    each_fs(|kind, dir| {
        // Made from a partial file; cloned or made by a temporary; complete; large and complete.
        for (len, old_len) in [("9M", "10"), ("9000", "10"), ("9000", "9000"), ("9M", "9M")] {
            for operands in ["src/a dst/a", "-T src dst", "src/a dst"] {
                let items = format!("src/a#{len}:1 t=1; dst/a#{old_len}:1 t=1");
                fixture::add(&format!("{items}; dst/.a.haulage-new#{len}:2"), dir);
                // In a file system without locks the temporary has to be older than the run.
                std::thread::sleep(Duration::from_millis(20));
                copy(dir, &format!("-a --resume {operands}"));
                let what = format!("{kind} {len} over {old_len}, {operands}");
                check_content(dir.join("dst/a"), read(dir.join("src/a")).expect("read"), &what);
                assert_eq!(leftovers(dir.join("dst")), [""; 0], "{what}");
                remove_all(dir, &["src", "dst"]);
            }
        }
    });
}

/// The names beside a long name are too long for it, and hold its hash.
#[test]
fn a_killed_copy_of_a_file_with_a_long_name_is_continued_and_leaves_nothing() {
    let name = "n".repeat(255);
    each_fs(|kind, dir| {
        fixture::add(&format!("src/{name}#24M:1; dst/"), dir);
        let line = "-r --resume --reflink=never -T src dst";
        let dst = dir.join("dst");
        kill_when_recorded(dir, line, &dst);
        // As a run with `--atomic` leaves it that is killed at its rename.
        let part = leftovers(&dst).into_iter().find(|name| name.ends_with("part")).expect("found");
        write(dst.join(part.replace("haulage-part", "haulage-new")), "new").expect("written");
        // In a file system without locks the temporary has to be older than the run.
        std::thread::sleep(Duration::from_millis(20));
        copy(dir, line);
        check_content(dst.join(&name), random_bytes(LARGE, 1), kind);
        assert_eq!(leftovers(&dst), [""; 0], "{kind}");
        remove_all(dir, &["src", "dst"]);
    });
}

/// What another source has under the name of a temporary or of a partial file is a file like any other.
#[test]
fn a_copied_file_with_the_name_of_a_temporary_stays() {
    let names = [".a.haulage-new", ".a.haulage-part", ".a.haulage-journal"];
    let others = names.map(|name| format!("one/{name}=one; one/s/{name}=one")).join("; ");
    let dir = dir_with(&format!("{others}; two/a#5M:1; two/s/a#5M:1; q/one/s/a=q"));
    let alone = names.map(|name| format!("one/{name}")).join(" ");
    for options in ["--resume", "--atomic"] {
        for (sources, top) in [
            ("one/. two/.", ""),
            ("two/. one/.", ""),
            ("one q/one", "one/s"),
            ("one/s two/s", "s"),
            (&format!("{alone} two/a"), ""),
        ] {
            let dst = dir.path().join("dst");
            std::fs::create_dir(&dst).expect("created");
            for again in [false, true] {
                copy(&dir, &format!("-a {options} --reflink=never --jobs=1 {sources} dst"));
                let what = format!("{options} {sources}, again {again}");
                let top = dst.join(top);
                assert!(top.join("a").exists(), "{what}");
                for name in names {
                    let content = read(top.join(name)).expect(name);
                    assert_eq!(content, b"one", "{what}: {name}");
                }
            }
            remove_all(dir.path(), &["dst"]);
        }
    }
}

/// Neither a source nor a file that haulage did not make is removed because of its name.
#[test]
fn a_file_that_only_has_the_name_of_a_temporary_stays() {
    let pair = "s/a=x; s/b==s/a; d/a=x; d/b=x; d/.a.haulage-new=mine; d/.b.haulage-new=mine";
    for (tree, line, kept) in [
        (".a.haulage-new=mine; a=old", "-sf .a.haulage-new a", &["new"][..]),
        (".a.haulage-new=mine; a=old", "-lf .a.haulage-new a", &["new"]),
        (".a.haulage-new=mine; a=old", "--atomic .a.haulage-new a", &["new"]),
        (".a.haulage-new=mine; l->.a.haulage-new; a=old", "--atomic l a", &["new"]),
        ("s#5M:1; .a.haulage-part=mine", "--resume s a", &["part"]),
        ("s#5M:1; .a.haulage-journal=mine", "--resume s a", &["journal"]),
        (
            "s#5M:1; .a.haulage-part=mine; .a.haulage-journal=mine",
            "--resume s a",
            &["part", "journal"],
        ),
        ("s/f=x; .a.haulage-journal=mine", "-r --resume s a", &["journal"]),
        (pair, "-a s/. d", &[]),
    ] {
        let dir = dir_with(tree);
        copy(&dir, &format!("--reflink=never {line}"));
        let names = kept.iter().map(|kind| format!(".a.haulage-{kind}"));
        let pair = ["d/.a.haulage-new", "d/.b.haulage-new"].map(str::to_owned);
        let names = if kept.is_empty() { pair.to_vec() } else { names.collect() };
        for name in names {
            let content = read(dir.path().join(&name)).expect(&name);
            assert_eq!(content, b"mine", "{line}: {name}");
        }
    }
    let dir = dir_with("x/a=new; d/a=old; d/.a.haulage-new=mine");
    check_failed(&cp(&dir, "--atomic x/a d/.a.haulage-new d"), "are the same file", "an operand");
    assert_eq!(read(dir.path().join("d/.a.haulage-new")).expect("read"), b"mine");
    let parts = [".a.haulage-part", ".a.haulage-journal"];
    for part in parts {
        let dir = dir_with(&format!("{part}#5M:1"));
        copy(&dir, &format!("--resume --reflink=never {part} a"));
        check_content(dir.path().join(part), random_bytes(5 << 20, 1), part);
    }
}

/// What an earlier run has copied from one operand is not taken for the copy of the file of another.
#[test]
fn of_two_operands_with_one_name_the_last_is_copied() {
    for earlier in ["", "; t/f=A t=5"] {
        let dir = dir_with(&format!("a/f=A t=5; b/f=B t=5; t/{earlier}"));
        copy(&dir, "-r --resume a/. b/. t");
        assert_eq!(read(dir.path().join("t/f")).expect("copied"), b"B", "{earlier}");
    }
}
