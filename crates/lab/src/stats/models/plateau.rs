//! The buffer size from which on a larger buffer gains nothing.

use crate::stats::{Ratio, Runs, Sessions};

/// The level of each comparison.
const ALPHA: f64 = 0.05;

/// A buffer and the runs with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Bytes.
    pub buffer_bytes: u64,
    /// The times with the buffer, by session and round.
    pub runs: Runs,
}

/// Where the times of a sweep over buffers become flat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plateau {
    /// The buffer whose runs are the fastest, within rounds.
    pub best_bytes: u64,
    /// From here up to the best, every buffer is shown to be within ε of it, by the upper end of
    /// the ratio's interval. The best itself when no smaller one is shown to be.
    pub shown_from_bytes: u64,
    /// The smallest buffer at which the plateau may start: from here up to the best, no buffer is
    /// shown to be slower by more than ε. The true start lies between this and `shown_from_bytes`.
    pub possible_from_bytes: u64,
}

/// Where the times of `settings` are within the share `epsilon` of the best. Buffers are compared
/// with the best in descending order until one fails. This is a fixed sequence of tests, which
/// needs no correction for their number. `None` unless one of the buffers has two sessions.
///
/// # Panics
/// When a time is not positive.
pub fn plateau(settings: &[Setting], epsilon: f64) -> Option<Plateau> {
    let mut settings: Vec<&Setting> = settings.iter().collect();
    settings.sort_by_key(|setting| setting.buffer_bytes);
    let reference = settings.iter().max_by_key(|setting| setting.runs.len())?;
    let ratio_to = |setting: &Setting, other: &Setting| {
        Sessions::of_runs(&setting.runs, &other.runs).ratio(ALPHA)
    };
    let best = settings
        .iter()
        .enumerate()
        .filter_map(|(index, setting)| Some((index, ratio_to(setting, reference)?.estimate)))
        .min_by(|(_, a), (_, b)| a.total_cmp(b))
        .map(|(index, _)| index)?;
    let ratios = settings[..best].iter().rev().map(|setting| ratio_to(setting, settings[best]));
    let ratios: Vec<_> = ratios.collect();
    let limit = 1.0 + epsilon;
    let is_shown = |it: &&Option<Ratio>| it.is_some_and(|ratio| ratio.interval.high <= limit);
    let is_possible = |it: &&Option<Ratio>| it.is_none_or(|ratio| ratio.interval.low <= limit);
    let shown = ratios.iter().take_while(is_shown).count();
    let possible = ratios.iter().take_while(is_possible).count();
    Some(Plateau {
        best_bytes: settings[best].buffer_bytes,
        shown_from_bytes: settings[best - shown].buffer_bytes,
        possible_from_bytes: settings[best - possible].buffer_bytes,
    })
}
