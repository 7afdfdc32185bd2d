//! What a process is given besides its words: its name, its streams, its locale.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Output};

use testfs::{skip, test_name};

/// A directory with a file `a` in it.
fn directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("created");
    std::fs::write(dir.path().join("a"), "text").expect("written");
    dir
}

fn run(command: &mut Command, dir: &Path) -> Output {
    command
        .current_dir(dir)
        .env("LC_ALL", "C")
        .env("HAULAGE_PROFILE", "")
        .output()
        .expect("it can be run")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether `/bin/cp` is GNU's; if not, reports that the test is skipped.
fn has_gnu_cp() -> bool {
    let output = Command::new("/bin/cp").arg("--version").output();
    let gnu = output.is_ok_and(|output| text(&output.stdout).contains("GNU coreutils"));
    if !gnu {
        skip(&test_name(), "/bin/cp is not GNU's");
    }
    gnu
}

#[test]
fn called_by_a_path_it_repeats_that_path_where_gnu_cp_does() {
    if !has_gnu_cp() {
        return;
    }
    let dir = directory();
    let called = dir.path().join("cp");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_haulage"), &called).expect("linked");
    // Only what the C library says of an option begins with all of the name, since 9.10.
    for (args, in_full) in [
        (&[][..], false),
        (&["a"], false),
        (&["--bogus"], true),
        (&["-%"], true),
        (&["--no", "a", "b"], true),
        (&["--suffix"], true),
        (&["-t"], true),
        (&["--force=1", "a", "b"], true),
        (&["--sparse=x", "a", "b"], false),
        (&["--parents", "a", "b"], false),
        (&["nosuch", "b"], false),
        (&["-t", "d", "-t", "d", "a"], false),
    ] {
        let ours = run(Command::new(&called).args(args), dir.path());
        let gnu = run(Command::new("/bin/cp").arg0(&called).args(args), dir.path());
        let (ours_said, gnu_said) = (text(&ours.stderr), text(&gnu.stderr));
        let full = format!("{}: ", called.display());
        let begin = if in_full { &full } else { "cp: " };
        let ours_said = ours_said.strip_prefix(begin).expect(&ours_said);
        let gnu_said = gnu_said.strip_prefix(&full).or(gnu_said.strip_prefix("cp: "));
        assert_eq!(Some(ours_said), gnu_said, "{args:?}");
        assert_eq!(ours.status, gnu.status, "{args:?}");
    }
    let help = run(Command::new(&called).arg("--help"), dir.path());
    let begin = format!("Usage: {} [OPTION]... [-T] SOURCE DEST\n", called.display());
    assert!(text(&help.stdout).starts_with(&begin), "{}", text(&help.stdout));
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    for (streams, words, status) in [
        (">&-", "a b", 0),
        (">&-", "-v a b", 1),
        (">&-", "--debug a b", 1),
        (">&-", "--help", 1),
        (">&-", "--version", 1),
        (">/dev/full", "a b", 0),
        (">/dev/full", "-v a b", 1),
        (">/dev/full", "--help", 1),
        (">/dev/null", "-v a b", 0),
        // No file of the copy may get these descriptors.
        ("<&- >&- 2>&-", "a b", 0),
        ("<&-", "-i a b", 0),
        ("2>&-", "nosuch b", 1),
        // Open for reading and writing.
        ("1<>/dev/null", "-v a b", 0),
    ] {
        let dir = directory();
        let script = format!("exec \"$0\" cp {words} {streams}");
        let mut command = Command::new("/bin/sh");
        let output = run(command.args(["-c", &script, env!("CARGO_BIN_EXE_haulage")]), dir.path());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{words} {streams}: {said}");
        if status == 1 && !streams.contains('2') {
            assert!(said.starts_with("cp: write error: "), "{words} {streams}: {said}");
        }
        if words.ends_with("a b") {
            let copied = std::fs::read(dir.path().join("b")).expect("read");
            assert_eq!(copied, b"text", "{words} {streams}");
        }
    }
}

#[test]
fn a_pipe_without_a_reader_ends_it_by_sigpipe_unless_that_is_ignored() {
    // The signal's number is 13.
    for (trap, words, status, said) in [
        ("", "--version", None, ""),
        ("", "-v a b", None, ""),
        ("trap '' PIPE;", "--help", Some(1), "cp: write error: Broken pipe\n"),
        ("trap '' PIPE;", "-v a b", Some(1), "cp: write error: Broken pipe\n"),
        ("", "a b", Some(0), ""),
    ] {
        let dir = directory();
        let (reader, writer) = std::io::pipe().expect("created");
        drop(reader);
        let script = format!("{trap} exec \"$0\" cp {words}");
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_haulage")]).stdout(writer);
        let output = run(&mut command, dir.path());
        assert_eq!(text(&output.stderr), said, "{trap} {words}");
        assert_eq!(output.status.code(), status, "{trap} {words}");
        assert_eq!(output.status.signal(), status.is_none().then_some(13), "{trap} {words}");
        if words.ends_with("a b") {
            let copied = std::fs::read(dir.path().join("b")).expect("read");
            assert_eq!(copied, b"text", "{trap} {words}");
        }
    }
}

#[test]
fn a_umask_that_lets_others_write_grants_nothing_that_a_default_list_withholds() {
    use std::os::unix::fs::PermissionsExt;
    // The owner, the group, and all others, who get nothing.
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions) in [(0x01_u16, 7_u16), (0x04, 5), (0x20, 0)] {
        list.extend([tag.to_le_bytes(), permissions.to_le_bytes()].concat());
        list.extend(u32::MAX.to_le_bytes());
    }
    for options in [
        "-r",
        "-r --atomic",
        "-r --preserve=timestamps",
        "-r --preserve=xattr",
        "--parents",
        "-r --parents --preserve=timestamps",
        "--parents --preserve=ownership",
        "--parents --no-preserve=mode",
    ] {
        let dir = tempfile::tempdir().expect("created");
        let at = |name: &str| dir.path().join(name);
        for name in ["s/d/e", "t"] {
            std::fs::create_dir_all(at(name)).expect("created");
        }
        std::fs::write(at("s/d/e/f"), "text").expect("written");
        for name in ["s", "s/d", "s/d/e"] {
            let open = std::fs::Permissions::from_mode(0o777);
            std::fs::set_permissions(at(name), open).expect("mode set");
        }
        let set = rustix::fs::setxattr(
            at("t"),
            "system.posix_acl_default",
            &list,
            rustix::fs::XattrFlags::empty(),
        );
        if set.is_err() {
            return skip(&test_name(), "there are no access control lists here");
        }
        let source = if options.starts_with("-r") { "s" } else { "s/d/e/f" };
        let script = format!("umask 0; exec \"$0\" cp {options} {source} t");
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_haulage")]);
        let output = run(&mut command, dir.path());
        assert!(output.status.success(), "{options}: {}", text(&output.stderr));
        for name in ["t/s", "t/s/d", "t/s/d/e"] {
            let mode = std::fs::metadata(at(name)).expect("looked at").permissions().mode();
            assert_eq!(mode & 0o7777, 0o750, "{options}: {name} {mode:o}");
        }
    }
}

#[test]
fn the_locale_that_is_there_decides_about_quotation_marks() {
    if !has_gnu_cp() {
        return;
    }
    let dir = directory();
    for variables in [
        &[("LC_ALL", "C")][..],
        &[("LC_ALL", "C.UTF-8")],
        &[("LC_ALL", "xx_XX.UTF-8")],
        &[("LC_ALL", ""), ("LC_CTYPE", "C.UTF-8")],
        &[("LANG", "C.UTF-8")],
        &[("LANG", "C.UTF-8"), ("LC_ALL", "C")],
        &[("LANG", "C.UTF-8"), ("LC_ALL", "POSIX")],
        &[("LANG", "C.UTF-8"), ("LC_ALL", "nonsense")],
        &[],
    ] {
        for args in [&["--sparse=x", "a", "b"], &["--", "\u{e9}", "b"]] {
            let said = |command: &mut Command| {
                let command = command.args(args).current_dir(dir.path()).env_clear();
                let output = command.envs(variables.iter().copied()).output();
                text(&output.expect("it can be run").stderr)
            };
            let ours = said(testfs::command(env!("CARGO_BIN_EXE_haulage")).arg("cp"));
            let gnu = said(Command::new("/bin/cp").arg0("cp"));
            assert_eq!(ours, gnu, "{variables:?} {args:?}");
        }
    }
}

/// The answers that a question did not need are those of the next program.
#[test]
fn a_question_reads_one_line() {
    let dir = directory();
    for (name, content) in [("new", "new"), ("b", "old"), ("d", "old"), ("answers", "yes\ny\n")] {
        std::fs::write(dir.path().join(name), content).expect("written");
    }
    let script = "{ \"$0\" cp -i new b && \"$0\" cp -i new d; } <answers";
    let mut command = Command::new("/bin/sh");
    let output = run(command.args(["-c", script, env!("CARGO_BIN_EXE_haulage")]), dir.path());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for name in ["b", "d"] {
        assert_eq!(std::fs::read(dir.path().join(name)).expect("read"), b"new", "{name}");
    }
}

#[test]
fn zeros_from_a_pipe_become_holes() {
    let dir = directory();
    let script =
        "{ head -c 4194304 /dev/zero; echo end; } | \"$0\" cp --sparse=always /dev/stdin b";
    let mut command = Command::new("/bin/sh");
    let output = run(command.args(["-c", script, env!("CARGO_BIN_EXE_haulage")]), dir.path());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let copied = std::fs::read(dir.path().join("b")).expect("read");
    assert!(copied.len() == (4 << 20) + 4 && copied.ends_with(b"\0end\n"));
    let blocks = std::os::unix::fs::MetadataExt::blocks(
        &dir.path().join("b").metadata().expect("looked at"),
    );
    assert!(blocks < 1000, "{blocks}");
}
