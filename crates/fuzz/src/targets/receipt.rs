//! The receipts of files with hostile names.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use serde_json::Value;

use super::program;
use crate::scratch;
use crate::target::Target;

pub(crate) const TARGET: Target = Target {
    name: "receipt",
    about: "names of files, separated by slashes, which receipts and messages hold",
    run,
    input_bytes_max: 2048,
    dictionary: "receipt",
};

fn run(input: &[u8]) {
    let dir = scratch::empty_dir("receipt");
    std::fs::create_dir(dir.join("src")).expect("created");
    let names: BTreeSet<&[u8]> = input
        .split(|byte| matches!(byte, b'/' | 0))
        .filter(|name| !matches!(*name, b"" | b"." | b"..") && name.len() < 200)
        .collect();
    for name in &names {
        std::fs::write(dir.join("src").join(OsStr::from_bytes(name)), "x").expect("written");
    }
    let mut command = program::command(&dir);
    command.args(["cp", "-a", "--debug", "--receipt=receipts", "src", "dst"]);
    let output = program::run(command, b"");
    assert!(output.status.success(), "{}", testfs::stderr(&output));

    let text = std::fs::read_to_string(dir.join("receipts")).expect("receipts are UTF-8");
    let records: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    // One for each name, one for the directory, and the summary.
    assert_eq!(records.len(), names.len() + 2, "{text}");
    let copied: BTreeSet<Vec<u8>> = records
        .iter()
        .filter(|record| record["type"] == "file")
        .map(|record| {
            let path = bytes_of(&record["dst"]);
            path.strip_prefix(b"dst/").expect("it is in the directory").to_vec()
        })
        .collect();
    let expected: BTreeSet<Vec<u8>> = names.into_iter().map(<[u8]>::to_vec).collect();
    assert_eq!(copied, expected, "receipts hold the names of the files");
}

/// The bytes of a name, by docs/receipt.md.
fn bytes_of(name: &Value) -> Vec<u8> {
    match name {
        Value::String(text) => text.as_bytes().to_vec(),
        name => {
            let digits = name["bytes"].as_str().expect("bytes in hexadecimal");
            let digit = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits");
            (0..digits.len()).step_by(2).map(digit).collect()
        }
    }
}
