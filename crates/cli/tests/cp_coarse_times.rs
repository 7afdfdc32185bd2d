//! `cp -u` and `--resume` onto file systems that keep times less finely than the source: what is complete is
//! not copied again, and what has changed is.

use std::fs::{File, metadata, remove_dir_all, write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use testfs::{Costs, FuseFs, Lies, stdout};

use crate::image::Image;
use crate::{check_content, copy, dir_with, fixture};

/// Copies, and returns the lines of `--verbose`.
fn copied(options: &str, src: &Path, dst: &Path) -> String {
    stdout(&copy(".", &format!("{options} -v -T {} {}", src.display(), dst.display())))
}

const OPTIONS: [&str; 7] = [
    "-au",
    "-rpu",
    "-a --update=older --atomic",
    "-au --jobs=1",
    "-a --resume",
    "-au --resume --verify",
    "-rp --resume",
];

/// Checks on the file system at `root`, which cannot keep all digits of a time, that a second copy does
/// nothing.
fn check_second_copy(what: &str, root: &Path) {
    // The digits of the old times are those of the fixtures, of which each file system keeps some.
    let dir = dir_with(
        "src/now=content; src/d/now=content; src/d/old=content t=1583204583; \
         src/empty= t=1583204583",
    );
    let src = dir.path().join("src");
    for options in OPTIONS {
        let what = format!("{what} {options}");
        let dst = root.join("dst");
        write(src.join("now"), "content").expect("written");
        assert!(copied(options, &src, &dst).contains("old"), "{what}");
        let old = || metadata(dst.join("d/old")).expect("looked at").modified().expect("time read");
        let before = old();
        let dry = copied(&format!("{options} --dry-run"), &src, &dst);
        assert_eq!(dry, "", "{what}");
        assert_eq!(copied(options, &src, &dst), "", "{what}");
        assert_eq!(old(), before, "{what}");

        write(src.join("now"), "longer content").expect("written");
        let said = copied(options, &src, &dst);
        assert_eq!(said.lines().count(), 1, "{what}: {said}");
        check_content(dst.join("now"), "longer content", &what);
        let later = old() + Duration::from_secs(2);
        File::open(src.join("d/old")).and_then(|file| file.set_modified(later)).expect("set");
        let said = copied(options, &src, &dst);
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
        let changed = metadata(&src).expect("looked at").modified().expect("time read");
        let since = changed.duration_since(SystemTime::UNIX_EPOCH).expect("later");
        since.as_nanos() / resolution.as_nanos()
    };
    for options in OPTIONS {
        let mut tries = 0..50;
        while tries.next().is_some() {
            write(&src, "one").expect("written");
            let first = interval();
            copied(options, &src, &dst);
            write(&src, "two").expect("written");
            copied(options, &src, &dst);
            check_content(&dst, "two", format_args!("{what} {options}"));
            if interval() == first {
                break;
            }
        }
        assert!(!tries.is_empty(), "{what} {options}: the copies are too slow");
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_file_system_with_coarse_times_is_not_copied_to_again() {
    for (what, resolution, ctime_is_mtime) in [
        ("as vfat", 2 * SECOND, true),
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

#[test]
fn real_file_systems_with_coarse_times_are_not_copied_to_again() {
    for (mkfs, mount, resolution) in [
        ("mkfs.ext4 -q -F -I 128", "mount -o loop", Some(SECOND)),
        ("mkfs.ext3 -q -F -I 128", "mount -o loop", Some(SECOND)),
        ("mkfs.ntfs -q -F -Q", "ntfs-3g", None),
    ] {
        let home = tempfile::tempdir().expect("created");
        let Some(image) = Image::new(mkfs, mount, 64, home.path()) else { continue };
        check_second_copy(mkfs, &image.mounted);
        if let Some(resolution) = resolution {
            check_change_at_once(mkfs, (&image.mounted, resolution));
            let dir = dir_with("link->target");
            let [link, copy] = [dir.path(), &image.mounted].map(|dir| dir.join("link"));
            assert_ne!(copied("-au", &link, &copy), "");
            assert_eq!(copied("-au", &link, &copy), "");
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
            fixture::add("src=content", &dir);
            let src_file = File::open(&src).expect("opened");
            let round = SystemTime::UNIX_EPOCH + Duration::from_secs(1_583_204_584);
            src_file.set_modified(round).expect("time set");
            copied(options, &src, &dst);
            src_file.set_modified(round + SECOND / 2).expect("time set");
            assert_ne!(copied(options, &src, &dst), "", "{root:?} {options}");
            assert_eq!(metadata(&dst).expect("looked at").mtime_nsec(), 500_000_000);
            std::fs::remove_file(&dst).expect("removed");
        }
    }
}
