//! Command lines and what they mean, or what is wrong with them.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use haulage::options::{
    Backup, BackupKind, Context, Destination, Follow, Keep, ModeRule, Options, Preserve, Request,
};

use crate::cp::command_line::{Command, CopyCommand, Reports};
use crate::cp::environment::Environment;
use crate::cp::messages::usage_error::{CONTEXT_IGNORED, UsageError};
use crate::cp::parse::parse;
use crate::cp::values::Generated;
use crate::docs::completions::Shell;

mod meanings;
mod mistakes;

/// Words between blanks; `''` is an empty one and `\xff` that byte.
pub(super) fn words(line: &str) -> Vec<OsString> {
    line.split(' ')
        .filter(|word| !word.is_empty())
        .map(|word| match word {
            "''" => OsString::new(),
            _ => match word.split_once("\\xff") {
                Some((before, after)) => {
                    let bytes = [before.as_bytes(), b"\xff", after.as_bytes()].concat();
                    OsStr::from_bytes(&bytes).to_owned()
                }
                None => word.into(),
            },
        })
        .collect()
}

pub(super) fn parse_quietly(line: &str, environment: &Environment) -> Result<Command, UsageError> {
    parse(words(line), environment, &mut |warning| panic!("{line}: {warning:?}"))
}

/// The machine's cp if it is GNU's.
pub(crate) fn gnu_on_this_machine() -> Option<&'static str> {
    let version = std::process::Command::new("/bin/cp").arg("--version").output();
    match version {
        Ok(output) if output.stdout.starts_with(b"cp (GNU coreutils)") => Some("/bin/cp"),
        _ => {
            eprintln!("skipped: /bin/cp is not GNU cp");
            None
        }
    }
}

/// The meaning of `a b`.
pub(super) fn plain() -> CopyCommand {
    CopyCommand {
        request: into_last("a b"),
        options: Options { sigbus_handler: true, ..Options::default() },
        rules: Vec::new(),
        ignore_files: Vec::new(),
        reports: Reports::default(),
    }
}

/// The operands `operands`, without `-t` and `-T`.
pub(super) fn into_last(operands: &str) -> Request {
    let mut sources = words(operands);
    let last = sources.pop().expect("found");
    Request { sources, destination: Destination::Last(last) }
}

/// The operands `sources`, with `-t directory`.
pub(super) fn into_directory(directory: &str, sources: &str) -> Request {
    Request { sources: words(sources), destination: Destination::Directory(directory.into()) }
}

/// The operands `a b`, with `-T`.
pub(super) fn exactly_a_to_b() -> Request {
    Request { sources: words("a"), destination: Destination::Exact("b".into()) }
}

pub(super) fn usual() -> Preserve {
    let mode = ModeRule::Preserve;
    Preserve { mode, ownership: true, timestamps: true, ..Preserve::default() }
}

pub(super) fn everything() -> Preserve {
    Preserve { links: true, xattr: Keep::IfPossible, ..usual() }
}

pub(super) fn backup(kind: BackupKind, suffix: &str) -> Option<Backup> {
    Some(Backup { kind, suffix: suffix.into() })
}

#[test]
fn options_end_at_the_first_name_for_posix() {
    let posix = Environment { posixly_correct: true, ..Environment::default() };
    let mut expected = plain();
    expected.request = into_last("a -v -- b");
    expected.options.recursive = true;
    expected.options.follow = Follow::Never;
    expected.options.through_dangling_symlink = true;
    let parsed = parse_quietly("-r a -v -- b", &posix);
    assert_eq!(parsed, Ok(Command::Copy(Box::new(expected))));
}

#[test]
fn contexts_count_where_the_kernel_has_them() {
    let selinux = Environment { selinux: true, ..Environment::default() };
    let options_of = |line: &str| match parse_quietly(line, &selinux) {
        Ok(Command::Copy(copy)) => copy.options,
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(options_of("-Z a b").context, Context::Default);
    assert_eq!(options_of("--context=u:r:t a b").context, Context::Named("u:r:t".into()));
    assert_eq!(options_of("-a a b").preserve.context, Keep::IfPossible);
    assert_eq!(options_of("--preserve=context -a a b").preserve.context, Keep::Required);
    assert_eq!(
        parse_quietly("-Z --preserve=context a b", &selinux),
        Err(UsageError::Refused("cannot set target context and preserve it"))
    );
    let mut warnings = Vec::new();
    let parsed =
        parse(words("--context=x a b"), &Environment::default(), &mut |w| warnings.push(w));
    assert_eq!(parsed, Ok(Command::Copy(Box::new(plain()))));
    assert_eq!(warnings, [CONTEXT_IGNORED]);
}

#[test]
fn the_first_answer_or_mistake_ends_the_reading() {
    let environment = Environment::default();
    assert_eq!(parse_quietly("a --help --bogus", &environment), Ok(Command::Help));
    assert_eq!(parse_quietly("--hel", &environment), Ok(Command::Help));
    assert_eq!(parse_quietly("--version --help", &environment), Ok(Command::Version));
    assert_eq!(
        parse_quietly("--generate=man", &environment),
        Ok(Command::Generate(Generated::Man))
    );
    let fish = Ok(Command::Generate(Generated::Completions(Shell::Fish)));
    assert_eq!(parse_quietly("--generate=f", &environment), fish);
    assert!(parse_quietly("--bogus --help", &environment).is_err());
    let error = parse_quietly("--reflink=never --engine=reflink a b", &environment);
    let lines = error.expect_err("one excludes the other").lines();
    assert!(lines.starts_with(b"cp: cannot combine --reflink=never and --engine=reflink\n"));
}
