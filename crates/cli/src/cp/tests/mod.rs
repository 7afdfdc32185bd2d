//! Command lines and what they mean, or what is wrong with them.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use engines::profile::Location;

use super::args::{
    Args, Backup, BackupKind, Context, Destination, Existing, Follow, Keep, Make, ModeRule,
    Preserve, Reflink, Request, Sparse,
};
use super::completions::Shell;
use super::environment::Environment;
use super::parse::parse;
use super::usage_error::{UsageError, Warning};

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

pub(super) fn parse_quietly(line: &str, environment: &Environment) -> Result<Request, UsageError> {
    parse(words(line), environment, &mut |warning| panic!("{line}: {warning:?}"))
}

/// The meaning of `a b`.
pub(super) fn plain() -> Args {
    Args {
        operands: words("a b"),
        destination: Destination::LastOperand,
        recursive: false,
        follow: Follow::Always,
        make: Make::Copy,
        copy_contents: false,
        preserve: PLAIN_PRESERVE,
        existing: Existing::Replace,
        ask: false,
        force: false,
        remove_destination: false,
        backup: None,
        sparse: Sparse::Auto,
        reflink: Reflink::Auto,
        parents: false,
        strip_trailing_slashes: false,
        keep_directory_symlink: false,
        through_dangling_symlink: false,
        one_file_system: false,
        context: Context::Inherit,
        verbose: false,
        debug: false,
        jobs: None,
        engine: None,
        profile: Location::None,
        atomic: false,
        durable: false,
        verify: false,
        resume: false,
        no_cache: false,
        receipt: None,
        stats: false,
        dry_run: false,
        limit_rate: None,
        rules: Vec::new(),
        ignore_files: Vec::new(),
        progress: false,
    }
}

pub(super) const PLAIN_PRESERVE: Preserve = Preserve {
    mode: ModeRule::Umask,
    ownership: false,
    timestamps: false,
    links: false,
    context: Keep::No,
    xattr: Keep::No,
    quiet: false,
};

pub(super) const USUAL: Preserve =
    Preserve { mode: ModeRule::Preserve, ownership: true, timestamps: true, ..PLAIN_PRESERVE };

pub(super) const EVERYTHING: Preserve = Preserve { links: true, xattr: Keep::IfPossible, ..USUAL };

pub(super) fn backup(kind: BackupKind, suffix: &str) -> Option<Backup> {
    Some(Backup { kind, suffix: suffix.into() })
}

#[test]
fn the_environment_is_heard() {
    let environment = Environment {
        simple_backup_suffix: Some(".old".into()),
        version_control: Some("t".into()),
        ..Environment::default()
    };
    let backup_of = |line: &str, environment: &Environment| match parse_quietly(line, environment) {
        Ok(Request::Copy(args)) => args.backup,
        other => panic!("{line}: {other:?}"),
    };
    let (numbered, simple) = (BackupKind::Numbered, BackupKind::Simple);
    assert_eq!(backup_of("a b", &environment), None);
    assert_eq!(backup_of("-b a b", &environment), backup(numbered, ".old"));
    assert_eq!(backup_of("--backup= a b", &environment), backup(numbered, ".old"));
    assert_eq!(backup_of("--backup=simple -S.k a b", &environment), backup(simple, ".k"));
    assert_eq!(backup_of("-b -S '' a b", &environment), backup(numbered, "~"));
    let bad = Environment { version_control: Some("bad".into()), ..Environment::default() };
    assert_eq!(backup_of("--backup=t a b", &bad), backup(numbered, "~"));
    let error = parse_quietly("-b a b", &bad).expect_err("no such control");
    let lines = String::from_utf8(error.lines()).expect("all ASCII or quotation marks");
    assert!(lines.contains("$VERSION_CONTROL"), "{lines}");
}

#[test]
fn options_end_at_the_first_name_for_posix() {
    let posix = Environment { posixly_correct: true, ..Environment::default() };
    let mut expected = plain();
    expected.operands = words("a -v -- b");
    expected.recursive = true;
    expected.follow = Follow::Never;
    expected.through_dangling_symlink = true;
    let parsed = parse_quietly("-r a -v -- b", &posix);
    assert_eq!(parsed, Ok(Request::Copy(Box::new(expected))));
}

#[test]
fn contexts_count_where_the_kernel_has_them() {
    let selinux = Environment { selinux: true, ..Environment::default() };
    let args_of = |line: &str| match parse_quietly(line, &selinux) {
        Ok(Request::Copy(args)) => args,
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(args_of("-Z a b").context, Context::Default);
    assert_eq!(args_of("--context=u:r:t a b").context, Context::Named("u:r:t".into()));
    assert_eq!(args_of("-a a b").preserve.context, Keep::IfPossible);
    assert_eq!(args_of("--preserve=context -a a b").preserve.context, Keep::Required);
    assert_eq!(
        parse_quietly("-Z --preserve=context a b", &selinux),
        Err(UsageError::ContextSetAndPreserved)
    );
    let mut warnings = Vec::new();
    let parsed =
        parse(words("--context=x a b"), &Environment::default(), &mut |w| warnings.push(w));
    assert_eq!(parsed, Ok(Request::Copy(Box::new(plain()))));
    assert_eq!(warnings, [Warning::ContextIgnored]);
}

#[test]
fn the_first_answer_or_mistake_ends_the_reading() {
    let environment = Environment::default();
    assert_eq!(parse_quietly("a --help --bogus", &environment), Ok(Request::Help));
    assert_eq!(parse_quietly("--hel", &environment), Ok(Request::Help));
    assert_eq!(parse_quietly("--version --help", &environment), Ok(Request::Version));
    assert_eq!(parse_quietly("--generate=man", &environment), Ok(Request::ManPage));
    let fish = Ok(Request::Completions(Shell::Fish));
    assert_eq!(parse_quietly("--generate=f", &environment), fish);
    assert!(parse_quietly("--bogus --help", &environment).is_err());
}
