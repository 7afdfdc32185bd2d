//! The copy of one file without attributes takes a shorter way (copy/one_file.rs). It must end as the general
//! way does, which an observer that keeps receipts gets.

use std::fs::{create_dir, metadata, symlink_metadata, write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use testfs::{
    Aspects, FsKind, FuseFs, Lies, WrongSize, assert_equal_trees, each_fs, fixture, random_bytes,
};
use tree::{Existing, Follow, ModeRule, Options, Preserve, Reflink, Sparse};

use crate::recorder::{Recorder, copy_exactly, home};

/// What is at the name of the source before the copy, in the language of [`fixture`].
const SOURCES: &[(&str, &str)] = &[
    ("missing", ""),
    ("empty", "src="),
    ("1 KiB", "src#1K:1"),
    ("a page", "src#4K:2"),
    ("a page and a byte", "src#4097:3"),
    ("200 KiB", "src#200K:4"),
    ("sparse", "src~3M@1M,1028K"),
    ("set-user-ID", "src=old mode=6751"),
    ("not readable", "src=old mode=0"),
    ("directory", "src/"),
    ("link to a file", "target=linked; src->target"),
    ("dangling link", "src->nowhere"),
    ("loop of links", "src->src"),
    ("socket", "src%socket"),
    ("link to a variable of the kernel", "src->/proc/version"),
    ("link to memory that cannot be read", "src->/proc/self/mem"),
    ("link to a device", "src->/dev/null"),
];

/// What is at the name of the destination.
const DESTINATIONS: &[(&str, &str)] = &[
    ("absent", ""),
    ("a longer file", "dst#300K:6"),
    ("a shorter file", "dst=old mode=604"),
    ("not writable", "dst=old mode=400"),
    ("a file with two names", "dst=old; other==dst"),
    ("directory", "dst/"),
    ("link to a file", "old=old; dst->old"),
    ("link to the source", "dst->src"),
    ("link to a directory", "dst->."),
    ("dangling link", "dst->nowhere"),
    ("the source", "dst==src"),
    ("socket", "dst%socket"),
    ("link to a full device", "dst->/dev/full"),
    ("a directory that gives its files an access list", "./ mode=2755 default-acl=750"),
];

/// Which names the copy is given, in the directory.
const NAMES: &[(&str, &str)] = &[
    ("src", "dst"),
    ("src", "./dst"),
    ("src", "dst/"),
    ("src/", "dst"),
    ("./src", "."),
    ("src", ".."),
    ("src", "none/dst"),
    ("src", "src/dst"),
    ("src", "src"),
    ("src/.", "dst"),
];

fn fresh() -> Preserve {
    Preserve { mode: ModeRule::Fresh, ..Preserve::default() }
}

fn options() -> Vec<(&'static str, Options)> {
    let plain = Options::default;
    vec![
        ("none", plain()),
        ("recursive", Options { recursive: true, ..plain() }),
        ("links as links", Options { follow: Follow::Never, ..plain() }),
        ("force", Options { force: true, ..plain() }),
        ("through dangling links", Options { through_dangling_symlink: true, ..plain() }),
        ("holes", Options { sparse: Sparse::Always, ..plain() }),
        ("no holes", Options { sparse: Sparse::Never, ..plain() }),
        ("no clones", Options { reflink: Reflink::Never, ..plain() }),
        ("a new mode", Options { preserve: fresh(), ..plain() }),
        ("an engine", Options { engine: "splice:64K".parse().ok(), ..plain() }),
        // These have the general way in both cases, unless a new one was not considered.
        ("keeps", Options { existing: Existing::Skip, ..plain() }),
        ("only clones", Options { reflink: Reflink::Always, ..plain() }),
        ("atomic", Options { atomic: true, ..plain() }),
        ("removes", Options { remove_destination: true, ..plain() }),
        ("archive", Options { ..Options::archive() }),
    ]
}

/// Makes a case and copies. Returns what was reported, with the same names for both ways.
fn run(
    dir: &Path,
    (at_src, at_dst): (&str, &str),
    (src, dst): (&str, &str),
    options: &Options,
    without_receipts: bool,
) -> String {
    create_dir(dir).expect("created");
    fixture::add(at_src, dir);
    // Where there is no source it has no other name, nor where it is a directory.
    let can_be_linked = symlink_metadata(dir.join("src")).is_ok_and(|src| !src.is_dir());
    if at_dst != "dst==src" || can_be_linked {
        fixture::add(at_dst, dir);
    }
    // Names are joined as bytes: `Path::join` would drop a slash at the end.
    let at = |name: &str| PathBuf::from(format!("{}/{name}", dir.display()));
    let recorder = Recorder { without_receipts, ..Recorder::default() };
    let outcome = copy_exactly(&at(src), &at(dst), options, &recorder);
    let reported = format!("{outcome:?} {:?}", recorder.reported());
    reported.replace(dir.to_str().expect("it is text"), "DIR")
}

fn blocks(path: &Path) -> Option<u64> {
    symlink_metadata(path).ok().filter(std::fs::Metadata::is_file).map(|found| found.blocks())
}

#[test]
fn the_short_way_ends_as_the_general_one() {
    let aspects = Aspects { mtimes: false, ..Aspects::ALL };
    let compare = |root: &Path, what: &str, case, names, options: &Options| {
        let [short, general] = ["short", "general"].map(|name| root.join(name));
        let by_short = run(&short, case, names, options, true);
        let by_general = run(&general, case, names, options, false);
        assert_eq!(by_short, by_general, "{what}");
        assert_equal_trees(&short, &general, aspects, format_args!("{what}: {by_short}"));
        let (left, right) = (blocks(&short.join("dst")), blocks(&general.join("dst")));
        assert_eq!(left, right, "{what}: blocks of the copy");
        for dir in [short, general] {
            std::fs::remove_dir_all(dir).expect("removed");
        }
    };
    each_fs(|fs, root| {
        // The other options and names do not depend on the file system.
        let is_fast = fs == FsKind::Tmpfs;
        let names = if is_fast { NAMES } else { &NAMES[..1] };
        let mut options = options();
        options.truncate(if is_fast { options.len() } else { 1 });
        for (row, (src, at_src)) in SOURCES.iter().enumerate() {
            for (column, (dst, at_dst)) in DESTINATIONS.iter().enumerate() {
                let check = |names, (with, options): &(&str, Options)| {
                    let what = format!("{}: {src} to {dst}, {with}, {names:?}", fs.name());
                    compare(root, &what, (*at_src, *at_dst), names, options);
                };
                check(NAMES[0], &options[0]);
                // Each of the others meets every source and every destination, but only each eighth pair.
                let is_due = |number: usize| (row + column + number).is_multiple_of(8);
                let others = |count| (1..count).filter(|&number| is_due(number));
                others(options.len()).for_each(|number| check(NAMES[0], &options[number]));
                others(names.len()).for_each(|number| check(names[number], &options[0]));
            }
        }
    });
}

#[test]
fn a_faulty_source_is_reported_in_the_same_words() {
    let (_dir, at) = home();
    let content = random_bytes(9000, 1);
    for faults in [
        Lies { read_bytes_max: Some(777), ..Lies::default() },
        Lies { size: Some(WrongSize::Is(20_000)), ..Lies::default() },
        Lies { size: Some(WrongSize::Is(5000)), ..Lies::default() },
        Lies { size: Some(WrongSize::Is(0)), ..Lies::default() },
        Lies { read_error_at: Some(0), ..Lies::default() },
        Lies { read_error_at: Some(4096), ..Lies::default() },
        Lies { all_hole: true, no_blocks: true, ..Lies::default() },
        Lies { reads_change_times: true, ..Lies::default() },
    ] {
        let Some(faulty) = FuseFs::with_source(content.clone(), faults.clone()) else { return };
        let results = [true, false].map(|without_receipts| {
            let recorder = Recorder { without_receipts, ..Recorder::default() };
            let dst = at("dst");
            let outcome = copy_exactly(&faulty.source(), &dst, &Options::default(), &recorder);
            let copy = std::fs::read(&dst).expect("read");
            std::fs::remove_file(&dst).expect("removed");
            (outcome, format!("{:?}", recorder.reported()), copy)
        });
        assert!(results[0] == results[1], "{faults:?}: {:?}, {:?}", results[0].1, results[1].1);
    }
}

#[test]
fn a_copy_that_is_cancelled_before_it_starts_says_so() {
    let (_dir, at) = home();
    let src = at("src");
    write(&src, "bytes").expect("written");
    let results = ["short", "general"].map(|way| {
        let dst = at("dst");
        let (interrupts_at, without_receipts) = (Some(0), way == "short");
        let recorder = Recorder { interrupts_at, without_receipts, ..Recorder::default() };
        let outcome = copy_exactly(&src, &dst, &Options::default(), &recorder);
        let bytes = metadata(&dst).map(|found| found.len()).ok();
        let _ = std::fs::remove_file(&dst);
        (outcome, recorder.reported(), bytes)
    });
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0].0.failures, 1);
}
