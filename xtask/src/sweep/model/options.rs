//! What the words of a command line ask of cp.

/// Which symbolic links of the source are passed through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follow {
    Nothing,
    Operands,
    Everything,
}

/// What becomes of an existing destination that is no directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Existing {
    Replace,
    /// Only if it is older than the source.
    ReplaceOlder,
    Keep,
    /// It is kept, and that is a failure.
    KeepAndFail,
}

/// Which name the old file gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backup {
    Simple,
    Numbered,
    /// Numbered where there is a numbered one.
    Existing,
}

/// What is made of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Make {
    Copy,
    HardLink,
    Symlink,
}

/// What the destination operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A directory into which is copied if there is one, otherwise the name of the copy.
    Any,
    /// `-t`: a directory.
    Directory,
    /// `-T`: the name of the copy.
    Name,
}

/// What of a file the copy gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Preserve {
    pub(super) mode: bool,
    pub(super) ownership: bool,
    pub(super) timestamps: bool,
    pub(super) links: bool,
}

impl Preserve {
    const ALL: Preserve = Preserve { mode: true, ownership: true, timestamps: true, links: true };
}

/// All of it. A later word overrides an earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) is_recursive: bool,
    /// `None` if no word says so.
    follow: Option<Follow>,
    pub(super) preserve: Preserve,
    /// `--no-preserve=mode`: the umask alone decides on the mode of a new file.
    pub(super) ignores_mode: bool,
    /// `-f`: what cannot be opened is removed.
    pub(super) forces: bool,
    pub(super) removes_destination: bool,
    pub(super) existing: Existing,
    pub(super) backup: Option<Backup>,
    /// A word asks for backups, be it for none.
    asks_for_backup: bool,
    pub(super) suffix: &'static str,
    pub(super) make: Make,
    /// `-l` and `-s` were given.
    pub(super) makes_both_links: bool,
    pub(super) attributes_only: bool,
    pub(super) target: Target,
    pub(super) has_parents: bool,
    pub(super) sparse: Sparse,
}

/// What `--sparse` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sparse {
    Auto,
    Always,
    Never,
}

/// What each word does. Words of a group are drawn at most once in a case.
pub(super) const WORDS: &[Word] = &[
    word("recursion", "-r", |it| it.is_recursive = true),
    word("recursion", "-R", |it| it.is_recursive = true),
    word("recursion", "-a", |it| {
        it.is_recursive = true;
        it.follow = Some(Follow::Nothing);
        it.preserve = Preserve::ALL;
        it.ignores_mode = false;
    }),
    word("following", "-d", |it| {
        it.follow = Some(Follow::Nothing);
        it.preserve.links = true;
    }),
    word("following", "-P", |it| it.follow = Some(Follow::Nothing)),
    word("following", "-L", |it| it.follow = Some(Follow::Everything)),
    word("following", "-H", |it| it.follow = Some(Follow::Operands)),
    word("preserving", "-p", |it| {
        it.preserve = Preserve { links: it.preserve.links, ..Preserve::ALL };
        it.ignores_mode = false;
    }),
    word("preserving", "--preserve=mode", |it| {
        it.preserve.mode = true;
        it.ignores_mode = false;
    }),
    word("preserving", "--preserve=timestamps", |it| it.preserve.timestamps = true),
    word("preserving", "--preserve=ownership", |it| it.preserve.ownership = true),
    word("preserving", "--preserve=links", |it| it.preserve.links = true),
    word("preserving", "--preserve=all", |it| {
        it.preserve = Preserve::ALL;
        it.ignores_mode = false;
    }),
    word("losing", "--no-preserve=mode", |it| {
        it.preserve.mode = false;
        it.ignores_mode = true;
    }),
    word("losing", "--no-preserve=timestamps", |it| it.preserve.timestamps = false),
    word("losing", "--no-preserve=links", |it| it.preserve.links = false),
    word("losing", "--no-preserve=ownership", |it| it.preserve.ownership = false),
    word("force", "-f", |it| it.forces = true),
    word("removal", "--remove-destination", |it| it.removes_destination = true),
    word("existing", "-n", |it| it.existing = Existing::Keep),
    word("existing", "-u", |it| it.existing = Existing::ReplaceOlder),
    Word {
        gnu_9_1: None,
        ..word("existing", "--update=all", |it| it.existing = Existing::Replace)
    },
    Word {
        gnu_9_1: Some("-u"),
        ..word("existing", "--update=older", |it| it.existing = Existing::ReplaceOlder)
    },
    Word {
        gnu_9_1: Some("-n"),
        ..word("existing", "--update=none", |it| it.existing = Existing::Keep)
    },
    Word {
        gnu_9_1: None,
        ..word("existing", "--update=none-fail", |it| it.existing = Existing::KeepAndFail)
    },
    word("backup", "-b", |it| it.backup = Some(Backup::Existing)),
    word("backup", "--backup=none", |it| it.backup = None),
    word("backup", "--backup=simple", |it| it.backup = Some(Backup::Simple)),
    word("backup", "--backup=numbered", |it| it.backup = Some(Backup::Numbered)),
    word("backup", "--backup=existing", |it| it.backup = Some(Backup::Existing)),
    word("backup", "-S.k", |it| {
        it.backup = Some(Backup::Existing);
        it.suffix = ".k";
    }),
    word("making", "-l", |it| {
        it.makes_both_links |= it.make == Make::Symlink;
        it.make = Make::HardLink;
    }),
    word("making", "-s", |it| {
        it.makes_both_links |= it.make == Make::HardLink;
        it.make = Make::Symlink;
    }),
    word("making", "--attributes-only", |it| it.attributes_only = true),
    word("target", "-T", |it| it.target = Target::Name),
    word("target", "-t", |it| it.target = Target::Directory),
    word("parents", "--parents", |it| it.has_parents = true),
    word("holes", "--sparse=always", |it| it.sparse = Sparse::Always),
    word("holes", "--sparse=never", |it| it.sparse = Sparse::Never),
];

/// One word of the command line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    pub(super) group: &'static str,
    pub(super) text: &'static str,
    /// What means the same to GNU cp 9.1; `None` if nothing does.
    pub(super) gnu_9_1: Option<&'static str>,
    apply: fn(&mut Options),
}

const fn word(group: &'static str, text: &'static str, apply: fn(&mut Options)) -> Word {
    Word { group, text, gnu_9_1: Some(text), apply }
}

impl Word {
    /// The one with this text.
    pub(super) fn of(text: &str) -> Option<&'static Word> {
        WORDS.iter().find(|word| word.text == text)
    }
}

impl Options {
    pub(super) fn new(words: &[&Word]) -> Options {
        let mut options = Options {
            is_recursive: false,
            follow: None,
            preserve: Preserve::default(),
            ignores_mode: false,
            forces: false,
            removes_destination: false,
            existing: Existing::Replace,
            backup: None,
            asks_for_backup: false,
            suffix: "~",
            make: Make::Copy,
            makes_both_links: false,
            attributes_only: false,
            target: Target::Any,
            has_parents: false,
            sparse: Sparse::Auto,
        };
        for word in words {
            (word.apply)(&mut options);
            options.asks_for_backup |= word.group == "backup";
        }
        options
    }

    /// Which links of the source are passed through. Links are kept in a tree, but not with `-l`.
    pub(super) fn follow(&self) -> Follow {
        self.follow.unwrap_or(match self.is_recursive && self.make != Make::HardLink {
            true => Follow::Nothing,
            false => Follow::Everything,
        })
    }

    /// Whether they contradict each other.
    pub(super) fn are_refused(&self) -> bool {
        let keeps = matches!(self.existing, Existing::Keep | Existing::KeepAndFail);
        self.makes_both_links || (self.asks_for_backup && keeps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Options {
        let words = line.split_whitespace().map(|word| Word::of(word).expect(word));
        Options::new(&words.collect::<Vec<_>>())
    }

    #[test]
    fn a_later_word_overrides_an_earlier_one() {
        for (line, follow) in [
            ("", Follow::Everything),
            ("-r", Follow::Nothing),
            ("-r -l", Follow::Everything),
            ("-a -l", Follow::Nothing),
            ("-a -H", Follow::Operands),
            ("-L -a", Follow::Nothing),
            ("-P", Follow::Nothing),
        ] {
            assert_eq!(options(line).follow(), follow, "{line}");
        }
        assert_eq!(options("-a").preserve, options("--preserve=all").preserve);
        assert!(!options("-p --no-preserve=mode").preserve.mode);
        assert!(!options("--no-preserve=mode -p").ignores_mode);
        for (line, are_refused) in [
            ("-l", false),
            ("-l -s", true),
            ("-b -n", true),
            ("-b -u", false),
            ("--backup=none -n", true),
            ("-S.k --update=none-fail", true),
        ] {
            assert_eq!(options(line).are_refused(), are_refused, "{line}");
        }
    }
}
