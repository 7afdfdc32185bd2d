//! Copies where the device and inode number of a file do not tell what it is: as GNU cp makes them.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Output;

use testfs::{Costs, Lies, ServedFs, SlowFs, names_in, stderr, stdout};

fn cp(args: &[&str], paths: &[&Path]) -> Output {
    let mut command = testfs::command(env!("CARGO_BIN_EXE_haulage"));
    command.arg("cp").args(args).args(paths).output().expect("haulage runs")
}

/// Arguments, of which `STORE` and `MOUNT` stand for the directories.
fn arguments(text: &str) -> impl Fn(&Path, &Path) -> Vec<OsString> {
    let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    move |store, mount| {
        let of = |word: &String| {
            let (store, mount) = (store.display().to_string(), mount.display().to_string());
            word.replace("STORE", &store).replace("MOUNT", &mount).into()
        };
        words.iter().map(of).collect()
    }
}

/// File systems that give each name of a file a number of its own.
const BY_NAME: &[(&str, &str)] =
    &[("mergerfs", "-o inodecalc=path-hash STORE MOUNT"), ("unionfs", "-o cow STORE=RW MOUNT")];

/// A tree with two files of two names each.
fn make_linked(dir: &Path) {
    std::fs::create_dir_all(dir.join("sub")).expect("directories");
    for (content, names) in [("one", ["a", "sub/b"]), ("three", ["c", "d"])] {
        let [first, second] = names.map(|name| dir.join(name));
        std::fs::write(&first, content).expect("a file");
        std::fs::hard_link(&first, &second).expect("a link");
    }
}

fn inode(path: &Path) -> u64 {
    std::fs::symlink_metadata(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())).ino()
}

/// Fails the test unless the tree is that of [`make_linked`], with its links, in the directory that is shown.
fn check_linked(what: &str, dir: &Path) {
    for (content, first, second) in [("one", "a", "sub/b"), ("three", "c", "d")] {
        let [first, second] = [first, second].map(|name| dir.join(name));
        let read = std::fs::read_to_string(&second).expect("the file");
        assert_eq!(read, content, "{what}");
        assert_eq!(inode(&first), inode(&second), "{what}: {} is no link", second.display());
    }
    assert_eq!(names_in(dir), ["a", "c", "d", "sub"], "{what}");
}

#[test]
fn hard_links_are_kept_where_each_name_has_its_own_number() {
    let home = tempfile::tempdir().expect("a directory");
    let src = home.path().join("src");
    make_linked(&src);
    for (program, args) in BY_NAME {
        for options in
            [&["-a"][..], &["-au"], &["-a", "--remove-destination"], &["-a", "--jobs=1"], &["-aL"]]
        {
            let Some(served) = ServedFs::mount(program, arguments(args)) else { break };
            for run in 1..=2 {
                let what = format!("{program} {options:?} {run}");
                let dst = served.path().join("dst");
                let output = cp(&[options, &["-T"]].concat(), &[&src, &dst]);
                assert!(output.status.success(), "{what}: {}", stderr(&output));
                check_linked(&what, &served.store().join("dst"));
            }
            let (old, new) = (served.path().join("dst"), served.path().join("linked"));
            let output = cp(&["-al", "-T"], &[&old, &new]);
            assert!(output.status.success(), "{program} -al: {}", stderr(&output));
            check_linked("-al", &served.store().join("linked"));
            let same = ["dst", "linked"].map(|dir| inode(&served.store().join(dir).join("a")));
            assert_eq!(same[0], same[1], "{program} -al");
        }
    }
}

/// A copy that gets its name when it is complete has another number by then. It is linked, or it counts as a loss.
#[test]
fn a_hard_link_that_is_not_kept_is_in_the_receipt() {
    let home = tempfile::tempdir().expect("a directory");
    let src = home.path().join("src");
    make_linked(&src);
    for (program, args) in BY_NAME {
        for option in ["--atomic", "--resume"] {
            let Some(served) = ServedFs::mount(program, arguments(args)) else { break };
            let dst = served.path().join("dst");
            let output = cp(&["-a", option, "--jobs=1", "--receipt=-", "-T"], &[&src, &dst]);
            let what = format!("{program} {option}");
            assert!(output.status.success(), "{what}: {}", stderr(&output));
            let links = served.store().join("dst");
            let kept = [("a", "sub/b"), ("c", "d")]
                .iter()
                .filter(|(a, b)| inode(&links.join(a)) == inode(&links.join(b)))
                .count();
            let lost = stdout(&output).matches(r#""attribute":"links""#).count();
            assert_eq!(kept + lost, 2, "{what}: {}", stdout(&output));
        }
    }
}

/// A file system with a tree at `src`, of which it lies from now on.
fn lying(lies: Lies) -> Option<SlowFs> {
    let served = SlowFs::mount(Costs::default())?;
    make_linked(&served.path().join("src"));
    served.lie(lies);
    Some(served)
}

#[test]
fn numbers_that_change_at_each_look_lose_no_file() {
    let home = tempfile::tempdir().expect("a directory");
    let src = home.path().join("src");
    make_linked(&src);
    for options in [&["-a"][..], &["-r"], &["-a", "--remove-destination"], &["-a", "--atomic"]] {
        let lies = Lies { changing_inodes: true, ..Lies::default() };
        let Some(served) = lying(lies) else { return };
        let dst = served.path().join("dst");
        for run in 1..=2 {
            let output = cp(&[options, &["-T"]].concat(), &[&src, &dst]);
            let what = format!("{options:?} {run}");
            assert!(output.status.success(), "{what}: {}", stderr(&output));
            for (name, content) in [("a", "one"), ("sub/b", "one"), ("c", "three"), ("d", "three")]
            {
                let path = dst.join(name);
                assert_eq!(std::fs::read_to_string(&path).ok().as_deref(), Some(content), "{what}");
                let names = std::fs::metadata(&path).expect("the file").nlink();
                // The test has looked at no file that another process could have exchanged.
                let due = if options[0] == "-a" { 2 } else { 1 };
                assert_eq!(names, due, "{what}: {name}");
            }
        }
    }
}

#[test]
fn one_number_for_all_files_makes_no_file_a_link_to_another() {
    let lies = || Lies { one_inode: true, ..Lies::default() };
    for options in [&["-a"][..], &["-a", "--jobs=1"], &["-a", "--atomic"]] {
        let Some(served) = lying(lies()) else { return };
        let home = tempfile::tempdir().expect("a directory");
        let copy = home.path().join("copy");
        let output = cp(&[options, &["-T"]].concat(), &[&served.path().join("src"), &copy]);
        assert!(output.status.success(), "{options:?}: {}", stderr(&output));
        // And onto such a file system, over old files.
        let dst = served.path().join("dst");
        served.lie(Lies::default());
        std::fs::create_dir_all(dst.join("sub")).expect("directories");
        for name in ["a", "sub/b", "c", "d"] {
            std::fs::write(dst.join(name), "old").expect("a file");
        }
        served.lie(lies());
        let output = cp(&[options, &["-T"]].concat(), &[&copy, &dst]);
        assert!(output.status.success(), "{options:?}: {}", stderr(&output));
        for dir in [&copy, &dst] {
            for (name, content) in [("a", "one"), ("sub/b", "one"), ("c", "three"), ("d", "three")]
            {
                let read = std::fs::read_to_string(dir.join(name));
                assert_eq!(read.ok().as_deref(), Some(content), "{options:?}: {name}");
            }
        }
    }
}

#[test]
fn a_hard_link_of_the_source_with_another_number_is_not_written_to() {
    let content = testfs::random_bytes(100_000, 3);
    for (program, args) in BY_NAME {
        let Some(served) = ServedFs::mount(program, arguments(args)) else { continue };
        let at = |name: &str| served.path().join(name);
        std::fs::write(at("a"), &content).expect("a file");
        std::fs::hard_link(at("a"), at("b")).expect("a link");
        for option in ["--preserve=mode", "-f", "-p", "--sparse=always"] {
            let output = cp(&[option], &[&at("a"), &at("b")]);
            let said = stderr(&output);
            assert!(said.contains("are the same file"), "{program} {option}: {said}");
            assert!(std::fs::read(at("a")).expect("the source") == content, "{program} {option}");
        }
        // A copy of the same length and time is another file.
        for option in ["-p", "-f"] {
            let output = cp(&[option], &[&at("a"), &at("copy")]);
            assert!(output.status.success(), "{program} {option}: {}", stderr(&output));
        }
    }
}
