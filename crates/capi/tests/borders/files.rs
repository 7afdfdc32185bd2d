//! Hazards of one file.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use testfs::{FsKind, FuseFs, Lies, WrongSize, fixture, random_bytes, small_fs};

use crate::border::{Border, NO_ERRNO, What};

const EIO: i32 = libc::EIO;

/// A file is copied as itself, and as a tree that consists of it; by Python as a file only.
fn calls() -> impl Iterator<Item = (Border, What)> {
    let both = Border::all()
        .into_iter()
        .flat_map(|border| [(border, What::File), (border, What::Tree)].into_iter());
    both.filter(|&(border, what)| what == What::File || !matches!(border, Border::Python))
        // Its name with a slash would be that of a directory.
        .filter(|&call| call != (Border::Copyfile, What::Tree))
}

#[test]
fn a_full_file_system_is_an_error() {
    let Some(full) = small_fs(FsKind::Tmpfs) else { return };
    let home = tempfile::tempdir().expect("created");
    let src = home.path().join("src");
    fs::write(&src, random_bytes(8 << 20, 1)).expect("written");
    full.leave_room(2 << 20);
    for (border, what) in calls() {
        let dst = full.join("dst");
        assert_eq!(border.copy(what, &src, &dst), libc::ENOSPC, "{border:?}, {what:?}");
        fs::remove_file(&dst).expect("a part of it is there");
    }
    for border in Border::all() {
        // A device that is full at the first byte. The package for Python writes to it as shutil does.
        let errno = border.copy(What::File, &src, Path::new("/dev/full"));
        assert_eq!(errno, libc::ENOSPC, "{border:?}");
    }
}

#[test]
fn short_reads_lose_nothing_and_an_error_is_one() {
    let bytes = random_bytes(300_000, 1);
    let home = tempfile::tempdir().expect("created");
    let dst = home.path().join("dst");
    let check = |content: Vec<u8>, faults: Lies, errno: i32| {
        let what = format!("{faults:?}");
        let Some(faulty) = FuseFs::with_source(content, faults) else { return };
        for (border, copied) in calls() {
            let found = border.copy(copied, &faulty.source(), &dst);
            assert_eq!(found, errno, "{border:?}, {copied:?}, {what}");
            let is_whole = || fs::read(&dst).expect("read") == bytes;
            assert!(errno != 0 || is_whole(), "{border:?}, {copied:?}, {what}");
        }
    };
    let none = Lies::default;
    check(bytes.clone(), Lies { read_bytes_max: Some(777), ..none() }, 0);
    check(bytes.clone(), Lies { read_error_at: Some(200_000), ..none() }, EIO);
    // It has half of the bytes that it says.
    check(bytes.clone(), Lies { size: Some(WrongSize::Is(600_000)), ..none() }, EIO);
    // All of it is called a hole, as some network file systems do.
    check(bytes.clone(), Lies { all_hole: true, no_blocks: true, ..none() }, 0);
    // More than it says: it is read to its end.
    check(bytes.clone(), Lies { size: Some(WrongSize::Is(100)), ..none() }, 0);
}

#[test]
fn an_error_of_the_destination_is_one() {
    let home = tempfile::tempdir().expect("created");
    let src = home.path().join("src");
    fs::write(&src, random_bytes(300_000, 1)).expect("written");
    for (faults, errno) in [
        (Lies { write_error: Some((0, rustix::io::Errno::IO)), ..Lies::default() }, EIO),
        (Lies { write_error: Some((200_000, rustix::io::Errno::DQUOT)), ..Lies::default() }, 122),
        (Lies { close_error: Some(rustix::io::Errno::DQUOT), ..Lies::default() }, 122),
    ] {
        let what = format!("{faults:?}");
        let Some(faulty) = FuseFs::with_source(Vec::new(), faults) else { return };
        for (number, (border, copied)) in calls().enumerate() {
            let dst = faulty.path().join(number.to_string());
            assert_eq!(border.copy(copied, &src, &dst), errno, "{border:?}, {copied:?}, {what}");
        }
    }
}

#[test]
fn files_of_the_kernel_are_read_to_their_end() {
    let home = tempfile::tempdir().expect("created");
    // The first says that it has no byte, the second that it has a page.
    for src in ["/proc/version", "/sys/kernel/mm/transparent_hugepage/enabled"].map(Path::new) {
        let Ok(expected) = fs::read(src) else { continue };
        for (border, what) in calls() {
            let dst = home.path().join("dst");
            assert_eq!(border.copy(what, src, &dst), 0, "{border:?}, {what:?}, {}", src.display());
            assert_eq!(fs::read(&dst).expect("read"), expected, "{border:?}, {what:?}");
            assert!(!expected.is_empty(), "{}", src.display());
        }
    }
}

#[test]
fn the_same_file_is_refused_by_each_of_its_names() {
    let home = tempfile::tempdir().expect("created");
    let at = |name: &str| home.path().join(name);
    for (border, what) in calls() {
        for name in ["file", "./file", "other", "link", "dir/../file"] {
            for made in ["other", "link"] {
                let _ = fs::remove_file(at(made));
            }
            fixture::add("dir/; file=contents; other==file; link->file", home.path());
            let errno = border.copy(what, &at("file"), &at(name));
            let expected = if border == Border::Python { NO_ERRNO } else { libc::EINVAL };
            assert_eq!(errno, expected, "{border:?}, {what:?}, {name}");
            assert_eq!(fs::read(at("file")).expect("read"), b"contents", "{border:?}, {name}");
        }
    }
}

#[test]
fn names_that_cannot_be_used_are_errors() {
    let home = tempfile::tempdir().expect("created");
    let at = |name: &str| home.path().join(name);
    fixture::add("file=1; loop->loop", home.path());
    let long = "n".repeat(300);
    for border in Border::all() {
        for (src, dst, errno) in [
            (at("none"), at("new"), libc::ENOENT),
            (at("file"), at("none/new"), libc::ENOENT),
            (at("file"), at("file/new"), libc::ENOTDIR),
            (at("loop"), at("new"), libc::ELOOP),
            (at("file"), at(&long), libc::ENAMETOOLONG),
            (at("file"), "".into(), libc::ENOENT),
            ("".into(), at("new"), libc::ENOENT),
            (home.path().into(), at("new"), libc::EISDIR),
            (at("file"), home.path().into(), libc::EISDIR),
        ] {
            let found = border.copy(What::File, &src, &dst);
            // Of a directory alone copyfile(3) makes a directory.
            if border == Border::Copyfile && src == home.path() {
                assert_eq!(found, 0, "{dst:?}");
                fs::remove_dir(&dst).expect("removed");
                continue;
            }
            assert_eq!(found, errno, "{border:?}, {src:?}, {dst:?}");
            assert!(!at("new").exists(), "{border:?}, {src:?}");
        }
    }
    let error = haulage::copy_file("with\0zero", at("new")).expect_err("no path has a zero byte");
    assert_eq!(error.errno(), libc::EINVAL);
}

#[test]
fn a_source_that_is_cut_or_appended_to_meanwhile_is_never_silently_wrong() {
    let home = tempfile::tempdir().expect("created");
    let (src, dst) = (home.path().join("src"), home.path().join("dst"));
    let bytes = random_bytes(16 << 20, 1);
    for (border, what) in calls() {
        for appends in [false, true] {
            let mut failures = 0;
            for round in 0..4 {
                fs::write(&src, &bytes).expect("written");
                let ended = AtomicBool::new(false);
                let begun = Instant::now();
                let errno = std::thread::scope(|scope| {
                    scope.spawn(|| {
                        std::thread::sleep(Duration::from_micros(round * 500));
                        let file = File::options().append(true).open(&src).expect("opened");
                        if !appends {
                            return file.set_len(1 << 20).expect("length set");
                        }
                        while !ended.load(Ordering::Relaxed) {
                            (&file).write_all(&[7; 4096]).expect("appended");
                        }
                    });
                    let errno = border.copy(what, &src, &dst);
                    ended.store(true, Ordering::Relaxed);
                    errno
                });
                let copied = fs::read(&dst).expect("read");
                let what =
                    format!("{border:?}, {what:?}, appends {appends}, {} bytes", copied.len());
                assert!(begun.elapsed() < Duration::from_secs(60), "{what}: it ends");
                assert!(matches!(errno, 0 | EIO), "{what}: errno {errno}");
                failures += i32::from(errno != 0);
                let known = copied.len().min(bytes.len());
                assert!(
                    copied[..known] == bytes[..known],
                    "{what}: its bytes are those of the source"
                );
                assert!(
                    copied[known..].iter().all(|&byte| byte == 7),
                    "{what}: and what was appended"
                );
                if errno == 0 {
                    // It was cut before the copy began, or not before its end.
                    let is_whole = copied.len() >= bytes.len() || copied.len() == 1 << 20;
                    assert!(is_whole, "{what}");
                }
                fs::remove_file(&dst).expect("removed");
            }
            println!("{border:?}, {what:?}, appends {appends}: {failures} of 4 copies failed");
        }
    }
}

#[test]
fn old_contents_never_remain() {
    let Some(small) = small_fs(FsKind::Tmpfs) else { return };
    let home = tempfile::tempdir().expect("created");
    for dir in [home.path(), &small.join("")] {
        let (src, dst) = (dir.join("src"), dir.join("dst"));
        for border in Border::all() {
            for old_bytes in [1, 1000, 4096, 4097, 100_000] {
                for bytes in [0, 1, 999, 4096, 5000] {
                    if border == Border::Python && old_bytes != 4096 {
                        continue;
                    }
                    let new = random_bytes(bytes, 1);
                    fs::write(&src, &new).expect("written");
                    fs::write(&dst, random_bytes(old_bytes, 2)).expect("written");
                    let inode = fs::metadata(&dst).expect("looked at").ino();
                    let words = format!("{border:?}: {bytes} bytes over {old_bytes}");
                    assert_eq!(border.copy(What::File, &src, &dst), 0, "{words}");
                    assert!(fs::read(&dst).expect("read") == new, "{words}");
                    assert_eq!(fs::metadata(&dst).expect("looked at").ino(), inode, "{words}");
                }
            }
        }
    }
}
