//! The flag table as completions read it.

use engines::ENGINES;

use crate::cp::flags::flag::{Flag, Takes};
use crate::cp::flags::flags;
use crate::docs::table::{Argument, OptionRow, Table};

/// The table of `cp`.
pub(crate) fn table() -> Table {
    Table { name: "cp", options: flags().map(row).collect(), operands: Argument::File }
}

fn row(flag: &Flag) -> OptionRow {
    let (metavar, optional) = match flag.takes {
        Takes::Nothing(_) => (None, true),
        Takes::Required(metavar, _) => (Some(metavar), false),
        Takes::Optional(metavar, _) => (Some(metavar), true),
    };
    OptionRow {
        shorts: flag.shorts.to_vec(),
        longs: flag.longs.iter().map(|&name| name.to_owned()).collect(),
        metavars: metavar.into_iter().map(str::to_owned).collect(),
        argument: metavar.map_or(Argument::None, |metavar| argument(flag, metavar)),
        optional,
        help: flag.help.to_owned(),
    }
}

fn argument(flag: &Flag, metavar: &str) -> Argument {
    let words = flag.values.map(|values| values().concat());
    let words = words.map(|words| words.into_iter().map(str::to_owned).collect());
    match (metavar, words) {
        ("LIST", Some(words)) => Argument::List(words),
        (_, Some(words)) => Argument::Words(words),
        ("FILE", None) => Argument::File,
        ("DIRECTORY", None) => Argument::Directory,
        // A variant begins with the name of its engine.
        ("VARIANT", None) => {
            Argument::Words(ENGINES.iter().map(|engine| engine.name.to_owned()).collect())
        }
        (_, None) => Argument::Anything,
    }
}
