//! Command lines and what they mean, or what is wrong with them. Where GNU cp 9.1 and later agree,
//! the messages are compared with those of the machine's own cp as well.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::args::{
    Args, Backup, BackupKind, Context, Destination, Existing, Follow, Keep, Make, ModeRule,
    Preserve, Reflink, Request, Sparse,
};
use super::environment::Environment;
use super::parse::parse;
use super::usage_error::{UsageError, Warning};

const HELP_HINT: &str = "Try 'cp --help' for more information.\n";

/// Words between blanks; `''` is an empty one and `\xff` that byte.
fn words(line: &str) -> Vec<OsString> {
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

fn parse_quietly(line: &str, environment: &Environment) -> Result<Request, UsageError> {
    parse(words(line), environment, &mut |warning| panic!("{line}: {warning:?}"))
}

/// The meaning of `a b`.
fn plain() -> Args {
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
    }
}

const PLAIN_PRESERVE: Preserve = Preserve {
    mode: ModeRule::Umask,
    ownership: false,
    timestamps: false,
    links: false,
    context: Keep::No,
    xattr: Keep::No,
    quiet: false,
};

const USUAL: Preserve =
    Preserve { mode: ModeRule::Preserve, ownership: true, timestamps: true, ..PLAIN_PRESERVE };

const EVERYTHING: Preserve = Preserve { links: true, xattr: Keep::IfPossible, ..USUAL };

fn backup(kind: BackupKind, suffix: &str) -> Option<Backup> {
    Some(Backup { kind, suffix: suffix.into() })
}

type Change = fn(&mut Args);

const MEANINGS: &[(&str, Change)] = &[
    ("a b", |_| ()),
    ("-- a b", |_| ()),
    ("a -- b", |_| ()),
    ("a -- -b", |args| args.operands = words("a -b")),
    ("a - --", |args| args.operands = words("a -")),
    ("a -- --", |args| args.operands = words("a --")),
    ("'' \\xff", |args| args.operands = words("'' \\xff")),
    ("a b c", |args| args.operands = words("a b c")),
    // Where it goes.
    ("-t d a b", |args| args.destination = Destination::Directory("d".into())),
    ("-td a b", |args| args.destination = Destination::Directory("d".into())),
    ("a b -t d", |args| args.destination = Destination::Directory("d".into())),
    ("--target-directory=d a b", |args| args.destination = Destination::Directory("d".into())),
    ("--target d a b", |args| args.destination = Destination::Directory("d".into())),
    ("-t=d a b", |args| args.destination = Destination::Directory("=d".into())),
    ("-t -- a b", |args| args.destination = Destination::Directory("--".into())),
    ("a -t d", |args| {
        args.operands = words("a");
        args.destination = Destination::Directory("d".into());
    }),
    ("-T a b", |args| args.destination = Destination::Exact),
    ("a b --no-t", |args| args.destination = Destination::Exact),
    ("--parents a b", |args| args.parents = true),
    ("--path a b", |args| args.parents = true),
    ("--pa a b", |args| args.parents = true),
    ("--strip a b", |args| args.strip_trailing_slashes = true),
    ("--keep a b", |args| args.keep_directory_symlink = true),
    ("-x a b", |args| args.one_file_system = true),
    // Trees and links.
    ("-r a b", |args| (args.recursive, args.follow) = (true, Follow::Never)),
    ("-R a b", |args| (args.recursive, args.follow) = (true, Follow::Never)),
    ("--rec a b", |args| (args.recursive, args.follow) = (true, Follow::Never)),
    ("-rL a b", |args| args.recursive = true),
    ("-rH a b", |args| (args.recursive, args.follow) = (true, Follow::CommandLine)),
    ("-HP a b", |args| args.follow = Follow::Never),
    ("-PL a b", |args| args.follow = Follow::Always),
    ("-rl a b", |args| (args.recursive, args.make) = (true, Make::HardLink)),
    ("-rlP a b", |args| {
        (args.recursive, args.make, args.follow) = (true, Make::HardLink, Follow::Never);
    }),
    ("-s a b", |args| args.make = Make::SymbolicLink),
    ("--attributes-only a b", |args| args.make = Make::AttributesOnly),
    ("--attributes-only -l a b", |args| args.make = Make::HardLink),
    ("--attr -s a b", |args| args.make = Make::SymbolicLink),
    ("--copy a b", |args| args.copy_contents = true),
    ("-d a b", |args| {
        args.follow = Follow::Never;
        args.preserve.links = true;
    }),
    // Attributes.
    ("-p a b", |args| args.preserve = USUAL),
    ("--preserve a b", |args| args.preserve = USUAL),
    ("--pre a b", |args| args.preserve = USUAL),
    ("--preserve=mode a b", |args| args.preserve.mode = ModeRule::Preserve),
    ("--preserve=m,o,t a b", |args| args.preserve = USUAL),
    ("--preserve=links,x a b", |args| {
        (args.preserve.links, args.preserve.xattr) = (true, Keep::Required);
    }),
    ("--preserve=all a b", |args| args.preserve = EVERYTHING),
    ("--preserve=all,xattr a b", |args| {
        args.preserve = Preserve { xattr: Keep::Required, ..EVERYTHING };
    }),
    ("--preserve=xattr,all a b", |args| {
        args.preserve = Preserve { xattr: Keep::Required, ..EVERYTHING };
    }),
    ("--no-preserve=mode a b", |args| args.preserve.mode = ModeRule::Fresh),
    ("--no-preserve=all a b", |args| args.preserve.mode = ModeRule::Fresh),
    ("-p --no-preserve=o,t,m a b", |args| args.preserve.mode = ModeRule::Fresh),
    ("--no-preserve=mode -p a b", |args| args.preserve = USUAL),
    ("--preserve=context --no-preserve=context a b", |_| ()),
    ("-a a b", |args| {
        args.recursive = true;
        args.follow = Follow::Never;
        args.preserve = Preserve { quiet: true, ..EVERYTHING };
    }),
    ("-aL --no-preserve=links,xattr,ownership a b", |args| {
        args.recursive = true;
        args.preserve = Preserve { ownership: false, quiet: true, ..USUAL };
    }),
    ("-Z a b", |_| ()),
    ("--context a b", |_| ()),
    // What is there already.
    ("-u a b", |args| args.existing = Existing::ReplaceOlder),
    ("--update a b", |args| args.existing = Existing::ReplaceOlder),
    ("--up=older a b", |args| args.existing = Existing::ReplaceOlder),
    ("--update=o a b", |args| args.existing = Existing::ReplaceOlder),
    ("--update=none a b", |args| args.existing = Existing::Skip),
    ("--update=none- a b", |args| args.existing = Existing::Fail),
    ("--update=none --update=all a b", |_| ()),
    ("-u --update=none-fail a b", |args| args.existing = Existing::Fail),
    ("-n a b", |args| args.existing = Existing::Skip),
    ("--no-c a b", |args| args.existing = Existing::Skip),
    ("-n --update=all a b", |args| args.existing = Existing::Skip),
    ("-n --update=none-fail a b", |args| args.existing = Existing::Skip),
    ("-u -n a b", |args| args.existing = Existing::Skip),
    ("-n -i a b", |args| args.ask = true),
    ("-i -n a b", |args| args.existing = Existing::Skip),
    ("-n -i -u a b", |args| (args.ask, args.existing) = (true, Existing::ReplaceOlder)),
    ("-i -f a b", |args| (args.ask, args.force) = (true, true)),
    ("-nf a b", |args| (args.existing, args.force) = (Existing::Skip, true)),
    ("--remove a b", |args| args.remove_destination = true),
    ("-b a b", |args| args.backup = backup(BackupKind::Existing, "~")),
    ("--backup a b", |args| args.backup = backup(BackupKind::Existing, "~")),
    ("--backup= a b", |args| args.backup = backup(BackupKind::Existing, "~")),
    ("--backup=t a b", |args| args.backup = backup(BackupKind::Numbered, "~")),
    ("--backup=numb a b", |args| args.backup = backup(BackupKind::Numbered, "~")),
    ("--backup=never -b a b", |args| args.backup = backup(BackupKind::Simple, "~")),
    ("--backup=simple --backup a b", |args| args.backup = backup(BackupKind::Simple, "~")),
    ("--backup=none a b", |_| ()),
    ("--backup=no a b", |_| ()),
    ("--update=none --update=all -b a b", |args| args.backup = backup(BackupKind::Existing, "~")),
    ("-n -i -b a b", |args| {
        (args.ask, args.backup) = (true, backup(BackupKind::Existing, "~"));
    }),
    ("-S.bak a b", |args| args.backup = backup(BackupKind::Existing, ".bak")),
    ("-S .bak a b", |args| args.backup = backup(BackupKind::Existing, ".bak")),
    ("--suffix=.bak a b", |args| args.backup = backup(BackupKind::Existing, ".bak")),
    ("-bS /bak a b", |args| args.backup = backup(BackupKind::Existing, "~")),
    ("-bS '' a b", |args| args.backup = backup(BackupKind::Existing, "~")),
    // Bytes.
    ("--sparse=always a b", |args| args.sparse = Sparse::Always),
    ("--sparse never a b", |args| args.sparse = Sparse::Never),
    ("--sp=au a b", |_| ()),
    ("--reflink a b", |args| args.reflink = Reflink::Always),
    ("--reflink=al a b", |args| args.reflink = Reflink::Always),
    ("--reflink=never --sparse=always a b", |args| {
        (args.reflink, args.sparse) = (Reflink::Never, Sparse::Always);
    }),
    ("--reflink=always --reflink=auto --sparse=always a b", |args| args.sparse = Sparse::Always),
    // What is said.
    ("-vv a b", |args| args.verbose = true),
    ("--verb a b", |args| args.verbose = true),
    ("--debug a b", |args| (args.verbose, args.debug) = (true, true)),
];

#[test]
fn command_lines_mean_what_they_mean_to_gnu() {
    for &(line, change) in MEANINGS {
        let mut expected = plain();
        change(&mut expected);
        let parsed = parse_quietly(line, &Environment::default());
        assert_eq!(parsed, Ok(Request::Copy(Box::new(expected))), "{line}");
    }
}

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
];

/// Those that point to no help.
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
        let lines = error.lines_in(super::quote::Charset::Ascii);
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
    assert!(parse_quietly("--bogus --help", &environment).is_err());
}
