//! Another process exchanges directories and files of the destination or the source for symbolic
//! links while the copy runs.

use std::fs::{create_dir, create_dir_all, read, read_dir, remove_dir_all, write};
use std::os::unix::fs::{MetadataExt, lchown, symlink};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use tree::{Diagnostic, Options};

use crate::recorder::{Recorder, copy_exactly};

const COPIES: usize = 200;

/// Files outside the destination, which must not change.
struct Outside<'o>(&'o Path);

impl Outside<'_> {
    fn make(root: &Path) -> Outside<'_> {
        create_dir(root).expect("created");
        write(root.join("victim"), "untouched").expect("written");
        Outside(root)
    }

    fn state(&self) -> (Vec<std::ffi::OsString>, Vec<u8>, u32, i64, u32) {
        let names = read_dir(self.0).expect("listed");
        let names = names.map(|entry| entry.expect("an entry").file_name()).collect();
        let (dir, victim) = (self.0.metadata(), self.0.join("victim").metadata());
        let (dir, victim) = (dir.expect("a directory"), victim.expect("a file"));
        let content = read(self.0.join("victim")).expect("read");
        (names, content, dir.mode(), victim.mtime(), victim.mode())
    }
}

/// Exchanges names in `root` for links in `traps` and back, until told to stop.
fn attack(root: &Path, traps: &Path, names: &[&str], stop: &AtomicBool) -> usize {
    let mut exchanges = 0;
    while !stop.load(Ordering::Relaxed) {
        for name in names {
            let trap = traps.join(name.replace('/', "-"));
            for _ in 0..2 {
                let exchanged =
                    renameat_with(CWD, root.join(name), CWD, &trap, RenameFlags::EXCHANGE);
                exchanges += usize::from(exchanged.is_ok());
            }
        }
    }
    exchanges
}

/// Calls `copy_and_check` [`COPIES`] times while another thread attacks. Returns how often names were
/// exchanged. If it panics, the attack ends and the panic continues.
fn copy_during_attack(
    root: &Path,
    traps: &Path,
    names: &[&str],
    mut copy_and_check: impl FnMut(),
) -> usize {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let attacker = scope.spawn(|| attack(root, traps, names, &stop));
        let outcome = catch_unwind(AssertUnwindSafe(|| (0..COPIES).for_each(|_| copy_and_check())));
        stop.store(true, Ordering::Relaxed);
        let exchanges = attacker.join().expect("the attacker only attacks");
        outcome.map_or_else(|panic| resume_unwind(panic), |()| exchanges)
    })
}

/// Copies all attributes of `src`. The copy may fail with a diagnostic.
fn copy_archive(src: &Path, dst: &Path) {
    let _ = copy_exactly(src, dst, &Options::archive(), &Recorder::default());
}

fn source(root: &Path) {
    for dir in ["a", "b", "a/c"] {
        create_dir_all(root.join(dir)).expect("created");
        for number in 0..4 {
            write(root.join(dir).join(format!("f{number}")), "from the source").expect("written");
        }
        write(root.join(dir).join("victim"), "from the source").expect("written");
    }
}

#[test]
fn nothing_is_written_through_links_swapped_into_the_destination() {
    let dir = tempfile::tempdir().expect("created");
    let at = |name: &str| dir.path().join(name);
    source(&at("src"));
    let outside = Outside::make(&dir.path().join("outside")).0.to_owned();
    let outside = Outside(&outside);
    let before = outside.state();
    create_dir(at("traps")).expect("created");
    for name in ["a", "b", "a-c"] {
        symlink(at("outside"), at("traps").join(name)).expect("a trap");
    }
    for name in ["a-f0", "b-f1"] {
        symlink(at("outside/victim"), at("traps").join(name)).expect("a trap");
    }
    let names = ["a", "b", "a/c", "a/f0", "b/f1"];
    let exchanges = copy_during_attack(&at("dst"), &at("traps"), &names, || {
        // A link in a pre-existing destination is written through, so start without one.
        while at("dst").symlink_metadata().is_ok() {
            let _ = remove_dir_all(at("dst"));
        }
        copy_archive(&at("src"), &at("dst"));
        assert_eq!(outside.state(), before, "something escaped");
    });
    assert!(exchanges > 0, "the attacker never got in");
}

#[test]
fn nothing_is_read_through_links_swapped_into_the_source() {
    let dir = tempfile::tempdir().expect("created");
    let at = |name: &str| dir.path().join(name);
    source(&at("src"));
    create_dir(at("secret")).expect("created");
    for name in ["f0", "f1", "victim", "hidden"] {
        write(at("secret").join(name), "secret").expect("written");
    }
    create_dir(at("traps")).expect("created");
    for name in ["a", "b"] {
        symlink(at("secret"), at("traps").join(name)).expect("a trap");
    }
    symlink(at("secret/f0"), at("traps/a-f0")).expect("a trap");
    let names = ["a", "b", "a/f0"];
    let exchanges = copy_during_attack(&at("src"), &at("traps"), &names, || {
        let _ = remove_dir_all(at("dst"));
        copy_archive(&at("src"), &at("dst"));
        assert!(!holds_secret(&at("dst")), "a secret was copied");
    });
    assert!(exchanges > 0, "the attacker never got in");
}

/// Whether a regular file below `dir`, reached without following links, has a secret in it.
fn holds_secret(dir: &Path) -> bool {
    let Ok(entries) = read_dir(dir) else { return false };
    entries.map(|entry| entry.expect("an entry")).any(|entry| {
        let kind = entry.file_type().expect("a kind");
        if kind.is_dir() {
            holds_secret(&entry.path())
        } else {
            kind.is_file() && read(entry.path()).expect("read") == b"secret"
        }
    })
}

#[test]
fn a_link_that_appears_while_the_copy_runs_is_not_written_through() {
    let dir = tempfile::tempdir().expect("created");
    let at = |name: &str| dir.path().join(name);
    for tree in ["src", "dst"] {
        create_dir(at(tree)).expect("created");
        for name in ["one", "two"] {
            write(at(tree).join(name), tree).expect("written");
        }
    }
    let root = at("outside");
    let outside = Outside::make(&root);
    let before = outside.state();
    create_dir(at("traps")).expect("created");
    for name in ["one", "two"] {
        symlink(at("outside/victim"), at("traps").join(name)).expect("a trap");
    }
    let sprung = AtomicBool::new(false);
    // Both files are links before the second one is copied.
    let recorder = Recorder::with_meanwhile(|| {
        if !sprung.swap(true, Ordering::Relaxed) {
            for name in ["one", "two"] {
                let (file, trap) = (at("dst").join(name), at("traps").join(name));
                renameat_with(CWD, &file, CWD, &trap, RenameFlags::EXCHANGE).expect("exchanged");
            }
        }
    });
    let outcome = copy_exactly(&at("src"), &at("dst"), &Options::archive(), &recorder);
    assert_eq!(outcome.failures, 1);
    let reported = recorder.reported();
    assert!(matches!(reported[..], [Diagnostic::JustCreatedSymlink { .. }]), "{reported:?}");
    assert_eq!(outside.state(), before);
}

#[test]
fn a_link_that_the_run_itself_made_is_not_written_through() {
    let dir = tempfile::tempdir().expect("created");
    let at = |name: &str| dir.path().join(name);
    for tree in ["one", "two", "dst"] {
        create_dir(at(tree)).expect("created");
    }
    write(at("victim"), "untouched").expect("written");
    symlink("../victim", at("one/name")).expect("linked");
    write(at("two/name"), "from the source").expect("written");
    let request = tree::Request {
        sources: ["one/.", "two/."].map(|name| at(name).into()).to_vec(),
        destination: tree::Destination::Directory(at("dst").into()),
    };
    // Repeated, because coarse timestamps may hide the change.
    for _ in 0..20 {
        let recorder = Recorder::default();
        let options = Options { recursive: true, ..Options::default() };
        let options = Options { follow: tree::Follow::Never, ..options };
        let outcome = tree::copy(&request, &options, &recorder);
        assert_eq!(read(at("victim")).expect("read"), b"untouched");
        assert_eq!(outcome.failures, 1);
        let reported = recorder.reported();
        assert!(matches!(reported[..], [Diagnostic::JustCreatedSymlink { .. }]), "{reported:?}");
        std::fs::remove_file(at("dst/name")).expect("the link");
    }
}

#[test]
fn old_links_that_are_moved_during_the_run_are_not_written_through() {
    // Either the link, whose ctime an exchange does not change on some file systems, or its
    // directory.
    testfs::each_fs(|kind, dir| {
        for exchanged in ["file", "dir"] {
            let top = dir.join(exchanged);
            let at = |name: &str| top.join(name);
            for tree in ["src", "dst", "traps"] {
                create_dir_all(at(tree).join("dir")).expect("created");
            }
            write(at("victim"), "untouched").expect("written");
            for name in ["dir/file", "file", "first"] {
                write(at("src").join(name), "from the source").expect("written");
                symlink(at("victim"), at("traps").join(name)).expect("a trap");
            }
            for name in ["dir/file", "file"] {
                write(at("dst").join(name), "old").expect("written");
            }
            // All files must be older than the run by the kernel's coarse clock.
            std::thread::sleep(std::time::Duration::from_millis(20));
            let sprung = AtomicBool::new(false);
            let recorder = Recorder::with_meanwhile(|| {
                if !sprung.swap(true, Ordering::Relaxed) {
                    let (old, new) = (at("dst").join(exchanged), at("traps").join(exchanged));
                    renameat_with(CWD, &old, CWD, &new, RenameFlags::EXCHANGE).expect("exchanged");
                }
            });
            let request = tree::Request {
                sources: ["src/first", "src/."].map(|name| at(name).into()).to_vec(),
                destination: tree::Destination::Directory(at("dst").into()),
            };
            let options = Options { recursive: true, ..Options::default() };
            let options = Options { follow: tree::Follow::Never, ..options };
            let outcome = tree::copy(&request, &options, &recorder);
            let reported = recorder.reported();
            assert_eq!(read(at("victim")).expect("read"), b"untouched", "{kind}: {exchanged}");
            assert_eq!(outcome.failures, 1, "{kind}: {exchanged}: {reported:?}");
        }
    });
}

#[test]
fn a_trusted_link_that_leads_to_another_users_is_not_followed_on() {
    if !testfs::is_root() {
        return testfs::skip(&testfs::test_name(), "to be another user needs root");
    }
    let dir = tempfile::tempdir().expect("created");
    let at = |name: &str| dir.path().join(name);
    let root = at("outside");
    let outside = Outside::make(&root);
    let before = outside.state();
    create_dir_all(at("src/dir")).expect("created");
    for name in ["file", "dir/victim", "dir/new"] {
        write(at("src").join(name), "from the source").expect("written");
    }
    create_dir(at("dst")).expect("created");
    for (link, middle, end) in
        [("file", "middle-file", "outside/victim"), ("dir", "middle-dir", "outside")]
    {
        symlink(middle, at("dst").join(link)).expect("linked");
        symlink(at(end), at("dst").join(middle)).expect("linked");
        lchown(at("dst").join(middle), Some(65_534), Some(65_534)).expect("another owner");
    }
    // The links must be older than the run by the kernel's coarse clock.
    std::thread::sleep(std::time::Duration::from_millis(20));
    let options = Options { keep_directory_symlink: true, ..Options::archive() };
    let options = Options { follow: tree::Follow::Always, ..options };
    let recorder = Recorder::default();
    let _ = copy_exactly(&at("src"), &at("dst"), &options, &recorder);
    let reported = recorder.reported();
    let foreign = |d: &Diagnostic| matches!(d, Diagnostic::ForeignSymlink { .. });
    assert!(reported.len() == 2 && reported.iter().all(foreign), "{reported:?}");
    assert_eq!(outside.state(), before);
    // Links of the user are followed.
    for middle in ["middle-file", "middle-dir"] {
        lchown(at("dst").join(middle), Some(0), Some(0)).expect("our own");
    }
    std::thread::sleep(std::time::Duration::from_millis(20));
    let recorder = Recorder::default();
    let _ = copy_exactly(&at("src"), &at("dst"), &options, &recorder);
    assert!(recorder.reported().is_empty(), "{:?}", recorder.reported());
    assert_eq!(read(at("outside/new")).expect("read"), b"from the source");
    assert_eq!(read(at("outside/victim")).expect("read"), b"from the source");
}

#[test]
fn a_link_with_a_new_target_is_not_used_for_hard_links() {
    let dir = tempfile::tempdir().expect("created");
    let at = |name: &str| dir.path().join(name);
    for name in ["x", "y", "to/y", "out", "elsewhere"] {
        create_dir_all(at(name)).expect("created");
    }
    write(at("x/first"), "from the source").expect("written");
    std::fs::hard_link(at("x/first"), at("y/second")).expect("linked");
    write(at("elsewhere/first"), "a secret").expect("written");
    symlink("../out", at("to/x")).expect("linked");
    symlink("../elsewhere", at("trap")).expect("linked");
    // The links must be older than the run by the kernel's coarse clock.
    std::thread::sleep(std::time::Duration::from_millis(20));
    let request = tree::Request {
        sources: vec![at("x").into(), at("y").into()],
        destination: tree::Destination::Directory(at("to").into()),
    };
    let exchanged = AtomicBool::new(false);
    // When the first name is about to be made in the directory that was entered.
    let announced = || {
        if !exchanged.swap(true, Ordering::Relaxed) {
            renameat_with(CWD, at("trap"), CWD, at("to/x"), RenameFlags::EXCHANGE)
                .expect("exchanged");
        }
    };
    let recorder = Recorder { announced: Some(Box::new(announced)), ..Recorder::default() };
    let options = Options { keep_directory_symlink: true, verbose: true, ..Options::archive() };
    assert_eq!(tree::copy(&request, &options, &recorder).failures, 1);
    let (src, dst) = (at("to/x/first"), at("to/y/second"));
    let errno = rustix::io::Errno::STALE;
    assert_eq!(recorder.reported(), [Diagnostic::HardLink { src, dst, errno }]);
    assert_eq!(read(at("out/first")).expect("read"), b"from the source");
    assert!(!at("to/y/second").exists());
    assert_eq!(at("elsewhere/first").metadata().expect("looked at").nlink(), 1);
}

#[test]
fn another_name_of_somebodys_fifo_is_not_given_away() {
    if !testfs::is_root() {
        return testfs::skip(&testfs::test_name(), "to give files away needs root");
    }
    let dir = tempfile::tempdir().expect("created");
    let at = |name: &str| dir.path().join(name);
    let names = ["p0", "p1", "p2"];
    create_dir(at("src")).expect("created");
    create_dir(at("traps")).expect("created");
    let fifo = |path: &Path| {
        rustix::fs::mknodat(CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .expect("created");
    };
    fifo(&at("victim"));
    for name in names {
        fifo(&at("src").join(name));
        lchown(at("src").join(name), Some(65_534), Some(65_534)).expect("another owner");
        std::fs::hard_link(at("victim"), at("traps").join(name)).expect("another name");
    }
    copy_during_attack(&at("dst"), &at("traps"), &names, || {
        let _ = remove_dir_all(at("dst"));
        copy_archive(&at("src"), &at("dst"));
        let victim = at("victim").metadata().expect("looked at");
        assert_eq!(victim.uid(), 0, "the victim has another owner");
    });
}

#[test]
fn a_fifo_in_the_place_of_a_file_is_not_waited_for() {
    for (name, force, through) in
        [("src", false, false), ("dst", false, false), ("dst", true, false), ("dst", false, true)]
    {
        let dir = tempfile::tempdir().expect("created");
        let top = dir.path().to_owned();
        let (sender, receiver) = std::sync::mpsc::channel();
        let copying = std::thread::spawn({
            let top = top.clone();
            move || {
                let reported = copy_while_replaced_by_fifo(&top, name, force, through);
                sender.send(reported).expect("the test waits");
            }
        });
        let Ok(reported) = receiver.recv_timeout(std::time::Duration::from_secs(60)) else {
            panic!("{name}, force {force}: the copy waits for the other end of a fifo");
        };
        copying.join().expect("no panic");
        let told = match name {
            "src" => matches!(reported[..], [Diagnostic::SourceReplaced { .. }]),
            _ => matches!(reported[..], [Diagnostic::DestinationReplaced { .. }]),
        };
        assert!(told, "{name}, force {force}: {reported:?}");
    }
}

/// Copies a tree of one file over another while the file on the side `name` is replaced by a fifo;
/// with `through` the destination is a symbolic link to that file.
fn copy_while_replaced_by_fifo(
    top: &Path,
    name: &str,
    force: bool,
    through: bool,
) -> Vec<Diagnostic> {
    for tree in ["src", "dst"] {
        create_dir(top.join(tree)).expect("created");
        write(top.join(tree).join("file"), tree).expect("written");
    }
    let mut target = top.join(name).join("file");
    if through {
        std::fs::rename(&target, top.join("target")).expect("renamed");
        symlink("../target", &target).expect("linked");
        target = top.join("target");
        // The link must be older than the run by the kernel's coarse clock.
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let fifo = top.join("fifo");
    rustix::fs::mknodat(CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("created");
    let announced = || {
        renameat_with(CWD, &fifo, CWD, &target, RenameFlags::EXCHANGE).expect("exchanged");
    };
    let recorder = Recorder { announced: Some(Box::new(announced)), ..Recorder::default() };
    let options = Options { verbose: true, recursive: true, force, ..Options::default() };
    let options = Options { follow: tree::Follow::Never, ..options };
    let _ = copy_exactly(&top.join("src"), &top.join("dst"), &options, &recorder);
    recorder.reported()
}
