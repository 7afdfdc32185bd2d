//! Counts and stages in words.

use lab::sample::Stage;

/// `1 round`, `2 rounds`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// A round of a race or search: `elimination round 2`, `final round 3`.
pub(crate) fn stage_in_words(stage: Stage, round: u32) -> String {
    match stage {
        Stage::Elimination => format!("elimination round {round}"),
        Stage::WarmUp => "warm-up".to_owned(),
        Stage::Final => format!("final round {round}"),
    }
}
