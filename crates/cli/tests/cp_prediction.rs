//! The variant that `tune` takes for the default is the one that `cp` uses: both call the same
//! functions, and this test compares them on real file systems.

use std::fs::{File, remove_file, write};
use std::os::fd::AsFd;
use std::path::Path;

use engines::profile::{
    Choice, FileSystems, InFlight, Line, Machine, Profile, Residency, Situation, SizeClass,
};
use haulage::prediction::{PlannedFile, Predictor};
use rustix::fs::{Advice, fadvise};
use sys::cachestat;
use testfs::{each_fs, each_pair, random_bytes};

use crate::cp_profile::{pair_of, way};
use crate::{check_success, haulage_cp};

/// Lengths up to and over 64 KiB. A copy looks up the residency of the longer ones only.
const LENGTHS: [usize; 6] = [3000, 20_000, 300_000, 5 << 20, 17 << 20, LONGEST];

/// From this length on the rule reads past the page cache.
const LONGEST: usize = 64 << 20;

const JOBS: usize = 2;

/// Copies `src` in `from` into `to` by a `cp` that reads `profile`. Returns the variant that was chosen, and the
/// one that moved the last byte.
fn copied(from: &Path, to: &Path, profile: &Path, no_cache: bool) -> [String; 2] {
    let receipt = profile.with_file_name("receipt");
    let line = format!("--jobs={JOBS} --receipt={} src", receipt.display());
    let mut command = haulage_cp(from, if no_cache { "--no-cache" } else { "" });
    command.args(line.split(' ')).arg(to.join("dst")).env("HAULAGE_PROFILE", profile);
    check_success(&command.output().expect("haulage ran"), line);
    remove_file(to.join("dst")).expect("removed");
    let entry = testfs::json_lines(&receipt).swap_remove(0);
    let [_, chosen, moved] = way(&entry).map(str::to_owned);
    [chosen, moved]
}

/// Brings the file into the state, and returns whether it is in it.
fn reach(file: &File, bytes: u64, residency: Residency) -> bool {
    if residency == Residency::Absent {
        fadvise(file, 0, None, Advice::DontNeed).expect("advised");
    }
    let pages = cachestat(file.as_fd(), 0, bytes).map(|counted| counted.cached_pages);
    pages.is_ok_and(|pages| Residency::of(pages, bytes.div_ceil(4096)) == residency)
}

fn check(from: &Path, to: &Path, lengths: &[usize]) {
    let open = |dir: &Path| File::open(dir).expect("opened");
    let found = FileSystems::of(open(from).as_fd(), open(to).as_fd());
    let profiles = [Vec::new(), own_lines()].map(|lines| {
        let pair = pair_of(&found, lines);
        let dir = tempfile::tempdir().expect("created");
        let mut profile = Profile::default();
        profile.enter(&Machine::this(), pair.clone());
        profile.write(&dir.path().join("profile.toml")).expect("written");
        (dir, Predictor::between(&found, &[pair]))
    });
    for &bytes in lengths {
        write(from.join("src"), random_bytes(bytes, 1)).expect("written");
        let file = File::open(from.join("src")).expect("opened");
        file.sync_all().expect("synced");
        let bytes = bytes as u64;
        // The lines are of shorter files: the longest is copied by the rule.
        let due = if bytes < LONGEST as u64 { &profiles[..] } else { &profiles[..1] };
        for (dir, predictor) in due {
            let profile = dir.path().join("profile.toml");
            for residency in [Residency::Resident, Residency::Absent] {
                for no_cache in [false, true] {
                    if residency == Residency::Resident {
                        std::fs::read(from.join("src")).expect("read");
                    }
                    if !reach(&file, bytes, residency) {
                        continue;
                    }
                    let (size, in_flight) = (SizeClass::of(bytes), InFlight::One);
                    let situation = Situation { size, residency, in_flight, no_cache };
                    let ways = predictor.variants(&PlannedFile { situation, bytes, jobs: JOBS });
                    let [chosen, moved] = copied(from, to, &profile, no_cache);
                    if chosen == "reflink" {
                        // A profile does not choose clones.
                        continue;
                    }
                    let ways: Vec<String> = ways.iter().map(ToString::to_string).collect();
                    let place = format!(
                        "{} to {}, {situation:?}",
                        found.src.in_words(),
                        found.dst.in_words()
                    );
                    assert_eq!(chosen, ways[0], "{place}");
                    assert!(ways.contains(&moved), "{place}: {moved} of {ways:?}");
                }
            }
        }
    }
}

/// Lines for every condition that a line can have.
fn own_lines() -> Vec<Line> {
    let line = |size: u64, residency, no_cache, variant: &str| Line {
        size: Some(SizeClass::of(size)),
        residency: Some(residency),
        no_cache,
        choice: Choice { variant: variant.to_owned(), ..Choice::default() },
        ..Line::default()
    };
    use Residency::{Absent, Resident};
    vec![
        line(3000, Resident, false, "read_write:4K"),
        line(3000, Absent, false, "read_write:8K"),
        line(300_000, Resident, false, "read_write:32K"),
        line(300_000, Absent, false, "splice:512K,pipe=512K"),
        line(5 << 20, Absent, false, "read_write:64K@2"),
        line(17 << 20, Resident, false, "read_write:128K@8"),
        line(17 << 20, Absent, true, "read_write:1M@2"),
    ]
}

#[test]
fn a_copy_uses_the_predicted_variant() {
    each_fs(|_, dir| check(dir, dir, &LENGTHS));
    // What is chosen for longer files does not depend on the pair.
    each_pair(|src, dst| check(src.path(), dst.path(), &LENGTHS[1..3]));
}
