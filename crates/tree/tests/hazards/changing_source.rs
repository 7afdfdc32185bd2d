//! Sources that change while they are copied, or whose reported length is wrong.

use std::fs::{OpenOptions, metadata, write};
use std::io::Write;
use std::time::UNIX_EPOCH;

use testfs::random_bytes;
use tree::{Diagnostic, Options};

use crate::recorder::{Recorder, copy_exactly, home};

/// More than one piece.
const LONG_BYTES: usize = (64 << 20) + 12_345;

#[test]
fn a_source_that_shrinks_is_reported_with_the_true_count() {
    let (_dir, at) = home();
    let (src, dst) = (at("src"), at("dst"));
    write(&src, random_bytes(LONG_BYTES, 1)).expect("written");
    let shorter = 3 << 20;
    let recorder = Recorder::with_meanwhile(|| {
        let file = OpenOptions::new().write(true).open(&src).expect("opened");
        file.set_len(shorter).expect("length set");
    });
    let outcome = copy_exactly(&src, &dst, &Options::default(), &recorder);
    assert_eq!(outcome.failures, 1);
    let copied = metadata(&dst).expect("looked at").len();
    let bytes_expected = LONG_BYTES as u64;
    assert_eq!(
        recorder.reported(),
        [Diagnostic::Shrank { src: src.clone(), bytes: copied, bytes_expected }]
    );
    assert!(copied < bytes_expected);
}

#[test]
fn a_source_that_grows_or_is_touched_is_reported_and_its_copy_ends() {
    let more = vec![b'x'; 1 << 20];
    for grows in [true, false] {
        let (_dir, at) = home();
        let (src, dst) = (at("src"), at("dst"));
        write(&src, random_bytes(1 << 20, 2)).expect("written");
        let recorder = Recorder::with_meanwhile(|| {
            let mut file = OpenOptions::new().append(true).open(&src).expect("opened");
            let changed = match grows {
                true => file.write_all(&more),
                false => file.set_modified(UNIX_EPOCH),
            };
            changed.expect("it changes");
        });
        let outcome = copy_exactly(&src, &dst, &Options::default(), &recorder);
        assert_eq!(outcome.failures, 0, "GNU cp does not fail either; grows {grows}");
        assert_eq!(recorder.reported(), [Diagnostic::Changed { src: src.clone() }], "{grows}");
        assert!(metadata(&dst).expect("looked at").len() <= 2 << 20, "{grows}");
        assert!(recorder.receipts.lock().expect("locked")[0].changed, "{grows}");
    }
}
