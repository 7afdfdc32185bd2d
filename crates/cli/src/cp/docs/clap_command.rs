//! The flag table as clap's completion reads it. The parser of `cp` is its own.

use clap::{Arg, ArgAction, Command};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};

use crate::cp::flags::flag::{Flag, Takes};
use crate::cp::flags::flags;

/// `cp` with its options and operands.
pub(crate) fn clap_command() -> Command {
    let operands = Arg::new("operands").value_name("FILE").num_args(1..);
    Command::new("cp").disable_help_flag(true).args(flags().flat_map(args)).arg(operands)
}

/// An argument for each spelling. Of the spellings of one argument clap offers one.
fn args(flag: &'static Flag) -> impl Iterator<Item = Arg> {
    let shorts = flag.shorts().map(|letter| Arg::new(letter.to_string()).short(letter));
    let longs = flag.longs().map(|name| Arg::new(name).long(name));
    shorts.chain(longs).map(|arg| {
        let arg = arg.help(flag.help);
        let (arg, metavar) = match flag.takes {
            // clap would take the word behind an option with an optional argument for it.
            Takes::Optional(metavar, _) => (arg.action(ArgAction::SetTrue), metavar),
            Takes::Required(metavar, _) => (arg, metavar),
            Takes::Nothing(_) => return arg.action(ArgAction::SetTrue),
        };
        match flag.values {
            None => arg.value_name(metavar),
            Some(values) => {
                let words = move || values().concat().into_iter().map(CompletionCandidate::from);
                let arg = arg.add(ArgValueCandidates::new(move || words().collect()));
                if metavar == "LIST" { arg.value_delimiter(',') } else { arg }
            }
        }
    })
}
