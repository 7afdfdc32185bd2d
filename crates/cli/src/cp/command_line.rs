//! What one invocation of `cp` asks for, as typed data.

use std::ffi::OsString;

use haulage::options::{Options, Request, Rule};

use crate::cp::values::Generated;

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// `--help`.
    Help,
    /// `--version`.
    Version,
    /// `--generate`: print a manual page or a completion script.
    Generate(Generated),
    /// Copy.
    Copy(Box<CopyCommand>),
}

/// One copy, with all precedence between options resolved: the order of the options on the command
/// line no longer matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopyCommand {
    /// The operands: at least one source.
    pub(crate) request: Request,
    /// How to copy. `filter` and `record` are still empty: they depend on files that are not open
    /// yet.
    pub(crate) options: Options,
    /// `--exclude`, `--include`: in command-line order.
    pub(crate) rules: Vec<Rule>,
    /// `--ignore-file`: file names, in command-line order.
    pub(crate) ignore_files: Vec<OsString>,
    /// What is reported besides GNU cp's messages.
    pub(crate) reports: Reports,
}

/// The reports that only haulage has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reports {
    /// `--receipt`: the file that gets one line of JSON for each entry.
    pub(crate) receipt: Option<OsString>,
    /// `--stats`: print totals at the end.
    pub(crate) stats: bool,
    /// `--progress`: show the progress on a terminal.
    pub(crate) progress: bool,
}
