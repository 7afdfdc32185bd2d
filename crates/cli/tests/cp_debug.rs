//! What `cp --debug` says of how a file was copied, on each file system, in GNU's words.

use std::fs::{File, read, remove_file, write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Output;

use testfs::{each_fs, each_pair, stderr, stdout};

use crate::{check_content, copy, cp, fixture};

const BLOCK: usize = 4096;

fn build(dir: &Path) {
    write(dir.join("zeros"), vec![0; 64 * BLOCK]).expect("written");
    // The last is too short for a hole that matters.
    fixture::add("empty=; text=some\\stext; hole~1M; part~1M@400K; short~100", dir);
    // The blocks of what is only in memory yet are counted otherwise on some file systems.
    for name in ["text", "zeros", "part"] {
        File::open(dir.join(name)).and_then(|file| file.sync_all()).expect("synced");
    }
}

/// The lines in GNU's words: which engines moved the data, and why, is a line of our own.
fn in_gnus_words(output: &Output) -> String {
    let text = stdout(output);
    text.split_inclusive('\n').filter(|line| !line.starts_with("haulage: ")).collect()
}

/// What is due where blocks cannot be shared. Reading and writing is chosen over the kernel's
/// copying, which is avoided only if the options do not allow it: source, options, offload, reflink
/// and detection.
const WITHOUT_REFLINK: &[(&str, &str, [&str; 3])] = &[
    ("empty", "", ["unknown", "unsupported", "no"]),
    ("empty", "--sparse=always", ["avoided", "unsupported", "zeros"]),
    ("text", "", ["no", "unsupported", "no"]),
    ("text", "--sparse=always", ["avoided", "unsupported", "zeros"]),
    ("zeros", "--sparse=always", ["avoided", "unsupported", "zeros"]),
    ("hole", "", ["unknown", "unsupported", "SEEK_HOLE"]),
    ("hole", "--sparse=always", ["unknown", "unsupported", "SEEK_HOLE"]),
    ("part", "", ["no", "unsupported", "SEEK_HOLE"]),
    ("part", "--sparse=always", ["avoided", "unsupported", "SEEK_HOLE + zeros"]),
    ("short", "", ["no", "unsupported", "no"]),
    ("text", "--engine=copy_file_range", ["yes", "no", "no"]),
    ("part", "--engine=copy_file_range", ["yes", "no", "SEEK_HOLE"]),
];

/// What is due everywhere.
const ANYWHERE: &[(&str, &str, [&str; 3])] = &[
    ("empty", "--reflink=never", ["avoided", "no", "no"]),
    ("empty", "--sparse=never", ["avoided", "no", "no"]),
    ("text", "--reflink=never", ["avoided", "no", "no"]),
    ("hole", "--reflink=never", ["unknown", "no", "SEEK_HOLE"]),
    ("hole", "--reflink=never --sparse=always", ["unknown", "no", "SEEK_HOLE"]),
    ("hole", "--sparse=never", ["unknown", "no", "SEEK_HOLE"]),
    ("part", "--sparse=never", ["avoided", "no", "SEEK_HOLE"]),
    ("part", "--reflink=never", ["avoided", "no", "SEEK_HOLE"]),
    ("part", "--reflink=never --sparse=never", ["avoided", "no", "SEEK_HOLE"]),
    ("/proc/version", "", ["unsupported", "unsupported", "no"]),
    ("/proc/version", "--reflink=never", ["avoided", "no", "no"]),
    ("/dev/null", "", ["unsupported", "unsupported", "no"]),
];

const WITH_REFLINK: &[(&str, &str, [&str; 3])] = &[
    ("text", "", ["unknown", "yes", "unknown"]),
    ("part", "", ["unknown", "yes", "unknown"]),
    ("text", "--sparse=always", ["avoided", "no", "zeros"]),
];

#[test]
fn debug_reports_how_a_file_was_copied() {
    each_fs(|kind, dir| {
        build(dir);
        let table = if kind.reflinks() { WITH_REFLINK } else { WITHOUT_REFLINK };
        for (src, options, [offload, reflink, sparse]) in table.iter().chain(ANYWHERE) {
            let output = copy(dir, &format!("--debug {options} {src} copy"));
            let what = format!("{kind} {options} {src}");
            let due = format!(
                "'{src}' -> 'copy'\ncopy offload: {offload}, reflink: {reflink}, \
                 sparse detection: {sparse}\n"
            );
            assert_eq!(in_gnus_words(&output), due, "{what}");
            let copy = dir.join("copy");
            check_content(&copy, read(dir.join(src)).expect("read"), &what);
            let made = std::fs::metadata(&copy).expect("looked at");
            let is_dense = made.blocks() * 512 >= made.len();
            assert!(is_dense || !options.contains("--sparse=never"), "{what}: {made:?}");
            remove_file(&copy).expect("removed");
        }
    });
}

/// Nothing is avoided unless the options ask for that, for sparse files neither.
#[test]
fn offload_is_avoided_only_if_the_options_ask_for_it() {
    each_pair(|src, dst| {
        write(src.join("dense"), "y\n".repeat(1 << 20)).expect("written");
        // Some of it is data.
        fixture::add("sparse~1M@0", src.path());
        for name in ["sparse", "dense"] {
            for (options, avoids) in [
                ("", false),
                ("--jobs=1", false),
                ("--no-cache", false),
                ("--engine=copy_file_range", false),
                ("--reflink=never", true),
                ("--sparse=never", true),
                ("--sparse=always", true),
            ] {
                let (from, to) = (src.join(name), dst.join("copy"));
                let line = format!("--debug {options} {} {}", from.display(), to.display());
                let said = in_gnus_words(&copy(".", &line));
                let what = format!("{} to {} {name} {options}: {said}", src.kind, dst.kind);
                assert_eq!(said.contains("copy offload: avoided"), avoids, "{what}");
                remove_file(dst.join("copy")).expect("removed");
            }
        }
    });
}

/// With `--reflink=always` the refusal of a clone is an error, also for files without blocks.
#[test]
fn a_required_clone_is_tried_for_every_kind_of_file() {
    each_fs(|kind, dir| {
        build(dir);
        for (src, dst, works) in [
            ("empty", "copy", kind.reflinks()),
            ("text", "copy", kind.reflinks()),
            ("/dev/null", "copy", false),
            ("/dev/null", "/dev/full", false),
            ("/proc/version", "copy", false),
        ] {
            let output = cp(dir, &format!("--reflink=always {src} {dst}"));
            let said = stderr(&output);
            let what = format!("{kind} {src}: {said}");
            assert_eq!(output.status.success(), works, "{what}");
            let complaint = format!("cp: failed to clone '{dst}' from '{src}': ");
            assert_eq!(said.starts_with(&complaint), !works, "{what}");
            assert_eq!(dir.join("copy").exists(), works, "{what}");
            let _ = remove_file(dir.join("copy"));
        }
    });
}
