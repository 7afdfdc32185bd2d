//! `--exclude`, `--include` and `--ignore-file`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{create_dir_all, write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use testfs::{skip, test_name};

use crate::cp;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// All paths below `dir`, directories with a slash at the end.
pub(crate) fn paths(dir: &Path) -> BTreeSet<Vec<u8>> {
    let (mut found, mut open) = (BTreeSet::new(), vec![PathBuf::new()]);
    while let Some(below) = open.pop() {
        // Nothing was copied where there is none.
        for entry in std::fs::read_dir(dir.join(&below)).into_iter().flatten() {
            let entry = entry.expect("an entry");
            let path = below.join(entry.file_name());
            let mut name = path.as_os_str().as_bytes().to_vec();
            if entry.file_type().expect("its type").is_dir() {
                name.push(b'/');
                open.push(path);
            }
            found.insert(name);
        }
    }
    found
}

/// Makes files, and directories where the name ends in a slash.
fn make(dir: &Path, names: &[&str]) {
    for name in names {
        let path = dir.join(name);
        if name.ends_with('/') {
            create_dir_all(path).expect("created");
        } else {
            create_dir_all(path.parent().expect("a parent")).expect("created");
            write(path, name).expect("written");
        }
    }
}

/// Copies `src` with these options and expects these paths, parted by blanks.
fn check(options: &[&str], due: &str) {
    let dir = tempfile::tempdir().expect("created");
    make(dir.path(), &["src/a.c", "src/a.o", "src/lib/b.c", "src/lib/b.o", "src/lib/deep/c.o"]);
    make(dir.path(), &["src/build/lib/x", "src/empty/"]);
    write(dir.path().join("ignore"), "# of a build\n*.o\n!b.o\n/build/\n").expect("written");
    write(dir.path().join("later"), "!a.o\n").expect("written");
    symlink("lib", dir.path().join("src/link")).expect("linked");
    let output = cp(dir.path(), &[&["-r"], options, &["src", "copy"]].concat());
    assert_eq!(text(&output.stderr), "", "{options:?}");
    assert!(output.status.success(), "{options:?}");
    let due: BTreeSet<_> = due.split(' ').map(|path| path.as_bytes().to_vec()).collect();
    let found = paths(&dir.path().join("copy"));
    let show = |paths: &BTreeSet<Vec<u8>>| paths.iter().map(|p| text(p)).collect::<Vec<_>>();
    assert_eq!(show(&found), show(&due), "{options:?}");
}

#[test]
fn what_is_left_out_is_neither_made_nor_entered() {
    let without_build = "a.c a.o empty/ lib/ lib/b.c lib/b.o lib/deep/ lib/deep/c.o link";
    check(&["--exclude=build"], without_build);
    check(&["--exclude=/build/"], without_build);
    check(&["--exclude=build/lib", "--exclude=x"], &format!("{without_build} build/"));
    check(
        &["--exclude", "*.[oc]", "--exclude=empty"],
        "build/ build/lib/ build/lib/x lib/ lib/deep/ link",
    );
    // The link is no directory, unless what it leads to is copied in its stead.
    check(&["--exclude=li*/"], "a.c a.o build/ empty/ link");
    check(&["-L", "--exclude=li*/"], "a.c a.o build/ empty/");
    check(
        &["--include=*/", "--include=*.c", "--exclude=*"],
        "a.c build/ build/lib/ empty/ lib/ lib/b.c lib/deep/",
    );
    check(&["--ignore-file=ignore"], "a.c empty/ lib/ lib/b.c lib/b.o lib/deep/ link");
    check(
        &["--ignore-file=ignore", "--ignore-file=later"],
        "a.c a.o empty/ lib/ lib/b.c lib/b.o lib/deep/ link",
    );
    check(
        &["--ignore-file=later", "--ignore-file=ignore"],
        "a.c empty/ lib/ lib/b.c lib/b.o lib/deep/ link",
    );
    check(&["--exclude=lib", "--include=a.o", "--ignore-file=ignore"], "a.c a.o empty/ link");
}

#[test]
fn what_was_named_is_copied() {
    let dir = tempfile::tempdir().expect("created");
    make(dir.path(), &["d/a", "d/d/a", "a", "to/"]);
    let output = cp(dir.path(), &["-r", "--debug", "--exclude=d", "--exclude=a", "d", "a", "to"]);
    assert!(output.status.success());
    assert_eq!(paths(&dir.path().join("to")), BTreeSet::from([b"a".to_vec(), b"d/".to_vec()]));
    let said = text(&output.stdout);
    for line in ["excluded 'd/a'\n", "excluded 'd/d'\n"] {
        assert!(said.contains(line), "{said}");
    }
    assert!(!said.contains("d/d/a"), "{said}");
}

#[test]
fn globs_that_are_none_are_named() {
    let dir = tempfile::tempdir().expect("created");
    make(dir.path(), &["a"]);
    let hint = "Try 'cp --help' for more information.\n";
    for (option, due) in [
        (
            "--exclude=[a",
            format!("cp: --exclude: '[a': unclosed character class; missing ']'\n{hint}"),
        ),
        ("--include=", format!("cp: --include: '': it is empty, and would match nothing\n{hint}")),
        ("--ignore-file=none", "cp: cannot read 'none': No such file or directory\n".into()),
        (
            "--exclude=[[:none:]]",
            format!("cp: --exclude: '[[:none:]]': a character class of no known name\n{hint}"),
        ),
    ] {
        let output = cp(dir.path(), &[option, "a", "b"]);
        assert_eq!((text(&output.stderr), output.status.code()), (due, Some(1)), "{option}");
        assert!(!dir.path().join("b").exists(), "{option}");
    }
}

#[test]
fn names_and_patterns_need_be_no_text() {
    let dir = tempfile::tempdir().expect("created");
    let src = dir.path().join("src");
    make(dir.path(), &["src/"]);
    for name in [&b"\xff1"[..], b"\xff2", b"\xfe1", "é".as_bytes()] {
        write(src.join(OsStr::from_bytes(name)), "").expect("written");
    }
    let mut command = testfs::command(env!("CARGO_BIN_EXE_haulage"));
    command.args(["cp", "-r", "--exclude"]).arg(OsStr::from_bytes(b"\xff?"));
    let status = command.args(["src", "copy"]).current_dir(dir.path()).status();
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
    let output = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().expect("git runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let names = output.stdout.split(|&byte| byte == 0).filter(|name| !name.is_empty());
    names.map(|name| name.strip_prefix(b"src/").unwrap_or(name).to_vec()).collect()
}

/// The cases are the same everywhere, so that a failure is one everywhere.
fn config() -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(1);
    ProptestConfig { rng_seed, failure_persistence: None, ..ProptestConfig::default() }
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
        let dir = tempfile::tempdir().expect("created");
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
        let ignore = ["--ignore-file=patterns", "--ignore-file=later"];
        let output = cp(dir.path(), &["-r", ignore[0], ignore[1], "src", "copy"]);
        prop_assert!(output.status.success(), "{:?}: {}", patterns, text(&output.stderr));
        let copied = paths(&dir.path().join("copy"));
        let copied: Vec<_> = copied.iter().filter(|p| !p.ends_with(b"/")).map(|p| text(p)).collect();
        let kept: Vec<_> = kept_by_git(repository, dir.path()).iter().map(|path| text(path)).collect();
        prop_assert_eq!(copied, kept, "{:?} {:?}", before, after);
    }
}
