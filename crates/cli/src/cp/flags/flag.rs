//! One row of the table of options.

use std::ffi::OsString;

use crate::cp::builder::Builder;
use crate::cp::messages::usage_error::UsageError;

/// An option: all that the parser, `--help` and the manual page know of it.
pub(crate) struct Flag {
    /// Its letters.
    pub(crate) shorts: &'static [char],
    /// Its long names without dashes; the first is the one that is shown.
    pub(crate) longs: &'static [&'static str],
    /// Whether it takes an argument, and what it does to a [`Builder`].
    pub(crate) takes: Takes,
    /// The words that the argument may be, synonyms together.
    pub(crate) values: Option<fn() -> Vec<Vec<&'static str>>>,
    /// Where `--help` shows it.
    pub(crate) group: Group,
    /// Whose it is.
    pub(crate) origin: Origin,
    /// What it does, in a line or two.
    pub(crate) help: &'static str,
    /// What the manual page says besides; may be empty.
    pub(crate) details: &'static str,
}

/// What an option takes, and what it does with it. The words are what help calls the argument.
pub(crate) enum Takes {
    /// No argument.
    Nothing(fn(&mut Builder<'_>)),
    /// An argument, joined or as the next word.
    Required(&'static str, fn(&mut Builder<'_>, OsString) -> Result<(), UsageError>),
    /// Perhaps an argument, joined by an equals sign.
    Optional(&'static str, fn(&mut Builder<'_>, Option<OsString>) -> Result<(), UsageError>),
}

/// Whose option it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// GNU cp has it.
    Gnu,
    /// Only haulage has it.
    Own,
}

/// The sections of `--help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// What is read.
    Sources,
    /// What is made of it.
    Copies,
    /// What the copies take over besides data.
    Attributes,
    /// Where they go and what becomes of what is there.
    Destination,
    /// What is done so that it may be relied upon.
    Safety,
    /// How it is done.
    Means,
    /// What is said.
    Messages,
}

impl Group {
    /// Every section in the order of `--help`.
    pub(crate) const ALL: [Group; 7] = [
        Group::Sources,
        Group::Copies,
        Group::Attributes,
        Group::Destination,
        Group::Safety,
        Group::Means,
        Group::Messages,
    ];

    /// Its heading.
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Group::Sources => "What is copied",
            Group::Copies => "What a copy is",
            Group::Attributes => "What it takes over besides the data",
            Group::Destination => "Where it goes, and what was there before",
            Group::Safety => "How safe it is",
            Group::Means => "How it is done",
            Group::Messages => "What is said",
        }
    }
}

impl Flag {
    /// A row of GNU's to begin from; the group is that of most.
    pub(crate) const PLAIN: Flag = Flag {
        shorts: &[],
        longs: &[],
        takes: Takes::Nothing(|_| ()),
        values: None,
        group: Group::Destination,
        origin: Origin::Gnu,
        help: "",
        details: "",
    };

    /// How help and manual page write it: `-S, --suffix=SUFFIX`.
    pub(crate) fn label(&self) -> String {
        let shorts = self.shorts.iter().map(|letter| format!("-{letter}"));
        let long = self.longs.first().map(|name| format!("--{name}"));
        let names = shorts.chain(long).collect::<Vec<_>>().join(", ");
        match (&self.takes, self.longs) {
            (Takes::Nothing(_), _) => names,
            (Takes::Required(metavar, _), []) => format!("{names} {metavar}"),
            (Takes::Required(metavar, _), _) => format!("{names}={metavar}"),
            (Takes::Optional(metavar, _), _) => format!("{names}[={metavar}]"),
        }
    }
}
