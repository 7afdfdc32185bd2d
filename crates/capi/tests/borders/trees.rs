//! Hazards of names and types in a tree.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use testfs::{Aspects, FsKind, assert_equal_trees, fixture, is_root, small_fs};

use crate::border::{Border, What};

#[test]
fn a_symlink_swapped_in_is_never_followed() {
    let home = tempfile::tempdir().expect("created");
    let at = |name: &str| home.path().join(name);
    fs::create_dir_all(at("src/dir")).expect("created");
    for number in 0..50 {
        fs::write(at("src/dir").join(number.to_string()), "secret").expect("written");
    }
    fs::create_dir(at("outside")).expect("created");
    for border in Border::all() {
        let (ended, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let swapper = scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    if fs::rename(at("dst/dir"), at("dst/away")).is_ok()
                        && symlink(at("outside"), at("dst/dir")).is_ok()
                    {
                        swaps.fetch_add(1, Ordering::Relaxed);
                        let _ = fs::remove_file(at("dst/dir"));
                    }
                    let _ = fs::remove_dir_all(at("dst/away"));
                }
            });
            let begun = Instant::now();
            let is_long = || begun.elapsed() > Duration::from_secs(1);
            let has_swapped = || swaps.load(Ordering::Relaxed) > 0;
            // On a busy machine the swapper may get no time for longer.
            while !is_long() || (!has_swapped() && begun.elapsed() < Duration::from_secs(60)) {
                let _ = fs::remove_dir_all(at("dst"));
                // It may fail, as the directory moves away.
                let _ = border.copy(What::Tree, &at("src"), &at("dst"));
            }
            ended.store(true, Ordering::Relaxed);
            swapper.join().expect("joined");
        });
        let swaps = swaps.into_inner();
        assert!(swaps > 0, "{border:?}");
        let escaped = fs::read_dir(at("outside")).expect("listed").count();
        assert_eq!(escaped, 0, "{border:?}, {swaps} swaps");
    }
}

#[test]
fn names_that_are_no_text_are_copied() {
    let home = tempfile::tempdir().expect("created");
    let names: [&[u8]; 5] = [b"\xff\n\x01", b"-rf", b"new\nline", b"*", b" "];
    fs::create_dir(home.path().join("src")).expect("created");
    for name in names {
        fs::write(home.path().join("src").join(OsStr::from_bytes(name)), name).expect("written");
    }
    for border in Border::all() {
        let dst = home.path().join(format!("{border:?}"));
        assert_eq!(border.copy(What::Tree, &home.path().join("src"), &dst), 0, "{border:?}");
        assert_eq!(fs::read_dir(&dst).expect("listed").count(), names.len(), "{border:?}");
        for name in names {
            let found = fs::read(dst.join(OsStr::from_bytes(name))).expect("read");
            assert_eq!(found, name, "{border:?}");
        }
    }
}

#[test]
fn one_failure_is_reported_and_stops_no_other_entry() {
    let home = tempfile::tempdir().expect("created");
    let at = |name: String| home.path().join(name);
    fixture::add("src/a=a; src/blocked=x; src/dir/b=dir/b; src/z=z", home.path());
    for border in Border::all() {
        let dst = |name: &str| at(format!("{border:?}{name}"));
        // A directory is where the file goes.
        fs::create_dir_all(dst("/blocked")).expect("created");
        let errno = border.copy(What::Tree, &at("src".into()), &dst(""));
        assert_eq!(errno, libc::EISDIR, "{border:?}");
        if border == Border::Copyfile {
            // Without a callback the first error ends the copy.
            continue;
        }
        for name in ["a", "dir/b", "z"] {
            let found = fs::read_to_string(dst("/").join(name)).expect("read");
            assert_eq!(found, name, "{border:?}");
        }
    }
}

#[test]
fn every_file_of_a_full_file_system_is_whole_or_an_error_was_returned() {
    let Some(full) = small_fs(FsKind::Tmpfs) else { return };
    let home = tempfile::tempdir().expect("created");
    let src = home.path().join("src");
    fs::create_dir(&src).expect("created");
    for number in 0..12 {
        fs::write(src.join(number.to_string()), testfs::random_bytes(400_000, number))
            .expect("written");
    }
    full.leave_room(2 << 20);
    for border in Border::all() {
        let dst = full.join("dst");
        assert_eq!(border.copy(What::Tree, &src, &dst), libc::ENOSPC, "{border:?}");
        let whole = fs::read_dir(&dst).expect("listed").filter(|entry| {
            let entry = entry.as_ref().expect("listed");
            let found = fs::read(entry.path()).expect("read");
            let expected = fs::read(src.join(entry.file_name())).expect("read");
            assert!(expected.starts_with(&found), "{border:?}: no byte is wrong");
            found == expected
        });
        assert!(whole.count() < 12, "{border:?}");
        fs::remove_dir_all(&dst).expect("removed");
    }
}

#[test]
fn a_directory_is_not_copied_into_itself_without_end() {
    let home = tempfile::tempdir().expect("created");
    let at = |name: &str| home.path().join(name);
    for border in Border::all() {
        fixture::add("src/dir/file=1", home.path());
        let errno = border.copy(What::Tree, &at("src"), &at("src/dir/inside"));
        // shutil lists a directory before it creates the copy in it, and so ends.
        assert!(errno == libc::EINVAL || border == Border::Python, "{border:?}: {errno}");
        let deepest = at("src/dir/inside/dir/inside/dir");
        assert!(!deepest.exists(), "{border:?}");
        fs::remove_dir_all(at("src")).expect("removed");
    }
}

#[test]
fn special_files_are_created_anew_and_never_waited_for() {
    let home = tempfile::tempdir().expect("created");
    let at = |name: &str| home.path().join(name);
    fixture::add("src/fifo|; src/socket%socket; src/file=1", home.path());
    if is_root() {
        fixture::add("src/device%1:3", home.path());
    }
    for border in Border::all() {
        let dst = at(&format!("{border:?}"));
        let errno = within_seconds(60, || border.copy(What::Tree, &at("src"), &dst));
        assert_eq!(fs::read(dst.join("file")).expect("read"), b"1", "{border:?}");
        if border == Border::Python {
            // As shutil.copytree, which copies no special file.
            assert_ne!(errno, 0, "{border:?}");
            assert!(!dst.join("fifo").exists() && !dst.join("socket").exists());
            continue;
        }
        assert_eq!(errno, 0, "{border:?}");
        let kind = |name: &str| dst.join(name).symlink_metadata().expect("looked at");
        assert!(kind("fifo").file_type().is_fifo(), "{border:?}");
        assert!(kind("socket").file_type().is_socket(), "{border:?}");
        if is_root() {
            let device = rustix::fs::makedev(1, 3);
            assert_eq!(
                kind("device").rdev(),
                device,
                "{border:?}: the device, not that of its directory"
            );
        }
    }
}

#[test]
fn a_fifo_in_the_place_of_a_file_is_not_waited_for() {
    let home = tempfile::tempdir().expect("created");
    let at = |name: &str| home.path().join(name);
    fixture::add("file=1; fifo|", home.path());
    // copyfile(3) copies no fifo, and shutil refuses it on both sides. cp(1) reads and writes fifos that
    // are named, so haulage.h and the crate do too, and wait for the other end.
    for border in Border::all() {
        if matches!(border, Border::Copyfile | Border::Python) {
            let errno = within_seconds(60, || border.copy(What::File, &at("fifo"), &at("new")));
            assert_ne!(errno, 0, "{border:?}");
            assert!(!at("new").exists(), "{border:?}");
        }
    }
}

#[test]
fn a_tree_deeper_than_any_path_is_copied() {
    const LEVELS: usize = 200;
    let name = OsStr::from_bytes(&[b'd'; 40]);
    let home = tempfile::tempdir().expect("created");
    let open = |dir: &dyn std::os::fd::AsFd, name: &OsStr| {
        openat(dir, name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
    };
    fs::create_dir(home.path().join("src")).expect("created");
    let mut at = open(&CWD, home.path().join("src").as_os_str()).expect("opened");
    for _ in 0..LEVELS {
        mkdirat(&at, name, Mode::RWXU).expect("created");
        at = open(&at, name).expect("opened");
    }
    for border in Border::all() {
        let dst = home.path().join(format!("{border:?}"));
        assert_eq!(border.copy(What::Tree, &home.path().join("src"), &dst), 0, "{border:?}");
        let mut at = open(&CWD, dst.as_os_str()).expect("opened");
        let mut levels = 0;
        while let Ok(next) = open(&at, name) {
            (at, levels) = (next, levels + 1);
        }
        assert_eq!(levels, LEVELS, "{border:?}");
    }
}

#[test]
fn directories_get_their_modes_after_their_entries_and_no_file_is_open_to_others_before() {
    let home = tempfile::tempdir().expect("created");
    let at = |name: &str| home.path().join(name);
    fixture::add("src/closed/private=1 mode=600; src/closed/ mode=555", home.path());
    for border in Border::all() {
        let dst = at(&format!("{border:?}"));
        assert_eq!(border.copy(What::Tree, &at("src"), &dst), 0, "{border:?}");
        let mode = |name: &str| dst.join(name).metadata().expect("looked at").mode() & 0o777;
        assert_equal_trees(&at("src"), &dst, Aspects::CONTENT, format_args!("{border:?}"));
        assert_eq!(mode("closed/private") & 0o177, 0, "{border:?}");
        if border != Border::Copyfile {
            assert_eq!(mode("closed") & 0o222, 0, "{border:?}");
        }
        fixture::add("closed/ mode=700", &dst);
    }
    fixture::add("src/closed/ mode=700", home.path());
}

/// What `call` returns, on a thread of its own.
///
/// # Panics
/// If that takes longer.
fn within_seconds<T: Send>(seconds: u64, call: impl FnOnce() -> T + Send) -> T {
    let (send, receive) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || send.send(call()));
        match receive.recv_timeout(Duration::from_secs(seconds)) {
            Ok(found) => found,
            Err(error) => {
                // The thread would hold up the scope for ever.
                eprintln!("it does not end: {error}");
                std::process::abort();
            }
        }
    })
}
