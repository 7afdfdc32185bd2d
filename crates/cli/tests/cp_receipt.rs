//! `--receipt` and `--stats`: what they say of real copies, and whether docs/receipt.md says the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::write;
use std::path::Path;

use serde_json::Value;
use testfs::{
    FuseFs, Lies, documented_fields, each_fs, fields_of, is_root, json_lines, random_bytes, skip,
    stderr, test_name,
};

use crate::{check, check_content, check_failed, copy, cp, dir_with, fixture, shell};

const DOCUMENT: &str = include_str!("../../../docs/receipt.md");

/// Something of every kind in a directory `src`.
const SOURCE: &str = "src/data#100000:1; src/sub/empty=; src/sub/again==src/data; src/link->nowhere; \
                      src/f\\xff=text; src/sparse~1M";

fn entry<'l>(lines: &'l [Value], src: &str) -> &'l Value {
    lines.iter().find(|line| line["src"] == src).unwrap_or_else(|| panic!("{src} in {lines:#?}"))
}

/// Copies that between them bring up every field: attributes that cannot be had there, a file system
/// that fails and one that cannot share blocks, names that are no UTF-8.
fn records(dir: &Path) -> Option<Vec<Value>> {
    // The engine of a large file is measured.
    fixture::add(SOURCE, dir);
    fixture::add("large#64M:3; attributed=text user.a=v", dir);
    let mut records = Vec::new();
    let mut run = |line: &str, succeeds: bool| {
        let output = cp(dir, &format!("--receipt=r {line}"));
        assert_eq!(output.status.success(), succeeds, "{line}: {}", stderr(&output));
        records.extend(json_lines(&dir.join("r")));
    };
    run("-a src dst", true);
    run("src/data missing dst", false);
    run("--reflink=never large dst", true);
    let faults = Lies { read_error_at: Some(50_000), ..Lies::default() };
    let failing = FuseFs::with_source(random_bytes(100_000, 2), faults)?;
    run(&format!("{} dst/part", failing.source().display()), false);
    let plain = FuseFs::with_source(Vec::new(), Lies::default())?;
    run(&format!("-a attributed {}/made", plain.path().display()), true);
    Some(records)
}

#[test]
fn the_document_names_every_field_and_no_other() {
    let dir = tempfile::tempdir().expect("created");
    let Some(records) = records(dir.path()) else { return };
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for record in &records {
        let name = record["record"].as_str().expect("a word").to_owned();
        let mut own = fields_of(record);
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
    let dir = dir_with(SOURCE);
    check(&cp(&dir, "-a --reflink=never --receipt=r src dst"), 0, "", "");
    let lines = json_lines(&dir.path().join("r"));
    assert_eq!(lines.len(), 9, "{lines:#?}");
    let (summary, entries) = lines.split_last().expect("lines");
    assert_eq!(entries.last().expect("found")["src"], "src", "a directory comes last");
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
    let no_text = entries.iter().find(|entry| entry["src"]["bytes"].is_string());
    assert_eq!(no_text.expect("the name that is no text")["src"]["bytes"], "7372632f66ff");
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

#[test]
fn a_failed_entry_has_the_bytes_copied_before_the_failure() {
    let dir = tempfile::tempdir().expect("created");
    let faults = Lies { read_error_at: Some(65_536), ..Lies::default() };
    let Some(faulty) = FuseFs::with_source(random_bytes(100_000, 1), faults) else { return };
    let output = cp(&dir, &format!("--receipt r {} c", faulty.source().display()));
    assert_eq!(output.status.code(), Some(1));
    let lines = json_lines(&dir.path().join("r"));
    let [entry, summary] = &lines[..] else { panic!("{lines:#?}") };
    assert_eq!((&entry["method"], &entry["data_bytes"]), (&"failed".into(), &65_536.into()));
    let attempts = entry["attempts"].as_array().expect("a list");
    let last = attempts.last().expect("found");
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
fn a_directory_that_is_omitted_or_cannot_be_read_has_failed() {
    let dir = dir_with(SOURCE);
    let output = cp(&dir, "--receipt=r src dst");
    let lines = json_lines(&dir.path().join("r"));
    assert_eq!(entry(&lines, "src")["method"], "failed");
    let message = &entry(&lines, "src")["failures"][0]["message"];
    assert_eq!(*message, stderr(&output).trim_end());
    if is_root() {
        return skip(&test_name(), "root may read any directory");
    }
    fixture::add("src/sub/ mode=0", &dir);
    let output = cp(&dir, "-r --receipt=r src dst");
    fixture::add("src/sub/ mode=700", &dir);
    assert_eq!(output.status.code(), Some(1));
    let lines = json_lines(&dir.path().join("r"));
    assert_eq!(entry(&lines, "src/sub")["failures"][0]["errno"]["name"], "EACCES");
    assert_eq!(entry(&lines, "src/sub")["method"], "failed");
}

#[test]
fn a_receipt_that_cannot_be_written_is_a_failure() {
    let dir = dir_with("src/sub/a=text; a=text; out=; r=");
    for (line, due) in [
        (
            "-a --receipt=/dev/full src dst",
            "cp: error writing '/dev/full': No space left on device\n",
        ),
        (
            "-a --receipt=no/such src other",
            "cp: cannot open 'no/such' for writing: No such file or directory\n",
        ),
        (
            "--receipt=src/sub/a src/sub/a other",
            "cp: 'src/sub/a' is a source or a destination, and cannot be the receipt\n",
        ),
    ] {
        check(&cp(&dir, line), 1, due, line);
    }
    assert!(dir.path().join("dst/sub/a").exists(), "the copy was made all the same");
    assert!(!dir.path().join("other").exists(), "nothing is copied without the receipt");
    check_content(dir.path().join("src/sub/a"), "text", "");
    let output = shell(&dir, "\"$0\" cp --receipt=- a b >&-").output().expect("ran");
    check(&output, 1, "cp: cannot open '-' for writing: Bad file descriptor\n", ">&-");
    // A server may refuse at the end what it took before.
    for (file, line) in [("out", "--receipt=- a b"), ("r", "--receipt=r a b"), ("out", "-v a b")] {
        let script = format!(
            "strace -f -o trace -e trace=close -e inject=close:error=EDQUOT -P $PWD/{file} \"$0\" cp {line} >out"
        );
        let output = shell(&dir, &script).output().expect("ran");
        if !dir.path().join("trace").exists() {
            return skip(&test_name(), "strace cannot be run here");
        }
        check_failed(&output, "Disk quota exceeded", line);
    }
}

#[test]
fn lines_for_people_are_not_mixed_with_receipts() {
    let dir = dir_with("a=text");
    for option in ["-v", "--debug"] {
        let output = cp(&dir, &format!("{option} --receipt=- a b"));
        let words = "cp: --receipt=- cannot be combined with --verbose or --debug\n";
        check_failed(&output, words, option);
        assert!(output.stdout.is_empty() && !dir.path().join("b").exists(), "{option}");
    }
}

#[test]
fn lines_of_many_workers_are_whole() {
    let dir = dir_with("src/");
    for number in 0..3000 {
        write(dir.path().join(format!("src/{number}")), "text").expect("written");
    }
    let output = copy(&dir, "-a --jobs=8 --receipt=- src dst");
    write(dir.path().join("r"), &output.stdout).expect("written");
    let lines = json_lines(&dir.path().join("r"));
    assert_eq!(lines.len(), 3002);
    let sources: BTreeSet<_> = lines.iter().filter_map(|line| line["src"].as_str()).collect();
    assert_eq!(sources.len(), 3001);
}

/// Fails the test unless each row is a line of the figures, but for the blanks between its words.
fn check_figures(said: &str, rows: &[&str]) {
    let lines: Vec<String> =
        said.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for row in rows {
        assert!(lines.iter().any(|line| line == row), "{row} in\n{said}");
    }
    assert!(said.lines().all(|line| line.len() < 80), "{said}");
}

#[test]
fn stats_report_what_was_copied_and_how() {
    let dir = dir_with(SOURCE);
    let output = copy(&dir, "-a --stats --engine=read_write:256K src dst");
    check_figures(
        &stderr(&output),
        &[
            "regular files 4 1 0 0",
            "directories 2 0 0 0",
            "symbolic links 1 0 0 0",
            "data 97.7 KiB",
            "shared 0 B",
            "holes 1.00 MiB",
            "read_write:256K 97.7 KiB 2 files",
        ],
    );
    assert_eq!(output.stdout, b"");
}

/// The variants that move the first files are counted by their names.
#[test]
fn stats_name_the_variants_used_before_a_profile_is_read() {
    each_fs(|_, dir| {
        for (len, due) in [
            ("4K", "read_write:256K 4.00 KiB 1 file"),
            ("4M", "splice:512K,pipe=512K 4.00 MiB 1 file"),
        ] {
            fixture::add(&format!("a#{len}:1"), dir);
            check_figures(&stderr(&copy(dir, "--stats --reflink=never a b")), &[due]);
        }
    });
}

#[test]
fn no_copy_takes_the_place_of_the_receipt() {
    for options in ["", "--atomic ", "--remove-destination ", "-b "] {
        let dir = dir_with("a=content; t/");
        let output = cp(&dir, &format!("{options}--receipt=t/a a t"));
        let said = "cp: will not overwrite 't/a' with 'a': it is the receipt\n";
        check(&output, 1, said, options);
        let lines = json_lines(&dir.path().join("t/a"));
        assert_eq!(entry(&lines, "a")["method"], "failed", "{options}");
    }
}

/// A copy of it would be of a part, without a word.
#[test]
fn a_receipt_among_the_sources_is_not_copied() {
    let dir = dir_with("s/a=content");
    let output = cp(&dir, "-r --receipt=s/receipt s t");
    let said = "cp: not copying 's/receipt': it is the receipt, which is being written\n";
    check(&output, 1, said, "");
    let lines = json_lines(&dir.path().join("s/receipt"));
    assert_eq!(entry(&lines, "s/receipt")["method"], "failed");
    assert_eq!(entry(&lines, "s/a")["method"], "copied");
    assert!(dir.path().join("t/a").exists() && !dir.path().join("t/receipt").exists());
    copy(&dir, "-r --receipt=s/receipt --exclude=/receipt s u");
}

/// Two sources may have one destination, and each has a line.
#[test]
fn a_file_that_waits_for_its_sync_keeps_its_line() {
    let dir = dir_with("one/x=text; two/x->nowhere; dst/");
    copy(&dir, "-d --durable --backup=numbered --receipt=r one/x two/x dst");
    let lines = json_lines(&dir.path().join("r"));
    for src in ["one/x", "two/x"] {
        assert_eq!(entry(&lines, src)["dst"], "dst/x");
    }
}
