//! One row of the table of options.

use std::ffi::OsString;

use crate::cp::builder::Builder;
use crate::cp::messages::usage_error::UsageError;

/// An option. The parser, `--help`, the manual page and the completions read nothing else.
pub(crate) struct Flag {
    /// The short names of the option.
    pub(crate) shorts: &'static [char],
    /// The long names of the option, without dashes. The first is the one in `--help`.
    pub(crate) longs: &'static [&'static str],
    /// Whether it takes an argument, and what it sets in the [`Builder`].
    pub(crate) takes: Takes,
    /// The values of the argument, if they are a list of words; synonyms are grouped.
    pub(crate) values: Option<fn() -> Vec<Vec<&'static str>>>,
    /// Whether GNU cp has it.
    pub(crate) origin: Origin,
    /// The text of `--help`: one phrase, lower case, no full stop.
    pub(crate) help: &'static str,
    /// Further sentences for the manual page, as roff; may be empty.
    pub(crate) details: &'static str,
}

/// The argument of an option, with its name in `--help`, and what the option sets.
pub(crate) enum Takes {
    /// No argument.
    Nothing(fn(&mut Builder<'_>)),
    /// A mandatory argument.
    Required(&'static str, fn(&mut Builder<'_>, OsString) -> Result<(), UsageError>),
    /// An optional argument, joined by an equals sign.
    Optional(&'static str, fn(&mut Builder<'_>, Option<OsString>) -> Result<(), UsageError>),
}

/// Which programs have an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// GNU cp and haulage.
    Gnu,
    /// Only haulage has it.
    Own,
}

impl Flag {
    /// The default row: an option of GNU cp without an argument.
    pub(crate) const PLAIN: Flag = Flag {
        shorts: &[],
        longs: &[],
        takes: Takes::Nothing(|_| ()),
        values: None,
        origin: Origin::Gnu,
        help: "",
        details: "",
    };

    /// The default row of an option that only haulage has.
    pub(crate) const OWN: Flag = Flag { origin: Origin::Own, ..Flag::PLAIN };

    /// The first long name of the option, or its letter if it has none.
    pub(crate) fn name(&self) -> String {
        let long = self.longs.first().map(|name| (*name).to_owned());
        long.unwrap_or_else(|| self.shorts.iter().collect())
    }

    /// The form of the option in `--help`: `-S, --suffix=SUFFIX`.
    pub(crate) fn label(&self) -> String {
        self.styled_label(str::to_owned, str::to_owned)
    }

    /// [`Flag::label`] with the styles of the option's names and of its argument.
    pub(crate) fn styled_label(
        &self,
        name: fn(&str) -> String,
        argument: fn(&str) -> String,
    ) -> String {
        let shorts = self.shorts.iter().map(|letter| name(&format!("-{letter}")));
        let long = self.longs.first().map(|long| name(&format!("--{long}")));
        let names = shorts.chain(long).collect::<Vec<_>>().join(", ");
        match (&self.takes, self.longs) {
            (Takes::Nothing(_), _) => names,
            (Takes::Required(metavar, _), []) => format!("{names} {}", argument(metavar)),
            (Takes::Required(metavar, _), _) => format!("{names}={}", argument(metavar)),
            (Takes::Optional(metavar, _), _) => format!("{names}[={}]", argument(metavar)),
        }
    }
}
