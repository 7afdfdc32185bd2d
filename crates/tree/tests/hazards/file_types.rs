//! Entries that are not regular files.

use std::fs::{create_dir, metadata, symlink_metadata, write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use tree::Options;

use crate::recorder::copy_ok;

fn node(path: &Path, kind: FileType, device: u64) {
    mknodat(CWD, path, kind, Mode::from_raw_mode(0o640), device).expect("a node can be made");
}

#[test]
fn fifos_and_sockets_are_created_and_never_opened() {
    let dir = tempfile::tempdir().expect("created");
    let (src, dst) = (dir.path().join("s"), dir.path().join("t"));
    create_dir(&src).expect("created");
    node(&src.join("fifo"), FileType::Fifo, 0);
    node(&src.join("socket"), FileType::Socket, 0);
    // Opening either for reading would block or fail.
    copy_ok(&src, &dst, &Options::archive());
    let kind = |name: &str| symlink_metadata(dst.join(name)).expect("looked at").file_type();
    assert!(kind("fifo").is_fifo());
    assert!(kind("socket").is_socket());
    assert_eq!(metadata(dst.join("fifo")).expect("looked at").mode() & 0o777, 0o640);
}

#[test]
fn an_existing_device_keeps_its_attributes() {
    if !testfs::is_root() {
        return testfs::skip(&testfs::test_name(), "devices need root");
    }
    let dir = tempfile::tempdir().expect("created");
    let (src, dst) = (dir.path().join("s"), dir.path().join("null"));
    write(&src, "swallowed").expect("written");
    node(&dst, FileType::CharacterDevice, makedev(1, 3));
    let options = Options { recursive: false, ..Options::archive() };
    copy_ok(&src, &dst, &options);
    let after = metadata(&dst).expect("the device");
    assert!(after.file_type().is_char_device());
    assert_eq!(after.mode() & 0o7777, 0o640);
}
