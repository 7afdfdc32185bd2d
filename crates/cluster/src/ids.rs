//! Numbers of ranks and shares.

/// A rank, from 0. Rank 0 has the operands.
pub type RankId = u32;

/// A share of work, as the rank that gave it numbers it.
pub type ShareId = u64;
