//! The errors of a command line. The messages are those of GNU cp.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use crate::cp::invocation;
use crate::cp::messages::quote::{self, Charset};

/// Why a command line is invalid. The exit status is 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UsageError {
    /// An option that getopt_long(3) refuses, in words.
    Option(Vec<u8>),
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
    /// Any other mistake, in words.
    Misuse(Vec<u8>),
    /// A mistake of which GNU cp tells without referring to --help, in words.
    Refused(&'static str),
}

impl UsageError {
    /// A value that an option which only haulage has cannot use, and what is wrong with it.
    pub(crate) fn bad_value(option: &str, given: &OsStr, reason: &str) -> UsageError {
        let [before, after] = [format!("--{option}: "), format!(": {reason}")];
        UsageError::Misuse([before.as_bytes(), &quote::name(given), after.as_bytes()].concat())
    }

    /// The lines for standard error, each with its newline.
    pub(crate) fn lines(&self) -> Vec<u8> {
        self.lines_in(Charset::of_locale(), invocation::name())
    }

    /// The lines for standard error, quoted for `charset`, by a program that was called as
    /// `called`.
    pub(crate) fn lines_in(&self, charset: Charset, called: &[u8]) -> Vec<u8> {
        // Errors that getopt_long(3) reports start with the program's name as it was called.
        let program = if matches!(self, UsageError::Option(_)) { called } else { b"cp" };
        let words = match self {
            UsageError::Option(words) | UsageError::Misuse(words) => words.clone(),
            UsageError::BadArgument { given, context, ambiguous, valid } => {
                bad_argument(given, context, *ambiguous, valid, charset)
            }
            UsageError::Refused(words) => (*words).into(),
        };
        let mut lines = [program, b": ", &words, b"\n"].concat();
        if !matches!(self, UsageError::Refused(_)) {
            lines.extend([b"Try '", called, b" --help' for more information.\n"].concat());
        }
        lines
    }
}

/// The line for standard error that `--context=CTX` is ignored without SELinux.
pub(crate) const CONTEXT_IGNORED: &str =
    "cp: warning: ignoring --context; it requires an SELinux-enabled kernel\n";

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
