//! Thousands of ranks on a virtual clock: a discrete-event simulation that drives [`Protocol`].
//!
//! A tree is generated while it is copied, and files in a row are one event, so that a copy of a
//! hundred million entries takes seconds. A rank is one worker. Metadata servers and links are
//! never busy: what the simulation finds are the limits of the protocol alone.
//!
//! [`Protocol`]: crate::Protocol

pub use costs::Costs;
pub use engine::{Outcome, Simulation};
pub use faults::Faults;
pub use shape::Shape;

mod costs;
mod engine;
mod faults;
mod rank;
mod shape;
mod store;
mod tally;
