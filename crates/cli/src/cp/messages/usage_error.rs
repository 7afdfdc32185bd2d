//! The errors of a command line. The messages are those of GNU cp.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use crate::cp::invocation;
use crate::cp::messages::quote::{self, Charset};

/// Why a command line is invalid. The exit status is 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UsageError {
    /// An unknown long option.
    Unrecognized {
        /// The argument without its dashes, with its value.
        option: OsString,
    },
    /// An unknown short option.
    InvalidShort(u8),
    /// An abbreviation of several long options.
    Ambiguous {
        /// The word, as given.
        option: OsString,
        /// The options that start with it, in the order of GNU cp.
        candidates: Vec<&'static str>,
    },
    /// A long option without the argument it needs.
    LongNeedsArgument(&'static str),
    /// A short option without the argument it needs.
    ShortNeedsArgument(u8),
    /// A long option with an argument that it does not take.
    TakesNoArgument(&'static str),
    /// A value that is not on the list of values.
    BadArgument {
        /// The value.
        given: OsString,
        /// The option, or what it stands for.
        context: &'static str,
        /// Whether it abbreviates several values, not none.
        ambiguous: bool,
        /// The values; synonyms are grouped.
        valid: Vec<Vec<&'static str>>,
    },
    /// A value that an option which only haulage has cannot use.
    BadValue {
        /// The option's long name.
        option: &'static str,
        /// The value.
        given: OsString,
        /// What is wrong with it.
        reason: String,
    },
    /// A file of patterns that cannot be read.
    IgnoreFileUnread {
        /// The name of the file.
        path: OsString,
        /// Why, in words.
        error: String,
    },
    /// Options that contradict each other, or too few operands, in words.
    Misuse(&'static str),
    /// The same, where the message of GNU cp does not refer to --help.
    Refused(&'static str),
    /// One operand.
    MissingDestination(OsString),
    /// More than two operands with `-T`.
    ExtraOperand(OsString),
}

impl UsageError {
    /// The lines for standard error, each with its newline.
    pub(crate) fn lines(&self) -> Vec<u8> {
        self.lines_in(Charset::of_locale(), invocation::name())
    }

    /// The lines for standard error, quoted for `charset`, by a program that was called as
    /// `called`.
    pub(crate) fn lines_in(&self, charset: Charset, called: &[u8]) -> Vec<u8> {
        let program = if self.is_about_option() { called } else { b"cp" };
        let mut lines = [program, b": "].concat();
        lines.extend(self.words(charset));
        lines.push(b'\n');
        if self.points_to_help() {
            lines.extend([b"Try '", called, b" --help' for more information.\n"].concat());
        }
        lines
    }

    /// Errors that getopt_long(3) reports start with the program's name as it was called.
    fn is_about_option(&self) -> bool {
        matches!(
            self,
            UsageError::Unrecognized { .. }
                | UsageError::InvalidShort(_)
                | UsageError::Ambiguous { .. }
                | UsageError::LongNeedsArgument(_)
                | UsageError::ShortNeedsArgument(_)
                | UsageError::TakesNoArgument(_)
        )
    }

    /// Whether the message refers to --help, as in GNU cp.
    fn points_to_help(&self) -> bool {
        !matches!(self, UsageError::Refused(_) | UsageError::IgnoreFileUnread { .. })
    }

    fn words(&self, charset: Charset) -> Vec<u8> {
        let quoted = |name: &OsStr| quote::for_shell(name.as_bytes(), charset);
        match self {
            UsageError::Unrecognized { option } => {
                [b"unrecognized option '--", option.as_bytes(), b"'"].concat()
            }
            UsageError::InvalidShort(byte) => {
                [&b"invalid option -- '"[..], &[*byte, b'\'']].concat()
            }
            UsageError::Ambiguous { option, candidates } => ambiguous_option(option, candidates),
            UsageError::LongNeedsArgument(name) => {
                format!("option '--{name}' requires an argument").into()
            }
            UsageError::ShortNeedsArgument(byte) => {
                [&b"option requires an argument -- '"[..], &[*byte, b'\'']].concat()
            }
            UsageError::TakesNoArgument(name) => {
                format!("option '--{name}' doesn't allow an argument").into()
            }
            UsageError::BadArgument { given, context, ambiguous, valid } => {
                bad_argument(given, context, *ambiguous, valid, charset)
            }
            UsageError::BadValue { option, given, reason } => [
                format!("--{option}: ").into_bytes(),
                quoted(given),
                format!(": {reason}").into_bytes(),
            ]
            .concat(),
            UsageError::IgnoreFileUnread { path, error } => {
                [b"cannot read ".to_vec(), quoted(path), format!(": {error}").into_bytes()].concat()
            }
            UsageError::MissingDestination(source) => {
                [b"missing destination file operand after ".to_vec(), quoted(source)].concat()
            }
            UsageError::ExtraOperand(operand) => {
                [b"extra operand ".to_vec(), quoted(operand)].concat()
            }
            UsageError::Misuse(words) | UsageError::Refused(words) => (*words).into(),
        }
    }
}

/// The line for standard error that `--context=CTX` is ignored without SELinux.
pub(crate) const CONTEXT_IGNORED: &str =
    "cp: warning: ignoring --context; it requires an SELinux-enabled kernel\n";

fn ambiguous_option(option: &OsStr, candidates: &[&str]) -> Vec<u8> {
    let mut words = [b"option '--", option.as_bytes(), b"' is ambiguous; possibilities:"].concat();
    for candidate in candidates {
        words.extend_from_slice(format!(" '--{candidate}'").as_bytes());
    }
    words
}

fn bad_argument(
    given: &OsStr,
    context: &str,
    ambiguous: bool,
    valid: &[Vec<&str>],
    charset: Charset,
) -> Vec<u8> {
    let mut words: Vec<u8> = if ambiguous { "ambiguous" } else { "invalid" }.into();
    words.extend_from_slice(b" argument ");
    words.extend(quote::word(given.as_bytes(), charset));
    words.extend_from_slice(b" for ");
    words.extend(quote::word(context.as_bytes(), charset));
    words.extend_from_slice(b"\nValid arguments are:");
    for synonyms in valid {
        let quoted = synonyms.iter().map(|name| quote::word(name.as_bytes(), charset));
        words.extend_from_slice(b"\n  - ");
        words.extend(quoted.collect::<Vec<_>>().join(&b", "[..]));
    }
    words
}
