//! Copies from and to a file system with faults: the copy is right, or cp reports the failure.

use std::path::Path;
use std::process::Output;

use rustix::io::Errno;
use testfs::{FuseFs, Lies, WrongSize, random_bytes, stderr};

use crate::{check_content, check_failed, check_success, dir_with, haulage_cp};

const LEN: usize = 300_000;

fn cp(options: &str, src: &Path, dst: &Path) -> Output {
    haulage_cp(".", options).args([src, dst]).output().expect("haulage ran")
}

/// The result that a copy must have.
enum Due {
    Right,
    /// Success, with a warning that the file changed.
    Warned,
    /// Exit status 1, and these words about the file.
    Error(&'static str),
}

const OPTIONS: [&str; 5] = ["", "-a", "--sparse=always", "--sparse=never", "--reflink=never"];

/// Fails the test unless the copy has the result `due`.
fn check(what: &str, output: &Output, due: &Due, name: &str, copied_right: bool) {
    match due {
        Due::Right => {
            check_success(output, what);
            assert!(copied_right, "{what}: silently wrong");
        }
        Due::Warned => {
            check_success(output, what);
            let said = stderr(output);
            assert!(said.contains("changed while being copied"), "{what}: {said}");
        }
        Due::Error(words) => {
            check_failed(output, words, what);
            check_failed(output, name, what);
        }
    }
}

#[test]
fn a_copy_from_a_faulty_file_system_is_right_or_reports_an_error() {
    let short = Lies { read_bytes_max: Some(777), ..Lies::default() };
    let failing = Lies { read_error_at: Some(100_000), ..Lies::default() };
    let no_blocks = |lies: &Lies| Lies { no_blocks: true, ..lies.clone() };
    let error = || Due::Error("Input/output error");
    let size = |bytes| Lies { size: Some(WrongSize::Is(bytes)), ..Lies::default() };
    for (what, faults, due) in [
        ("no fault", Lies::default(), Due::Right),
        ("no blocks", no_blocks(&Lies::default()), Due::Right),
        ("all hole", Lies { no_blocks: true, all_hole: true, ..Lies::default() }, Due::Right),
        ("all hole in full blocks", Lies { all_hole: true, ..Lies::default() }, Due::Right),
        ("short reads of no blocks", no_blocks(&short), Due::Right),
        ("short reads", short, Due::Right),
        ("an error among no blocks", no_blocks(&failing), error()),
        ("an error", failing, error()),
        ("length zero", size(0), Due::Right),
        ("too short", size(1000), Due::Right),
        ("too short by one", size(LEN as u64 - 1), Due::Right),
        ("too long", size(LEN as u64 + 4096), Due::Error("while being copied")),
        ("huge", size(1 << 40), Due::Error("while being copied")),
        ("changes", Lies { reads_change_times: true, ..Lies::default() }, Due::Warned),
    ] {
        let content = random_bytes(LEN, 7);
        let Some(faulty) = FuseFs::with_source(content.clone(), faults) else { return };
        let dir = tempfile::tempdir().expect("created");
        for options in OPTIONS {
            let dst = dir.path().join("copy");
            let output = cp(options, &faulty.source(), &dst);
            let right = std::fs::read(&dst).is_ok_and(|copied| copied == content);
            check(&format!("{what} {options}"), &output, &due, "source", right);
            std::fs::remove_file(&dst).expect("a copy, if only of a part");
        }
    }
}

#[test]
fn a_copy_to_a_faulty_file_system_is_right_or_reports_an_error() {
    let write = |at, errno| Lies { write_error: Some((at, errno)), ..Lies::default() };
    let close = |errno| Lies { close_error: Some(errno), ..Lies::default() };
    for (what, faults, due) in [
        ("no fault", Lies::default(), Due::Right),
        ("full", write(100_000, Errno::NOSPC), Due::Error("No space left on device")),
        ("no quota at once", write(0, Errno::DQUOT), Due::Error("Disk quota exceeded")),
        ("an error at close", close(Errno::IO), Due::Error("failed to close '")),
        ("no quota at close", close(Errno::DQUOT), Due::Error("Disk quota exceeded")),
    ] {
        let dir = dir_with("original#300000:8");
        let content = random_bytes(LEN, 8);
        for options in OPTIONS {
            let Some(faulty) = FuseFs::with_source(Vec::new(), faults.clone()) else { return };
            let dst = faulty.path().join("made");
            let output = cp(options, &dir.path().join("original"), &dst);
            let right = std::fs::read(&dst).is_ok_and(|copied| copied == content);
            check(&format!("{what} {options}"), &output, &due, "made", right);
        }
    }
}

/// The faulty file system does not support extended attributes, like some older ones.
#[test]
fn unsupported_attributes_are_reported_once() {
    let dir = dir_with("original=text user.a=v user.b=v");
    for (options, status) in
        [("--preserve=xattr", 1), ("-a --preserve=xattr", 1), ("--preserve=all", 0), ("-a", 0)]
    {
        let Some(faulty) = FuseFs::with_source(Vec::new(), Lies::default()) else { return };
        let dst = faulty.path().join("made");
        let line =
            format!("cp: setting attributes for '{}': Operation not supported\n", dst.display());
        let output = cp(options, &dir.path().join("original"), &dst);
        crate::check(&output, status, if status == 1 { &line } else { "" }, options);
        check_content(dst, "text", options);
    }
}

/// Where a length may be wrong, the source is read to its end, also for a pipe.
#[test]
fn a_copy_to_a_pipe_is_no_shorter_than_one_to_a_file() {
    let lies = Lies { size: Some(WrongSize::Is(10)), ..Lies::default() };
    let Some(faulty) = FuseFs::with_source(random_bytes(LEN, 3), lies) else { return };
    let output = cp("", &faulty.source(), Path::new("/dev/stdout"));
    check_success(&output, "");
    assert!(output.stdout == random_bytes(LEN, 3), "{} bytes", output.stdout.len());
}

/// A length that becomes right while the file is read is not one that has grown.
#[test]
fn a_length_that_is_learned_late_loses_no_bytes() {
    let home = tempfile::tempdir().expect("created");
    let content = random_bytes(3_000_000, 4);
    for bytes in [0, 10] {
        let lies = Lies { size_until_read: Some(bytes), ..Lies::default() };
        let Some(faulty) = FuseFs::with_source(content.clone(), lies) else { return };
        let copy = home.path().join("copy");
        check_success(&cp("", &faulty.source(), &copy), bytes);
        check_content(copy, &content, bytes);
    }
}
