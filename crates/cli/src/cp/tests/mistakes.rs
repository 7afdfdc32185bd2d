//! What is wrong with command lines, word by word. Where GNU cp 9.1 and later agree, the machine's
//! own cp is asked as well.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::{parse_quietly, words};
use crate::cp::environment::Environment;
use crate::cp::flags::flag::Origin;
use crate::cp::flags::flags;
use crate::cp::messages::quote::Charset;
use crate::cp::parse::parse;

const HELP_HINT: &str = "Try 'cp --help' for more information.\n";

/// Whether every GNU cp since 9.1 says the same.
#[derive(Clone, Copy, PartialEq)]
enum Gnu {
    Same,
    /// 9.1 lacked an option or worded it otherwise.
    Newer,
}

const MISTAKES: &[(&str, Gnu, &str)] = &[
    ("''", Gnu::Same, "missing destination file operand after ''"),
    ("a", Gnu::Same, "missing destination file operand after 'a'"),
    ("--", Gnu::Same, "missing file operand"),
    ("-T -v", Gnu::Same, "missing file operand"),
    ("-T it's", Gnu::Same, "missing destination file operand after \"it's\""),
    ("-T \\xff", Gnu::Same, "missing destination file operand after ''$'\\377'"),
    ("-t d", Gnu::Same, "missing file operand"),
    ("-T a b c d", Gnu::Same, "extra operand 'c'"),
    ("-q a b", Gnu::Same, "invalid option -- 'q'"),
    ("-vq --bogus", Gnu::Same, "invalid option -- 'q'"),
    ("-v=1 a b", Gnu::Same, "invalid option -- '='"),
    ("--bogus a", Gnu::Same, "unrecognized option '--bogus'"),
    ("--bogus=1 a", Gnu::Same, "unrecognized option '--bogus=1'"),
    ("--preserves a", Gnu::Same, "unrecognized option '--preserves'"),
    ("--recursive=x a", Gnu::Same, "option '--recursive' doesn't allow an argument"),
    ("--rec= a", Gnu::Same, "option '--recursive' doesn't allow an argument"),
    ("--path=1 a", Gnu::Same, "option '--path' doesn't allow an argument"),
    ("--help=1", Gnu::Same, "option '--help' doesn't allow an argument"),
    ("--sp", Gnu::Same, "option '--sparse' requires an argument"),
    ("--no-preserve", Gnu::Same, "option '--no-preserve' requires an argument"),
    ("a b -t", Gnu::Same, "option requires an argument -- 't'"),
    ("-vS", Gnu::Same, "option requires an argument -- 'S'"),
    (
        "--no a",
        Gnu::Same,
        "option '--no' is ambiguous; possibilities: '--no-clobber' '--no-dereference' \
         '--no-preserve' '--no-target-directory'",
    ),
    (
        "--re=5 a",
        Gnu::Same,
        "option '--re=5' is ambiguous; possibilities: '--recursive' '--remove-destination' \
         '--reflink'",
    ),
    ("--p a", Gnu::Same, "option '--p' is ambiguous; possibilities: '--parents' '--preserve'"),
    ("--c a", Gnu::Same, "option '--c' is ambiguous; possibilities: '--copy-contents' '--context'"),
    (
        "--s a",
        Gnu::Same,
        "option '--s' is ambiguous; possibilities: '--sparse' '--strip-trailing-slashes' \
         '--suffix' '--symbolic-link'",
    ),
    ("--v", Gnu::Same, "option '--v' is ambiguous; possibilities: '--verbose' '--version'"),
    ("--de", Gnu::Newer, "option '--de' is ambiguous; possibilities: '--debug' '--dereference'"),
    (
        "--=",
        Gnu::Newer,
        "option '--=' is ambiguous; possibilities: '--archive' '--attributes-only' '--backup' \
         '--copy-contents' '--debug' '--dereference' '--force' '--interactive' '--link' \
         '--no-clobber' '--no-dereference' '--no-preserve' '--no-target-directory' \
         '--one-file-system' '--parents' '--path' '--preserve' '--recursive' \
         '--remove-destination' '--sparse' '--reflink' '--strip-trailing-slashes' '--suffix' \
         '--symbolic-link' '--target-directory' '--update' '--verbose' \
         '--keep-directory-symlink' '--context' '--help' '--version'",
    ),
    (
        "--update=zzz a b",
        Gnu::Newer,
        "invalid argument 'zzz' for '--update'\nValid arguments are:\n  - 'all'\n  - 'none'\n  \
         - 'none-fail'\n  - 'older'",
    ),
    (
        "--update=non a b",
        Gnu::Newer,
        "ambiguous argument 'non' for '--update'\nValid arguments are:\n  - 'all'\n  - 'none'\n  \
         - 'none-fail'\n  - 'older'",
    ),
    (
        "--backup=bad a b",
        Gnu::Same,
        "invalid argument 'bad' for 'backup type'\nValid arguments are:\n  - 'none', 'off'\n  \
         - 'simple', 'never'\n  - 'existing', 'nil'\n  - 'numbered', 't'",
    ),
    (
        "--backup=n a b",
        Gnu::Same,
        "ambiguous argument 'n' for 'backup type'\nValid arguments are:\n  - 'none', 'off'\n  \
         - 'simple', 'never'\n  - 'existing', 'nil'\n  - 'numbered', 't'",
    ),
    (
        "--sparse=it's\\xff a b",
        Gnu::Same,
        "invalid argument 'it\\'s\\377' for '--sparse'\nValid arguments are:\n  - 'never'\n  \
         - 'auto'\n  - 'always'",
    ),
    (
        "--reflink= a b",
        Gnu::Same,
        "ambiguous argument '' for '--reflink'\nValid arguments are:\n  - 'auto'\n  \
         - 'always'\n  - 'never'",
    ),
    (
        "--preserve=mode,,xattr a b",
        Gnu::Same,
        "ambiguous argument '' for '--preserve'\nValid arguments are:\n  - 'mode'\n  \
         - 'timestamps'\n  - 'ownership'\n  - 'links'\n  - 'context'\n  - 'xattr'\n  - 'all'",
    ),
    (
        "--no-preserve=mode,bogus a b",
        Gnu::Same,
        "invalid argument 'bogus' for '--no-preserve'\nValid arguments are:\n  - 'mode'\n  \
         - 'timestamps'\n  - 'ownership'\n  - 'links'\n  - 'context'\n  - 'xattr'\n  - 'all'",
    ),
    ("-ls a b", Gnu::Same, "cannot make both hard and symbolic links"),
    ("-lsnb a b", Gnu::Same, "cannot make both hard and symbolic links"),
    ("-nb a b", Gnu::Newer, "--backup is mutually exclusive with -n or --update=none-fail"),
    ("-n -S.k a", Gnu::Newer, "--backup is mutually exclusive with -n or --update=none-fail"),
    ("-n --backup=off", Gnu::Newer, "--backup is mutually exclusive with -n or --update=none-fail"),
    (
        "-b --update=none a b",
        Gnu::Newer,
        "--backup is mutually exclusive with -n or --update=none-fail",
    ),
    (
        "-b --update=none-fail a b",
        Gnu::Newer,
        "--backup is mutually exclusive with -n or --update=none-fail",
    ),
    ("--reflink --sparse=always", Gnu::Same, "--reflink can be used only with --sparse=auto"),
    ("--reflink --sparse=never a", Gnu::Same, "--reflink can be used only with --sparse=auto"),
    (
        "--reflink --sparse=never --backup=zz a",
        Gnu::Same,
        "--reflink can be used only with --sparse=auto",
    ),
    (
        "--reflink=never --engine=reflink a b",
        Gnu::Newer,
        "cannot combine --reflink=never and --engine=reflink",
    ),
];

/// Mistakes whose messages point to no help.
const CURT_MISTAKES: &[&str] = &[
    "-t d -t e a|multiple target directories specified",
    "-t d -T a|cannot combine --target-directory (-t) and --no-target-directory (-T)",
    "--preserve=context a b|cannot preserve security context without an SELinux-enabled kernel",
    "--preserve=context --no-preserve=all a|cannot preserve security context without an \
     SELinux-enabled kernel",
    "--preserve=mode,context|cannot preserve security context without an SELinux-enabled kernel",
];

/// Every mistake: the line, whether the machine's cp may be asked, and all of standard error.
fn mistakes() -> Vec<(&'static str, Gnu, String)> {
    let long = MISTAKES
        .iter()
        .map(|&(line, gnu, message)| (line, gnu, format!("cp: {message}\n{HELP_HINT}")));
    let curt = CURT_MISTAKES.iter().map(|pair| {
        let (line, message) = pair.split_once('|').expect("a bar parts line and message");
        (line, Gnu::Same, format!("cp: {message}\n"))
    });
    long.chain(curt).collect()
}

#[test]
fn mistakes_are_told_in_gnus_words() {
    for (line, _, expected) in mistakes() {
        let error = parse_quietly(line, &Environment::default()).expect_err(line);
        let lines = error.lines_in(Charset::Ascii, b"cp");
        assert_eq!(String::from_utf8_lossy(&lines), expected, "{line}");
    }
    let raw = parse_quietly("-\\xff a b", &Environment::default()).expect_err("no such letter");
    assert!(raw.lines().starts_with(b"cp: invalid option -- '\xff'\n"));
}

#[test]
fn the_machines_cp_says_the_same() {
    let Some(gnu) = Gnu::on_this_machine() else { return };
    for (line, since, expected) in mistakes() {
        if since == Gnu::Newer {
            continue;
        }
        let outcome = Command::new(gnu)
            .arg0("cp")
            .args(words(line))
            .env_clear()
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .output()
            .expect("cp can be run");
        assert_eq!(String::from_utf8_lossy(&outcome.stderr), expected, "{line}");
        assert_eq!(outcome.status.code(), Some(1), "{line}");
    }
}

#[test]
fn every_beginning_of_every_option_means_what_it_means_to_the_machines_cp() {
    let Some(gnu) = Gnu::on_this_machine() else { return };
    let names = flags().filter(|flag| flag.origin == Origin::Gnu).flat_map(|flag| flag.longs);
    for name in names.filter(|name| !SINCE_9_1.contains(name)) {
        for len in 1..=name.len() {
            for value in ["", "=", "=x"] {
                let option = format!("--{}{value}", &name[..len]);
                // These begin options that 9.1 has not, or are one that takes more now.
                let newer = SINCE_9_1.iter().any(|newer| newer.starts_with(&name[..len]));
                let takes_more = *name == "update" && !value.is_empty();
                if !newer && !takes_more {
                    check_against(gnu, &option);
                }
            }
        }
    }
}

/// Long options of GNU cp that 9.1 has not.
const SINCE_9_1: &[&str] = &["debug", "keep-directory-symlink"];

fn check_against(gnu: &str, option: &str) {
    let output = Command::new(gnu)
        .arg0("cp")
        .arg(option)
        .env_clear()
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .expect("cp can be run");
    let told = String::from_utf8_lossy(&output.stderr);
    match parse(words(option), &Environment::default(), &mut |_| ()) {
        // Help and version: there is nothing to complain of.
        Ok(_) => assert_eq!(told, "", "{option}"),
        Err(error) => {
            let lines = error.lines_in(Charset::Ascii, b"cp");
            // What it warns of comes before.
            assert!(told.ends_with(&*String::from_utf8_lossy(&lines)), "{option}: {told}");
        }
    }
}

impl Gnu {
    /// The machine's cp if it is GNU's.
    fn on_this_machine() -> Option<&'static str> {
        let version = Command::new("/bin/cp").arg("--version").output();
        match version {
            Ok(output) if output.stdout.starts_with(b"cp (GNU coreutils)") => Some("/bin/cp"),
            _ => {
                eprintln!("skipped: /bin/cp is not GNU cp");
                None
            }
        }
    }
}
