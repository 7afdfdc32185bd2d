//! Hazards of descriptors that a program passes.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::border::Border;

/// Descriptors of every sort, and what comes of a copy from or to them.
#[test]
fn descriptors_that_cannot_be_copied_are_refused_and_change_nothing() {
    let home = tempfile::tempdir().expect("created");
    let at = |name: &str| home.path().join(name);
    fs::write(at("src"), "contents").and(fs::write(at("dst"), "")).expect("two files");
    let read = || OwnedFd::from(File::open(at("src")).expect("opened"));
    let write = || OwnedFd::from(File::options().write(true).open(at("dst")).expect("opened"));
    let write_src = || OwnedFd::from(File::options().write(true).open(at("src")).expect("opened"));
    let with = |name: &str, flags: i32| {
        let mut options = File::options();
        options.read(true).custom_flags(flags);
        OwnedFd::from(options.open(at(name)).expect("opened"))
    };
    let directory = || OwnedFd::from(File::open(home.path()).expect("opened"));
    let appends = || OwnedFd::from(File::options().append(true).open(at("dst")).expect("opened"));
    let listener = || OwnedFd::from(TcpListener::bind("127.0.0.1:0").expect("bound"));
    let read_end = || OwnedFd::from(std::io::pipe().expect("created").0);
    for border in Border::all() {
        let cases: [(&str, OwnedFd, OwnedFd, &[i32]); 11] = [
            ("a source that is open for writing only", write_src(), write(), &[libc::EBADF]),
            ("a destination that is open for reading only", read(), with("dst", 0), &[libc::EBADF]),
            ("O_APPEND", read(), appends(), &[libc::EBADF]),
            ("a source by O_PATH", with("src", libc::O_PATH), write(), &[libc::EBADF]),
            ("a destination by O_PATH", read(), with("dst", libc::O_PATH), &[libc::EBADF]),
            ("a directory as a source", directory(), write(), &[libc::EISDIR]),
            ("a directory as a destination", read(), directory(), &[libc::EISDIR]),
            ("the same file", read(), with("src", 0), &[libc::EINVAL]),
            ("a listening socket as a source", listener(), write(), &[libc::ENOTCONN]),
            (
                "a listening socket as a destination",
                read(),
                listener(),
                &[libc::EPIPE, libc::ENOTCONN],
            ),
            ("the read end of a pipe as a destination", read(), read_end(), &[libc::EBADF]),
        ];
        for (what, src, dst, errnos) in cases {
            fs::write(at("dst"), "old contents").expect("written");
            let Some(errno) = border.copy_open(src.as_fd(), dst.as_fd()) else { continue };
            assert!(errnos.contains(&errno), "{border:?}, {what}: {errno}, not {errnos:?}");
            assert_eq!(fs::read(at("src")).expect("read"), b"contents", "{border:?}, {what}");
            if what != "a listening socket as a source" {
                // That it has no data is found by the first read, before which `dst` is truncated.
                let kept = fs::read(at("dst")).expect("read");
                assert_eq!(kept, b"old contents", "{border:?}, {what}");
            }
            rustix::io::fcntl_getfd(&src)
                .and(rustix::io::fcntl_getfd(&dst))
                .expect("both stay open");
        }
        for src in [read(), write()] {
            // Both numbers are those of the file itself.
            let errno = border.copy_open(src.as_fd(), src.as_fd());
            assert!(matches!(errno, None | Some(libc::EINVAL)), "{border:?}: {errno:?}");
        }
        assert_eq!(fs::read(at("src")).expect("read"), b"contents", "{border:?}");
    }
}

#[test]
fn whole_files_are_copied_whatever_the_offsets_are_and_streams_from_where_they_are() {
    let home = tempfile::tempdir().expect("created");
    let at = |name: &str| home.path().join(name);
    let new = testfs::random_bytes(100_000, 1);
    fs::write(at("src"), &new).expect("written");
    for border in Border::all() {
        fs::write(at("dst"), testfs::random_bytes(200_000, 2)).expect("written");
        let mut src = File::open(at("src")).expect("opened");
        let mut dst = File::options().read(true).write(true).open(at("dst")).expect("opened");
        src.seek(SeekFrom::Start(77)).and(dst.seek(SeekFrom::End(0))).expect("offsets");
        let Some(errno) = border.copy_open(src.as_fd(), dst.as_fd()) else { continue };
        assert_eq!(errno, 0, "{border:?}");
        assert!(fs::read(at("dst")).expect("read") == new, "{border:?}");
        // Through a pipe and a pair of sockets, from the offset of the file.
        let (mut near, mut far) = UnixStream::pair().expect("sockets");
        let (reader, mut writer) = std::io::pipe().expect("created");
        writer.write_all(&new[..5000]).expect("written");
        drop(writer);
        assert_eq!(border.copy_open(reader.as_fd(), near.as_fd()), Some(0), "{border:?}");
        src.seek(SeekFrom::Start(99_000)).expect("an offset");
        assert_eq!(border.copy_open(src.as_fd(), near.as_fd()), Some(0), "{border:?}");
        near.flush().and_then(|()| near.shutdown(std::net::Shutdown::Write)).expect("ended");
        let mut streamed = Vec::new();
        far.read_to_end(&mut streamed).expect("read");
        let expected = [&new[..5000], &new[99_000..]].concat();
        assert!(streamed == expected, "{border:?}: {} bytes", streamed.len());
    }
}

#[test]
fn a_device_that_is_full_is_an_error() {
    let home = tempfile::tempdir().expect("created");
    let src = home.path().join("src");
    fs::write(&src, "contents").expect("written");
    for border in Border::all() {
        let full = File::options().write(true).open(Path::new("/dev/full")).expect("opened");
        let errno = border.copy_open(File::open(&src).expect("opened").as_fd(), full.as_fd());
        assert!(matches!(errno, None | Some(libc::ENOSPC)), "{border:?}: {errno:?}");
    }
}
