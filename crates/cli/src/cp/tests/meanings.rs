//! Command lines that ask for a copy, and how their [`CopyCommand`] differs from that of `a b`: those that the
//! differential tests of the program do not have.

use std::num::NonZeroU64;

use engines::profile::Location;
use haulage::options::{
    BackupKind, Existing, Follow, Keep, Make, ModeRule, Preserve, Reflink, Rule, Sparse,
};

use super::{
    backup, everything, exactly_a_to_b, into_directory, into_last, parse_quietly, plain, usual,
    words,
};
use crate::cp::command_line::{Command, CopyCommand};
use crate::cp::environment::Environment;

type Change = fn(&mut CopyCommand);

const MEANINGS: &[(&str, Change)] = &[
    ("a b", |_| ()),
    ("-- a b", |_| ()),
    ("a -- b", |_| ()),
    ("a -- -b", |copy| copy.request = into_last("a -b")),
    ("a - --", |copy| copy.request = into_last("a -")),
    ("a -- --", |copy| copy.request = into_last("a --")),
    ("'' \\xff", |copy| copy.request = into_last("'' \\xff")),
    ("a b c", |copy| copy.request = into_last("a b c")),
    // Where it goes.
    ("-td a b", |copy| copy.request = into_directory("d", "a b")),
    ("a b -t d", |copy| copy.request = into_directory("d", "a b")),
    ("--target-directory=d a b", |copy| copy.request = into_directory("d", "a b")),
    ("--target d a b", |copy| copy.request = into_directory("d", "a b")),
    ("-t=d a b", |copy| copy.request = into_directory("=d", "a b")),
    ("-t -- a b", |copy| copy.request = into_directory("--", "a b")),
    ("a -t d", |copy| copy.request = into_directory("d", "a")),
    ("-T a b", |copy| copy.request = exactly_a_to_b()),
    ("a b --no-t", |copy| copy.request = exactly_a_to_b()),
    ("--prog a b", |copy| copy.reports.progress = true),
    ("--pa a b", |copy| copy.options.parents = true),
    ("--strip a b", |copy| copy.options.strip_trailing_slashes = true),
    ("--keep a b", |copy| copy.options.keep_directory_symlink = true),
    ("--resume a b", |copy| {
        (copy.options.resume, copy.options.atomic) = (true, true);
        copy.options.preserve = usual();
    }),
    ("-x a b", |copy| copy.options.one_file_system = true),
    // Trees and links.
    ("--rec a b", |copy| (copy.options.recursive, copy.options.follow) = (true, Follow::Never)),
    ("-HP a b", |copy| copy.options.follow = Follow::Never),
    ("-PL a b", |copy| copy.options.follow = Follow::Always),
    ("-rlP a b", |copy| {
        (copy.options.recursive, copy.options.make, copy.options.follow) =
            (true, Make::HardLink, Follow::Never);
    }),
    ("--attributes-only -l a b", |copy| copy.options.make = Make::HardLink),
    ("--attr -s a b", |copy| copy.options.make = Make::SymbolicLink),
    ("--copy a b", |copy| copy.options.copy_contents = true),
    // What GNU cp has not.
    ("--no-cache a b", |copy| copy.options.no_cache = true),
    ("--profile=p a b", |copy| copy.options.profile = Location::Named("p".into())),
    ("--profile p --profile=none a b", |copy| copy.options.profile = Location::None),
    ("--profile=./none a b", |copy| copy.options.profile = Location::Named("./none".into())),
    ("-r --exclude=x --include=!y --exclude z/ a b", |copy| {
        (copy.options.recursive, copy.options.follow) = (true, Follow::Never);
        let rule = |include, glob: &str| Rule { include, glob: glob.into() };
        copy.rules = vec![rule(false, "x"), rule(true, "!y"), rule(false, "z/")];
    }),
    ("--dry-run a b", |copy| (copy.options.dry_run, copy.options.verbose) = (true, true)),
    ("--limit-rate=50M a b", |copy| copy.options.limit_rate = NonZeroU64::new(50 << 20)),
    ("--limit-rate 1.5k a b", |copy| copy.options.limit_rate = NonZeroU64::new(1536)),
    ("--limit-rate=2.25MB a b", |copy| copy.options.limit_rate = NonZeroU64::new(2_250_000)),
    ("--limit-rate=1GiB a b", |copy| copy.options.limit_rate = NonZeroU64::new(1 << 30)),
    ("--limit-rate=7 a b", |copy| copy.options.limit_rate = NonZeroU64::new(7)),
    ("--ignore-file f --ignore-file=g a b", |copy| copy.ignore_files = words("f g")),
    // Attributes.
    ("--preserve a b", |copy| copy.options.preserve = usual()),
    ("--preserve=m,o,t a b", |copy| copy.options.preserve = usual()),
    ("--preserve=links,x a b", |copy| {
        (copy.options.preserve.links, copy.options.preserve.xattr) = (true, Keep::Required);
    }),
    ("--preserve=all,xattr a b", |copy| {
        copy.options.preserve = Preserve { xattr: Keep::Required, ..everything() };
    }),
    ("--preserve=xattr,all a b", |copy| {
        copy.options.preserve = Preserve { xattr: Keep::Required, ..everything() };
    }),
    ("-p --no-preserve=o,t,m a b", |copy| copy.options.preserve.mode = ModeRule::Fresh),
    ("--no-preserve=mode -p a b", |copy| copy.options.preserve = usual()),
    ("--preserve=context --no-preserve=context a b", |_| ()),
    ("-aL --no-preserve=links,xattr,ownership a b", |copy| {
        copy.options.recursive = true;
        copy.options.preserve = Preserve { ownership: false, quiet: true, ..usual() };
    }),
    ("-Z a b", |_| ()),
    ("--context a b", |_| ()),
    // What is there already.
    ("--update a b", |copy| copy.options.existing = Existing::ReplaceOlder),
    ("--up=older a b", |copy| copy.options.existing = Existing::ReplaceOlder),
    ("--update=o a b", |copy| copy.options.existing = Existing::ReplaceOlder),
    ("--update=none- a b", |copy| copy.options.existing = Existing::Fail),
    ("--update=none --update=all a b", |_| ()),
    ("-u --update=none-fail a b", |copy| copy.options.existing = Existing::Fail),
    ("-u -n a b", |copy| copy.options.existing = Existing::Skip),
    ("-i -n a b", |copy| copy.options.existing = Existing::Skip),
    ("-n -i -u a b", |copy| {
        (copy.options.ask, copy.options.existing) = (true, Existing::ReplaceOlder);
    }),
    ("-i -f a b", |copy| (copy.options.ask, copy.options.force) = (true, true)),
    ("--remove a b", |copy| copy.options.remove_destination = true),
    ("--backup= a b", |copy| copy.options.backup = backup(BackupKind::Existing, "~")),
    ("--backup=numb a b", |copy| copy.options.backup = backup(BackupKind::Numbered, "~")),
    ("--backup=never -b a b", |copy| copy.options.backup = backup(BackupKind::Simple, "~")),
    ("--backup=simple --backup a b", |copy| copy.options.backup = backup(BackupKind::Simple, "~")),
    ("--backup=no a b", |_| ()),
    ("--update=none --update=all -b a b", |copy| {
        copy.options.backup = backup(BackupKind::Existing, "~");
    }),
    ("-S.bak a b", |copy| copy.options.backup = backup(BackupKind::Existing, ".bak")),
    ("-S .bak a b", |copy| copy.options.backup = backup(BackupKind::Existing, ".bak")),
    ("--suffix=.bak a b", |copy| copy.options.backup = backup(BackupKind::Existing, ".bak")),
    ("-bS /bak a b", |copy| copy.options.backup = backup(BackupKind::Existing, "~")),
    ("-bS '' a b", |copy| copy.options.backup = backup(BackupKind::Existing, "~")),
    // Bytes.
    ("--sparse never a b", |copy| copy.options.sparse = Sparse::Never),
    ("--sp=au a b", |_| ()),
    ("--reflink a b", |copy| copy.options.reflink = Reflink::Always),
    ("--reflink=al a b", |copy| copy.options.reflink = Reflink::Always),
    ("--reflink=never --sparse=always a b", |copy| {
        (copy.options.reflink, copy.options.sparse) = (Reflink::Never, Sparse::Always);
    }),
    ("--reflink=always --reflink=auto --sparse=always a b", |copy| {
        copy.options.sparse = Sparse::Always;
    }),
    // What is said.
    ("-vv a b", |copy| copy.options.verbose = true),
    ("--verb a b", |copy| copy.options.verbose = true),
    ("--debug a b", |copy| (copy.options.verbose, copy.options.debug) = (true, true)),
];

#[test]
fn command_lines_mean_what_they_mean_to_gnu() {
    for &(line, change) in MEANINGS {
        let mut expected = plain();
        change(&mut expected);
        let parsed = parse_quietly(line, &Environment::default());
        assert_eq!(parsed, Ok(Command::Copy(Box::new(expected))), "{line}");
    }
}
