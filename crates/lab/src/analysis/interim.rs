//! When the comparisons of an experiment are analysed, and at what level, so that the chance of any
//! false answer stays at 5 % for each part.

use crate::definition::{Definition, Part};
use crate::stats::{Answer, InterimAnalyses, Sessions};

/// The chance of any false answer to one part's question.
pub const ERROR: f64 = 0.05;

/// Sessions before the first interim analysis: fewer cannot tell noise from effect.
pub const SESSIONS_MIN: u32 = 5;

/// Sessions after which a cell ends without an answer.
pub const SESSIONS_MAX: u32 = 320;

/// The number of sessions that a given number of rounds is divided into.
pub(crate) const SESSIONS_OF_GIVEN_ROUNDS: u32 = 10;

/// The interim analyses at the cells of each part, for an error of 5 % in all comparisons of the
/// part together.
pub fn of_parts(definition: &Definition, rounds: Option<u32>) -> Vec<InterimAnalyses> {
    let of = |part: &Part| of_family(rounds, part.comparisons());
    definition.parts.iter().map(of).collect()
}

/// The interim analyses at a cell whose part makes `family` comparisons in all its cells.
pub fn of_family(rounds: Option<u32>, family: usize) -> InterimAnalyses {
    let error = ERROR / family.max(1) as f64;
    match rounds {
        Some(rounds) => {
            let sessions = rounds.clamp(2, SESSIONS_OF_GIVEN_ROUNDS);
            InterimAnalyses::new(sessions, sessions, error)
        }
        None => InterimAnalyses::new(SESSIONS_MAX, SESSIONS_MIN, error),
    }
}

/// The level at which a comparison is analysed whose variants both ran until `last_session`. If it
/// was not answered and the time is over, this is the last analysis. It spends all of the error that
/// is left, even if it falls on a regular interim analysis. `answered` says whether it is known that
/// the comparison ended because it was answered; differences up to the share `delta` do not matter.
pub(crate) fn level(
    interim: &InterimAnalyses,
    compared: &Sessions,
    (last_session, answered): (u32, bool),
    delta: f64,
) -> f64 {
    let done = interim.sessions().filter(|&count| count < last_session).count();
    // A run directory does not say why a variant left.
    let answered =
        |alpha: &f64| answered || Answer::of(compared, delta, *alpha) != Answer::Unresolved;
    let regular = interim.alpha_at(last_session).filter(answered);
    regular.unwrap_or_else(|| interim.alpha_last(done))
}

impl Part {
    /// Comparisons that the part makes in all its cells together.
    pub fn comparisons(&self) -> usize {
        (self.cells().len() * self.compared().count()).max(1)
    }
}
