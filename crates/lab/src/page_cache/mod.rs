//! The page cache of the source: the states that a run asks for, how they are set and how proved.

pub mod prover;
pub mod state;
