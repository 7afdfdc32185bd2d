//! `--exclude`, `--include` and `--ignore-file`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{create_dir_all, write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rustix::fs::FileType;
use testfs::{Entry, Tree, skip, test_name};

use crate::{check, copy, cp, dir_with, haulage_cp};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// All paths below `dir`, directories with a slash at the end.
pub(crate) fn paths(dir: &Path) -> BTreeSet<Vec<u8>> {
    // Nothing was copied where there is none.
    if !dir.exists() {
        return BTreeSet::new();
    }
    let tree = Tree::read(dir).expect("read");
    let below = tree.entries.iter().filter(|(path, _)| !path.as_os_str().is_empty());
    let slash = |entry: &Entry| if entry.kind == FileType::Directory { &b"/"[..] } else { b"" };
    below.map(|(path, entry)| [path.as_os_str().as_bytes(), slash(entry)].concat()).collect()
}

#[test]
fn what_is_left_out_is_neither_made_nor_entered() {
    let without_build = "a.c a.o empty/ lib/ lib/b.c lib/b.o lib/deep/ lib/deep/c.o link";
    for (options, due) in [
        ("--exclude=build", without_build),
        ("--exclude=/build/", without_build),
        ("--exclude=build/lib --exclude=x", &format!("{without_build} build/")),
        ("--exclude *.[oc] --exclude=empty", "build/ build/lib/ build/lib/x lib/ lib/deep/ link"),
        // The link is no directory, unless what it leads to is copied in its stead.
        ("--exclude=li*/", "a.c a.o build/ empty/ link"),
        ("-L --exclude=li*/", "a.c a.o build/ empty/"),
        (
            "--include=*/ --include=*.c --exclude=*",
            "a.c build/ build/lib/ empty/ lib/ lib/b.c lib/deep/",
        ),
        ("--ignore-file=ignore", "a.c empty/ lib/ lib/b.c lib/b.o lib/deep/ link"),
        (
            "--ignore-file=ignore --ignore-file=later",
            "a.c a.o empty/ lib/ lib/b.c lib/b.o lib/deep/ link",
        ),
        (
            "--ignore-file=later --ignore-file=ignore",
            "a.c empty/ lib/ lib/b.c lib/b.o lib/deep/ link",
        ),
        ("--exclude=lib --include=a.o --ignore-file=ignore", "a.c a.o empty/ link"),
    ] {
        let dir = dir_with(
            "src/a.c=1; src/a.o=1; src/lib/b.c=1; src/lib/b.o=1; src/lib/deep/c.o=1; \
             src/build/lib/x=1; src/empty/; src/link->lib; later=!a.o\\n; \
             ignore=#\\sof\\sa\\sbuild\\n*.o\\n!b.o\\n/build/\\n",
        );
        check(&cp(&dir, &format!("-r {options} src copy")), 0, "", options);
        let due: BTreeSet<_> = due.split(' ').map(str::to_owned).collect();
        let found: BTreeSet<_> = paths(&dir.path().join("copy")).iter().map(|p| text(p)).collect();
        assert_eq!(found, due, "{options}");
    }
}

#[test]
fn what_was_named_is_copied() {
    let dir = dir_with("d/a=1; d/d/a=1; a=1; to/");
    let said = testfs::stdout(&copy(&dir, "-r --debug --exclude=d --exclude=a d a to"));
    assert_eq!(paths(&dir.path().join("to")), BTreeSet::from([b"a".to_vec(), b"d/".to_vec()]));
    for line in ["excluded 'd/a'\n", "excluded 'd/d'\n"] {
        assert!(said.contains(line), "{said}");
    }
    assert!(!said.contains("d/d/a"), "{said}");
}

#[test]
fn globs_that_are_none_are_named() {
    let dir = dir_with("a=1");
    let hint = "Try 'cp --help' for more information.\n";
    for (option, due, hint) in [
        ("--exclude=[a", "--exclude: '[a': unclosed character class; missing ']'\n", hint),
        ("--include=", "--include: '': it is empty, and would match nothing\n", hint),
        ("--ignore-file=none", "cannot read 'none': No such file or directory\n", ""),
        (
            "--exclude=[[:none:]]",
            "--exclude: '[[:none:]]': a character class of no known name\n",
            hint,
        ),
    ] {
        let output = cp(&dir, &format!("{option} a b"));
        check(&output, 1, &format!("cp: {due}{hint}"), option);
        assert!(!dir.path().join("b").exists(), "{option}");
    }
}

#[test]
fn names_and_patterns_need_be_no_text() {
    let dir = dir_with("src/\\xff1=; src/\\xff2=; src/\\xfe1=; src/é=");
    let mut command = haulage_cp(&dir, "-r src copy --exclude");
    let status = command.arg(OsStr::from_bytes(b"\xff?")).status();
    assert!(status.expect("haulage runs").success());
    let due = BTreeSet::from([b"\xfe1".to_vec(), "é".as_bytes().to_vec()]);
    assert_eq!(paths(&dir.path().join("copy")), due);
}

/// A repository without anything in it, for all cases; `None` without git.
static REPOSITORY: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    // A static value is never dropped, and a temporary directory would be left.
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("empty.git");
    let made = Command::new("git").args(["init", "-q", "--bare"]).arg(&dir).status().ok()?;
    assert!(made.success());
    Some(dir)
});

/// The files that git would not ignore with these patterns.
fn kept_by_git(repository: &Path, dir: &Path) -> BTreeSet<Vec<u8>> {
    let mut command = Command::new("git");
    command.arg("--git-dir").arg(repository);
    command.args(["--work-tree=src", "ls-files", "-z", "--others"]);
    command.args(["--exclude-from=patterns", "--exclude-from=later"]).current_dir(dir);
    let output = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().expect("git ran");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let names = output.stdout.split(|&byte| byte == 0).filter(|name| !name.is_empty());
    names.map(|name| name.strip_prefix(b"src/").unwrap_or(name).to_vec()).collect()
}

/// The cases are the same everywhere, so that a failure is one everywhere.
fn config() -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(1);
    ProptestConfig { cases: 128, rng_seed, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn an_ignore_file_means_what_it_means_to_git(
        files in prop::collection::vec("[abc\\\\ *!#\\[\\]-]{1,3}(/[abc *-]{1,2}){0,3}", 1..24),
        patterns in prop::collection::vec(
            "!?/?(\\*\\*/)?([abc?*!# -]|\\*\\*|\\[[a-b]\\]|\\[[ac-]{1,3}\\]|\\[[!^][a-c\\]]{1,2}\\]|\\[\\[:(alpha|punct|space):\\]\\]|\\[\\\\[b\\]-]/?[a]?\\]|\\[|\\]|\\\\[a *!#]?|\\{|\\}){1,3}(/[abc*]{1,2}|/\\*\\*/[abc]|/\\*\\*)?/?( |  |\t|\\\\ )?",
            1..6,
        ),
        first in 0..6_usize,
    ) {
        let Some(repository) = &*REPOSITORY else {
            skip(&test_name(), "there is no git here");
            return Ok(());
        };
        // A disk would take long for the files of so many cases.
        let in_memory = tempfile::tempdir_in("/dev/shm");
        let dir = in_memory.or_else(|_| tempfile::tempdir()).expect("created");
        for file in &files {
            let path = dir.path().join("src").join(file);
            // Where another file is in the way this one is left away.
            if create_dir_all(path.parent().expect("a parent")).is_ok() && !path.is_dir() {
                write(path, "").expect("written");
            }
        }
        // The later of two files has the last word.
        let (before, after) = patterns.split_at(first.min(patterns.len()));
        write(dir.path().join("patterns"), before.join("\n")).expect("written");
        write(dir.path().join("later"), after.join("\n")).expect("written");
        let output = cp(&dir, "-r --ignore-file=patterns --ignore-file=later src copy");
        prop_assert!(output.status.success(), "{:?}: {}", patterns, text(&output.stderr));
        let copied = paths(&dir.path().join("copy"));
        let copied: Vec<_> = copied.iter().filter(|p| !p.ends_with(b"/")).map(|p| text(p)).collect();
        let kept: Vec<_> = kept_by_git(repository, dir.path()).iter().map(|path| text(path)).collect();
        prop_assert_eq!(copied, kept, "{:?} {:?}", before, after);
    }
}
