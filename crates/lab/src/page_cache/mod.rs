//! The page cache of the source: the states that a run can ask for, and how they are set and
//! proved.

pub mod prover;
pub mod state;
