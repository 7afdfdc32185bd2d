//! A copy contains nothing of the old contents of its destination.

use std::fs::{OpenOptions, hard_link, metadata, read, write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use testfs::{FsKind, FuseFs, Lies, WrongSize, each_fs, random_bytes};
use tree::{Options, Reflink};

use crate::recorder::{Recorder, copy_exactly, copy_ok, with_other_thread};

const LENGTHS: [usize; 7] = [0, 1, 4095, 4096, 5000, 100_000, (1 << 20) + 5];

fn make_old(path: &Path) {
    let file = OpenOptions::new().write(true).open(path).expect("opened");
    file.set_modified(SystemTime::now() - Duration::from_secs(1000)).expect("time set");
}

#[test]
fn old_contents_of_every_length_are_replaced() {
    each_fs(|kind, dir| {
        let (src, dst, name) = (dir.join("s"), dir.join("t"), dir.join("name"));
        for reflink in [Reflink::Auto, Reflink::Never] {
            let options = Options { reflink, ..Options::default() };
            for (len, old_len) in LENGTHS.iter().flat_map(|&a| LENGTHS.map(|b| (a, b))) {
                let what = format!("{kind} {reflink:?}: {len} over {old_len}");
                write(&src, random_bytes(len, 1)).expect("written");
                let _ = std::fs::remove_file(&dst);
                let _ = std::fs::remove_file(&name);
                write(&dst, random_bytes(old_len, 2)).expect("written");
                hard_link(&dst, &name).expect("another name");
                make_old(&dst);
                // The second time both may share their extents already.
                for _ in 0..2 {
                    let before = metadata(&dst).expect("looked at");
                    copy_ok(&src, &dst, &options);
                    let after = metadata(&dst).expect("looked at");
                    assert!(read(&dst).expect("read") == random_bytes(len, 1), "{what}");
                    assert_eq!((after.ino(), after.nlink()), (before.ino(), 2), "{what}");
                    assert!(
                        after.modified().expect("time read")
                            > before.modified().expect("time read")
                    );
                    make_old(&dst);
                }
            }
        }
    });
}

#[test]
fn data_written_since_a_clone_is_replaced() {
    each_fs(|kind, dir| {
        let (src, dst) = (dir.join("s"), dir.join("t"));
        write(&src, random_bytes(100_000, 1)).expect("written");
        for changed in [&dst, &src, &dst] {
            // Now both may share all extents.
            copy_ok(&src, &dst, &Options::default());
            let file = OpenOptions::new().write(true).open(changed).expect("opened");
            file.write_all_at(b"new, and only in the page cache", 50_000).expect("written");
            copy_ok(&src, &dst, &Options::default());
            let (src, dst) = (read(&src).expect("read"), read(&dst).expect("read"));
            assert!(src == dst, "{kind}: {} was written to", changed.display());
        }
    });
}

#[test]
fn the_end_of_old_contents_is_removed_when_the_source_shrinks() {
    for len in [4000, 20_000] {
        each_fs(|kind, dir| check_shrinking(&format!("{kind}, {len} bytes"), dir, len));
    }
}

fn check_shrinking(what: &str, dir: &Path, len: usize) {
    let (src, dst) = (dir.join("s"), dir.join("t"));
    write(&src, vec![b's'; len]).expect("written");
    let source = OpenOptions::new().write(true).open(&src).expect("opened");
    let cut = || {
        for len in [len - 1, len / 2, 0, len] {
            source.set_len(len as u64).expect("cut, or with a hole at its end");
        }
    };
    with_other_thread(cut, || {
        for _ in 0..100 {
            write(&dst, vec![b'o'; len]).expect("written");
            let recorder = Recorder::default();
            // A diagnostic about the change is allowed.
            let _ = copy_exactly(&src, &dst, &Options::default(), &recorder);
            let copy = read(&dst).expect("read");
            let old = copy.iter().filter(|&&byte| byte == b'o').count();
            assert_eq!(old, 0, "{what}: of {} bytes", copy.len());
        }
    });
}

#[test]
fn a_page_in_memory_is_emptied_before_a_server_fills_it_in_parts() {
    let Some(memory) = testfs::fs(FsKind::Tmpfs) else { return };
    let dst = memory.join("t");
    let old = random_bytes(500, 2);
    let check = |faults: Lies, copied_bytes: usize, failures: u64| {
        let what = format!("{faults:?}");
        let Some(faulty) = FuseFs::with_source(random_bytes(1000, 1), faults) else { return };
        write(&dst, &old).expect("written");
        let recorder = Recorder::default();
        let outcome = copy_exactly(&faulty.source(), &dst, &Options::default(), &recorder);
        let copy = read(&dst).expect("read");
        assert_eq!(outcome.failures, failures, "{what}: {:?}", recorder.reported());
        assert!(copy == random_bytes(1000, 1)[..copied_bytes], "{what}: {} bytes", copy.len());
    };
    let short = || Lies { read_bytes_max: Some(400), ..Lies::default() };
    check(short(), 1000, 0);
    // It ends before the length that it says.
    check(Lies { size: Some(WrongSize::Is(3000)), ..short() }, 1000, 1);
    // Both the error and what the copy has of the file are reported.
    check(Lies { read_error_at: Some(0), ..short() }, 0, 2);
    check(Lies { read_error_at: Some(400), ..short() }, 400, 2);
}
