use std::collections::BTreeSet;

use crate::definition::{Analysis, Definition};
use crate::workload;

const SMALL: &str = r#"schema = 1
name = "small"
title = "A small one"
question = "Which?"
analysis = "None."

[[part]]
name = "sizes"
question = "Which buffer?"
workload = "copy"
variants = ["read_write:{buffer}", "sendfile"]
each = { buffer = ["4K", "64K"] }
sizes = ["64", "1M"]
states = ["warm", "cold"]
baseline = "read_write:64K"
scaled = true

[part.reference]
data = "copying-disk-bytes"
not_controlled = "Order."
series = { "read_write:{buffer}" = "bufsiz:posix_buffered@{buffer}", "sendfile" = "size:sendfile" }
"#;

#[test]
fn variants_are_expanded_and_cells_are_all_combinations() {
    let small = Definition::parse(SMALL, "small.toml").expect("parsed");
    assert_eq!(small.parts[0].variants, ["read_write:4K", "read_write:64K", "sendfile"]);
    let cells = small.cells();
    assert_eq!(cells.len(), 4);
    let ids: Vec<String> = cells.iter().map(|(_, cell)| cell.id()).collect();
    assert_eq!(ids, ["sizes/64", "sizes/64/cold", "sizes/1M", "sizes/1M/cold"]);
    let compared: Vec<&String> = small.parts[0].compared().collect();
    assert_eq!(compared, ["read_write:4K", "sendfile"]);
    let reference = small.parts[0].reference.as_ref().expect("one");
    assert_eq!(reference.series["read_write:4K"], "bufsiz:posix_buffered@4K");
    assert_eq!((reference.series.len(), reference.at_once, reference.state), (3, 1, None));
}

#[test]
fn the_main_part_is_the_one_named_or_the_first() {
    let two = SMALL.to_owned()
        + "\n[[part]]\nname = \"empty\"\nquestion = \"And a call?\"\n\
        workload = \"syscall\"\nvariants = [\"getppid\"]\n";
    let parsed = |text: &str| Definition::parse(text, "two.toml").expect("parsed");
    assert_eq!(parsed(&two).main_part().name, "sizes");
    let named = parsed(&two.replacen("schema = 1", "schema = 1\nmain = \"empty\"", 1));
    assert_eq!(named.main_part().name, "empty");
    assert_eq!(parsed(&named.to_toml()), named);

    let only = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        parsed(&two).only(&names).map_err(Clone::clone)
    };
    assert_eq!(only(&[]).expect("all").parts.len(), 2);
    let empty = only(&["empty"]).expect("one");
    assert_eq!((empty.parts.len(), empty.main.as_str()), (1, "empty"));
    assert_eq!(only(&["empty", "sizes"]).expect("both").main, "sizes");
    assert_eq!(only(&["sizes", "none"]), Err("none".to_owned()));
}

#[test]
fn what_was_run_reads_back_as_it_was() {
    let small = Definition::parse(SMALL, "small.toml").expect("parsed").scaled(0.5);
    assert_eq!(small.parts[0].sizes, ["32", "512K"]);
    let again = Definition::parse(&small.to_toml(), "experiment.toml").expect("parsed");
    assert_eq!(again, small);
}

#[test]
fn faults_are_told_by_file_and_line() {
    for (from, to, expected) in [
        ("schema = 1", "schema = 9", "1: schema 9 is not known here, expected 1"),
        ("\"small\"", "\"Small One\"", "2: 'Small One' is no name, expected small"),
        ("\"copy\"", "\"move\"", "10: no workload is called 'move', expected one of"),
        ("\"copy\"", "\"digest\"\ndurable = true", "10: the workload digest brings nothing"),
        ("\"copy\"", "\"read\"\nmeasure = \"durable\"", "10: the workload read brings nothing"),
        (
            "\"copy\"\nvariants = [\"read_write:{buffer}\", \"sendfile\"]",
            "\"receive\"\nvariants = [\"read_write:{buffer}\", \"splice\"]",
            "14: the workload receive reads no",
        ),
        ("\"sendfile\"", "\"sendfil\"", "11: variant 'sendfil': "),
        ("\"1M\"]", "\"1M\", \"1024K\"]", "13: '1024K' is the same size as '1M'"),
        ("\"cold\"", "\"warm\"", "14: a state is there twice"),
        ("schema = 1", "schema = 1\nminutes = -2", "2: expected minutes over 0"),
        (
            "schema = 1",
            "schema = 1\nmain = \"size\"",
            "2: no part is called 'size', expected one of sizes",
        ),
        ("baseline = \"read_write:64K\"", "compare = [\"sendfile\"]", "15: there is no baseline"),
        ("each = { ", "each = { other = [\"1\"], ", "12: no variant has {other} in it"),
        (
            "scaled = true",
            "slowed = { sendfile = { sometimes = 7.0 } }",
            "16: expected `by` from 0",
        ),
        ("scaled = true", "at_once = [2, 2]", "16: 2 is there twice"),
        ("scaled = true", "destinations = []", "16: expected fresh, overwritten or both"),
        ("\"64\"", "\"64Q\"", "13: '64Q' is no size, expected bytes as"),
        ("\"cold\"", "\"tepid\"", "14: unknown variant `tepid`, expected one of"),
        ("write:64K\"\n", "write:1K\"\n", "15: 'read_write:1K' is not among"),
        ("scaled", "sclaed", "16: unknown field `sclaed`"),
        ("\"copying-", "\"copied-", "19: no reference is called 'copied-disk"),
        ("size:send", "size:sent", "21: 'size:sentfile' is no series of copying"),
        ("\"sendfile\" = ", "\"splice\" = ", "21: 'splice' is not among"),
    ] {
        assert!(SMALL.contains(from), "{from}");
        let text = SMALL.replacen(from, to, 1);
        let error = Definition::parse(&text, "x.toml").expect_err(expected).to_string();
        assert!(error.starts_with(&format!("x.toml:{expected}")), "{error}\nfor {expected}");
        assert!(!error.contains('\n'), "{error}");
    }
}

const DOCUMENT: &str = include_str!("../../../../docs/experiments.md");

#[test]
fn the_document_is_right() {
    let example = DOCUMENT.split("```toml\n").nth(1).expect("found");
    let example = example.split("```").next().expect("found");
    let parsed = Definition::parse(example, "docs/experiments.md").expect("parsed");
    assert_eq!((parsed.parts.len(), parsed.cells().len()), (2, 25));
    let documented = testfs::documented_fields(DOCUMENT);
    let workloads = workload::WORKLOADS.iter().map(|row| row.name.to_owned());
    assert_eq!(documented["Workloads"], BTreeSet::from_iter(workloads));
    let table: toml::Table = example.parse().expect("parsed");
    for field in &documented["The experiment"] {
        assert!(table.contains_key(field), "no {field} in the example");
    }
    let parts = table["part"].as_array().expect("parts");
    for field in documented["A part"].iter().filter(|field| *field != "slowed") {
        assert!(parts.iter().any(|part| part.get(field).is_some()), "no {field} in the example");
    }
    for analysis in &documented["Analyses"] {
        toml::Value::from(analysis.as_str()).try_into::<Analysis>().expect("an analysis");
    }
}
