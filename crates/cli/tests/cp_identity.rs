//! Copies where the device and inode number of a file do not tell what it is: as GNU cp makes them.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::io::Errno;
use testfs::{Costs, FuseFs, Lies, ServedFs, names_in, set_time_of, stderr, stdout};

use crate::{check_content, check_failed, copy, cp, dir_with, fixture};

/// File systems that give each name of a file a number of its own, with their arguments.
const BY_NAME: &[(&str, &str)] =
    &[("mergerfs", "-o inodecalc=path-hash STORE MOUNT"), ("unionfs", "-o cow STORE=RW MOUNT")];

/// A tree with two files of two names each.
const LINKED: &str = "src/a=one; src/sub/b==src/a; src/c=three; src/d==src/c";

fn inode(path: &Path) -> u64 {
    std::fs::symlink_metadata(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())).ino()
}

/// Fails the test unless the files are those of [`LINKED`].
fn check_contents(what: &str, dir: &Path) {
    for (name, content) in [("a", "one"), ("sub/b", "one"), ("c", "three"), ("d", "three")] {
        check_content(dir.join(name), content, what);
    }
}

/// Fails the test unless the tree is that of [`LINKED`], with its links, in the directory that is shown.
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
    let home = dir_with(LINKED);
    for (program, args) in BY_NAME {
        for options in ["-a", "-au", "-a --remove-destination", "-a --jobs=1", "-aL"] {
            let Some(served) = ServedFs::mount(program, args) else { break };
            let dst = served.path().join("dst");
            for run in 1..=2 {
                copy(&home, &format!("{options} -T src {}", dst.display()));
                check_linked(&format!("{program} {options} {run}"), &served.store().join("dst"));
            }
            copy(served.path(), "-al -T dst linked");
            check_linked("-al", &served.store().join("linked"));
            let same = ["dst", "linked"].map(|dir| inode(&served.store().join(dir).join("a")));
            assert_eq!(same[0], same[1], "{program} -al");
        }
    }
}

/// A copy that gets its name when it is complete has another number by then. It is linked, or it counts as a loss.
#[test]
fn a_hard_link_that_is_not_kept_is_in_the_receipt() {
    let home = dir_with(LINKED);
    for (program, args) in BY_NAME {
        for option in ["--atomic", "--resume"] {
            let Some(served) = ServedFs::mount(program, args) else { break };
            let dst = served.path().join("dst");
            let line = format!("-a {option} --jobs=1 --receipt=- -T src {}", dst.display());
            let output = copy(&home, &line);
            let links = served.store().join("dst");
            let kept = [("a", "sub/b"), ("c", "d")]
                .iter()
                .filter(|(a, b)| inode(&links.join(a)) == inode(&links.join(b)))
                .count();
            let lost = stdout(&output).matches(r#""attribute":"links""#).count();
            assert_eq!(kept + lost, 2, "{program} {option}: {}", stdout(&output));
        }
    }
}

#[test]
fn a_file_is_copied_where_it_cannot_be_linked() {
    let home = dir_with(LINKED);
    for options in ["-a", "-a --remove-destination", "-a --jobs=1"] {
        let costs = Costs { no_hard_links: Some(Errno::PERM), ..Costs::default() };
        let Some(served) = FuseFs::mount(costs) else { return };
        let dst = served.path().join("dst");
        for run in 1..=2 {
            let output = cp(&home, &format!("{options} -T src {}", dst.display()));
            let what = format!("{options} {run}");
            check_failed(&output, "cannot create hard link", &what);
            let said = stderr(&output);
            assert_eq!(said.matches("cannot create hard link").count(), 2, "{what}: {said}");
            check_contents(&what, &dst);
        }
    }
}

/// A file system with a tree at `src`, of which it lies from now on.
fn lying(lies: Lies) -> Option<FuseFs> {
    let served = FuseFs::mount(Costs::default())?;
    fixture::add(LINKED, served.path());
    served.lie(lies);
    Some(served)
}

#[test]
fn numbers_that_change_at_each_look_lose_no_file() {
    let home = dir_with(LINKED);
    for options in ["-a", "-r", "-a --remove-destination", "-a --atomic"] {
        let lies = Lies { changing_inodes: true, ..Lies::default() };
        let Some(served) = lying(lies) else { return };
        let dst = served.path().join("dst");
        for run in 1..=2 {
            copy(&home, &format!("{options} -T src {}", dst.display()));
            check_contents(&format!("{options} {run}"), &dst);
            for name in ["a", "sub/b", "c", "d"] {
                let names = std::fs::metadata(dst.join(name)).expect("looked at").nlink();
                // The test has looked at no file that another process could have exchanged.
                let due = if options == "-r" { 1 } else { 2 };
                assert_eq!(names, due, "{options} {run}: {name}");
            }
        }
    }
}

/// As overlayfs gives another number to a file that it copies up, and FUSE to one that the kernel has forgotten.
#[test]
fn a_file_that_gets_another_number_is_overwritten_read_and_linked() {
    let lies = Lies { opened_inodes: true, ..Lies::default() };
    let home = dir_with(LINKED);
    for options in ["-r", "-a", "-r --sparse=always", "-r --resume", "-rb", "-rb --atomic", "-rf"] {
        let Some(served) = FuseFs::mount(Costs::default()) else { return };
        fixture::add("src/a=old; src/sub/b==src/a; src/c=old; src/d==src/c", served.path());
        served.lie(lies.clone());
        copy(&home, &format!("{options} src {}", served.path().display()));
        check_contents(options, &served.path().join("src"));
    }
    let Some(served) = lying(lies.clone()) else { return };
    copy(served.path(), "-al -T src linked");
    check_linked("-al", &served.path().join("linked"));
    let [first, second] = ["src/c", "linked/c"].map(|name| inode(&served.path().join(name)));
    assert_eq!(first, second);
    served.lie(lies);
    copy(&home, &format!("-a {} read", served.path().join("src").display()));
    check_linked("read", &home.path().join("read"));
}

/// The marker of the unfinished directory knows its source by the path.
#[test]
fn a_copy_is_completed_whose_source_has_got_another_number() {
    let Some(served) = lying(Lies { read_error_at: Some(0), ..Lies::default() }) else { return };
    let home = tempfile::tempdir().expect("created");
    let src = served.path().join("src");
    let line = format!("-r --resume {} dst", src.display());
    check_failed(&cp(&home, &line), "Input/output error", "");
    served.lie(Lies { opened_inodes: true, ..Lies::default() });
    std::fs::read_dir(src).expect("listed");
    copy(&home, &line);
    check_contents("", &home.path().join("dst"));
    assert_eq!(names_in(home.path()), ["dst"]);
}

#[test]
fn one_number_for_all_files_makes_no_file_a_link_to_another() {
    let lies = || Lies { one_inode: true, ..Lies::default() };
    for options in ["-a", "-a --jobs=1", "-a --atomic"] {
        let Some(served) = lying(lies()) else { return };
        let home = tempfile::tempdir().expect("created");
        copy(&home, &format!("{options} -T {} copy", served.path().join("src").display()));
        // And onto such a file system, over old files.
        served.lie(Lies::default());
        fixture::add("dst/a=old; dst/sub/b=old; dst/c=old; dst/d=old", served.path());
        served.lie(lies());
        let dst = served.path().join("dst");
        copy(&home, &format!("{options} -T copy {}", dst.display()));
        for dir in [&home.path().join("copy"), &dst] {
            check_contents(options, dir);
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
            let link = if has_link { "; link==a" } else { "" };
            fixture::add(&format!("a=content{link}"), served.path());
            let output = cp(served.path(), &format!("{options} a A"));
            let what = format!("{options} {has_link} {spelled}");
            // A hard link of a file to itself is there already.
            if !["-l --remove-destination", "-al"].contains(&options) {
                check_failed(&output, "are the same file", &what);
            }
            let due = if has_link { &["a", "link"][..] } else { &["a"] };
            assert_eq!(names_in(served.path()), due, "{what}");
            check_content(served.path().join("a"), "content", &what);
        }
    }
}

#[test]
fn neither_a_backup_nor_a_directory_takes_the_name_of_the_source_in_another_spelling() {
    for spelled in [false, true] {
        let Some(served) = ignoring_case(spelled) else { return };
        fixture::add("a.BAK=source; a=old; Dir/x=content", served.path());
        let output = cp(served.path(), "-b --suffix=.bak a.BAK a");
        check_failed(&output, "might destroy source", spelled);
        check_content(served.path().join("a.BAK"), "source", spelled);
        check_failed(&cp(served.path(), "-rT Dir dir"), "are the same file", spelled);
        check_content(served.path().join("Dir/x"), "content", spelled);
        // A hard link of another name is replaced.
        for option in if spelled { &[][..] } else { &["--remove-destination", "-b"] } {
            let _ = std::fs::remove_file(served.path().join("other"));
            fixture::add("other==a", served.path());
            copy(served.path(), &format!("{option} a other"));
        }
    }
}

/// The client of SMB numbers what is in a directory again for each spelling of the directory's name.
#[test]
fn a_source_is_not_replaced_through_another_spelling_of_its_directory() {
    for options in ["", "-a", "-af", "-u", "--remove-destination", "-ab", "--atomic", "--resume"] {
        let Some(served) = ignoring_case(true) else { return };
        let at = |name: &str| served.path().join(name);
        fixture::add("Dir/sub/x=content; other/sub/x=content", served.path());
        for operands in ["Dir/sub/x dir/sub/x", "dir/sub/x Dir/Sub/X", "Dir/sub dir/sub"] {
            let what = format!("-rT {options} {operands}");
            check_failed(&cp(served.path(), &what), "are the same file", &what);
            check_content(at("Dir/sub/x"), "content", &what);
            assert_eq!(names_in(&at("Dir/sub")), ["x"], "{what}");
        }
        for operands in ["Dir/sub/x other/sub/x", "Dir/sub other/sub"] {
            copy(served.path(), &format!("-rT {options} {operands}"));
        }
    }
}

/// Two sources with one destination: the second is refused, whatever the options, and the first stays.
#[test]
fn of_two_sources_whose_names_differ_in_case_none_is_lost_silently() {
    let home = tempfile::tempdir().expect("created");
    for name in ["File", "file", "File.", "tree/Name", "tree/name", "tree/Dir/x", "tree/dir/x"] {
        fixture::add(&format!("{name}={name}"), &home);
    }
    fixture::add("dots/Name.=one; dots/Name=two; dots/7/x=three; dots/7./x=four", &home);
    let options = ["", "-a", "-au", "--atomic", "-a --resume", "-a --remove-destination", "-ab"];
    for (number, options) in options.into_iter().enumerate() {
        // Of each the first is the one that its directory lists first.
        for (place, (sources, lost)) in [
            ("File file", 1),
            ("File. File", 1),
            ("dots/.", 2),
            ("tree/.", 2),
            ("tree", 2),
            ("tree/Dir tree/dir", 1),
        ]
        .into_iter()
        .enumerate()
        {
            for exists in [false, true] {
                // Each of the options and each of the sources has all four pairs of both.
                let spelled = (number + place + usize::from(exists)) % 2 == 0;
                let Some(served) = ignoring_case(spelled) else { return };
                if exists {
                    fixture::add("FILE=old t=0; NAME=old t=0", served.path());
                }
                let dst = served.path().display();
                // The copy of the first is up to date then.
                for run in 1..=2 {
                    let output = cp(&home, &format!("{options} -r --jobs=1 {sources} {dst}"));
                    let what = format!("{options} {sources} {exists} {spelled} {run}");
                    // All that cp does not name is there.
                    check_failed(&output, "", &what);
                    let said = stderr(&output);
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
    let home = dir_with("one/Name=one; two/Name=two; two/other=two");
    for ignores_case in [false, true] {
        let Some(served) = FuseFs::mount(Costs { ignores_case, ..Costs::default() }) else {
            return;
        };
        copy(&home, &format!("-r one/. two/. {}", served.path().display()));
        check_content(served.path().join("Name"), "two", ignores_case);
    }
}

#[test]
fn a_hard_link_of_the_source_with_another_number_is_not_written_to() {
    for (program, args) in BY_NAME {
        let Some(served) = ServedFs::mount(program, args) else { continue };
        fixture::add("a=; b==a", served.path());
        for (number, option) in
            ["--preserve=mode", "-f", "-p", "--sparse=always"].iter().enumerate()
        {
            // The kernel may still have the length of the other name from before.
            fixture::add(&format!("a#{}:3", 100_000 - number), served.path());
            let content = std::fs::read(served.path().join("a")).expect("read");
            let what = format!("{program} {option}");
            check_failed(&cp(served.path(), &format!("{option} a b")), "are the same file", &what);
            check_content(served.path().join("a"), content, &what);
        }
        // A copy of the same length and time is another file.
        for option in ["-p", "-f"] {
            copy(served.path(), &format!("{option} a copy"));
        }
    }
}

#[test]
fn a_source_is_not_emptied_through_another_mount_of_it() {
    let mounts =
        FuseFs::mount(Costs::default()).and_then(|first| Some((first.mount_again()?, first)));
    let Some((second, first)) = mounts else { return };
    let at = |mount: &FuseFs, name: &str| mount.path().join(name);
    let (a, b) = (at(&first, "a"), at(&second, "a"));
    for options in [
        "",
        "-a",
        "-f",
        "-rT",
        "-sf",
        "--attributes-only -p",
        "--engine=splice",
        "--remove-destination",
        "--atomic",
        "--atomic --remove-destination",
    ] {
        std::fs::write(&a, "content").expect("written");
        let before = std::fs::metadata(&a).expect("looked at");
        let line = format!("{options} {} {}", a.display(), b.display());
        check_failed(&cp(first.path(), &line), "are the same file", &line);
        check_content(&a, "content", &line);
        let after = std::fs::metadata(&a).expect("looked at");
        assert_eq!(
            (before.mtime(), before.mtime_nsec()),
            (after.mtime(), after.mtime_nsec()),
            "{line}"
        );
    }
    // Another file of the same length and time is overwritten.
    fixture::add("other=CONTENT", second.path());
    let other = at(&second, "other");
    set_time_of(&other, &a);
    copy(first.path(), &format!("-a {} {}", a.display(), other.display()));
    check_content(&other, "content", "other");
}

/// bindfs shows a file with its number, and sets no time of modification alone, though it says so: as a client of SMB
/// that does not ask its server, only the other side tells that both are one file.
#[test]
fn a_source_is_not_emptied_through_a_server_that_shows_its_number() {
    let Some(served) = ServedFs::mount("bindfs", "STORE MOUNT") else { return };
    let mut files = 0;
    for options in ["", "-a", "-f", "-sf", "--remove-destination"] {
        for [src, dst] in [[served.store(), served.path()], [served.path(), served.store()]] {
            // The kernel knows nothing of a new name.
            files += 1;
            let kept = served.store().join(files.to_string());
            std::fs::write(&kept, "content").expect("written");
            let line = format!("{options} {}/{files} {}/{files}", src.display(), dst.display());
            check_failed(&cp(served.store(), &line), "are the same file", &line);
            check_content(&kept, "content", &line);
        }
    }
}

/// While one worker copies a large file, another finds it by another spelling of its name.
#[test]
fn workers_do_not_write_to_one_file_by_two_spellings() {
    let home = dir_with("src/");
    for (name, byte) in [("File", 1), ("file", 2)] {
        std::fs::write(home.path().join("src").join(name), vec![byte; 12 << 20]).expect("written");
    }
    for spelled in [false, true] {
        for options in ["-rT", "-aT", "-rT --atomic"] {
            let Some(served) = ignoring_case(spelled) else { return };
            check_one_refused(&home, &format!("{options} src {}", served.path().display()));
            let contents = std::fs::read(served.path().join("File")).expect("read");
            let first = contents[0];
            assert!(contents.len() == 12 << 20, "{options}: {}", contents.len());
            assert!(contents.iter().all(|&byte| byte == first), "{options}: two contents");
        }
    }
}

fn check_one_refused(home: &tempfile::TempDir, line: &str) {
    let output = cp(home, line);
    check_failed(&output, "", line);
    assert_eq!(stderr(&output).lines().count(), 1, "{line}: {}", stderr(&output));
}

/// What has the name of a hard link is another file whose name is the same there.
#[test]
fn a_hard_link_replaces_no_file_of_another_spelling() {
    let home = dir_with("src/linked=linked; src/FILE==src/linked; src/file=content");
    for options in ["-aT", "-aT --atomic", "-aT --jobs=1", "-afT"] {
        for exists in [false, true] {
            let Some(served) = ignoring_case(false) else { return };
            if exists {
                fixture::add("dst/", served.path());
            }
            let dst = served.path().join("dst");
            check_one_refused(&home, &format!("{options} src {}", dst.display()));
            assert_eq!(names_in(&dst).len(), 2, "{options} {exists}");
        }
    }
}
