//! Thousands of ranks on a virtual clock: a discrete-event simulation that drives [`cluster::Protocol`].
//!
//! A tree is generated while it is copied, and files in a row are one event, so that a copy of a
//! hundred million entries takes seconds. A rank is one worker. Metadata servers and links are
//! never busy: what the simulation finds are the limits of the protocol alone.

pub(crate) use costs::Costs;
pub(crate) use engine::Simulation;
pub(crate) use faults::Faults;
pub(crate) use outcome::Outcome;
pub(crate) use shape::Shape;

mod costs;
mod engine;
mod faults;
mod outcome;
mod rank;
mod shape;
mod store;
