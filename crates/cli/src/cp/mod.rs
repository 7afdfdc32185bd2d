//! `haulage cp`.
#![expect(dead_code, reason = "the command that consumes these lands with the tree walk")]

pub(crate) mod args;
