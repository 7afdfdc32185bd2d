//! Copies where the device and inode number of a file do not tell what it is: as GNU cp makes them.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Output;
use std::time::UNIX_EPOCH;

use rustix::io::Errno;
use testfs::{Costs, FuseFs, Lies, ServedFs, names_in, stderr, stdout};

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
        std::fs::write(&first, content).expect("written");
        std::fs::hard_link(&first, &second).expect("linked");
    }
}

fn inode(path: &Path) -> u64 {
    std::fs::symlink_metadata(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())).ino()
}

/// Fails the test unless the files are those of [`make_linked`].
fn check_contents(what: &str, dir: &Path) {
    for (name, content) in [("a", "one"), ("sub/b", "one"), ("c", "three"), ("d", "three")] {
        let read = std::fs::read_to_string(dir.join(name));
        assert_eq!(read.ok().as_deref(), Some(content), "{what}: {name}");
    }
}

/// Fails the test unless the tree is that of [`make_linked`], with its links, in the directory that is shown.
fn check_linked(what: &str, dir: &Path) {
    check_contents(what, dir);
    for (first, second) in [("a", "sub/b"), ("c", "d")] {
        let [first, second] = [first, second].map(|name| dir.join(name));
        assert_eq!(inode(&first), inode(&second), "{what}: {} is no link", second.display());
    }
    assert_eq!(names_in(dir), ["a", "c", "d", "sub"], "{what}");
}

#[test]
fn hard_links_are_kept_where_each_name_has_its_own_number() {
    let home = tempfile::tempdir().expect("created");
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
    let home = tempfile::tempdir().expect("created");
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

#[test]
fn a_file_is_copied_where_it_cannot_be_linked() {
    let home = tempfile::tempdir().expect("created");
    let src = home.path().join("src");
    make_linked(&src);
    for options in [&["-a"][..], &["-a", "--remove-destination"], &["-a", "--jobs=1"]] {
        let costs = Costs { no_hard_links: Some(Errno::PERM), ..Costs::default() };
        let Some(served) = FuseFs::mount(costs) else { return };
        let dst = served.path().join("dst");
        for run in 1..=2 {
            let output = cp(&[options, &["-T"]].concat(), &[&src, &dst]);
            let (what, said) = (format!("{options:?} {run}"), stderr(&output));
            assert_eq!(output.status.code(), Some(1), "{what}: {said}");
            assert_eq!(said.matches("cannot create hard link").count(), 2, "{what}: {said}");
            check_contents(&what, &dst);
        }
    }
}

/// A file system with a tree at `src`, of which it lies from now on.
fn lying(lies: Lies) -> Option<FuseFs> {
    let served = FuseFs::mount(Costs::default())?;
    make_linked(&served.path().join("src"));
    served.lie(lies);
    Some(served)
}

#[test]
fn numbers_that_change_at_each_look_lose_no_file() {
    let home = tempfile::tempdir().expect("created");
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
            check_contents(&what, &dst);
            for name in ["a", "sub/b", "c", "d"] {
                let names = std::fs::metadata(dst.join(name)).expect("the file").nlink();
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
        let home = tempfile::tempdir().expect("created");
        let copy = home.path().join("copy");
        let output = cp(&[options, &["-T"]].concat(), &[&served.path().join("src"), &copy]);
        assert!(output.status.success(), "{options:?}: {}", stderr(&output));
        // And onto such a file system, over old files.
        let dst = served.path().join("dst");
        served.lie(Lies::default());
        std::fs::create_dir_all(dst.join("sub")).expect("directories");
        for name in ["a", "sub/b", "c", "d"] {
            std::fs::write(dst.join(name), "old").expect("written");
        }
        served.lie(lies());
        let output = cp(&[options, &["-T"]].concat(), &[&copy, &dst]);
        assert!(output.status.success(), "{options:?}: {}", stderr(&output));
        for dir in [&copy, &dst] {
            check_contents(&format!("{options:?}"), dir);
        }
    }
}

/// A file system on which names that differ in case are one name; each spelling may have an inode number of its
/// own.
fn ignoring_case(spelled_inodes: bool) -> Option<FuseFs> {
    let served = FuseFs::mount(Costs { ignores_case: true, ..Costs::default() })?;
    served.lie(Lies { spelled_inodes, ..Lies::default() });
    Some(served)
}

#[test]
fn a_source_is_not_replaced_by_its_own_copy_under_another_spelling() {
    for options in [
        "",
        "-f",
        "-a",
        "-u",
        "--remove-destination",
        "-a --remove-destination",
        "-b",
        "--backup=numbered",
        "-bf",
        "--atomic",
        "--atomic --remove-destination",
        "--atomic -b",
        "-a --resume --remove-destination",
        "-s --remove-destination",
        "-l --remove-destination",
        "-al",
    ] {
        for (has_link, spelled) in [(false, false), (false, true), (true, false), (true, true)] {
            let Some(served) = ignoring_case(spelled) else { return };
            let at = |name: &str| served.path().join(name);
            std::fs::write(at("a"), "content").expect("written");
            if has_link {
                std::fs::hard_link(at("a"), at("link")).expect("linked");
            }
            let args: Vec<&str> = options.split_whitespace().collect();
            let output = cp(&args, &[&at("a"), &at("A")]);
            // A hard link of a file to itself is there already.
            if !["-l --remove-destination", "-al"].contains(&options) {
                let said = stderr(&output);
                assert!(said.contains("are the same file"), "{options} {has_link}: {said}");
                assert_eq!(output.status.code(), Some(1), "{options}");
            }
            let mut due = vec!["a".to_owned()];
            due.extend(has_link.then(|| "link".to_owned()));
            assert_eq!(names_in(served.path()), due, "{options}");
            assert_eq!(std::fs::read_to_string(at("a")).ok().as_deref(), Some("content"));
        }
    }
}

#[test]
fn a_hard_link_in_a_directory_that_ignores_case_is_replaced() {
    let Some(served) = ignoring_case(false) else { return };
    let at = |name: &str| served.path().join(name);
    std::fs::write(at("a"), "content").expect("written");
    for option in ["--remove-destination", "-b"] {
        std::fs::hard_link(at("a"), at("other")).expect("linked");
        let output = cp(&[option], &[&at("a"), &at("other")]);
        assert!(output.status.success(), "{option}: {}", stderr(&output));
        std::fs::remove_file(at("other")).expect("removed");
    }
}

#[test]
fn a_backup_does_not_take_the_name_of_the_source_in_another_spelling() {
    for spelled in [false, true] {
        let Some(served) = ignoring_case(spelled) else { return };
        let at = |name: &str| served.path().join(name);
        std::fs::write(at("a.BAK"), "source").expect("written");
        std::fs::write(at("a"), "old").expect("written");
        let output = cp(&["-b", "--suffix=.bak"], &[&at("a.BAK"), &at("a")]);
        assert_eq!(output.status.code(), Some(1), "{spelled}");
        assert!(stderr(&output).contains("might destroy source"), "{}", stderr(&output));
        assert_eq!(std::fs::read_to_string(at("a.BAK")).ok().as_deref(), Some("source"));
    }
}

#[test]
fn a_directory_is_not_copied_onto_itself_under_another_spelling() {
    for spelled in [false, true] {
        let Some(served) = ignoring_case(spelled) else { return };
        let at = |name: &str| served.path().join(name);
        std::fs::create_dir(at("Dir")).expect("created");
        std::fs::write(at("Dir/x"), "content").expect("written");
        let output = cp(&["-rT"], &[&at("Dir"), &at("dir")]);
        assert_eq!(output.status.code(), Some(1), "{spelled}");
        assert!(stderr(&output).contains("are the same file"), "{}", stderr(&output));
        assert_eq!(std::fs::read_to_string(at("Dir/x")).ok().as_deref(), Some("content"));
    }
}

/// The client of SMB numbers what is in a directory again for each spelling of the directory's name.
#[test]
fn a_source_is_not_replaced_through_another_spelling_of_its_directory() {
    for options in ["", "-a", "-af", "-u", "--remove-destination", "-ab", "--atomic", "--resume"] {
        let Some(served) = ignoring_case(true) else { return };
        let at = |name: &str| served.path().join(name);
        for dir in ["Dir/sub", "other/sub"] {
            std::fs::create_dir_all(at(dir)).expect("directories");
            std::fs::write(at(dir).join("x"), "content").expect("written");
        }
        let args: Vec<&str> = ["-rT"].into_iter().chain(options.split_whitespace()).collect();
        for (src, dst) in
            [("Dir/sub/x", "dir/sub/x"), ("dir/sub/x", "Dir/Sub/X"), ("Dir/sub", "dir/sub")]
        {
            let output = cp(&args, &[&at(src), &at(dst)]);
            let what = format!("{options} {src} {dst}: {}", stderr(&output));
            assert!(stderr(&output).contains("are the same file"), "{what}");
            assert_eq!(output.status.code(), Some(1), "{what}");
            assert_eq!(std::fs::read_to_string(at("Dir/sub/x")).ok().as_deref(), Some("content"));
            assert_eq!(names_in(&at("Dir/sub")), ["x"], "{what}");
        }
        for (src, dst) in [("Dir/sub/x", "other/sub/x"), ("Dir/sub", "other/sub")] {
            let output = cp(&args, &[&at(src), &at(dst)]);
            assert!(output.status.success(), "{options} {src} {dst}: {}", stderr(&output));
        }
    }
}

/// Two sources with one destination: the second is refused, whatever the options, and the first stays.
#[test]
fn of_two_sources_whose_names_differ_in_case_none_is_lost_silently() {
    let home = tempfile::tempdir().expect("created");
    let at = |name: &str| home.path().join(name);
    for dir in ["tree/Dir", "tree/dir", "dots/7", "dots/7."] {
        std::fs::create_dir_all(at(dir)).expect("directories");
    }
    let names = ["File", "file", "File.", "tree/Name", "tree/name", "tree/Dir/x", "tree/dir/x"];
    for name in names.into_iter().chain(["dots/Name.", "dots/Name", "dots/7/x", "dots/7./x"]) {
        std::fs::write(at(name), name).expect("written");
    }
    for options in ["", "-a", "-au", "--atomic", "-a --resume", "-a --remove-destination", "-ab"] {
        // Of each the first is the one that its directory lists first.
        for (sources, lost) in [
            (&["File", "file"][..], 1),
            (&["File.", "File"], 1),
            (&["dots/."], 2),
            (&["tree/."], 2),
            (&["tree"], 2),
            (&["tree/Dir", "tree/dir"], 1),
        ] {
            for (exists, spelled) in [(false, false), (false, true), (true, false), (true, true)] {
                let Some(served) = ignoring_case(spelled) else { return };
                if exists {
                    for name in ["FILE", "NAME"] {
                        let old = served.path().join(name);
                        std::fs::write(&old, "old").expect("written");
                        let old = std::fs::File::options().write(true).open(old);
                        old.and_then(|old| old.set_modified(UNIX_EPOCH)).expect("an old time");
                    }
                }
                let mut args: Vec<&str> = options.split_whitespace().collect();
                args.extend(["-r", "--jobs=1"]);
                let mut paths: Vec<_> = sources.iter().map(|name| at(name)).collect();
                paths.push(served.path().to_owned());
                let paths: Vec<&Path> = paths.iter().map(|path| &**path).collect();
                // The copy of the first is up to date then.
                for run in 1..=2 {
                    let output = cp(&args, &paths);
                    let what = format!("{options} {sources:?} {exists} {spelled} {run}");
                    // All that cp does not name is there.
                    let said = stderr(&output);
                    assert_eq!(output.status.code(), Some(1), "{what}: {said}");
                    let is_said = |line: &&str| {
                        line.contains("will not overwrite just-created")
                            || line.contains("File exists")
                    };
                    let (refused, others): (Vec<_>, Vec<_>) = said.lines().partition(is_said);
                    assert_eq!(refused.len(), lost, "{what}: {said}");
                    // The dot at the end of the first.
                    let is_of_name = |line: &&str| line.contains("cannot keep the name");
                    assert!(others.iter().all(is_of_name), "{what}: {said}");
                    let is_backup = |path: &Path| path.display().to_string().ends_with('~');
                    let contents = served.contents();
                    let kept = contents.iter().filter(|(path, content)| {
                        content.as_ref().is_some_and(|content| content != b"old")
                            && !is_backup(path)
                    });
                    assert_eq!(kept.count(), lost, "{what}: {contents:?}");
                }
            }
        }
    }
}

/// Operands whose directories have the same names are merged, as by GNU cp, where names are distinguished and
/// where they are not.
#[test]
fn the_same_name_twice_is_not_another_spelling() {
    let home = tempfile::tempdir().expect("created");
    for (dir, name) in [("one", "Name"), ("two", "Name"), ("two", "other")] {
        std::fs::create_dir_all(home.path().join(dir)).expect("created");
        std::fs::write(home.path().join(dir).join(name), dir).expect("written");
    }
    for ignores_case in [false, true] {
        let Some(served) = FuseFs::mount(Costs { ignores_case, ..Costs::default() }) else {
            return;
        };
        let sources = ["one/.", "two/."].map(|dir| home.path().join(dir));
        let output = cp(&["-r"], &[&sources[0], &sources[1], served.path()]);
        assert!(output.status.success(), "{}", stderr(&output));
        let read = std::fs::read_to_string(served.path().join("Name"));
        assert_eq!(read.ok().as_deref(), Some("two"));
    }
}

#[test]
fn a_hard_link_of_the_source_with_another_number_is_not_written_to() {
    let content = testfs::random_bytes(100_000, 3);
    for (program, args) in BY_NAME {
        let Some(served) = ServedFs::mount(program, arguments(args)) else { continue };
        let at = |name: &str| served.path().join(name);
        std::fs::write(at("a"), &content).expect("written");
        std::fs::hard_link(at("a"), at("b")).expect("linked");
        for (number, option) in
            ["--preserve=mode", "-f", "-p", "--sparse=always"].iter().enumerate()
        {
            // The kernel may still have the length of the other name from before.
            let content = &content[number..];
            std::fs::write(at("a"), content).expect("written");
            let output = cp(&[*option], &[&at("a"), &at("b")]);
            let said = stderr(&output);
            assert!(said.contains("are the same file"), "{program} {option}: {said}");
            assert!(std::fs::read(at("a")).expect("read") == content, "{program} {option}");
        }
        // A copy of the same length and time is another file.
        for option in ["-p", "-f"] {
            let output = cp(&[option], &[&at("a"), &at("copy")]);
            assert!(output.status.success(), "{program} {option}: {}", stderr(&output));
        }
    }
}

/// While one worker copies a large file, another finds it by another spelling of its name.
#[test]
fn workers_do_not_write_to_one_file_by_two_spellings() {
    let home = tempfile::tempdir().expect("created");
    for (name, byte) in [("File", 1), ("file", 2)] {
        std::fs::write(home.path().join(name), vec![byte; 12 << 20]).expect("written");
    }
    for spelled in [false, true] {
        for args in [&["-rT"][..], &["-aT"], &["-rT", "--atomic"]] {
            let Some(served) = ignoring_case(spelled) else { return };
            let output = cp(args, &[home.path(), served.path()]);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
            assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
            let contents = std::fs::read(served.path().join("File")).expect("read");
            let first = contents[0];
            assert!(contents.len() == 12 << 20, "{args:?}: {}", contents.len());
            assert!(contents.iter().all(|&byte| byte == first), "{args:?}: two contents");
        }
    }
}

/// What has the name of a hard link is another file whose name is the same there.
#[test]
fn a_hard_link_replaces_no_file_of_another_spelling() {
    let home = tempfile::tempdir().expect("created");
    let at = |name: &str| home.path().join(name);
    std::fs::write(at("linked"), "linked").expect("written");
    std::fs::hard_link(at("linked"), at("FILE")).expect("linked");
    std::fs::write(at("file"), "content").expect("written");
    for args in [&["-aT"][..], &["-aT", "--atomic"], &["-aT", "--jobs=1"], &["-afT"]] {
        for exists in [false, true] {
            let Some(served) = ignoring_case(false) else { return };
            let dst = served.path().join("dst");
            if exists {
                std::fs::create_dir(&dst).expect("created");
            }
            let output = cp(args, &[home.path(), &dst]);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{args:?} {exists}: {said}");
            assert_eq!(said.lines().count(), 1, "{args:?} {exists}: {said}");
            assert_eq!(names_in(&dst).len(), 2, "{args:?} {exists}: {said}");
        }
    }
}
