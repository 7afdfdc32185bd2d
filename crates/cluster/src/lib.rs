//! How the ranks of a parallel job share the copy of one tree.
//!
//! [`Protocol`] is one rank's part of the protocol as a state machine: messages and local events go
//! in, messages and commands come out. It makes no call, reads no clock and moves no byte. What
//! drives it decides what a name is and how a message travels. docs/design/ranks.md describes the
//! protocol. tests/simulation drives it with thousands of ranks on a virtual clock; docs/scale.md has
//! what that finds.

pub use crate::ids::{RankId, ShareId};
pub use crate::message::{Message, Payload, Request};
pub use crate::protocol::{Command, Protocol};
pub use crate::source_links::{InodeId, Ticket};
pub use crate::surplus::Surplus;

mod ids;
mod message;
mod neighbours;
mod protocol;
mod source_links;
mod surplus;
