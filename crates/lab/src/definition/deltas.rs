//! δ, the largest share by which two variants may differ and still count as equivalent, for warm
//! and for cold runs.

use serde::{Deserialize, Serialize};

use crate::page_cache::state::State;

/// Differences up to this share never matter: the placement of pages alone makes as much for one
/// and the same program.
pub const DELTA_LEAST: f64 = 0.02;

/// That in both states.
pub const LEAST: Deltas = Deltas { warm: DELTA_LEAST, cold: DELTA_LEAST };

/// Differences up to these shares do not matter. Cold and warm are never mixed: what comes from a
/// device varies more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Deltas {
    /// Of runs whose source is in the page cache, or is read from no device.
    pub warm: f64,
    /// Of runs whose source comes from a device.
    pub cold: f64,
}

impl Deltas {
    /// That of runs in `state`.
    #[must_use]
    pub fn of(&self, state: State) -> f64 {
        if state == State::Cold { self.cold } else { self.warm }
    }

    /// The larger of both, in each state.
    #[must_use]
    pub fn larger(self, other: Deltas) -> Deltas {
        Deltas { warm: self.warm.max(other.warm), cold: self.cold.max(other.cold) }
    }

    /// What files have in mind that know of no δ of their own for cold runs.
    pub(crate) fn least() -> f64 {
        DELTA_LEAST
    }
}
