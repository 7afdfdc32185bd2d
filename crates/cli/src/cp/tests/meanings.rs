//! Command lines that ask for a copy, and how their [`Args`] differ from those of `a b`.

use std::num::NonZeroU64;

use engines::profile::Location;

use super::super::args::{
    Args, BackupKind, Destination, Existing, Follow, Keep, Make, ModeRule, Preserve, Reflink,
    Request, Rule, Sparse,
};
use super::super::environment::Environment;
use super::{EVERYTHING, USUAL, backup, parse_quietly, plain, words};

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
    ("--receipt=r a b", |args| args.receipt = Some("r".into())),
    ("--receipt - a b", |args| args.receipt = Some("-".into())),
    ("--stats a b", |args| args.stats = true),
    ("--progress a b", |args| args.progress = true),
    ("--prog a b", |args| args.progress = true),
    ("--path a b", |args| args.parents = true),
    ("--pa a b", |args| args.parents = true),
    ("--strip a b", |args| args.strip_trailing_slashes = true),
    ("--keep a b", |args| args.keep_directory_symlink = true),
    ("--atomic a b", |args| args.atomic = true),
    ("--durable a b", |args| args.durable = true),
    ("--verify a b", |args| args.verify = true),
    ("--resume a b", |args| {
        (args.resume, args.atomic) = (true, true);
        args.preserve = USUAL;
    }),
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
    // What GNU cp has not.
    ("--no-cache a b", |args| args.no_cache = true),
    ("--profile=p a b", |args| args.profile = Location::Named("p".into())),
    ("--profile p --profile=none a b", |args| args.profile = Location::None),
    ("--profile=./none a b", |args| args.profile = Location::Named("./none".into())),
    ("--no-c a b", |args| args.existing = Existing::Skip),
    ("-r --exclude=x --include=!y --exclude z/ a b", |args| {
        (args.recursive, args.follow) = (true, Follow::Never);
        let rule = |include, glob: &str| Rule { include, glob: glob.into() };
        args.rules = vec![rule(false, "x"), rule(true, "!y"), rule(false, "z/")];
    }),
    ("--dry-run a b", |args| (args.dry_run, args.verbose) = (true, true)),
    ("--limit-rate=50M a b", |args| args.limit_rate = NonZeroU64::new(50 << 20)),
    ("--limit-rate 1.5k a b", |args| args.limit_rate = NonZeroU64::new(1536)),
    ("--limit-rate=2.25MB a b", |args| args.limit_rate = NonZeroU64::new(2_250_000)),
    ("--limit-rate=1GiB a b", |args| args.limit_rate = NonZeroU64::new(1 << 30)),
    ("--limit-rate=7 a b", |args| args.limit_rate = NonZeroU64::new(7)),
    ("--ignore-file f --ignore-file=g a b", |args| args.ignore_files = words("f g")),
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
