//! What a copy promises holds through the functions for C as well.

use std::ffi::{CString, OsStr, c_char, c_int, c_void};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

// Links the library.
use haulage_capi as _;
use testfs::{Faults, FaultyFs, FsKind, random_bytes, small_fs};

unsafe extern "C" {
    fn haulage_copy_file(src: *const c_char, dst: *const c_char, state: *mut c_void) -> c_int;
    fn haulage_copy_tree(src: *const c_char, dst: *const c_char, state: *mut c_void) -> c_int;
    fn copyfile(from: *const c_char, to: *const c_char, state: *mut c_void, flags: u32) -> c_int;
}

const COPYFILE_DATA: u32 = 1 << 3;
const COPYFILE_RECURSIVE: u32 = 1 << 15;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    File,
    Tree,
    Copyfile,
}

/// The errno of the copy; 0 if it succeeded.
fn copy(call: Call, src: &Path, dst: &Path) -> i32 {
    let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).expect("no zero byte");
    let (src, dst) = (text(src), text(dst));
    let (src, dst, none) = (src.as_ptr(), dst.as_ptr(), std::ptr::null_mut());
    let status = match call {
        // SAFETY: both are strings, and no state is given.
        Call::File => unsafe { haulage_copy_file(src, dst, none) },
        // SAFETY: as above.
        Call::Tree => unsafe { haulage_copy_tree(src, dst, none) },
        // SAFETY: as above.
        Call::Copyfile => unsafe { copyfile(src, dst, none, COPYFILE_DATA | COPYFILE_RECURSIVE) },
    };
    match status {
        0 => 0,
        _ => std::io::Error::last_os_error().raw_os_error().expect("an errno"),
    }
}

const CALLS: [Call; 3] = [Call::File, Call::Tree, Call::Copyfile];

#[test]
fn a_full_file_system_is_an_error() {
    let Some(full) = small_fs(FsKind::Tmpfs) else { return };
    let home = tempfile::tempdir().expect("a directory");
    let src = home.path().join("src");
    fs::write(&src, random_bytes(8 << 20, 1)).expect("a file");
    full.leave_room(2 << 20);
    for call in CALLS {
        let dst = full.join("dst");
        assert_eq!(copy(call, &src, &dst), 28, "{call:?}");
        fs::remove_file(&dst).expect("a part of it is there");
    }
}

#[test]
fn short_reads_lose_nothing_and_a_read_error_is_one() {
    let bytes = random_bytes(300_000, 1);
    let home = tempfile::tempdir().expect("a directory");
    let dst = home.path().join("dst");
    let faults = Faults { read_bytes_max: Some(777), ..Faults::default() };
    if let Some(short) = FaultyFs::mount(bytes.clone(), faults) {
        for call in CALLS {
            assert_eq!(copy(call, &short.source(), &dst), 0, "{call:?}");
            assert!(fs::read(&dst).expect("read") == bytes, "{call:?}");
        }
    }
    let read_error = Some((200_000, rustix::io::Errno::IO));
    if let Some(bad) = FaultyFs::mount(bytes.clone(), Faults { read_error, ..Faults::default() }) {
        for call in CALLS {
            assert_eq!(copy(call, &bad.source(), &dst), 5, "{call:?}");
        }
    }
    // It has half of the bytes that it says.
    let size = Some(600_000);
    if let Some(short) = FaultyFs::mount(bytes, Faults { size, ..Faults::default() }) {
        for call in CALLS {
            assert_eq!(copy(call, &short.source(), &dst), 5, "{call:?}");
        }
    }
}

#[test]
fn a_symlink_swapped_in_is_never_followed() {
    let home = tempfile::tempdir().expect("a directory");
    let at = |name: &str| home.path().join(name);
    fs::create_dir_all(at("src/dir")).expect("a directory");
    for number in 0..50 {
        fs::write(at("src/dir").join(number.to_string()), "secret").expect("a file");
    }
    fs::create_dir(at("outside")).expect("a directory");
    for call in [Call::Tree, Call::Copyfile] {
        let ended = AtomicBool::new(false);
        let swaps = std::thread::scope(|scope| {
            let swapper = scope.spawn(|| {
                let mut swaps = 0;
                while !ended.load(Ordering::Relaxed) {
                    if fs::rename(at("dst/dir"), at("dst/away")).is_ok()
                        && symlink(at("outside"), at("dst/dir")).is_ok()
                    {
                        swaps += 1;
                        let _ = fs::remove_file(at("dst/dir"));
                    }
                    let _ = fs::remove_dir_all(at("dst/away"));
                }
                swaps
            });
            let deadline = Instant::now() + Duration::from_secs(2);
            while Instant::now() < deadline {
                let _ = fs::remove_dir_all(at("dst"));
                let from = if call == Call::Copyfile { at("src/") } else { at("src") };
                // It may fail, as the directory moves away.
                let _ = copy(call, &from, &at("dst"));
            }
            ended.store(true, Ordering::Relaxed);
            swapper.join().expect("it ends")
        });
        assert!(swaps > 0, "{call:?}");
        let escaped = fs::read_dir(at("outside")).expect("listed").count();
        assert_eq!(escaped, 0, "{call:?}, {swaps} swaps");
    }
}

#[test]
fn names_that_are_no_text_are_copied() {
    let home = tempfile::tempdir().expect("a directory");
    let name = OsStr::from_bytes(b"\xff\n\x01");
    fs::create_dir(home.path().join("src")).expect("a directory");
    fs::write(home.path().join("src").join(name), "1").expect("a file");
    for call in [Call::Tree, Call::Copyfile] {
        let dst = home.path().join(format!("{call:?}"));
        assert_eq!(copy(call, &home.path().join("src"), &dst), 0, "{call:?}");
        assert_eq!(fs::read(dst.join(name)).expect("read"), b"1", "{call:?}");
    }
}
