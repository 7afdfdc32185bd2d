//! A full file system.

use std::fs::{create_dir, metadata, read};

use testfs::{FsKind, random_bytes, small_fs};
use tree::{Action, Diagnostic, Errno, Options};

use crate::recorder::{Recorder, copy_exactly, make_files};

#[test]
fn a_full_file_system_is_reported_with_the_bytes_written_and_later_entries_are_tried() {
    for kind in FsKind::ALL {
        let Some(full) = small_fs(kind) else { continue };
        let dir = tempfile::tempdir().expect("created");
        let (src, dst) = (dir.path().join("s"), full.join("t"));
        let len = 24 << 20;
        make_files(&src, &["large"], random_bytes(len, 1));
        create_dir(src.join("d")).expect("created");
        full.leave_room(4 << 20);
        let recorder = Recorder::default();
        let outcome = copy_exactly(&src, &dst, &Options::archive(), &recorder);
        assert!(outcome.failures > 0, "{kind}");
        let reported = recorder.reported();
        let large = dst.join("large");
        assert!(
            reported.iter().any(|diagnostic| matches!(diagnostic,
                Diagnostic::Failed { action: Action::Write, path, errno: Errno::NOSPC }
                    if *path == large)
                || matches!(diagnostic,
                Diagnostic::Copy { dst, errno: Errno::NOSPC, .. } if *dst == large)),
            "{kind}: {reported:?}"
        );
        let bytes = reported.iter().find_map(|diagnostic| match diagnostic {
            Diagnostic::Incomplete { dst, bytes, .. } if *dst == large => Some(*bytes),
            _ => None,
        });
        let bytes = bytes.unwrap_or_else(|| panic!("{kind}: {reported:?}"));
        assert!(bytes < len as u64, "{kind}");
        assert!(metadata(&large).expect("looked at").len() >= bytes, "{kind}");
        let (all, part) = (read(src.join("large")), read(&large));
        let bytes = usize::try_from(bytes).expect("it fits");
        assert!(all.expect("src")[..bytes] == part.expect("dst")[..bytes], "{kind}");
        // A directory may not fit any more; then it is reported.
        let tried = |diagnostic: &Diagnostic| matches!(diagnostic, Diagnostic::Failed { path, .. } if *path == dst.join("d"));
        assert!(dst.join("d").is_dir() || reported.iter().any(tried), "{kind}: {reported:?}");
    }
}
