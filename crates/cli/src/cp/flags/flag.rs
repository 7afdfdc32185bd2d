//! One row of the table of options.

use std::ffi::OsString;

use crate::cp::builder::Builder;
use crate::cp::messages::usage_error::UsageError;

/// An option. The parser, `--help`, the manual page and the completions read nothing else.
pub(crate) struct Flag {
    /// The names of the option, such as `-R -r --recursive`. Of the long ones `--help` has the first.
    names: &'static str,
    /// Whether it takes an argument, and what it sets in the [`Builder`].
    pub(crate) takes: Takes,
    /// The values of the argument, if they are a list of words; synonyms are grouped.
    pub(crate) values: Option<Values>,
    /// The text of `--help`: one phrase, lower case, no full stop.
    pub(crate) help: &'static str,
    /// Further sentences for the manual page, as roff; may be empty.
    pub(crate) details: &'static str,
}

type Values = fn() -> Vec<Vec<&'static str>>;

/// What an option without an argument sets.
type Switch = fn(&mut Builder);

/// What an option sets to its argument.
type Set<T> = fn(&mut Builder, T) -> Result<(), UsageError>;

/// The argument of an option, with its name in `--help`, and what the option sets.
pub(crate) enum Takes {
    /// No argument.
    Nothing(Switch),
    /// A mandatory argument.
    Required(&'static str, Set<OsString>),
    /// An optional argument, joined by an equals sign.
    Optional(&'static str, Set<Option<OsString>>),
}

impl Flag {
    /// An option without an argument.
    pub(super) const fn switch(names: &'static str, set: Switch) -> Flag {
        Flag { names, takes: Takes::Nothing(set), values: None, help: "", details: "" }
    }

    /// An option with an argument.
    pub(super) const fn required(
        names: &'static str,
        argument: &'static str,
        set: Set<OsString>,
    ) -> Flag {
        Flag { takes: Takes::Required(argument, set), ..Flag::switch(names, |_| ()) }
    }

    /// An option that may have an argument.
    pub(super) const fn optional(
        names: &'static str,
        argument: &'static str,
        set: Set<Option<OsString>>,
    ) -> Flag {
        Flag { takes: Takes::Optional(argument, set), ..Flag::switch(names, |_| ()) }
    }

    pub(super) const fn help(self, help: &'static str) -> Flag {
        Flag { help, ..self }
    }

    pub(super) const fn values(self, values: Values) -> Flag {
        Flag { values: Some(values), ..self }
    }

    pub(super) const fn details(self, details: &'static str) -> Flag {
        Flag { details, ..self }
    }

    /// The long names of the option, without dashes.
    pub(crate) fn longs(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.names.split(' ').filter_map(|name| name.strip_prefix("--"))
    }

    /// The short names of the option.
    pub(crate) fn shorts(&self) -> impl Iterator<Item = char> + use<> {
        let shorts = self.names.split(' ').filter(|name| !name.starts_with("--"));
        shorts.filter_map(|name| name.chars().nth(1))
    }

    /// The first long name of the option, or its letter if it has none.
    pub(crate) fn name(&self) -> String {
        self.longs().next().map_or_else(|| self.shorts().collect(), str::to_owned)
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
        let shorts = self.shorts().map(|letter| name(&format!("-{letter}")));
        let long = self.longs().next().map(|long| name(&format!("--{long}")));
        let is_short = long.is_none();
        let names = shorts.chain(long).collect::<Vec<_>>().join(", ");
        match self.takes {
            Takes::Nothing(_) => names,
            Takes::Required(metavar, _) if is_short => format!("{names} {}", argument(metavar)),
            Takes::Required(metavar, _) => format!("{names}={}", argument(metavar)),
            Takes::Optional(metavar, _) => format!("{names}[={}]", argument(metavar)),
        }
    }
}
