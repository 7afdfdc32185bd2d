//! Few descriptors.

use std::fs::{metadata, write};
use std::os::unix::fs::{MetadataExt, symlink};
use std::process::Command;

use testfs::{Aspects, assert_equal_trees, skip, stderr, test_name};

use crate::{
    HAULAGE, check_content, check_failed, check_success, dir_with, fixture, strace, within,
};

const ERRNOS: [(&str, &str); 4] = [
    ("EMFILE", "Too many open files"),
    ("ENFILE", "Too many open files in system"),
    ("ENOMEM", "Cannot allocate memory"),
    ("EIO", "Input/output error"),
];

/// Without a descriptor, nothing is known of the destination: neither that it is no directory, nor
/// that the copy gets its name.
#[test]
fn a_destination_that_cannot_be_opened_stays_and_is_not_taken_for_a_file() {
    let dir = dir_with("a=new; d/");
    for (errno, words) in ERRNOS {
        fixture::add("b=old", &dir);
        // The first call asks whether it is a directory.
        let options = format!("-P b -e inject=openat:error={errno}:when=2+");
        let Some(output) = strace(&dir, &options, "-f a b") else { return };
        check_failed(&output, "'b'", errno);
        check_content(dir.path().join("b"), "old", errno);
        for option in ["-a", "--parents", "--resume"] {
            let options = format!("-P d -e inject=openat:error={errno}");
            let line = format!("{option} a d");
            let Some(output) = strace(&dir, &options, &line) else { return };
            let due = format!("cp: target 'd': {words}\n");
            check_failed(&output, &due, format!("{errno} {line}"));
            assert!(stderr(&output).ends_with(&due), "{errno} {line}: {}", stderr(&output));
        }
    }
}

#[test]
fn a_deep_tree_needs_few_descriptors() {
    let deepest = "d/".repeat(200) + "f";
    let dir = dir_with(&format!("s/{deepest}=1"));
    for limit in ["24", "40", "64", "80"] {
        let limits = format!("--nofile={limit}:{limit}");
        let Some(output) = within(&dir, &limits, &format!("-a s {limit}")) else { return };
        check_success(&output, limit);
        check_content(dir.path().join(limit).join(&deepest), "1", limit);
    }
}

#[test]
fn descriptors_that_others_have_taken_are_done_without() {
    let dir = dir_with("s/");
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
        check_success(&output, taken);
        let [src, dst] = ["s", &taken.to_string()].map(|name| dir.path().join(name));
        assert_equal_trees(&src, &dst, Aspects::ALL, taken);
    }
}

#[test]
fn parents_of_many_operands_need_few_descriptors() {
    let dir = dir_with("t/");
    let names: Vec<String> = (0..100).map(|number| format!("s/d{number}/f")).collect();
    for name in &names {
        fixture::add(&format!("{name}={name}; {}=={name}", name.replace('f', "g")), &dir);
    }
    // The second name of each is met when the directory of the first has long been left.
    let firsts = names.join(" ");
    let line = format!("-a -t t --parents {firsts} {}", firsts.replace('f', "g"));
    let Some(output) = within(&dir, "--nofile=40:40", &line) else { return };
    check_success(&output, "");
    for name in &names {
        let copy = dir.path().join("t").join(name);
        check_content(&copy, name, "");
        let [first, other] = [&copy, &copy.with_file_name("g")].map(metadata);
        assert_eq!(first.expect("the copy").ino(), other.expect("its other name").ino(), "{name}");
    }
}

#[test]
fn many_links_to_directories_need_few_descriptors() {
    let dir = dir_with("s/second/; d/first/");
    let at = |name: String| dir.path().join(name);
    for number in 0..100 {
        fixture::add(&format!("s/first/{number}/f={number}; out/{number}/"), &dir);
        fixture::add(&format!("s/second/{number}/g==s/first/{number}/f"), &dir);
        symlink(format!("../../out/{number}"), at(format!("d/first/{number}"))).expect("linked");
    }
    let line = "-aT --keep-directory-symlink s d";
    let Some(output) = within(&dir, "--nofile=40:40", line) else { return };
    check_success(&output, "");
    for number in 0..100 {
        let [first, second] = [format!("out/{number}/f"), format!("d/second/{number}/g")]
            .map(|name| metadata(at(name)).expect("looked at").ino());
        assert_eq!(first, second, "{number}");
    }
}
