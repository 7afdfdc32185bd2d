//! What a process is given besides its words: its name, its streams, its locale.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Output};

use testfs::{stderr, stdout};

use crate::cp_differential::gnu;
use crate::{HAULAGE, check, check_content, check_success, dir_with, shell};

fn run(command: &mut Command) -> Output {
    command.output().expect("ran")
}

#[test]
fn called_by_a_path_it_repeats_that_path_where_gnu_cp_does() {
    let Some((gnu, _)) = gnu() else { return };
    let dir = dir_with(&format!("a=text; cp->{HAULAGE}"));
    let called = dir.path().join("cp");
    let run = |command: &mut Command| run(command.current_dir(&dir).env("LC_ALL", "C"));
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
        let ours = run(testfs::command(&called).args(args));
        let gnu = run(Command::new(&gnu.path).arg0(&called).args(args));
        let (ours_said, gnu_said) = (stderr(&ours), stderr(&gnu));
        let full = format!("{}: ", called.display());
        let begin = if in_full { &full } else { "cp: " };
        let ours_said = ours_said.strip_prefix(begin).expect(&ours_said);
        let gnu_said = gnu_said.strip_prefix(&full).or(gnu_said.strip_prefix("cp: "));
        assert_eq!(Some(ours_said), gnu_said, "{args:?}");
        assert_eq!(ours.status, gnu.status, "{args:?}");
    }
    let help = stdout(&run(testfs::command(&called).arg("--help")));
    let begin = format!("Usage: {} [OPTION]... [-T] SOURCE DEST\n", called.display());
    assert!(help.starts_with(&begin), "{help}");
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
        let dir = dir_with("a=text");
        let output = run(&mut shell(&dir, &format!("exec \"$0\" cp {words} {streams}")));
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{words} {streams}: {said}");
        if status == 1 && !streams.contains('2') {
            assert!(said.starts_with("cp: write error: "), "{words} {streams}: {said}");
        }
        if words.ends_with("a b") {
            check_content(dir.path().join("b"), "text", format_args!("{words} {streams}"));
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
        let dir = dir_with("a=text");
        let (reader, writer) = std::io::pipe().expect("created");
        drop(reader);
        let script = format!("{trap} exec \"$0\" cp {words}");
        let output = run(shell(&dir, &script).stdout(writer));
        assert_eq!(stderr(&output), said, "{trap} {words}");
        assert_eq!(output.status.code(), status, "{trap} {words}");
        assert_eq!(output.status.signal(), status.is_none().then_some(13), "{trap} {words}");
        if words.ends_with("a b") {
            check_content(dir.path().join("b"), "text", format_args!("{trap} {words}"));
        }
    }
}

#[test]
fn a_umask_that_lets_others_write_grants_nothing_that_a_default_list_withholds() {
    use std::os::unix::fs::PermissionsExt;
    for options in [
        "-r",
        "-r --atomic",
        "-r --preserve=timestamps",
        "-r --preserve=xattr",
        "-r --preserve=ownership",
        "--parents",
        "-r --parents --preserve=timestamps",
        "--parents --preserve=ownership",
        "--parents --no-preserve=mode",
    ] {
        let open =
            ["s/", "s/d/", "s/d/e/", "s/d/e/f=text", "s/d/e/p|"].map(|it| format!("{it} mode=777"));
        let dir = dir_with(&(open.join("; ") + "; t/ default-acl=750"));
        let at = |name: &str| dir.path().join(name);
        let (source, made) = if options.starts_with("-r") { ("s", 5) } else { ("s/d/e/f", 4) };
        let script = format!("umask 0; exec \"$0\" cp {options} {source} t");
        check_success(&run(&mut shell(&dir, &script)), options);
        for name in &["t/s", "t/s/d", "t/s/d/e", "t/s/d/e/f", "t/s/d/e/p"][..made] {
            // That option gives a file what the umask leaves.
            if !(name.ends_with('f') && options.ends_with("--no-preserve=mode")) {
                let mode = std::fs::metadata(at(name)).expect("looked at").permissions().mode();
                assert_eq!(mode & 0o7777, 0o750, "{options}: {name} {mode:o}");
            }
        }
    }
}

#[test]
fn the_locale_that_is_there_decides_about_quotation_marks() {
    let Some((gnu, _)) = gnu() else { return };
    let dir = dir_with("a=text");
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
                stderr(&run(command.envs(variables.iter().copied())))
            };
            let ours = said(testfs::command(HAULAGE).arg("cp"));
            let gnu = said(Command::new(&gnu.path).arg0("cp"));
            assert_eq!(ours, gnu, "{variables:?} {args:?}");
        }
    }
}

/// The answers that a question did not need are those of the next program.
#[test]
fn a_question_reads_one_line() {
    let dir = dir_with("new=new; b=old; d=old; answers=yes\\ny\\n");
    let script = "{ \"$0\" cp -i new b && \"$0\" cp -i new d; } <answers";
    check_success(&run(&mut shell(&dir, script)), "");
    for name in ["b", "d"] {
        check_content(dir.path().join(name), "new", name);
    }
}

#[test]
fn zeros_from_a_pipe_become_holes() {
    let dir = dir_with("");
    let script =
        "{ head -c 4194304 /dev/zero; echo end; } | \"$0\" cp --sparse=always /dev/stdin b";
    check(&run(&mut shell(&dir, script)), 0, "", "");
    let copied = std::fs::read(dir.path().join("b")).expect("read");
    assert!(copied.len() == (4 << 20) + 4 && copied.ends_with(b"\0end\n"));
    let blocks = std::os::unix::fs::MetadataExt::blocks(
        &dir.path().join("b").metadata().expect("looked at"),
    );
    assert!(blocks < 1000, "{blocks}");
}
