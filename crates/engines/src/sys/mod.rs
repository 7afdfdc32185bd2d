//! Raw calls and raw memory, each behind a safe type. No other module of the workspace, the
//! bindings for other languages aside, may be unsafe.
#![allow(unsafe_code)]

pub(crate) mod buffer;
mod clone_range;

pub(crate) use clone_range::clone_range;
