//! `haulage cp`.
#![expect(dead_code, reason = "the command that consumes these lands with the tree walk")]

pub(crate) mod args;
pub(crate) mod choices;
pub(crate) mod draft;
pub(crate) mod environment;
pub(crate) mod flag;
pub(crate) mod flags;
pub(crate) mod help;
pub(crate) mod man;
pub(crate) mod parse;
pub(crate) mod quote;
#[cfg(test)]
mod tests;
pub(crate) mod usage_error;
