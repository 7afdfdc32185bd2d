//! The states of the page cache that a run can ask for, and what was proved.

use serde::{Deserialize, Serialize};

/// A state of the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// All of the source in the page cache.
    #[default]
    Warm,
    /// None of it.
    Cold,
    /// What earlier runs left there, neither set nor proved: what most measurements have.
    AsItComes,
}

impl State {
    /// The name of the state.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            State::Warm => "warm",
            State::Cold => "cold",
            State::AsItComes => "as it comes",
        }
    }
}

/// The state found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// Proved warm.
    Warm,
    /// Proved cold.
    Cold,
    /// The state was set, but nothing here can prove it.
    #[default]
    Unverified,
    /// The state was set, and proved not to be so.
    NotReached,
}
