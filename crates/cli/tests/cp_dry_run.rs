//! `--dry-run` prints what a real run prints, and changes nothing.

use std::collections::BTreeMap;
use std::fs::{remove_dir_all, symlink_metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use rustix::fs::{
    AtFlags, CWD, IFlags, Timespec, Timestamps, UTIME_OMIT, ioctl_getflags, ioctl_setflags,
    utimensat,
};
use tempfile::TempDir;
use testfs::{Tree, is_root, skip, stderr, stdout, test_name};

use crate::{as_nobody, check, dir_with, fixture, haulage_cp, open_dir_with, shell};

/// The tree before each case.
const TREE: &str = "a=1 t=1001; b=2 t=1002; old=3 t=1003; newer=4; s/x=5 t=1005; s/y=6 t=1006; \
                    s/d/z=7 t=1007; s/d/e/deep=8 t=1008; s/empty/; s/link->x; s/broken->nowhere; \
                    s/hard==s/x; s/fifo|; to/x=9 t=1009; to/d/z=11 t=1011; \
                    to/only=12 t=1012; to/s/x=13 t=1013; to/s/d=14 t=1014; other/a=15 t=1015; \
                    other/s/x=16 t=1016; full/s/x->to; dangling->nowhere; linkdir->to; toa->a; \
                    s2/d=17 t=1017; to2/a/; to2/s=18 t=1018; up/; file->a; v.~1~=19 t=1019; \
                    v=20 t=1020; l2/link=21 t=1021";

fn names(dir: &Path) -> Vec<PathBuf> {
    Tree::read(dir).expect("read").paths().map(|path| dir.join(path)).collect()
}

/// All attributes of each inode. The access time of a symbolic link is left out: following the link
/// changes it.
fn stats(names: &[PathBuf]) -> BTreeMap<PathBuf, String> {
    let stat = |path: &PathBuf| {
        let stat = symlink_metadata(path).expect("looked at");
        let atime = (!stat.is_symlink()).then(|| (stat.atime(), stat.atime_nsec()));
        let times = (stat.mtime(), stat.mtime_nsec(), stat.ctime(), stat.ctime_nsec(), atime);
        let rest = (stat.ino(), stat.mode(), stat.nlink(), stat.len(), stat.uid());
        (path.clone(), format!("{times:?} {rest:?}"))
    };
    names.iter().map(stat).collect()
}

/// Sets access times back, so that every read changes them.
fn reset_access_times(names: &[PathBuf]) {
    let omitted = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let times =
        Timestamps { last_access: Timespec { tv_sec: 1, tv_nsec: 0 }, last_modification: omitted };
    for name in names {
        utimensat(CWD, name, &times, AtFlags::SYMLINK_NOFOLLOW).expect("times are set");
    }
}

fn run(dir: &TempDir, option: &str, words: &str) -> Output {
    let mut command = haulage_cp(dir, &format!("{option} {words}"));
    command.stdin(std::process::Stdio::null()).output().expect("haulage ran")
}

/// Standard output, standard error and exit status.
fn results(output: &Output) -> (String, String, Option<i32>) {
    (stdout(output), stderr(output), output.status.code())
}

/// How the dry run of this command differs from the real run.
fn difference(words: &str) -> Option<String> {
    let dir = dir_with(TREE);
    let before_names = names(dir.path());
    reset_access_times(&before_names);
    let before = stats(&before_names);
    let dry = results(&run(&dir, "--dry-run", words));
    let after = stats(&before_names);
    if let Some((name, stat)) = after.iter().find(|(name, stat)| before[*name] != **stat) {
        return Some(format!("{words}: {}: {} then {stat}", name.display(), before[name]));
    }
    assert_eq!(names(dir.path()), before_names, "{words}");
    let done = results(&run(&dir, "-v", words));
    (dry != done).then(|| format!("{words}: {dry:?}, real run {done:?}"))
}

#[test]
fn a_dry_run_reports_what_is_done_and_changes_nothing() {
    let commands = [
        // Something new.
        "a new",
        "-r s new",
        "-a s new",
        "-a s to2/new",
        "-rL s/d new",
        "-a s a to",
        "-a s/. to",
        "-rl s new",
        "-rs /nowhere new",
        "-s a new",
        "-s a to",
        "-rs s new",
        "-rs s to",
        "a newdir/",
        "a nowhere/new",
        "a b nowhere",
        "nowhere new",
        "s new",
        "-a s/fifo new",
        // An existing destination.
        "a b",
        "-a s/x s/d/z to",
        "-aT s to",
        "-u a newer",
        "-u newer a",
        "-u old newer to",
        "-n a b",
        "--update=none-fail a b",
        "-b a b",
        "--backup=numbered a b",
        "-b a v",
        "--backup=t a v to",
        "-b a~ a",
        "-bf a a",
        "-f a b",
        "--remove-destination a b",
        "--remove-destination -a s/x s/link to",
        "-l a b",
        "-lf a b",
        "-sf /etc/passwd b",
        "-s /etc/passwd nowhere/new",
        "-s /etc/passwd new/",
        "-l a nowhere/new",
        "-l a new/",
        "-d s/link nowhere/new",
        "-a s/fifo nowhere/new",
        "-s a b",
        "-d s/link b",
        "-a s/x s/hard to",
        "-d s/x s/hard to",
        "--attributes-only a b",
        "--atomic a b",
        "--atomic -b a b",
        "--atomic -l a b",
        "--atomic -aT s to",
        "--atomic --remove-destination a b",
        // Destinations that cannot be replaced or created.
        "a a",
        "a ./a",
        "file a",
        "-r s s",
        "a to2",
        "-r s to2",
        "-rT s a",
        "-rb s to2",
        "-rT s2 to",
        "s2/d to",
        "a dangling",
        "a toa",
        "--remove-destination b toa",
        "-r s full",
        // Operands with the same destination.
        "a other/a up",
        "-n a other/a up",
        "--backup=t a other/a up",
        "--backup=t a other/a up/../s/d to2/s/../a up",
        "--backup=t -l a other/a up",
        "-b a other/a up",
        "--backup=t --atomic a other/a up",
        "--backup=t v other/a v.~1~ a to",
        "--backup=t -P s/link other/s/x s/x up",
        "-u a other/a up",
        "-u --backup=t a other/a up",
        "a a up",
        "-r s s up",
        "-r s other/s up",
        "-r s/d up",
        "-t up a b newer",
        "-r s/d s2/d up",
        "-r s2/d s/d up",
        "-rn s/d s2/d up",
        "-rb s2/d s/d up",
        "-ru s/link l2/link up",
        "-rn s/link l2/link to",
        // Names with their directories.
        "--parents s/d/z up",
        "--parents s/d/z s/d/e/deep s/x up",
        "--parents -a s/d up",
        "--parents s/x to/",
        "--parents -r s/d up",
        "--parents nowhere/x up",
        "--parents -r s/. up",
        "--parents s/d/../x up",
        "--parents s/d/./../d/z up",
        "--parents -r s/../s up",
        "--parents -r s/d/e/../../d/e up",
        // Filters.
        "-r --exclude=d s up",
        "-r --include=x --exclude=* s up",
        // Not a copy into itself, because a filter leaves out the destination.
        "-r --exclude=e s s/d/e",
        "-r --exclude=/d/e/ s s/d/e",
        "-r --exclude=d s s/d/e",
        "-r --include=new --exclude=* s s/new",
        "-rT --exclude=new s s/new",
    ];
    let wrong: Vec<_> = commands.iter().filter_map(|words| difference(words)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_dry_run_reports_a_copy_into_itself() {
    for (words, is_reported) in [
        ("-r s s/new", true),
        ("-r --parents s/d s/d/e", true),
        ("-r --parents s s/d/e", true),
        ("-a --parents s/d/e s/d/e", true),
        ("-r --parents s/d/z s/d other s/d/e", true),
        ("-r --parents s/x s/d s s/d/e", true),
        ("-rL --parents looped c", true),
        ("-r --parents s/d other", false),
        ("-r --parents --exclude=e s/d s/d/e", false),
        ("-r --parents --exclude=s s/d s/d/e", false),
        // Messages that are those of GNU cp.
        ("-rH sl s/d", true),
        ("-rH sl s", false),
        ("-rH --parents sl s/d", true),
        ("-rHT sl s/new", false),
        ("-r sl/ s", false),
        // Through a link that leads to where the copy goes, or to something above that.
        ("-rL looped c", true),
        ("-rL looped c/below", true),
        ("-rL looped looped/d c", true),
        ("-r looped c", false),
        ("-rL --exclude=l looped c", false),
        ("-rL --exclude=below looped c/below", false),
    ] {
        let dir = dir_with(TREE);
        fixture::add("c/below/; looped/d/; looped/l->../c; sl->s", &dir);
        let said = said_by_both(&dir, words);
        assert_eq!(said.contains("into itself"), is_reported, "{words}: {said}");
    }
}

#[test]
fn a_dry_run_reports_files_that_cannot_be_hard_linked() {
    let dir = dir_with(TREE);
    fixture::add("linked->a", &dir);
    let other = tempfile::tempdir_in("/dev/shm").ok();
    let device = |path: &Path| symlink_metadata(path).expect("looked at").dev();
    let other = other.filter(|other| device(dir.path()) != device(other.path()));
    let Some(other) = other else { return skip(&test_name(), "there is no other file system") };
    for words in ["-l a", "-lP s/link", "-l linked", "-l a b", "-rl s"] {
        let said = said_by_both(&dir, &format!("{words} {}", other.path().display()));
        assert!(said.contains("Invalid cross-device link"), "{words}: {said}");
    }
    fixture::add("a=1", &other);
    let said = said_by_both(&other, "--reflink=always a new");
    assert!(said.contains("failed to clone 'new' from 'a'"), "{said}");
    for (name, flag) in [("s/x", IFlags::IMMUTABLE), ("s/d/z", IFlags::APPEND)] {
        let file = std::fs::File::open(dir.path().join(name)).expect("opened");
        let flags = ioctl_getflags(&file);
        if flags.and_then(|flags| ioctl_setflags(&file, flags | flag)).is_err() {
            return skip(&test_name(), "files cannot be protected here");
        }
        for (words, reason) in [
            (format!("-l {name} up"), "Operation not permitted"),
            (format!("-l {name} b"), "File exists"),
            (format!("-lf {name} b"), "Operation not permitted"),
            (format!("-b a {name}"), "Operation not permitted"),
            (format!("-f a {name}"), "Operation not permitted"),
            (format!("--atomic a {name}"), "Operation not permitted"),
            ("-rl s up".to_owned(), "Operation not permitted"),
        ] {
            let said = said_by_both(&dir, &words);
            assert!(said.contains(reason), "{words}: {said}");
            let _ = remove_dir_all(dir.path().join("up/s"));
        }
        ioctl_setflags(&file, flags.expect("those that it had")).expect("as it was");
    }
}

#[test]
fn a_dry_run_reports_names_that_cannot_be_replaced() {
    if !is_root() {
        return skip(&test_name(), "only root can make files of others");
    }
    let dir = open_dir_with(
        "a=1 own=65534:65534; ro/b=2 mode=666; ro/ mode=555; st/b=3 mode=666 own=1:1; \
         st/ mode=1777 own=1:1; l->a",
    );
    let replacing =
        ["-sf /etc/passwd", "-lf a", "--atomic -P l", "--atomic a", "--remove-destination a"];
    for (options, dst) in
        ["ro/b", "st/b"].iter().flat_map(|dst| replacing.map(|options| (options, dst)))
    {
        let said = ["--dry-run", "-v"]
            .map(|option| stderr(&as_nobody(&dir, &format!("{option} {options} {dst}"))));
        // A real run also tells what the new file does not have of the old one.
        assert!(said[1].ends_with(&said[0]) && !said[0].is_empty(), "{options} {dst}: {said:?}");
    }
}

#[test]
fn a_dry_run_knows_the_resolution_of_times() {
    let dir = dir_with("s=1; d=2");
    let script = "touch -d @1000.5 s; touch -d @1000 d; exec \"$0\" cp -upv --dry-run s d";
    let output = shell(&dir, script).output().expect("ran");
    assert_eq!(stdout(&output), "'s' -> 'd'\n");
}

#[test]
fn a_dry_run_reports_a_copy_into_itself_by_a_mount() {
    let dir = dir_with("a/b/f=1; c/");
    let script = "unshare -m sh -c 'mount --bind a/b c && exec \"$0\" cp -r --dry-run a c' \"$0\"";
    let output = shell(&dir, script).output().expect("ran");
    if ["unshare", "mount"].iter().any(|failed| stderr(&output).contains(failed)) {
        return skip(&test_name(), "no mount can be made here");
    }
    check(&output, 1, "cp: cannot copy a directory, 'a', into itself, 'c/a'\n", script);
}

#[test]
fn a_dry_run_copies_no_file_to_the_upper_layer_of_an_overlay() {
    let dir = dir_with("");
    let script = "unshare -m sh -c 'mount -t tmpfs none . && cd \"$PWD\" && \
        mkdir lower upper work d && touch s lower/a && \
        mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work none d && \
        \"$0\" cp --dry-run s d/a && ls upper && \"$0\" cp s d/a && ls upper' \"$0\"";
    let output = shell(&dir, script).output().expect("ran");
    if ["unshare", "mount"].iter().any(|failed| stderr(&output).contains(failed)) {
        return skip(&test_name(), "no overlay can be mounted here");
    }
    assert_eq!((stdout(&output).as_str(), stderr(&output).as_str()), ("'s' -> 'd/a'\na\n", ""));
}

/// The standard error of the real run, which is that of the dry run.
fn said_by_both(dir: &TempDir, words: &str) -> String {
    let [dry, done] = ["--dry-run", "-v"].map(|option| run(dir, option, words));
    check(&dry, done.status.code().expect("it ends"), &stderr(&done), words);
    stderr(&done)
}

#[test]
fn a_dry_run_does_not_open_a_fifo() {
    let dir = dir_with(TREE);
    for words in ["s/fifo b", "-b s/fifo b", "--remove-destination s/fifo b", "--atomic s/fifo b"] {
        // A dry run that waits for a writer of the fifo would never end.
        let script = format!("exec timeout 60 \"$0\" cp --dry-run {words}");
        let dry = shell(&dir, &script).output().expect("ran");
        check(&dry, 0, "", words);
    }
}

#[test]
fn a_dry_run_asks_no_question_and_is_refused_with_stats_or_a_receipt() {
    let dir = dir_with(TREE);
    let output = results(&run(&dir, "--dry-run", "-i a b"));
    assert_eq!(output, ("'a' -> 'b'\n".into(), String::new(), Some(0)));
    for option in ["--stats", "--receipt=r"] {
        let output = results(&run(&dir, option, "--dry-run a new"));
        let words = "cp: --dry-run cannot be combined with --receipt or --stats\n";
        assert!(output.1.starts_with(words) && output.2 == Some(1), "{output:?}");
        assert!(!dir.path().join("r").exists());
    }
}

#[test]
fn a_dry_run_walks_a_deep_tree_and_changes_no_mode() {
    let dir = dir_with(&format!("s/{}f=text; s/last=text; s/ mode=500", "d/".repeat(300)));
    let dry = results(&run(&dir, "--dry-run", "-a s t"));
    assert!(!dir.path().join("t").exists());
    let done = results(&run(&dir, "-v", "-a s t"));
    assert_eq!(dry, done);
    assert_eq!(done.0.lines().count(), 303, "{}", done.0);
}
