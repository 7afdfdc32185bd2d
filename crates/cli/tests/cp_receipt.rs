//! `--receipt` and `--stats`: what they say of real copies, and whether docs/receipt.md says the same.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{create_dir_all, hard_link, write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Output;

use serde_json::Value;
use testfs::{
    FuseFs, Lies, documented_fields, each_fs, json_lines, random_bytes, skip, stderr, test_name,
};

use crate::cp;

const DOCUMENT: &str = include_str!("../../../docs/receipt.md");

fn cp_words(dir: &Path, line: &str) -> Output {
    let words: Vec<&OsStr> = line.split(' ').map(OsStr::new).collect();
    cp(dir, &words)
}

fn entry<'l>(lines: &'l [Value], src: &str) -> &'l Value {
    lines.iter().find(|line| line["src"] == src).unwrap_or_else(|| panic!("{src} in {lines:#?}"))
}

/// The fields that `value` has, as the document writes them.
fn collect_fields(path: &str, value: &Value, fields: &mut BTreeSet<String>) {
    match value {
        // A name that is no UTF-8.
        Value::Object(object) if object.keys().eq(["bytes"]) => {
            fields.insert(path.to_owned());
        }
        Value::Object(object) => {
            for (name, value) in object {
                let dot = if path.is_empty() { "" } else { "." };
                collect_fields(&format!("{path}{dot}{name}"), value, fields);
            }
        }
        Value::Array(items) if items.iter().any(|item| item.is_object()) => {
            items.iter().for_each(|item| collect_fields(&format!("{path}[]"), item, fields));
        }
        _ => {
            fields.insert(path.to_owned());
        }
    }
}

fn make_source(dir: &Path) {
    let src = dir.join("src");
    create_dir_all(src.join("sub")).expect("directories");
    write(src.join("data"), random_bytes(100_000, 1)).expect("written");
    write(src.join("sub/empty"), "").expect("written");
    hard_link(src.join("data"), src.join("sub/again")).expect("linked");
    symlink("nowhere", src.join("link")).expect("linked");
    write(src.join(OsStr::from_bytes(b"f\xff")), "text").expect("written");
    let sparse = std::fs::File::create(src.join("sparse")).expect("created");
    sparse.set_len(1 << 20).expect("length set");
}

/// Copies that between them bring up every field: attributes that cannot be had there, a file system
/// that fails and one that cannot share blocks, names that are no UTF-8.
fn records(dir: &Path) -> Option<Vec<Value>> {
    make_source(dir);
    let mut records = Vec::new();
    let mut run = |args: &[&OsStr], succeeds: bool| {
        let output = cp(dir, &[&[OsStr::new("--receipt=r")], args].concat());
        assert_eq!(output.status.success(), succeeds, "{}", stderr(&output));
        records.extend(json_lines(&dir.join("r")));
    };
    run(&["-a", "src", "dst"].map(OsStr::new), true);
    run(&["src/data", "missing", "dst"].map(OsStr::new), false);
    // The engine of a large file is measured.
    write(dir.join("large"), random_bytes(64 << 20, 3)).expect("written");
    run(&["--reflink=never", "large", "dst"].map(OsStr::new), true);
    let faults = Lies { read_error_at: Some(50_000), ..Lies::default() };
    let failing = FuseFs::with_source(random_bytes(100_000, 2), faults)?;
    run(&[failing.source().as_os_str(), OsStr::new("dst/part")], false);
    write(dir.join("attributed"), "text").expect("written");
    let flags = rustix::fs::XattrFlags::empty();
    if let Err(errno) = rustix::fs::setxattr(dir.join("attributed"), "user.a", b"v", flags) {
        skip(&test_name(), &format!("{} keeps no attributes: {errno}", dir.display()));
        return None;
    }
    let plain = FuseFs::with_source(Vec::new(), Lies::default())?;
    run(&[OsStr::new("-a"), OsStr::new("attributed"), plain.path().join("made").as_os_str()], true);
    Some(records)
}

#[test]
fn the_document_names_every_field_and_no_other() {
    let dir = tempfile::tempdir().expect("created");
    let Some(records) = records(dir.path()) else { return };
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for record in &records {
        let name = record["record"].as_str().expect("a word").to_owned();
        let mut own = BTreeSet::new();
        collect_fields("", record, &mut own);
        let top = |fields: &BTreeSet<String>| -> BTreeSet<String> {
            fields.iter().map(|field| field.split(['[', '.']).next().unwrap().to_owned()).collect()
        };
        assert_eq!(top(&own), top(&documented_fields(DOCUMENT)[&name]), "{record:#}");
        found.entry(name).or_default().append(&mut own);
    }
    // Where a list is empty or an error null, its own name stands for it.
    for fields in found.values_mut() {
        let parents: Vec<String> = fields
            .iter()
            .filter(|field| {
                fields.iter().any(|other| {
                    other.strip_prefix(*field).is_some_and(|rest| rest.starts_with(['[', '.']))
                })
            })
            .cloned()
            .collect();
        parents.iter().for_each(|parent| assert!(fields.remove(parent)));
    }
    assert_eq!(found, documented_fields(DOCUMENT));
}

#[test]
fn every_entry_has_a_receipt() {
    let dir = tempfile::tempdir().expect("created");
    make_source(dir.path());
    let output = cp_words(dir.path(), "-a --reflink=never --receipt=r src dst");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    let lines = json_lines(&dir.path().join("r"));
    assert_eq!(lines.len(), 9, "{lines:#?}");
    let (summary, entries) = lines.split_last().expect("lines");
    assert_eq!(entries.last().expect("an entry")["src"], "src", "a directory comes last");
    for (src, kind, data_bytes, hole_bytes) in [
        ("src", "directory", 0, 0),
        ("src/sub/empty", "file", 0, 0),
        ("src/link", "symlink", 0, 0),
        ("src/sparse", "file", 0, 1 << 20),
    ] {
        let entry = entry(entries, src);
        assert_eq!(entry["dst"], src.replace("src", "dst"));
        assert_eq!((&entry["type"], &entry["method"]), (&kind.into(), &"copied".into()), "{src}");
        assert_eq!(entry["data_bytes"], data_bytes, "{src}");
        assert_eq!(entry["hole_bytes"], hole_bytes, "{src}");
        assert!(entry["elapsed_ns"].as_u64().expect("a number") > 0, "{src}");
        let kept = entry["kept"].as_array().expect("a list");
        assert!(kept.contains(&"ownership".into()) && kept.contains(&"times".into()), "{src}");
        assert_eq!(kept.contains(&"permissions".into()), kind != "symlink", "{src}");
    }
    let (first, second) = (entry(entries, "src/data"), entry(entries, "src/sub/again"));
    let (copied, linked) =
        if first["method"] == "copied" { (first, second) } else { (second, first) };
    assert_eq!(linked["method"], "linked");
    let attempt = &copied["attempts"][0];
    assert_eq!((&attempt["stop"], &attempt["bytes"]), (&"done".into(), &100_000.into()));
    let bytes_name = &entry_with_bytes(entries)["src"]["bytes"];
    assert_eq!(*bytes_name, "7372632f66ff");
    assert_eq!(summary["record"], "summary");
    assert_eq!(summary["complete"], true);
    assert_eq!(summary["data_bytes"], 100_004);
    assert_eq!(summary["hole_bytes"], 1 << 20);
    let argv: Vec<_> = summary["argv"].as_array().expect("words").iter().skip(1).collect();
    assert_eq!(argv, ["cp", "-a", "--reflink=never", "--receipt=r", "src", "dst"]);
    let counts: Vec<_> = summary["entries"].as_array().expect("a list").iter().collect();
    let total: u64 = counts.iter().map(|line| line["count"].as_u64().expect("a number")).sum();
    assert_eq!(total, 8, "{counts:?}");
}

fn entry_with_bytes(entries: &[Value]) -> &Value {
    entries
        .iter()
        .find(|entry| entry["src"]["bytes"].is_string())
        .expect("the name that is no text")
}

#[test]
fn a_failed_entry_has_the_bytes_copied_before_the_failure() {
    let dir = tempfile::tempdir().expect("created");
    let faults = Lies { read_error_at: Some(65_536), ..Lies::default() };
    let Some(faulty) = FuseFs::with_source(random_bytes(100_000, 1), faults) else { return };
    let args =
        [OsStr::new("--receipt"), OsStr::new("r"), faulty.source().as_os_str(), OsStr::new("c")]
            .map(OsStr::to_owned);
    let output = cp(dir.path(), &args.each_ref().map(|word| word.as_os_str()));
    assert_eq!(output.status.code(), Some(1));
    let lines = json_lines(&dir.path().join("r"));
    let [entry, summary] = &lines[..] else { panic!("{lines:#?}") };
    assert_eq!((&entry["method"], &entry["data_bytes"]), (&"failed".into(), &65_536.into()));
    let attempts = entry["attempts"].as_array().expect("a list");
    let last = attempts.last().expect("an attempt");
    assert_eq!((&last["stop"], &last["side"]), (&"failed".into(), &"src".into()), "{last}");
    assert_eq!(last["errno"], serde_json::json!({"name": "EIO", "number": 5}));
    let said: Vec<_> = stderr(&output).lines().map(Value::from).collect();
    let failures = entry["failures"].as_array().expect("a list");
    let messages: Vec<_> = failures.iter().map(|failure| failure["message"].clone()).collect();
    assert_eq!(messages, said);
    assert_eq!(failures[0]["errno"]["name"], "EIO");
    assert_eq!((&summary["complete"], &summary["failures"]), (&false.into(), &2.into()));
}

#[test]
fn a_directory_that_is_omitted_has_failed() {
    let dir = tempfile::tempdir().expect("created");
    make_source(dir.path());
    let output = cp_words(dir.path(), "--receipt=r src dst");
    let lines = json_lines(&dir.path().join("r"));
    assert_eq!(entry(&lines, "src")["method"], "failed");
    let message = &entry(&lines, "src")["failures"][0]["message"];
    assert_eq!(*message, stderr(&output).trim_end());
}

#[test]
fn a_directory_that_cannot_be_read_has_failed() {
    if rustix::process::geteuid().is_root() {
        skip(&test_name(), "root may read any directory");
        return;
    }
    let dir = tempfile::tempdir().expect("created");
    make_source(dir.path());
    let sub = dir.path().join("src/sub");
    let closed = std::os::unix::fs::PermissionsExt::from_mode(0o000);
    std::fs::set_permissions(&sub, closed).expect("mode set");
    let output = cp_words(dir.path(), "-r --receipt=r src dst");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&sub, open).expect("mode set");
    assert_eq!(output.status.code(), Some(1));
    let lines = json_lines(&dir.path().join("r"));
    assert_eq!(entry(&lines, "src/sub")["failures"][0]["errno"]["name"], "EACCES");
    assert_eq!(entry(&lines, "src/sub")["method"], "failed");
}

#[test]
fn a_receipt_that_cannot_be_written_is_a_failure() {
    let dir = tempfile::tempdir().expect("created");
    make_source(dir.path());
    let output = cp_words(dir.path(), "-a --receipt=/dev/full src dst");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stderr(&output), "cp: error writing '/dev/full': No space left on device\n");
    assert!(dir.path().join("dst/sub/again").exists(), "the copy was made all the same");
    let output = cp_words(dir.path(), "-a --receipt=no/such src other");
    assert_eq!(output.status.code(), Some(1));
    let due = "cp: cannot open 'no/such' for writing: No such file or directory\n";
    assert_eq!(stderr(&output), due);
    assert!(!dir.path().join("other").exists(), "nothing is copied without the receipt");
    let output = cp_words(dir.path(), "--receipt=src/data src/data other");
    assert_eq!(output.status.code(), Some(1));
    let due = "cp: 'src/data' is to be copied, and cannot be the receipt\n";
    assert_eq!(stderr(&output), due);
    assert_eq!(std::fs::read(dir.path().join("src/data")).expect("read").len(), 100_000);
}

#[test]
fn lines_of_many_workers_are_whole() {
    let dir = tempfile::tempdir().expect("created");
    create_dir_all(dir.path().join("src")).expect("created");
    for number in 0..3000 {
        write(dir.path().join(format!("src/{number}")), "text").expect("written");
    }
    let output = cp_words(dir.path(), "-a --jobs=8 --receipt=- src dst");
    assert!(output.status.success(), "{}", stderr(&output));
    write(dir.path().join("r"), &output.stdout).expect("written");
    let lines = json_lines(&dir.path().join("r"));
    assert_eq!(lines.len(), 3002);
    let sources: BTreeSet<_> = lines.iter().filter_map(|line| line["src"].as_str()).collect();
    assert_eq!(sources.len(), 3001);
}

#[test]
fn stats_report_what_was_copied_and_how() {
    let dir = tempfile::tempdir().expect("created");
    make_source(dir.path());
    let output = cp_words(dir.path(), "-a --stats --engine=read_write:256K src dst");
    assert!(output.status.success());
    let said = stderr(&output);
    let figures: Vec<Vec<&str>> =
        said.lines().map(|line| line.split_whitespace().collect()).collect();
    for due in [
        &["regular", "files", "4", "1", "0", "0"][..],
        &["directories", "2", "0", "0", "0"],
        &["symbolic", "links", "1", "0", "0", "0"],
        &["data", "97.7", "KiB"],
        &["shared", "0", "B"],
        &["holes", "1.00", "MiB"],
        &["read_write:256K", "97.7", "KiB", "2", "files"],
    ] {
        assert!(figures.iter().any(|line| line == due), "{due:?} in\n{said}");
    }
    assert!(said.lines().all(|line| line.len() < 80), "{said}");
    assert_eq!(output.stdout, b"");
}

/// The variants that move the first files are counted by their names.
#[test]
fn stats_name_the_variants_used_before_a_profile_is_read() {
    each_fs(|kind, dir| {
        for (bytes, due) in [
            (4 << 10, ["read_write:256K", "4.00", "KiB", "1", "file"]),
            (4 << 20, ["splice:512K,pipe=512K", "4.00", "MiB", "1", "file"]),
        ] {
            std::fs::write(dir.join("a"), random_bytes(bytes, 1)).expect("written");
            let output = cp_words(dir, "--stats --reflink=never a b");
            assert!(output.status.success(), "{kind}");
            let said = stderr(&output);
            let mut lines = said.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            assert!(lines.any(|line| line == due), "{kind}: {due:?} in\n{said}");
        }
    });
}

#[test]
fn no_copy_takes_the_place_of_the_receipt() {
    let dir = tempfile::tempdir().expect("created");
    std::fs::write(dir.path().join("a"), "content").expect("written");
    for options in ["", "--atomic ", "--remove-destination ", "-b "] {
        let _ = std::fs::remove_dir_all(dir.path().join("t"));
        std::fs::create_dir(dir.path().join("t")).expect("created");
        let output = cp_words(dir.path(), &format!("{options}--receipt=t/a a t"));
        assert_eq!(output.status.code(), Some(1), "{options}");
        let said = "cp: will not overwrite 't/a' with 'a': it is the receipt\n";
        assert_eq!(stderr(&output), said, "{options}");
        let lines = json_lines(&dir.path().join("t/a"));
        assert_eq!(entry(&lines, "a")["method"], "failed", "{options}");
    }
}

/// A copy of it would be of a part, without a word.
#[test]
fn a_receipt_among_the_sources_is_not_copied() {
    let dir = tempfile::tempdir().expect("created");
    std::fs::create_dir(dir.path().join("s")).expect("created");
    std::fs::write(dir.path().join("s/a"), "content").expect("written");
    let output = cp_words(dir.path(), "-r --receipt=s/receipt s t");
    assert_eq!(output.status.code(), Some(1));
    let said = "cp: not copying 's/receipt': it is the receipt, which is being written\n";
    assert_eq!(stderr(&output), said);
    let lines = json_lines(&dir.path().join("s/receipt"));
    assert_eq!(entry(&lines, "s/receipt")["method"], "failed");
    assert_eq!(entry(&lines, "s/a")["method"], "copied");
    assert!(dir.path().join("t/a").exists() && !dir.path().join("t/receipt").exists());
    let output = cp_words(dir.path(), "-r --receipt=s/receipt --exclude=/receipt s u");
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn receipts_that_cannot_be_written_are_an_error() {
    let dir = tempfile::tempdir().expect("created");
    write(dir.path().join("a"), "text").expect("written");
    let output = std::process::Command::new("/bin/sh")
        .args(["-c", "\"$0\" cp --receipt=- a b >&-", crate::HAULAGE])
        .current_dir(dir.path())
        .output()
        .expect("sh runs");
    let due = "cp: cannot open '-' for writing: Bad file descriptor\n";
    assert_eq!((stderr(&output).as_str(), output.status.code()), (due, Some(1)));
    // A server may refuse at the end what it took before.
    for (file, args) in [("out", "--receipt=- a b"), ("r", "--receipt=r a b"), ("out", "-v a b")] {
        let script = format!(
            "strace -f -o trace -e trace=close -e inject=close:error=EDQUOT -P $PWD/{file} \"$0\" cp {args} >out"
        );
        write(dir.path().join(file), "").expect("written");
        let output = std::process::Command::new("/bin/sh")
            .args(["-c", &script, crate::HAULAGE])
            .current_dir(dir.path())
            .output()
            .expect("sh runs");
        if !dir.path().join("trace").exists() {
            return skip(&test_name(), "strace cannot be run here");
        }
        let said = stderr(&output);
        assert!(said.contains("Disk quota exceeded"), "{args}: {said}");
        assert_eq!(output.status.code(), Some(1), "{args}: {said}");
    }
}

/// Two sources may have one destination, and each has a line.
#[test]
fn a_file_that_waits_for_its_sync_keeps_its_line() {
    let dir = tempfile::tempdir().expect("created");
    for name in ["one", "two", "dst"] {
        create_dir_all(dir.path().join(name)).expect("directories");
    }
    write(dir.path().join("one/x"), "text").expect("written");
    symlink("nowhere", dir.path().join("two/x")).expect("linked");
    let line = "-d --durable --backup=numbered --receipt=r one/x two/x dst";
    let output = cp_words(dir.path(), line);
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = json_lines(&dir.path().join("r"));
    for src in ["one/x", "two/x"] {
        assert_eq!(entry(&lines, src)["dst"], "dst/x");
    }
}

#[test]
fn a_device_keeps_its_own_attributes() {
    let dir = tempfile::tempdir().expect("created");
    write(dir.path().join("a"), "text").expect("written");
    let output = cp_words(dir.path(), "-p --receipt=r a /dev/null");
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = json_lines(&dir.path().join("r"));
    assert_eq!(entry(&lines, "a")["kept"], Value::Array(Vec::new()));
}
