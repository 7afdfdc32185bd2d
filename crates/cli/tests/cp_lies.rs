//! Copies from and to a file system with faults: the copy is right, or cp reports the failure.

use std::path::Path;
use std::process::Output;

use rustix::io::Errno;
use testfs::{FuseFs, Lies, WrongSize, random_bytes, skip, test_name};

const LEN: usize = 300_000;

fn cp(args: &[&str], src: &Path, dst: &Path) -> Output {
    let mut command = testfs::command(env!("CARGO_BIN_EXE_haulage"));
    command.arg("cp").args(args).args([src, dst]).output().expect("haulage runs")
}

/// The result that a copy must have.
enum Due {
    Right,
    /// Success, with a warning that the file changed.
    Warned,
    /// Exit status 1, and these words about the file.
    Error(&'static str),
}

const OPTIONS: &[&[&str]] =
    &[&[], &["-a"], &["--sparse=always"], &["--sparse=never"], &["--reflink=never"]];

/// Fails the test unless the copy has the result `due`.
fn check(what: &str, output: &Output, due: &Due, name: &str, copied_right: bool) {
    let said = String::from_utf8_lossy(&output.stderr);
    match due {
        Due::Right => {
            assert!(output.status.success(), "{what}: {said}");
            assert!(copied_right, "{what}: silently wrong");
        }
        Due::Warned => {
            assert!(output.status.success(), "{what}: {said}");
            assert!(said.contains("changed while being copied"), "{what}: {said}");
        }
        Due::Error(words) => {
            assert_eq!(output.status.code(), Some(1), "{what}: {said}");
            assert!(said.contains(words) && said.contains(name), "{what}: {said}");
        }
    }
}

#[test]
fn a_copy_from_a_faulty_file_system_is_right_or_reports_an_error() {
    let read_error_at = Some(100_000);
    let size = |bytes| Lies { size: Some(WrongSize::Is(bytes)), ..Lies::default() };
    for (what, faults, due) in [
        ("no fault", Lies::default(), Due::Right),
        ("no blocks", Lies { no_blocks: true, ..Lies::default() }, Due::Right),
        ("all hole", Lies { no_blocks: true, all_hole: true, ..Lies::default() }, Due::Right),
        ("all hole in full blocks", Lies { all_hole: true, ..Lies::default() }, Due::Right),
        ("short reads", Lies { read_bytes_max: Some(777), ..Lies::default() }, Due::Right),
        (
            "short reads of no blocks",
            Lies { read_bytes_max: Some(777), no_blocks: true, ..Lies::default() },
            Due::Right,
        ),
        ("an error", Lies { read_error_at, ..Lies::default() }, Due::Error("Input/output error")),
        (
            "an error among no blocks",
            Lies { read_error_at, no_blocks: true, ..Lies::default() },
            Due::Error("Input/output error"),
        ),
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
        for args in OPTIONS {
            let dst = dir.path().join("copy");
            let output = cp(args, &faulty.source(), &dst);
            let right = std::fs::read(&dst).is_ok_and(|copied| copied == content);
            check(&format!("{what} {args:?}"), &output, &due, "source", right);
            std::fs::remove_file(&dst).expect("a copy, if only of a part");
        }
    }
}

#[test]
fn a_copy_to_a_faulty_file_system_is_right_or_reports_an_error() {
    for (what, faults, due) in [
        ("no fault", Lies::default(), Due::Right),
        (
            "full",
            Lies { write_error: Some((100_000, Errno::NOSPC)), ..Lies::default() },
            Due::Error("No space left on device"),
        ),
        (
            "no quota at once",
            Lies { write_error: Some((0, Errno::DQUOT)), ..Lies::default() },
            Due::Error("Disk quota exceeded"),
        ),
        (
            "an error at close",
            Lies { close_error: Some(Errno::IO), ..Lies::default() },
            Due::Error("Input/output error"),
        ),
        (
            "no quota at close",
            Lies { close_error: Some(Errno::DQUOT), ..Lies::default() },
            Due::Error("Disk quota exceeded"),
        ),
    ] {
        let dir = tempfile::tempdir().expect("created");
        let src = dir.path().join("original");
        let content = random_bytes(LEN, 8);
        std::fs::write(&src, &content).expect("written");
        for args in OPTIONS {
            let Some(faulty) = FuseFs::with_source(Vec::new(), faults.clone()) else { return };
            let dst = faulty.path().join("made");
            let output = cp(args, &src, &dst);
            let right = std::fs::read(&dst).is_ok_and(|copied| copied == content);
            check(&format!("{what} {args:?}"), &output, &due, "made", right);
        }
    }
}

/// The faulty file system does not support extended attributes, like some older ones.
#[test]
fn unsupported_attributes_are_reported_once() {
    let dir = tempfile::tempdir().expect("created");
    let src = dir.path().join("original");
    std::fs::write(&src, "text").expect("written");
    for name in ["user.a", "user.b"] {
        if let Err(errno) = rustix::fs::setxattr(&src, name, b"v", rustix::fs::XattrFlags::empty())
        {
            skip(&test_name(), &format!("{} keeps no attributes: {errno}", src.display()));
            return;
        }
    }
    for (args, status, is_reported) in [
        (&["--preserve=xattr"][..], 1, true),
        (&["-a", "--preserve=xattr"], 1, true),
        (&["--preserve=all"], 0, false),
        (&["-a"], 0, false),
    ] {
        let Some(faulty) = FuseFs::with_source(Vec::new(), Lies::default()) else { return };
        let dst = faulty.path().join("made");
        let output = cp(args, &src, &dst);
        assert_eq!(output.status.code(), Some(status), "{args:?}");
        let line =
            format!("cp: setting attributes for '{}': Operation not supported\n", dst.display());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said, if is_reported { line } else { String::new() }, "{args:?}");
        assert_eq!(std::fs::read(&dst).expect("read"), b"text", "{args:?}");
    }
}

/// Where a length may be wrong, the source is read to its end, also for a pipe.
#[test]
fn a_copy_to_a_pipe_is_no_shorter_than_one_to_a_file() {
    let Some(faulty) = FuseFs::mount(testfs::Costs { direct_io: true, ..Default::default() })
    else {
        return;
    };
    let content = random_bytes(LEN, 3);
    std::fs::write(faulty.path().join("f"), &content).expect("written");
    faulty.lie(Lies { size: Some(WrongSize::Is(10)), ..Lies::default() });
    let output = cp(&[], &faulty.path().join("f"), Path::new("/dev/stdout"));
    assert!(output.status.success(), "{}", testfs::stderr(&output));
    assert!(output.stdout == content, "{} bytes", output.stdout.len());
}

/// A length that becomes right while the file is read is not one that has grown.
#[test]
fn a_length_that_is_learned_late_loses_no_bytes() {
    let home = tempfile::tempdir().expect("created");
    let Some(faulty) = FuseFs::mount(testfs::Costs { direct_io: true, ..Default::default() })
    else {
        return;
    };
    let content = random_bytes(3_000_000, 4);
    std::fs::write(faulty.path().join("f"), &content).expect("written");
    for bytes in [0, 10] {
        faulty.lie(Lies { size_until_read: Some(bytes), ..Lies::default() });
        let copy = home.path().join("copy");
        let output = cp(&[], &faulty.path().join("f"), &copy);
        assert!(output.status.success(), "{}", testfs::stderr(&output));
        assert!(std::fs::read(&copy).expect("read") == content, "{bytes}");
    }
}
