//! δ, the largest share by which two variants may differ and still count as equivalent, for warm
//! and for cold runs.

use serde::{Deserialize, Serialize};

use crate::page_cache::state::State;

/// The least δ: the placement of pages alone makes runs of one program differ as much.
pub const DELTA_LEAST: f64 = 0.02;

/// The least δ in both states.
pub const LEAST: Deltas = Deltas { warm: DELTA_LEAST, cold: DELTA_LEAST };

/// δ for each state: variants that differ by no more are equivalent. Cold runs have their own δ,
/// since devices vary more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Deltas {
    /// Of runs whose source is in the page cache, or is read from no device.
    pub warm: f64,
    /// Of runs whose source comes from a device.
    pub cold: f64,
}

impl Deltas {
    /// That of runs in `state`.
    pub fn of(&self, state: State) -> f64 {
        if state == State::Cold { self.cold } else { self.warm }
    }

    /// The larger of both, in each state.
    #[must_use]
    pub fn larger(self, other: Deltas) -> Deltas {
        Deltas { warm: self.warm.max(other.warm), cold: self.cold.max(other.cold) }
    }

    /// Whether both are shares. An edited file may hold negative numbers.
    #[must_use]
    pub fn are_valid(self) -> bool {
        self.warm >= 0.0 && self.cold >= 0.0
    }

    /// The δ of files that have none of their own for cold runs.
    pub(crate) fn least() -> f64 {
        DELTA_LEAST
    }
}
