//! Rules of `--exclude` and `--include`, and ignore files.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tree::{Destination, Filter, IgnoreFile, Options, Request, Rule};

use super::silent::Silent;
use crate::scratch;
use crate::target::Target;

pub(crate) const TARGET: Target = Target {
    name: "filter",
    about: "rules: a line of - and a glob excludes, + includes; after a line == an ignore file",
    run,
    input_bytes_max: 1024,
    dictionary: "filter",
};

/// Names that patterns of all kinds may match.
const NAMES: &[&[u8]] = &[
    b"a",
    b"b.txt",
    b"x.o",
    b"\xff\xfe",
    "\u{e4}".as_bytes(),
    b"blank ",
    b"#x",
    b"!y",
    b"[z]",
    b"*",
    b"\\",
    b"\n",
    b"{a,b}",
    b"\x01\x7f",
];

fn run(input: &[u8]) {
    let (rules, ignore_file) = parts(input);
    let files = [IgnoreFile { path: PathBuf::from("rules"), text: ignore_file }];
    let filter = match Filter::new(&rules, &files) {
        Ok(filter) => filter,
        Err(bad) => return drop(bad.glob),
    };
    let src = source();
    let request = Request {
        sources: vec![src.as_os_str().to_owned()],
        destination: Destination::Exact(src.with_extension("none").into_os_string()),
    };
    let options = Options { dry_run: true, filter, ..Options::archive() };
    let outcome = tree::copy(&request, &options, &Silent);
    assert_eq!(outcome.failures, 0, "nothing fails");
}

fn parts(input: &[u8]) -> (Vec<Rule>, Vec<u8>) {
    let marker = b"\n==\n";
    let end = input.windows(marker.len()).position(|window| window == marker);
    let (rules, ignore_file) = match end {
        Some(end) => (&input[..end], &input[end + marker.len()..]),
        None => (input, &b""[..]),
    };
    let rule = |line: &[u8]| {
        let (sign, glob) = line.split_first()?;
        let include = match sign {
            b'+' => true,
            b'-' => false,
            _ => return None,
        };
        Some(Rule { include, glob: OsString::from_vec(glob.to_vec()) })
    };
    (rules.split(|&byte| byte == b'\n').filter_map(rule).collect(), ignore_file.to_vec())
}

/// A tree of two levels with all names.
fn source() -> &'static Path {
    static SOURCE: OnceLock<PathBuf> = OnceLock::new();
    SOURCE.get_or_init(|| {
        let top = scratch::empty_dir("filter").join("src");
        for dir in [top.clone(), top.join("d"), top.join("d/e")] {
            std::fs::create_dir(&dir).expect("created");
            for name in NAMES {
                std::fs::write(dir.join(OsStr::from_bytes(name)), "").expect("written");
            }
        }
        top
    })
}
