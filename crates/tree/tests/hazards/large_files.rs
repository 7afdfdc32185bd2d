//! Large files among other work: several at the same time, and one with all idle workers.

use std::collections::HashSet;
use std::fs::{create_dir, read_dir, remove_dir_all, write};
use std::path::Path;
use std::sync::{Condvar, Mutex};
use std::thread::{ThreadId, available_parallelism, current};
use std::time::Duration;

use testfs::{Aspects, assert_equal_trees, each_fs, random_bytes, skip, test_name};
use tree::{Options, Reflink};

use crate::recorder::{Recorder, copy_into, home, make_files};
use crate::workers::with_jobs;

/// More than what makes a file a large one.
const LARGE: usize = 9 << 20;

/// Threads that have copied a piece.
#[derive(Default)]
struct Threads {
    seen: Mutex<HashSet<ThreadId>>,
    changed: Condvar,
}

impl Threads {
    fn come(&self) {
        self.seen.lock().expect("locked").insert(current().id());
        self.changed.notify_all();
    }

    fn meet(&self) {
        self.come();
        let seen = self.seen.lock().expect("locked");
        let alone = |seen: &mut HashSet<ThreadId>| seen.len() < 2;
        let limit = Duration::from_secs(60);
        drop(self.changed.wait_timeout_while(seen, limit, alone).expect("a set"));
    }

    fn number(&self) -> usize {
        self.seen.lock().expect("locked").len()
    }
}

fn make_distinct(src: &Path, names: &[&str], content: &[u8]) {
    for (number, name) in names.iter().enumerate() {
        make_files(src, &[name], &content[number..]);
    }
}

fn moving(jobs: usize) -> Options {
    with_jobs(jobs, Options { reflink: Reflink::Never, ..Options::archive() })
}

#[test]
fn large_files_of_a_tree_are_copied_at_the_same_time() {
    let content = random_bytes(LARGE, 1);
    each_fs(|kind, dir| {
        let one_directory = ["a", "b", "c"].as_slice();
        let a_directory_each = ["1/a", "2/b", "3/c"].as_slice();
        let below_each_other = ["1/a", "1/2/b", "1/2/3/c"].as_slice();
        for (case, names) in [one_directory, a_directory_each, below_each_other].iter().enumerate()
        {
            let (src, dst) = (dir.join("s"), dir.join("t"));
            make_distinct(&src, names, &content);
            let threads = Threads::default();
            let recorder = Recorder::with_meanwhile(|| threads.meet());
            let what = format!("{kind}, {case}");
            recorder.expect_copy(&src, &dst, &moving(2), &what);
            assert_eq!(threads.number(), 2, "{what}");
            assert_equal_trees(&src, &dst, Aspects::ALL, &what);
            // Every entry once: the files, and the directories above them.
            let receipts = recorder.receipts.lock().expect("locked").len();
            assert_eq!(receipts, 3 + [1, 4, 4][case], "{what}");
            remove_dir_all(&src).expect("removed");
            remove_dir_all(&dst).expect("removed");
        }
    });
}

#[test]
fn a_few_large_operands_are_copied_at_the_same_time() {
    let (_dir, at) = home();
    let (src, dst) = (at("s"), at("t"));
    make_distinct(&src, &["a", "b"], &random_bytes(LARGE, 1));
    create_dir(&dst).expect("created");
    let threads = Threads::default();
    let recorder = Recorder::with_meanwhile(|| threads.meet());
    let sources = ["a", "b"].map(|name| src.join(name));
    assert_eq!(copy_into(&sources, &dst, &moving(2), &recorder).failures, 0);
    assert_eq!(threads.number(), 2);
    let aspects = Aspects { mtimes: false, ..Aspects::ALL };
    assert_equal_trees(&src, &dst, aspects, "");
}

#[test]
fn a_worker_without_work_joins_a_large_file() {
    if available_parallelism().is_ok_and(|processors| processors.get() < 2) {
        return skip(&test_name(), "one processor is not shared");
    }
    let content = random_bytes(70 << 20, 1);
    each_fs(|kind, dir| {
        let (src, dst) = (dir.join("s"), dir.join("t"));
        make_files(&src, &["large"], &content);
        for number in 0..20 {
            write(src.join(format!("empty{number}")), "").expect("written");
        }
        let threads = Threads::default();
        let recorder = Recorder::with_meanwhile(|| {
            threads.come();
            // A piece takes long enough for the empty files, and for a thread that starts late.
            std::thread::sleep(Duration::from_millis(if threads.number() == 1 { 100 } else { 0 }));
        });
        recorder.expect_copy(&src, &dst, &moving(2), kind);
        let receipts = recorder.receipts.into_inner().expect("a list");
        let large = receipts.iter().find(|receipt| receipt.src.ends_with("large"));
        let attempts = &large.expect("it was copied").attempts;
        let workers = attempts.iter().map(|attempt| attempt.variant.workers);
        let workers: Vec<_> = workers.collect();
        assert!(workers.contains(&2), "{kind}: {workers:?}");
        assert_equal_trees(&src, &dst, Aspects::ALL, kind);
        assert_eq!(read_dir(&dst).expect("listed").count(), 21, "{kind}");
        remove_dir_all(&src).expect("removed");
        remove_dir_all(&dst).expect("removed");
    });
}
