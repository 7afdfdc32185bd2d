//! Parses the arguments into a [`Command`] by the rules of getopt_long(3).

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::cp::builder::Builder;
use crate::cp::command_line::Command;
use crate::cp::environment::Environment;
use crate::cp::flags::flag::{Flag, Takes};
use crate::cp::flags::{GNU, OWN, flags};
use crate::cp::messages::usage_error::UsageError;

/// Reads the arguments after the command's name.
///
/// # Errors
/// The first error, in the order of GNU cp.
pub(crate) fn parse(
    words: impl IntoIterator<Item = OsString>,
    environment: &Environment,
    warn: &mut dyn FnMut(&'static str),
) -> Result<Command, UsageError> {
    let mut words: VecDeque<OsString> = words.into_iter().collect();
    let mut builder = Builder::new(environment);
    let mut operands = Vec::new();
    while let Some(word) = words.pop_front() {
        match word.as_bytes() {
            b"--" => break,
            [b'-', b'-', option @ ..] => long_option(option, &mut words, &mut builder)?,
            [b'-', cluster @ ..] if !cluster.is_empty() => {
                short_options(cluster, &mut words, &mut builder)?;
            }
            _ => {
                operands.push(word);
                if environment.posixly_correct {
                    break;
                }
            }
        }
        if let Some(warning) = builder.warning.take() {
            warn(warning);
        }
        if let Some(command) = builder.command.take() {
            return Ok(command);
        }
    }
    operands.extend(words);
    builder.build(operands).map(|copy| Command::Copy(Box::new(copy)))
}

fn long_option(
    option: &[u8],
    words: &mut VecDeque<OsString>,
    builder: &mut Builder,
) -> Result<(), UsageError> {
    let (name, value) = match option.iter().position(|&byte| byte == b'=') {
        Some(at) => (&option[..at], Some(OsStr::from_bytes(&option[at + 1..]).to_owned())),
        None => (option, None),
    };
    let (full_name, flag) = resolve(name, option)?;
    let refused = |why| UsageError::Option(format!("option '--{full_name}' {why}").into());
    match (&flag.takes, value) {
        (Takes::Nothing(apply), None) => apply(builder),
        (Takes::Nothing(_), Some(_)) => return Err(refused("doesn't allow an argument")),
        (Takes::Optional(_, apply), value) => apply(builder, value)?,
        (Takes::Required(_, apply), value) => {
            let value = value.or_else(|| words.pop_front());
            apply(builder, value.ok_or_else(|| refused("requires an argument"))?)?;
        }
    }
    Ok(())
}

fn short_options(
    mut cluster: &[u8],
    words: &mut VecDeque<OsString>,
    builder: &mut Builder,
) -> Result<(), UsageError> {
    while let Some((&letter, rest)) = cluster.split_first() {
        let refused = |words: &str| {
            UsageError::Option([words.as_bytes(), b" -- '", &[letter, b'\'']].concat())
        };
        let flag = flags()
            .find(|flag| flag.shorts().any(|short| short == char::from(letter)))
            .ok_or_else(|| refused("invalid option"))?;
        cluster = rest;
        match &flag.takes {
            Takes::Nothing(apply) => apply(builder),
            // An optional argument is possible only with the long option.
            Takes::Optional(_, apply) => apply(builder, None)?,
            Takes::Required(_, apply) if rest.is_empty() => {
                let value = words.pop_front();
                apply(builder, value.ok_or_else(|| refused("option requires an argument"))?)?;
            }
            Takes::Required(_, apply) => {
                apply(builder, OsString::from_vec(rest.to_vec()))?;
                cluster = &[];
            }
        }
        if builder.command.is_some() {
            break;
        }
    }
    Ok(())
}

/// The option that `name` is or abbreviates, with its full name. An abbreviation that is unambiguous
/// among the options of GNU cp means that option, even if another option of haulage starts with it:
/// scripts for GNU cp keep their meaning.
fn resolve(name: &[u8], as_given: &[u8]) -> Result<(&'static str, &'static Flag), UsageError> {
    let exact = long_names(flags()).find(|(long, _)| long.as_bytes() == name);
    if let Some(found) = exact {
        return Ok(found);
    }
    for table in [GNU, OWN] {
        let mut matching =
            long_names(table.iter()).filter(|(long, _)| long.as_bytes().starts_with(name));
        let Some(first) = matching.next() else { continue };
        // Two names of one option are not ambiguous.
        let others: Vec<_> = matching
            .filter(|(_, flag)| !std::ptr::eq(*flag, first.1))
            .map(|(long, _)| long)
            .collect();
        if others.is_empty() {
            return Ok(first);
        }
        let names = std::iter::once(first.0).chain(others).map(|long| format!(" '--{long}'"));
        let names: String = names.collect();
        let words = [b"option '--", as_given, b"' is ambiguous; possibilities:", names.as_bytes()];
        return Err(UsageError::Option(words.concat()));
    }
    Err(UsageError::Option([b"unrecognized option '--", as_given, b"'"].concat()))
}

fn long_names(
    flags: impl Iterator<Item = &'static Flag>,
) -> impl Iterator<Item = (&'static str, &'static Flag)> {
    flags.flat_map(|flag| flag.longs().map(move |long| (long, flag)))
}
