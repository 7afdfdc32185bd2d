//! Few descriptors.

use std::fs::{metadata, read, write};
use std::os::unix::fs::{MetadataExt, symlink};
use std::process::Command;

use testfs::{skip, stderr, test_name};

use crate::{HAULAGE, strace, within};

#[test]
fn force_removes_no_destination_if_descriptors_run_out() {
    let dir = tempfile::tempdir().expect("created");
    write(dir.path().join("a"), "new").expect("written");
    for errno in ["EMFILE", "ENFILE", "ENOMEM", "EIO"] {
        write(dir.path().join("b"), "old").expect("written");
        // The first call asks whether it is a directory.
        let inject = format!("inject=openat:error={errno}:when=2+");
        let options = ["-P", "b", "-e", &inject];
        let Some(output) = strace(dir.path(), &options, &["-f", "a", "b"]) else { return };
        assert_eq!(output.status.code(), Some(1), "{errno}: {}", stderr(&output));
        assert!(stderr(&output).contains("'b'"), "{errno}: {}", stderr(&output));
        assert_eq!(read(dir.path().join("b")).expect("the old file"), b"old", "{errno}");
    }
}

/// Without a descriptor, nothing is known of the destination: neither that it is no directory, nor
/// that the copy gets its name.
#[test]
fn a_destination_that_cannot_be_opened_is_not_taken_for_a_file() {
    let dir = tempfile::tempdir().expect("created");
    write(dir.path().join("a"), "new").expect("written");
    std::fs::create_dir(dir.path().join("d")).expect("created");
    let errnos = [
        ("EMFILE", "Too many open files"),
        ("ENFILE", "Too many open files in system"),
        ("ENOMEM", "Cannot allocate memory"),
        ("EIO", "Input/output error"),
    ];
    for (errno, words) in errnos {
        for option in ["-a", "--parents", "--resume"] {
            let inject = format!("inject=openat:error={errno}");
            let options = ["-P", "d", "-e", &inject];
            let Some(output) = strace(dir.path(), &options, &[option, "a", "d"]) else { return };
            let expected = format!("cp: target 'd': {words}\n");
            assert!(stderr(&output).ends_with(&expected), "{option}: {}", stderr(&output));
            assert_eq!(output.status.code(), Some(1), "{option} {errno}");
        }
    }
}

#[test]
fn a_deep_tree_needs_few_descriptors() {
    let dir = tempfile::tempdir().expect("created");
    let deepest = "d/".repeat(200);
    std::fs::create_dir_all(dir.path().join("s").join(&deepest)).expect("a tree");
    write(dir.path().join("s").join(&deepest).join("f"), "1").expect("written");
    for limit in ["24", "40", "64", "80"] {
        let limits = format!("--nofile={limit}:{limit}");
        let Some(output) = within(dir.path(), &limits, &["-a", "s", limit]) else { return };
        assert!(output.status.success(), "{limit}: {}", stderr(&output));
        let copy = dir.path().join(limit).join(&deepest).join("f");
        assert_eq!(read(copy).expect("read"), b"1", "{limit}");
    }
}

#[test]
fn descriptors_that_others_have_taken_are_done_without() {
    let dir = tempfile::tempdir().expect("created");
    std::fs::create_dir(dir.path().join("s")).expect("created");
    for number in 0..300 {
        write(dir.path().join(format!("s/f{number}")), number.to_string()).expect("written");
    }
    // Workers who together took the last of them would fail by chance only.
    for (limit, taken) in
        [(100, 60), (100, 82), (400, 361), (400, 370)].into_iter().chain([(400, 382); 5])
    {
        let _ = std::fs::remove_dir_all(dir.path().join(taken.to_string()));
        let script = format!(
            "for n in $(seq 10 {}); do [ $n = 255 ] || eval \"exec $n</dev/null\"; done; exec \"$0\" cp -a s {taken}",
            9 + taken
        );
        let mut command = Command::new("prlimit");
        command.arg(format!("--nofile={limit}:{limit}")).args(["bash", "-c", &script, HAULAGE]);
        let output = match command.current_dir(dir.path()).output() {
            Ok(output) if output.status.code() != Some(127) => output,
            _ => return skip(&test_name(), "prlimit or bash cannot be run here"),
        };
        assert!(output.status.success(), "{taken}: {}", stderr(&output));
        for number in 0..300 {
            let copy = dir.path().join(format!("{taken}/f{number}"));
            assert_eq!(read(copy).expect("read"), number.to_string().as_bytes(), "{taken}");
        }
    }
}

#[test]
fn parents_of_many_operands_need_few_descriptors() {
    let dir = tempfile::tempdir().expect("created");
    std::fs::create_dir(dir.path().join("t")).expect("created");
    let names: Vec<String> = (0..100).map(|number| format!("s/d{number}/f")).collect();
    for name in &names {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("created");
        write(&path, name).expect("written");
        std::fs::hard_link(&path, path.with_file_name("g")).expect("linked");
    }
    // The second name of each is met when the directory of the first has long been left.
    let again = names.iter().map(|name| name.replace('f', "g"));
    let options = ["-a", "-t", "t", "--parents"].map(str::to_owned);
    let args: Vec<String> = options.into_iter().chain(names.clone()).chain(again).collect();
    let Some(output) = within(dir.path(), "--nofile=40:40", &args) else { return };
    assert!(output.status.success(), "{}", stderr(&output));
    for name in &names {
        let copy = dir.path().join("t").join(name);
        assert_eq!(read(&copy).expect("read"), name.as_bytes());
        let [first, other] = [&copy, &copy.with_file_name("g")].map(metadata);
        assert_eq!(first.expect("the copy").ino(), other.expect("its other name").ino(), "{name}");
    }
}

#[test]
fn many_links_to_directories_need_few_descriptors() {
    let dir = tempfile::tempdir().expect("created");
    let at = |name: String| dir.path().join(name);
    for number in 0..100 {
        for tree in ["s/first", "s/second", "out", "d/first"] {
            std::fs::create_dir_all(at(format!("{tree}/{number}"))).expect("created");
        }
        let link = at(format!("d/first/{number}"));
        std::fs::remove_dir(&link).expect("an empty directory");
        symlink(format!("../../out/{number}"), link).expect("linked");
        let first = at(format!("s/first/{number}/f"));
        write(&first, number.to_string()).expect("written");
        std::fs::hard_link(first, at(format!("s/second/{number}/g"))).expect("linked");
    }
    let args = ["-aT", "--keep-directory-symlink", "s", "d"];
    let Some(output) = within(dir.path(), "--nofile=40:40", &args) else { return };
    assert!(output.status.success(), "{}", stderr(&output));
    for number in 0..100 {
        let [first, second] = [format!("out/{number}/f"), format!("d/second/{number}/g")]
            .map(|name| metadata(at(name)).expect("looked at").ino());
        assert_eq!(first, second, "{number}");
    }
}
