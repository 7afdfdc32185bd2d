//! Every entry is copied once, and with everything that `cp -a` keeps.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{create_dir, hard_link, read, write};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use haulage::events::Diagnostic;
use haulage::options::{Destination, Existing, Filter, Options, Request, Rule};
use testfs::{Aspects, Costs, FuseFs, assert_equal_trees};

use crate::common::{self, FLAT_FILES, assert_equal, assert_holes_are_kept, make_tree};
use crate::{Done, Pace, Threads, failures, place, request, run, run_between, with_jobs};

/// Copies with so many ranks. Returns what each has done, and the exit status of rank 0.
fn copy(ranks: u32, request: &Request, options: &Options) -> (Vec<Arc<Done>>, u8) {
    let done: Vec<Arc<Done>> = (0..ranks).map(|_| Arc::default()).collect();
    let status = run(&done, request, options);
    (done, status)
}

/// To copy `src` into or to `dst`.
fn last(src: &Path, dst: &Path) -> Request {
    request(&[src], Destination::Last(dst.into()))
}

fn exact(src: &Path, dst: &Path) -> Request {
    request(&[src], Destination::Exact(dst.into()))
}

/// So many ranks, each of which is to copy so many entries at least.
fn paced(ranks: usize, least: usize) -> (Arc<Pace>, Vec<Arc<Done>>) {
    let pace = Pace::of(ranks, least);
    let with_pace = |rank| Arc::new(Done { pace: Some((pace.clone(), rank)), ..Done::default() });
    let done = (0..ranks).map(with_pace).collect();
    (pace, done)
}

/// The paths of all ranks, with how often each was copied.
fn copied(done: &[Arc<Done>]) -> BTreeMap<PathBuf, usize> {
    let mut times = BTreeMap::new();
    for rank in done {
        for receipt in &*rank.receipts() {
            *times.entry(receipt.src.clone()).or_default() += 1;
        }
    }
    times
}

#[test]
fn a_tree_is_copied_once_by_all_ranks() {
    for (ranks, jobs) in [(1, 2), (2, 1), (4, 2), (7, 1)] {
        let shown = format!("{ranks} ranks, {jobs} workers");
        let (_dir, src, dst) = place();
        make_tree(&src, ranks as u64);
        // Each rank copies a twentieth of its part, or more.
        let (pace, done) = paced(ranks, FLAT_FILES / ranks / 20);
        let status = run(&done, &last(&src, &dst), &with_jobs(jobs));
        assert_eq!((failures(&done), status), (vec![], 0), "{shown}");
        assert_equal(&src, &dst, &shown);
        assert_holes_are_kept(&dst);
        let times = copied(&done);
        let several: Vec<_> = times.iter().filter(|&(_, &times)| times != 1).collect();
        assert!(several.is_empty(), "{shown}: {several:?}");
        assert_eq!(times.len(), testfs::Tree::read(&src).expect("read").paths().count(), "{shown}");
        pace.assert_kept(&shown);
    }
}

#[test]
fn a_copy_over_an_older_copy_is_like_that_of_one_process() {
    for ranks in [2, 5] {
        let (_dir, src, dst) = place();
        make_tree(&src, 11);
        let options = Options { existing: Existing::Replace, ..with_jobs(2) };
        for turn in 0..2 {
            let shown = format!("{ranks} ranks, turn {turn}");
            let (done, status) = copy(ranks, &exact(&src, &dst), &options);
            assert_eq!((failures(&done), status), (vec![], 0), "{shown}");
            assert_equal(&src, &dst, &shown);
            write(src.join("flat/file 7"), "other, longer content").expect("written");
            write(dst.join("bushes/f0"), "what nobody wants").expect("written");
        }
    }
}

/// The spellings of a name may be copied by two ranks.
#[test]
fn of_two_names_that_differ_in_case_none_is_lost_silently() {
    const PAIRS: usize = 200;
    let dir = common::scratch();
    let src = dir.path().join("src");
    create_dir(&src).expect("created");
    for number in 0..PAIRS {
        for name in ["Name", "name"] {
            let name = format!("{name}{number}");
            write(src.join(&name), &name).expect("written");
        }
    }
    for resume in [false, true] {
        let Some(served) = FuseFs::mount(Costs { ignores_case: true, ..Costs::default() }) else {
            return;
        };
        let options = Options { resume, existing: Existing::Replace, ..with_jobs(1) };
        for turn in 0..2 {
            let (pace, done) = paced(2, PAIRS / 10);
            let status = run(&done, &exact(&src, served.path()), &options);
            let failures = failures(&done);
            let lower = |failed: &Diagnostic| format!("{failed:?}").to_lowercase();
            let pairs: BTreeSet<String> = failures.iter().map(lower).collect();
            assert_eq!((pairs.len(), status), (PAIRS, 1), "resume {resume}, {turn}");
            // Where a copy exists before the run, no rank knows whether another one has made it.
            assert!(turn > 0 || failures.len() == PAIRS, "resume {resume}: {failures:?}");
            pace.assert_kept(&format!("resume {resume}, {turn}"));
        }
    }
}

#[test]
fn several_operands_and_a_filter_are_kept() {
    let (_dir, src, dst) = place();
    make_tree(&src, 5);
    create_dir(&dst).expect("created");
    let (first, second) = (src.join("links a"), src.join("links b"));
    let rules = [Rule { glob: "*7".into(), include: false }];
    let filter = Filter::new(&rules, &[]).expect("a pattern");
    let options = Options { filter, ..with_jobs(1) };
    let large = src.join("large");
    let request = request(&[&first, &second, &large], Destination::Last(dst.clone().into()));
    let (done, status) = copy(3, &request, &options);
    assert_eq!((failures(&done), status), (vec![], 0));
    for number in 0..200_u64 {
        let (a, b) =
            (dst.join(format!("links a/{number}")), dst.join(format!("links b/x{number}")));
        assert_eq!(a.exists(), number % 10 != 7, "{number}");
        if a.exists() {
            use std::os::unix::fs::MetadataExt;
            let ino = |path: &Path| path.metadata().expect("looked at").ino();
            assert_eq!(ino(&a), ino(&b), "{number}");
        }
    }
    assert_eq!(read(dst.join("large")).expect("read"), read(src.join("large")).expect("read"));
}

/// A directory, the contents of two directories in it as operands, and the request to copy both into `dst`.
fn two_operands() -> (tempfile::TempDir, [PathBuf; 2], PathBuf, Request) {
    let (dir, src, dst) = place();
    let [one, two] = ["one", "two"].map(|name| src.join(name));
    for dir in [&src, &one, &two, &dst] {
        create_dir(dir).expect("created");
    }
    let request = request(&[&one.join("."), &two.join(".")], Destination::Last(dst.clone().into()));
    (dir, [one, two], dst, request)
}

#[test]
fn names_of_one_file_in_two_operands_stay_its_names() {
    let (_dir, [one, two], dst, request) = two_operands();
    for number in 0..100 {
        let [file, other] = ["f", "g"].map(|name| one.join(format!("{name}{number}")));
        write(&file, "x").expect("written");
        hard_link(&file, &other).expect("linked");
        hard_link(&file, two.join(format!("f{number}"))).expect("linked");
    }
    let (done, status) = copy(3, &request, &with_jobs(1));
    assert_eq!((failures(&done), status), (vec![], 0));
    assert_equal_trees(&one, &dst, Aspects { mtimes: false, ..Aspects::ALL }, "");
}

#[test]
fn a_file_with_the_name_of_a_partial_file_in_another_operand_is_kept() {
    let (_dir, [one, two], dst, request) = two_operands();
    for number in 0..6 {
        create_dir(one.join(format!("d{number}"))).expect("created");
        create_dir(two.join(format!("d{number}"))).expect("created");
        write(one.join(format!("d{number}/.f.haulage-part")), "x").expect("written");
        let large = std::fs::File::create(two.join(format!("d{number}/f"))).expect("created");
        large.set_len(20 << 20).expect("set");
    }
    let options = Options { resume: true, atomic: true, ..with_jobs(1) };
    let (done, status) = copy(3, &request, &options);
    assert_eq!((failures(&done), status), (vec![], 0));
    for number in 0..6 {
        let kept = read(dst.join(format!("d{number}/.f.haulage-part")));
        assert_eq!(kept.expect("it is copied"), b"x", "{number}");
    }
}

#[test]
fn a_copy_into_itself_ends_as_that_of_one_process() {
    let dir = common::scratch();
    let src = dir.path().join("src");
    make_tree(&src, 6);
    let (done, status) = copy(3, &last(&src, &src.join("bushes")), &with_jobs(2));
    let failures = failures(&done);
    assert_eq!(status, 1);
    assert!(matches!(failures[..], [Diagnostic::IntoItself { .. }]), "{failures:?}");
    assert_equal_trees(&src.join("flat"), &src.join("bushes/src/flat"), Aspects::ALL, "");
}

#[test]
fn a_rank_that_gives_up_keeps_no_other_from_its_part() {
    let (_dir, src, dst) = place();
    make_tree(&src, 10);
    let pace = Pace::of(3, FLAT_FILES / 3 / 10);
    let helping = |rank| Done { pace: Some((pace.clone(), rank)), ..Done::default() };
    let none = Done { takes_none: true, ..Done::default() };
    let done = [helping(0), none, helping(1), helping(2)].map(Arc::new);
    let status = run(&done, &last(&src, &dst), &with_jobs(1));
    assert_eq!((failures(&done), status), (vec![], 1));
    assert_equal(&src, &dst, "");
    assert!(done[1].receipts().is_empty());
    pace.assert_kept("three of four ranks");
}

#[test]
fn a_rank_that_is_interrupted_ends_all_of_them() {
    let (_dir, src, dst) = place();
    make_tree(&src, 8);
    let others = || Done { entry_time: Duration::from_millis(20), ..Done::default() };
    let first = Done { stops_after: Some(100), ..Done::default() };
    let done = [first, others(), others(), others()].map(Arc::new);
    run(&done, &last(&src, &dst), &with_jobs(1));
    let entries = copied(&done).len();
    assert!((100..FLAT_FILES).contains(&entries), "{entries}");
}

/// Copies files of several lengths to names that all lead to the file `dst/0`.
fn copy_to_names_of_one_file(link: impl Fn(&Path, &Path)) {
    const NAMES: usize = 48;
    // The file takes so long by its own name that the others are written meanwhile.
    let bytes_of = |name: usize| if name == 0 { 64 << 20 } else { (1 + name % 4) << 20 };
    let (_dir, src, dst) = place();
    create_dir(&src).expect("created");
    create_dir(&dst).expect("created");
    for name in 0..NAMES {
        let byte = u8::try_from(name).expect("few names");
        write(src.join(name.to_string()), vec![byte; bytes_of(name)]).expect("written");
        if name > 0 {
            link(&dst.join("0"), &dst.join(name.to_string()));
        }
    }
    let options = Options { recursive: true, verify: true, ..Options::default() };
    let options = Options { follow: haulage::options::Follow::Never, ..options };
    for turn in 0..3 {
        // Shorter than each of the new ones.
        write(dst.join("0"), "x").expect("written");
        let (done, status) = copy(4, &exact(&src, &dst), &options);
        assert_eq!((failures(&done), status), (vec![], 0), "turn {turn}");
        let bytes = read(dst.join("0")).expect("read");
        let first = bytes[0];
        assert!(bytes.iter().all(|&byte| byte == first), "turn {turn}");
        assert_eq!(bytes.len(), bytes_of(first.into()), "turn {turn}");
    }
}

#[test]
fn a_rank_that_is_interrupted_while_its_workers_wait_ends_all_of_them() {
    let (_dir, src, dst) = place();
    write(&src, vec![1; 60 << 20]).expect("written");
    // Rank 0 has the only file, for a minute.
    let options = Options { limit_rate: NonZeroU64::new(2 << 20), ..with_jobs(1) };
    let done = [0, 1].map(|rank| {
        Arc::new(Done { stops_with: (rank == 1).then(|| dst.clone()), ..Done::default() })
    });
    let status = run(&done, &last(&src, &dst), &options);
    let failures = failures(&done);
    assert!(matches!(failures[..], [Diagnostic::Interrupted { .. }]), "{failures:?}");
    assert_eq!(status, 1);
}

#[test]
fn two_ranks_do_not_write_to_one_file_at_once_by_hard_links() {
    copy_to_names_of_one_file(|file, link| {
        if !file.exists() {
            write(file, "x").expect("written");
        }
        std::fs::hard_link(file, link).expect("linked");
    });
}

#[test]
fn two_ranks_do_not_write_to_one_file_at_once_by_symbolic_links() {
    copy_to_names_of_one_file(|_, link| std::os::unix::fs::symlink("0", link).expect("linked"));
}

#[test]
fn a_rank_that_waits_for_a_lock_can_be_interrupted() {
    let (_dir, src, dst) = place();
    write(&src, "new").expect("written");
    write(&dst, "old").expect("written");
    let held = std::fs::File::open(&dst).expect("opened");
    held.lock().expect("locked");
    // Long after a rank has begun to wait, also on a busy machine.
    let stops_at = Some(Instant::now() + Duration::from_secs(1));
    let done = [0, 1].map(|_| Arc::new(Done { stops_at, ..Done::default() }));
    let status = run(&done, &last(&src, &dst), &Options::default());
    assert_eq!(
        (failures(&done), status),
        (vec![Diagnostic::InterruptedBefore { dst: dst.clone() }], 1)
    );
    assert_eq!(read(dst).expect("read"), b"old");
}

#[test]
fn a_rank_of_another_host_takes_nothing_on_a_local_file_system() {
    let (_dir, src, dst) = place();
    make_tree(&src, 12);
    let mut ranks = Threads::connected(3);
    ranks[1].boot_id = b"another host".into();
    let done = [0, 1, 2].map(|_| Arc::default());
    let status = run_between(ranks, &done, &last(&src, &dst), &with_jobs(1));
    assert_eq!(status, 1);
    assert_eq!(failures(&done), [Diagnostic::LocalToHost { path: src.clone() }]);
    assert_eq!(done[1].receipts().len(), 0);
    assert_equal(&src, &dst, "");
}

#[test]
fn each_failure_is_told_once_and_the_rest_is_copied() {
    let (_dir, src, dst) = place();
    make_tree(&src, 9);
    // A directory is in the way of each of these files.
    let in_the_way: Vec<PathBuf> =
        (0..40).map(|number| dst.join(format!("flat/file {}", number * 22))).collect();
    in_the_way.iter().for_each(|path| std::fs::create_dir_all(path).expect("created"));
    let (done, status) = copy(4, &exact(&src, &dst), &with_jobs(2));
    let mut paths: Vec<PathBuf> = failures(&done)
        .into_iter()
        .map(|diagnostic| match diagnostic {
            Diagnostic::DirectoryInTheWay { dst, .. } => dst,
            other => panic!("{other:?}"),
        })
        .collect();
    paths.sort();
    let mut expected = in_the_way;
    expected.sort();
    assert_eq!((paths, status), (expected, 1));
    assert_eq!(copied(&done).len(), testfs::Tree::read(&src).expect("read").paths().count());
}
