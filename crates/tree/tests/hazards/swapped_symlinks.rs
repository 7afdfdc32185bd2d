//! Another process exchanges directories and files of the destination or the source for symbolic
//! links while the copy runs.

use std::fs::{create_dir, read, remove_dir_all, rename};
use std::os::unix::fs::{MetadataExt, lchown, symlink};
use std::path::Path;
use std::sync::Once;

use rustix::fs::{CWD, FileType, RenameFlags, mknodat, renameat_with};
use testfs::{Aspects, Tree, fixture};
use tree::{Diagnostic, Follow, Options};

use crate::recorder::{
    Recorder, copy_exactly, copy_into, home, let_clock_tick, make_files, with_other_thread,
};

/// Makes a directory with a file outside the destination. Neither must change.
fn make_outside(root: &Path) -> Tree {
    make_files(root, &["victim"], "untouched");
    Tree::read(root).expect("read")
}

/// How the directory outside differs from what it was.
fn differences(before: &Tree, root: &Path) -> Vec<String> {
    before.differences(&Tree::read(root).expect("read"), Aspects::ALL)
}

fn exchange(one: &Path, other: &Path) {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).expect("exchanged");
}

fn make_fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, 0o600.into(), 0).expect("created");
}

fn without_following() -> Options {
    Options { recursive: true, follow: Follow::Never, ..Options::default() }
}

// Attacks at any moment of a copy are in the tests of the command (cp_attack).

/// All names were listed before the first file is copied.
#[test]
fn nothing_is_read_through_a_link_in_the_place_of_a_listed_source() {
    let (_dir, at) = home();
    make_files(&at("src"), &["f0", "f1", "dir/f"], "from the source");
    make_files(&at("secret"), &["f0", "f1", "dir/f"], "secret");
    create_dir(at("traps")).expect("created");
    for name in ["f0", "f1", "dir"] {
        symlink(at("secret").join(name), at("traps").join(name)).expect("linked");
    }
    let swap = Once::new();
    let recorder = Recorder::with_meanwhile(|| {
        swap.call_once(|| {
            for name in ["f0", "f1", "dir"] {
                exchange(&at("src").join(name), &at("traps").join(name));
            }
        });
    });
    let _ = copy_exactly(&at("src"), &at("dst"), &Options::archive(), &recorder);
    for name in ["f0", "f1", "dir/f"] {
        // A link that is copied as a link leads there.
        let is_link = Path::new(name).ancestors().any(|path| at("dst").join(path).is_symlink());
        let copy = read(at("dst").join(name));
        assert!(is_link || copy.map_or(true, |copy| copy != b"secret"), "{name}");
    }
    assert!(swap.is_completed());
}

#[test]
fn a_link_that_appears_while_the_copy_runs_is_not_written_through() {
    let (_dir, at) = home();
    fixture::add("src/one=src; src/two=src; dst/one=dst; dst/two=dst", at(""));
    let before = make_outside(&at("outside"));
    fixture::add("traps/one->{}/outside/victim; traps/two->{}/outside/victim", at(""));
    let swap = Once::new();
    // Both files are links before the second one is copied.
    let recorder = Recorder::with_meanwhile(|| {
        swap.call_once(|| {
            for name in ["one", "two"] {
                exchange(&at("dst").join(name), &at("traps").join(name));
            }
        });
    });
    let outcome = copy_exactly(&at("src"), &at("dst"), &Options::archive(), &recorder);
    assert_eq!(outcome.failures, 1);
    let reported = recorder.reported();
    assert!(matches!(reported[..], [Diagnostic::JustCreatedSymlink { .. }]), "{reported:?}");
    assert_eq!(differences(&before, &at("outside")), [""; 0]);
}

#[test]
fn a_link_that_the_run_itself_made_is_not_written_through() {
    let (_dir, at) = home();
    fixture::add("two/name=source; victim=untouched; one/name->../victim; dst/", at(""));
    // Repeated, because coarse timestamps may hide the change.
    for _ in 0..20 {
        let recorder = Recorder::default();
        let sources = ["one/.", "two/."].map(&at);
        let outcome = copy_into(&sources, &at("dst"), &without_following(), &recorder);
        assert_eq!(read(at("victim")).expect("read"), b"untouched");
        assert_eq!(outcome.failures, 1);
        let reported = recorder.reported();
        assert!(matches!(reported[..], [Diagnostic::JustCreatedSymlink { .. }]), "{reported:?}");
        std::fs::remove_file(at("dst/name")).expect("removed");
    }
}

#[test]
fn old_links_that_are_moved_during_the_run_are_not_written_through() {
    // Either the link, whose ctime an exchange does not change on some file systems, or its
    // directory.
    testfs::each_fs(|kind, dir| {
        for exchanged in ["file", "dir"] {
            let at = |name: &str| dir.join(exchanged).join(name);
            fixture::add(
                "src/dir/file=new; src/file=new; src/first=new; dst/dir/file=old; dst/file=old; \
                 victim=untouched; traps/dir/file->{}/victim; traps/file->{}/victim",
                at(""),
            );
            let_clock_tick();
            let swap = Once::new();
            let recorder = Recorder::with_meanwhile(|| {
                swap.call_once(|| {
                    exchange(&at("dst").join(exchanged), &at("traps").join(exchanged));
                });
            });
            let sources = ["src/first", "src/."].map(at);
            let outcome = copy_into(&sources, &at("dst"), &without_following(), &recorder);
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
    let (_dir, at) = home();
    let before = make_outside(&at("outside"));
    fixture::add(
        "src/file=source; src/dir/victim=source; src/dir/new=source; dst/file->middle-file; \
         dst/middle-file->{}/outside/victim; dst/dir->middle-dir; dst/middle-dir->{}/outside",
        at(""),
    );
    let options = Options { keep_directory_symlink: true, ..Options::archive() };
    let options = Options { follow: Follow::Always, ..options };
    let copy_with_links_of = |owner| {
        for middle in ["middle-file", "middle-dir"] {
            lchown(at("dst").join(middle), Some(owner), Some(owner)).expect("owner set");
        }
        let_clock_tick();
        let recorder = Recorder::default();
        let _ = copy_exactly(&at("src"), &at("dst"), &options, &recorder);
        recorder.reported()
    };
    let reported = copy_with_links_of(65_534);
    let foreign = |d: &Diagnostic| matches!(d, Diagnostic::ForeignSymlink { .. });
    assert!(reported.len() == 2 && reported.iter().all(foreign), "{reported:?}");
    assert_eq!(differences(&before, &at("outside")), [""; 0]);
    // Links of the user are followed.
    assert_eq!(copy_with_links_of(0), []);
    for name in ["new", "victim"] {
        assert_eq!(read(at("outside").join(name)).expect("read"), b"source");
    }
}

#[test]
fn a_link_with_a_new_target_is_not_used_for_hard_links() {
    let (_dir, at) = home();
    fixture::add("x/first=source; y/second==x/first; to/y/; out/; to/x->../out", at(""));
    fixture::add("elsewhere/first=secret; trap->../elsewhere", at(""));
    let_clock_tick();
    let swap = Once::new();
    // When the first name is about to be made in the directory that was entered.
    let announced = || swap.call_once(|| exchange(&at("trap"), &at("to/x")));
    let recorder = Recorder { announced: Some(Box::new(announced)), ..Recorder::default() };
    let options = Options { keep_directory_symlink: true, verbose: true, ..Options::archive() };
    assert_eq!(copy_into(&["x", "y"].map(&at), &at("to"), &options, &recorder).failures, 1);
    let (src, dst) = (at("to/x/first"), at("to/y/second"));
    let errno = rustix::io::Errno::STALE;
    assert_eq!(recorder.reported(), [Diagnostic::HardLink { src, dst, errno }]);
    assert_eq!(read(at("out/first")).expect("read"), b"source");
    assert!(!at("to/y/second").exists());
    assert_eq!(at("elsewhere/first").metadata().expect("looked at").nlink(), 1);
}

#[test]
fn another_name_of_somebodys_fifo_is_not_given_away() {
    if !testfs::is_root() {
        return testfs::skip(&testfs::test_name(), "to give files away needs root");
    }
    let (_dir, at) = home();
    let names = ["p0", "p1", "p2"];
    fixture::add("victim|", at(""));
    for name in names {
        fixture::add(&format!("src/{name}| own=65534:65534; traps/{name}==victim"), at(""));
    }
    let attack = || {
        for name in names.iter().flat_map(|name| [name, name]) {
            let (entry, trap) = (at("dst").join(name), at("traps").join(name));
            let _ = renameat_with(CWD, entry, CWD, trap, RenameFlags::EXCHANGE);
        }
    };
    with_other_thread(attack, || {
        for _ in 0..200 {
            let _ = remove_dir_all(at("dst"));
            let _ = copy_exactly(&at("src"), &at("dst"), &Options::archive(), &<_>::default());
            let victim = at("victim").metadata().expect("looked at");
            assert_eq!(victim.uid(), 0, "the victim has another owner");
        }
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
        copying.join().expect("joined");
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
        make_files(&top.join(tree), &["file"], tree);
    }
    let mut target = top.join(name).join("file");
    if through {
        rename(&target, top.join("target")).expect("renamed");
        symlink("../target", &target).expect("linked");
        target = top.join("target");
        let_clock_tick();
    }
    let fifo = top.join("fifo");
    make_fifo(&fifo);
    let announced = || exchange(&fifo, &target);
    let recorder = Recorder { announced: Some(Box::new(announced)), ..Recorder::default() };
    let options = Options { verbose: true, force, ..without_following() };
    let _ = copy_exactly(&top.join("src"), &top.join("dst"), &options, &recorder);
    recorder.reported()
}
