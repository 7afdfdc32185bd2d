//! `haulage cp`.
#![cfg_attr(not(test), expect(dead_code, reason = "the glue that consumes these comes next"))]

pub(crate) mod args;
pub(crate) mod choices;
pub(crate) mod draft;
pub(crate) mod environment;
pub(crate) mod flag;
pub(crate) mod flags;
pub(crate) mod help;
pub(crate) mod parse;
pub(crate) mod quote;
pub(crate) mod usage_error;
