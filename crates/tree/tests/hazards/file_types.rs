//! Entries that are not regular files, and names that are not text.

use std::ffi::OsStr;
use std::fs::{create_dir, metadata, read, symlink_metadata, write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use tree::{Diagnostic, Options};

use crate::recorder::{Recorder, copy_exactly, copy_ok};

fn node(path: &Path, kind: FileType, device: u64) {
    mknodat(CWD, path, kind, Mode::from_raw_mode(0o640), device).expect("a node can be made");
}

#[test]
fn fifos_and_sockets_are_created_and_never_opened() {
    let dir = tempfile::tempdir().expect("a directory");
    let (src, dst) = (dir.path().join("s"), dir.path().join("t"));
    create_dir(&src).expect("a directory");
    node(&src.join("fifo"), FileType::Fifo, 0);
    node(&src.join("socket"), FileType::Socket, 0);
    // Opening either for reading would block or fail.
    copy_ok(&src, &dst, &Options::archive());
    let kind = |name: &str| symlink_metadata(dst.join(name)).expect("the copy").file_type();
    assert!(kind("fifo").is_fifo());
    assert!(kind("socket").is_socket());
    assert_eq!(metadata(dst.join("fifo")).expect("the copy").mode() & 0o777, 0o640);
}

#[test]
fn devices_keep_their_device_numbers() {
    if !testfs::is_root() {
        return testfs::skip(&testfs::test_name(), "devices need root");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let (src, dst) = (dir.path().join("s"), dir.path().join("t"));
    create_dir(&src).expect("a directory");
    node(&src.join("null"), FileType::CharacterDevice, makedev(1, 3));
    node(&src.join("disk"), FileType::BlockDevice, makedev(259, 4321));
    copy_ok(&src, &dst, &Options::archive());
    for (name, device) in [("null", makedev(1, 3)), ("disk", makedev(259, 4321))] {
        assert_eq!(symlink_metadata(dst.join(name)).expect("the copy").rdev(), device, "{name}");
    }
}

#[test]
fn an_existing_device_keeps_its_attributes() {
    if !testfs::is_root() {
        return testfs::skip(&testfs::test_name(), "devices need root");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let (src, dst) = (dir.path().join("s"), dir.path().join("null"));
    write(&src, "swallowed").expect("a file");
    node(&dst, FileType::CharacterDevice, makedev(1, 3));
    let options = Options { recursive: false, ..Options::archive() };
    copy_ok(&src, &dst, &options);
    let after = metadata(&dst).expect("the device");
    assert!(after.file_type().is_char_device());
    assert_eq!(after.mode() & 0o7777, 0o640);
}

#[test]
fn names_are_bytes() {
    let dir = tempfile::tempdir().expect("a directory");
    let (src, dst) = (dir.path().join("s"), dir.path().join("t"));
    create_dir(&src).expect("a directory");
    let names: [&[u8]; 5] = [b"\xff\xfe", b"a\nb", b"-rf", b"\xed\xa0\x80", &[b'x'; 255]];
    for name in names {
        write(src.join(OsStr::from_bytes(name)), name).expect("a file");
    }
    create_dir(src.join(OsStr::from_bytes(b"d\x80"))).expect("a directory");
    symlink(OsStr::from_bytes(b"\xf0\x28"), src.join("link")).expect("a link");
    copy_ok(&src, &dst, &Options::archive());
    for name in names {
        assert_eq!(read(dst.join(OsStr::from_bytes(name))).expect("the copy"), name);
    }
    assert!(dst.join(OsStr::from_bytes(b"d\x80")).is_dir());
    let text = std::fs::read_link(dst.join("link")).expect("the copy");
    assert_eq!(text.as_os_str().as_bytes(), b"\xf0\x28");
}

#[test]
fn a_dangling_link_is_not_written_through() {
    let dir = tempfile::tempdir().expect("a directory");
    let (src, dst) = (dir.path().join("s"), dir.path().join("t"));
    write(&src, "1").expect("a file");
    symlink("elsewhere", &dst).expect("a link");
    let recorder = Recorder::default();
    let outcome = copy_exactly(&src, &dst, &Options::default(), &recorder);
    assert_eq!(outcome.failures, 1);
    assert_eq!(recorder.reported(), [Diagnostic::DanglingSymlink { dst }]);
    assert!(!dir.path().join("elsewhere").exists());
}
