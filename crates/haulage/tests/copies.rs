//! Copies by the crate's interface: what they leave, what they report, and how they are stopped.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use haulage::events::{Attempt, DirectoryStage, FileType, Moved, Span, Stop};
use haulage::options::{Existing, Follow, Options};
use haulage::{
    CancelToken, Control, Copy, CopyFailed, Kind, Operation, Outcome, RunTotals, Variant,
    copy_descriptors, copy_descriptors_with, copy_file, copy_file_with,
};
use tempfile::TempDir;
use testfs::{Aspects, assert_equal_trees, fixture, random_bytes};

fn home() -> TempDir {
    tempfile::tempdir().expect("created")
}

/// A tree of 300 files in 3 directories, with a symbolic and a hard link.
fn make_tree(at: &Path) {
    for file in 0..300 {
        let (dir, file) = (file / 100, file % 100);
        fixture::add(&format!("dir{dir}/file{file}#{}:1", file * 40), at);
    }
    fixture::add("link->dir0/file1; dir1/same==dir0/file2", at);
}

/// A directory, and the names of a source and a destination in it.
fn places() -> (TempDir, PathBuf, PathBuf) {
    let home = home();
    let (src, dst) = (home.path().join("src"), home.path().join("dst"));
    (home, src, dst)
}

/// [`places`], where the source is a tree of [`make_tree`].
fn with_tree() -> (TempDir, PathBuf, PathBuf) {
    let (home, src, dst) = places();
    make_tree(&src);
    (home, src, dst)
}

fn assert_same_trees(src: &Path, dst: &Path) {
    assert_equal_trees(src, dst, Aspects::ALL, "");
}

#[test]
fn a_tree_is_copied_with_every_attribute_and_counted() {
    let (_home, src, dst) = with_tree();
    let report = Copy::new(&src, &dst).archive().verify().run().expect("copied");
    assert_same_trees(&src, &dst);
    assert_eq!(report.files(), 300);
    assert_eq!(report.totals.count(Kind::File, Outcome::Linked), 1);
    assert_eq!(report.totals.count(Kind::Directory, Outcome::Copied), 4);
    assert_eq!(report.totals.count(Kind::Symlink, Outcome::Copied), 1);
    assert_eq!(report.data_bytes(), 3 * (0..100).map(|file| file * 40).sum::<u64>());
    assert_eq!((report.failure_count, report.failures.len()), (0, 0));
    let by_variants: u64 = report.totals.variants.values().map(|moved| moved.bytes).sum();
    assert_eq!(by_variants, report.data_bytes());
}

#[test]
fn a_file_counts_once_for_each_variant() {
    let (_home, src, dst) = places();
    fs::write(&src, "data").expect("written");
    let mut receipts = Vec::new();
    let copy = Copy::new(&src, &dst).on_entry(|receipt| receipts.push(receipt.clone()));
    copy.run().expect("copied");
    let receipt = &mut receipts[0];
    let variants = ["sendfile", "read_write:4K", "sendfile", "read_write:8K", "read_write:64K"];
    let moved = Moved { bytes: 4, stop: Stop::Done };
    receipt.attempts = variants
        .map(|text| text.parse().expect("parsed"))
        .map(|variant| Attempt { variant, span: Span::at(0, 4), moved })
        .to_vec();
    let mut totals = RunTotals::default();
    totals.add(receipt);
    assert!(totals.variants.values().all(|moved| moved.files == 1), "{:?}", totals.variants);
    assert_eq!((totals.variants.len(), totals.engine()), (4, Some("read_write")));
}

#[test]
fn symbolic_links_are_followed_as_asked() {
    let home = home();
    let src = home.path().join("src");
    make_tree(&src);
    for (follow, links) in [(None, true), (Some(Follow::Always), false)] {
        for recursive_first in [false, true] {
            let dst = home.path().join(format!("{follow:?}{recursive_first}"));
            let copy = Copy::new(&src, &dst);
            let copy = match (follow, recursive_first) {
                (None, _) => copy.recursive(),
                (Some(follow), true) => copy.recursive().follow(follow),
                (Some(follow), false) => copy.follow(follow).recursive(),
            };
            copy.run().expect("copied");
            assert_eq!(dst.join("link").is_symlink(), links, "{follow:?}");
        }
    }
}

#[test]
fn an_error_has_path_operation_and_errno() {
    let home = home();
    let at = |name: &str| home.path().join(name);
    fixture::add("dir/; file=1; dangling->nowhere", home.path());
    let check = |src: &str, dst: &str, operation, path: &str, errno, words: &str| {
        let error = copy_file(at(src), at(dst)).expect_err(words);
        assert_eq!(error.operation(), operation, "{words}");
        assert_eq!(error.path(), Some(at(path).as_path()), "{words}");
        assert_eq!(error.errno(), errno, "{words}");
        assert!(error.to_string().contains(words), "{error}");
        let io = std::io::Error::from(error);
        assert_eq!(io.kind(), std::io::Error::from_raw_os_error(errno).kind(), "{words}");
    };
    check("none", "new", Operation::Look, "none", 2, ": No such file or directory");
    check("file", "none/new", Operation::Create, "none/new", 2, ": No such file or directory");
    check("dir", "new", Operation::Check, "dir", 21, "-r not specified; omitting directory");
    check("file", "dir", Operation::Check, "dir", 21, "cannot overwrite directory");
    check("file", "file", Operation::Check, "file", 22, "are the same file");
    check(
        "file",
        "dangling",
        Operation::Check,
        "dangling",
        40,
        "not writing through dangling symlink",
    );
    assert!(!at("new").exists() && !at("nowhere").exists());
    assert_eq!(fs::read(at("file")).expect("read"), b"1");
}

#[test]
fn what_cannot_start_copies_nothing() {
    let (home, src, dst) = with_tree();
    let handler: Variant = "mmap:8M,dst".parse().expect("parsed");
    for (copy, words) in [
        (Copy::new(&src, &dst).exclude(""), "cannot use the pattern ''"),
        (Copy::new(&src, &dst).ignore_file(home.path().join("none")), "cannot read"),
        (Copy::new(&src, &dst).engine(handler.clone()), "handles SIGBUS"),
    ] {
        let failed = copy.recursive().run().expect_err(words);
        assert!(failed.to_string().contains(words), "{failed}");
        assert!(!dst.exists());
    }
    let options = Options { engine: Some(handler.clone()), ..Options::default() };
    let error = copy_file_with(src.join("link"), &dst, &options, None).expect_err("refused");
    assert!(error.to_string().contains("handles SIGBUS"), "{error}");
    // It needs a destination that is open for reading too.
    let (from, to) = (File::open(src.join("dir0/file99")), File::create_new(&dst));
    let to = to.and_then(|_| File::options().read(true).write(true).open(&dst)).expect("created");
    let options = Options { sigbus_handler: true, ..options };
    let copied = copy_descriptors_with(from.expect("open"), &to, &options, None).expect("copied");
    assert_eq!((copied.engine, copied.data_bytes), (Some("mmap"), 99 * 40));
}

#[test]
fn callbacks_run_on_the_thread_of_the_caller() {
    let (_home, src, dst) = with_tree();
    fs::write(src.join("dir1/only this.tmp"), "1").expect("written");
    fs::create_dir_all(dst.join("link")).expect("in the way");
    let here = std::thread::current().id();
    let (mut shown, mut errors, mut receipts, mut asked) = (0, Vec::new(), 0, 0);
    let mut last = 0;
    let failed = Copy::new(&src, &dst)
        .archive()
        .exclude("dir2")
        .progress(|progress| {
            assert_eq!(std::thread::current().id(), here);
            assert!(progress.bytes >= last);
            (shown, last) = (shown + 1, progress.bytes);
        })
        .progress_per_second(1000)
        .on_error(|error| {
            assert_eq!(std::thread::current().id(), here);
            errors.push(error.to_string());
        })
        .on_entry(|_| receipts += 1)
        .select(|path, kind| {
            asked += 1;
            assert!(kind != FileType::Unknown, "{}", path.display());
            path.extension().is_none_or(|extension| extension != "tmp")
        })
        .run()
        .expect_err("a directory is in the way");
    assert!(!failed.cancelled);
    assert_eq!((failed.report.failure_count, errors.len()), (1, 1), "{errors:?}");
    assert_eq!(failed.first().expect("found").path(), Some(dst.join("link").as_path()));
    assert_eq!(last, failed.report.data_bytes(), "the last call reports all bytes");
    assert!(shown > 0);
    // 201 files of two directories, those, the link that failed, and the tree itself.
    assert_eq!((failed.report.files(), receipts), (200, 205));
    assert_eq!(asked, 205, "of the pattern nothing is asked");
    assert!(!dst.join("dir2").exists() && !dst.join("dir1/only this.tmp").exists());
}

#[test]
fn a_directory_is_told_before_and_after_its_entries() {
    let (_home, src, dst) = places();
    fixture::add("file=bytes; dir/file=bytes; left/file=bytes; dir/ mode=510", &src);
    let mode = |path: &Path| path.metadata().expect("looked at").permissions().mode() & 0o777;
    let mut stages = Vec::new();
    let report = Copy::new(&src, &dst)
        .recursive()
        .archive()
        .on_directory(|from, to, stage| {
            let entries = fs::read_dir(to).expect("listed").count();
            let is_whole = mode(from) == mode(to);
            stages.push((to.to_owned(), stage, entries, is_whole));
            from != src.join("left")
        })
        .run()
        .expect("copied");
    let directories = report.totals.count(Kind::Directory, Outcome::Copied);
    assert_eq!((report.files(), directories), (2, 3));
    let of = |path: &Path| -> Vec<_> {
        let here = stages.iter().filter(|stage| stage.0 == path);
        here.map(|(_, stage, entries, is_whole)| (*stage, *entries, *is_whole)).collect()
    };
    let (entered, filled) = (DirectoryStage::Entered, DirectoryStage::Filled);
    assert_eq!(of(&dst.join("dir")), [(entered, 0, false), (filled, 1, false)]);
    assert_eq!(of(&dst.join("left")).iter().map(|of| of.1).collect::<Vec<_>>(), [0, 0]);
    assert_eq!(of(&dst).iter().map(|of| of.1).collect::<Vec<_>>(), [0, 3]);
    assert_eq!(stages.len(), 6);
    assert_eq!(mode(&dst.join("dir")), 0o510);
}

#[test]
fn a_directory_is_created_anew_if_asked() {
    let (_home, src, dst) = with_tree();
    let copy = || Copy::new(&src, &dst).archive().with(|options| options.new_directory = true);
    copy().run().expect("the name is new");
    assert_same_trees(&src, &dst);
    fs::remove_file(dst.join("dir1/file1")).expect("removed");
    let failed = copy().run().expect_err("the name is taken");
    assert_eq!(failed.first().expect("found").errno(), 17);
    assert_eq!(failed.report.failure_count, 1);
    assert!(!dst.join("dir1/file1").exists(), "nothing is copied into it");
}

#[test]
fn an_error_that_is_skipped_does_not_fail_the_copy() {
    let (_home, src, dst) = with_tree();
    fs::create_dir_all(dst.join("link")).expect("in the way");
    let copy = |control| Copy::new(&src, &dst).archive().on_error(move |_| control).run();
    let report = copy(Control::Skip).expect("the only error is skipped");
    assert_eq!((report.failure_count, report.skipped_errors), (0, 1));
    let CopyFailed { cancelled, report } = copy(Control::Quit).expect_err("stopped");
    assert!(cancelled);
    // A file that another worker copies meanwhile is not complete, which is a failure too.
    let others = report.failures.iter().filter(|error| error.path() != Some(&dst.join("link")));
    assert!(others.clone().all(|error| error.errno() == 125), "{:?}", report.failures);
    assert_eq!(report.failure_count, 1 + others.count() as u64);
}

#[test]
fn a_copy_is_cancelled_from_another_thread() {
    let (_home, src, dst) = places();
    fs::write(&src, random_bytes(4 << 20, 1)).expect("written");
    let token = CancelToken::new();
    let begun = Instant::now();
    let failed = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !dst.exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            token.cancel();
        });
        // It would take more than three minutes.
        Copy::new(&src, &dst).limit_rate(20 << 10).cancel(&token).run().expect_err("cancelled")
    });
    assert!(failed.cancelled && begun.elapsed() < Duration::from_secs(60));
    let error = failed.first().expect("the file is not complete");
    assert_eq!((error.operation(), error.errno()), (Operation::Finish, 125));
    let error = copy_file_with(&src, &dst, &Options::default(), Some(&token)).expect_err("still");
    assert_eq!(error.errno(), 125);
    assert_eq!(error.copied().map(|copied| copied.data_bytes), Some(0));
    token.reset();
    let slow = Options { limit_rate: (400 << 10).try_into().ok(), ..Options::default() };
    fs::remove_file(&dst).expect("removed");
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            while fs::metadata(&dst).map_or(0, |found| found.len()) == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            token.cancel();
        });
        copy_file_with(&src, &dst, &slow, Some(&token)).expect_err("cancelled")
    });
    let copied = error.copied().expect("it had started");
    assert_eq!(copied.data_bytes, fs::metadata(&dst).expect("looked at").len());
    assert!(copied.data_bytes > 0 && copied.engine.is_some());
    token.reset();
    copy_file_with(&src, &dst, &Options::default(), Some(&token)).expect("copied");
    assert_eq!(fs::read(&src).expect("read"), fs::read(&dst).expect("read"));
}

#[test]
fn progress_stops_a_copy_and_a_panic_does_too() {
    let (_home, src, dst) = places();
    fs::write(&src, random_bytes(4 << 20, 1)).expect("written");
    // It would take more than three minutes.
    let copy = || Copy::new(&src, &dst).limit_rate(20 << 10).count_first();
    let begun = Instant::now();
    let failed = copy().progress(|_| Control::Quit).run().expect_err("stopped");
    assert!(failed.cancelled);
    let total = Mutex::new(None);
    let panicked = std::panic::catch_unwind(|| {
        let _ = copy()
            .progress(|progress| -> Control {
                *total.lock().expect("locked") = progress.total;
                std::panic::resume_unwind(Box::new("the callback's own"));
            })
            .run();
    });
    let payload = panicked.expect_err("it is passed on");
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"the callback's own"));
    assert!(begun.elapsed() < Duration::from_secs(60));
    let total = total.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let total = total.expect("it is counted");
    assert_eq!((total.entries, total.bytes, total.all), (1, 4 << 20, true));
}

#[test]
fn open_files_get_attributes_and_streams_are_read_to_their_end() {
    let (_home, src, dst) = places();
    fs::write(&src, "some bytes").expect("written");
    fs::set_permissions(&src, fs::Permissions::from_mode(0o640)).expect("mode set");
    let old = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    File::open(&src).and_then(|file| file.set_modified(old)).expect("its time");
    let options = Options { preserve: Options::archive().preserve, ..Options::default() };
    let (from, to) = (File::open(&src).expect("opened"), File::create(&dst).expect("created"));
    let copied = copy_descriptors_with(&from, &to, &options, None).expect("copied");
    assert!(copied.data_bytes == 10 && copied.engine.is_some(), "{copied:?}");
    let found = to.metadata().expect("looked at");
    assert_eq!((found.mode() & 0o777, found.mtime()), (0o640, 1_000_000));

    let (reader, mut writer) = std::io::pipe().expect("created");
    writer.write_all(b"through a pipe").expect("written");
    drop(writer);
    let copied = copy_descriptors(reader, &to).expect("copied");
    assert_eq!(copied.data_bytes, 14);
    assert_eq!(fs::read(&dst).expect("read"), b"through a pipe");

    let appending = File::options().append(true).open(&dst).expect("opened");
    let error = copy_descriptors(&from, &appending).expect_err("O_APPEND");
    assert_eq!((error.errno(), error.operation()), (9, Operation::Write));
}

#[test]
fn existing_files_are_kept_or_refused() {
    let (home, src, dst) = places();
    fs::write(&src, "new").expect("written");
    fs::write(&dst, "old").expect("written");
    let report = Copy::new(&src, &dst).existing(Existing::Skip).run().expect("kept");
    assert_eq!(report.totals.count(Kind::File, Outcome::Skipped), 1);
    let failed = Copy::new(&src, &dst).existing(Existing::Fail).run().expect_err("refused");
    assert_eq!(failed.first().expect("found").errno(), 17);
    assert_eq!(fs::read(&dst).expect("read"), b"old");
    let unit: Copy<'_> = Copy::into_directory([&src], home.path().join("none"));
    assert_eq!(unit.run().expect_err("no directory").first().expect("found").errno(), 2);
}

/// The block of Rust in the README is the one that documentation of the crate has, where it is run.
#[test]
fn the_example_of_the_readme_is_run() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| fs::read_to_string(home.join(path)).expect("read");
    let (readme, crate_text) = (read("../../README.md"), read("src/lib.rs"));
    let (_, block) = readme.split_once("```rust\n").expect("it has a block of Rust");
    let (block, rest) = block.split_once("```").expect("the block ends");
    assert!(!rest.contains("```rust"), "there is one");
    let commented: String = block.lines().map(|line| format!("//! {line}\n")).collect();
    assert!(crate_text.contains(&commented), "not in src/lib.rs:\n{commented}");
}

/// A large file that another worker copies is asked about once, too.
#[test]
fn each_entry_is_selected_once() {
    let (_home, src, dst) = with_tree();
    for number in 0..4 {
        File::create(src.join(format!("large{number}")))
            .and_then(|file| file.set_len(9 << 20))
            .expect("created");
    }
    let seen = Mutex::new(std::collections::HashSet::new());
    let copy = Copy::new(&src, &dst).archive().select(|path, _| {
        let is_new = seen.lock().expect("locked").insert(path.to_owned());
        assert!(is_new, "{} again", path.display());
        true
    });
    copy.run().expect("copied");
    assert_same_trees(&src, &dst);
}

#[test]
fn a_directory_is_no_file() {
    let (_home, src, dst) = with_tree();
    let error = copy_file_with(&src, &dst, &Options::archive(), None).expect_err("a directory");
    assert!(error.to_string().contains("src"), "{error}");
    assert!(!dst.exists());
}

#[test]
fn what_is_before_a_stream_stays_and_a_dry_run_changes_nothing() {
    let home = home();
    let path = home.path().join("to");
    fs::write(&path, "0123456789").expect("written");
    let mut to = File::options().read(true).write(true).open(&path).expect("opened");
    let options = Options { dry_run: true, ..Options::default() };
    let from = File::open("/proc/version").expect("opened");
    copy_descriptors_with(&from, &to, &options, None).expect("copied");
    assert_eq!(fs::read(&path).expect("read"), b"0123456789");
    to.seek(SeekFrom::Start(3)).expect("there");
    let (reader, mut writer) = std::io::pipe().expect("created");
    writer.write_all(b"hello").expect("there is room");
    drop(writer);
    copy_descriptors(reader, &to).expect("copied");
    assert_eq!(fs::read(&path).expect("read"), b"012hello");
}
