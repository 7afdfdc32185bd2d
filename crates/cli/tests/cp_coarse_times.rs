//! `cp -u` and `--resume` onto file systems that keep times less finely than the source: what is complete is
//! not copied again, and what has changed is.

use std::fs::{File, create_dir, metadata, read, remove_dir_all, write};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

use testfs::{Costs, FuseFs, Lies, is_root, skip, test_name};

fn cp(args: &[&str], src: &Path, dst: &Path) -> Output {
    let mut command = testfs::command(env!("CARGO_BIN_EXE_haulage"));
    command.arg("cp").args(args).arg("-T").args([src, dst]).output().expect("haulage runs")
}

/// Copies, and returns the lines of `--verbose`.
fn copied(what: &str, args: &[&str], src: &Path, dst: &Path) -> String {
    let output = cp(&[args, &["-v"]].concat(), src, dst);
    assert!(output.status.success(), "{what}: {output:?}");
    testfs::stdout(&output)
}

const OPTIONS: &[&[&str]] = &[
    &["-au"],
    &["-rpu"],
    &["-a", "--update=older", "--atomic"],
    &["-au", "--jobs=1"],
    &["-a", "--resume"],
    &["-au", "--resume", "--verify"],
    &["-rp", "--resume"],
];

/// Checks on the file system at `root`, which cannot keep all digits of a time, that a second copy does
/// nothing.
fn check_second_copy(what: &str, root: &Path) {
    let dir = tempfile::tempdir().expect("created");
    let src = dir.path().join("src");
    for name in ["", "d"] {
        create_dir(src.join(name)).expect("created");
    }
    let old = SystemTime::UNIX_EPOCH + Duration::from_nanos(1_583_204_583_333_333_333);
    for (name, time) in [("now", None), ("d/now", None), ("d/old", Some(old)), ("empty", Some(old))]
    {
        let content = if name == "empty" { "" } else { "content" };
        write(src.join(name), content).expect("written");
        let file = File::options().write(true).open(src.join(name)).expect("opened");
        time.map_or(Ok(()), |time| file.set_modified(time)).expect("its time");
    }
    for options in OPTIONS {
        let what = format!("{what} {options:?}");
        let dst = root.join("dst");
        write(src.join("now"), "content").expect("written");
        assert!(copied(&what, options, &src, &dst).contains("old"), "{what}");
        let old = || metadata(dst.join("d/old")).expect("looked at").modified().expect("a time");
        let before = old();
        let dry = copied(&what, &[options, &["--dry-run"][..]].concat(), &src, &dst);
        assert_eq!(dry, "", "{what}");
        assert_eq!(copied(&what, options, &src, &dst), "", "{what}");
        assert_eq!(old(), before, "{what}");

        write(src.join("now"), "longer content").expect("written");
        let said = copied(&what, options, &src, &dst);
        assert_eq!(said.lines().count(), 1, "{what}: {said}");
        assert_eq!(read(dst.join("now")).expect("read"), b"longer content", "{what}");
        let later = old() + Duration::from_secs(2);
        File::options()
            .write(true)
            .open(src.join("d/old"))
            .expect("opened")
            .set_modified(later)
            .expect("set");
        let said = copied(&what, options, &src, &dst);
        assert_eq!(said.lines().count(), 1, "{what}: {said}");
        remove_dir_all(&dst).expect("removed");
    }
}

/// Checks that a source that changes after its copy, within one interval of times of the file system at
/// `root`, is copied again.
fn check_change_at_once(what: &str, (root, resolution): (&Path, Duration)) {
    let dir = tempfile::tempdir().expect("created");
    let (src, dst) = (dir.path().join("src"), root.join("changed"));
    let interval = || {
        let changed = metadata(&src).expect("looked at").modified().expect("a time");
        let since = changed.duration_since(SystemTime::UNIX_EPOCH).expect("later");
        since.as_nanos() / resolution.as_nanos()
    };
    for options in OPTIONS {
        let mut tries = 0..50;
        while tries.next().is_some() {
            write(&src, "one").expect("written");
            let first = interval();
            copied(what, options, &src, &dst);
            write(&src, "two").expect("written");
            copied(what, options, &src, &dst);
            assert_eq!(read(&dst).expect("read"), b"two", "{what} {options:?}");
            if interval() == first {
                break;
            }
        }
        assert!(!tries.is_empty(), "{what} {options:?}: the copies are too slow");
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_file_system_with_coarse_times_is_not_copied_to_again() {
    for (what, resolution, ctime_is_mtime) in [
        ("as vfat", 2 * SECOND, true),
        ("as ext3", SECOND, false),
        ("as sshfs", SECOND, true),
        ("as exfat", SECOND / 100, false),
        ("as NTFS", SECOND / 10_000_000, false),
    ] {
        let Some(coarse) = FuseFs::mount(Costs::default()) else { return };
        let time_resolution = Some(resolution);
        coarse.lie(Lies { time_resolution, ctime_is_mtime, ..Lies::default() });
        check_second_copy(what, coarse.path());
        if resolution >= SECOND {
            check_change_at_once(what, (coarse.path(), resolution));
        }
    }
}

/// A file system that was made and mounted for a test.
struct Mounted(tempfile::TempDir);

impl Mounted {
    /// Runs `mkfs` on an image and `mount` for it. `None` after a skip that said so.
    fn new(mkfs: &[&str], mount: &[&str]) -> Option<Mounted> {
        let dir = tempfile::tempdir().expect("created");
        let (image, root) = (dir.path().join("image"), dir.path().join("root"));
        File::create(&image).expect("created").set_len(64 << 20).expect("length set");
        create_dir(&root).expect("created");
        let run = |line: &[&str], args: &[&PathBuf]| {
            let output = Command::new(line[0]).args(&line[1..]).args(args).output();
            match output {
                Ok(output) if output.status.success() => Ok(()),
                failed => Err(format!("{line:?}: {failed:?}")),
            }
        };
        match run(mkfs, &[&image]).and_then(|()| run(mount, &[&image, &root])) {
            Ok(()) => Some(Mounted(dir)),
            Err(why) => {
                skip(&test_name(), &why);
                None
            }
        }
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("root")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(self.root()).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "it can be unmounted");
    }
}

#[test]
fn real_file_systems_with_coarse_times_are_not_copied_to_again() {
    if !is_root() {
        return skip(&test_name(), "not root, who alone may mount an image");
    }
    let loop_mount = &["mount", "-o", "loop"][..];
    for (mkfs, mount, resolution) in [
        (&["mkfs.ext4", "-q", "-F", "-I", "128"][..], loop_mount, Some(SECOND)),
        (&["mkfs.ext3", "-q", "-F", "-I", "128"], loop_mount, Some(SECOND)),
        (&["mkfs.ntfs", "-q", "-F", "-Q"], &["ntfs-3g"], None),
    ] {
        let Some(mounted) = Mounted::new(mkfs, mount) else { continue };
        check_second_copy(mkfs[0], &mounted.root());
        if let Some(resolution) = resolution {
            check_change_at_once(mkfs[0], (&mounted.root(), resolution));
            let dir = tempfile::tempdir().expect("created");
            let link = dir.path().join("link");
            symlink("target", &link).expect("linked");
            let copy = mounted.root().join("link");
            assert_ne!(copied("a link", &["-au"], &link, &copy), "");
            assert_eq!(copied("a link", &["-au"], &link, &copy), "");
        }
    }
}

/// A time without digits after the second is no sign that the file system keeps none.
#[test]
fn a_round_time_of_a_copy_hides_no_later_change() {
    let Some(fine) = FuseFs::mount(Costs::default()) else { return };
    let dir = tempfile::tempdir().expect("created");
    for root in [dir.path(), fine.path()] {
        for options in OPTIONS {
            let (src, dst) = (dir.path().join("src"), root.join("dst"));
            write(&src, "content").expect("written");
            let src_file = File::options().write(true).open(&src).expect("opened");
            let round = SystemTime::UNIX_EPOCH + Duration::from_secs(1_583_204_584);
            src_file.set_modified(round).expect("its time");
            copied("round", options, &src, &dst);
            src_file.set_modified(round + SECOND / 2).expect("its time");
            assert_ne!(copied("later", options, &src, &dst), "", "{root:?} {options:?}");
            assert_eq!(metadata(&dst).expect("looked at").mtime_nsec(), 500_000_000);
            std::fs::remove_file(&dst).expect("removed");
        }
    }
}
