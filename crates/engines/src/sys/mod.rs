//! Raw calls and raw memory, each behind a safe type. No other module of the workspace, the
//! bindings for other languages aside, may be unsafe.
#![allow(unsafe_code)]

pub(crate) mod buffer;
mod cachestat;
mod clone_range;
mod usage;

pub use cachestat::{Cachestat, cachestat};
pub(crate) use clone_range::clone_range;
pub use usage::{Usage, Whose, usage};
