//! The candidates of the search for one situation: which there are, and which is chosen. Decisions
//! without I/O.

use engines::{ENGINES, Variant};

use super::case::Case;
use super::heuristics::{DOUBTFUL, NEARLY};
use crate::definition::deltas::DELTA_LEAST as DELTA;
use crate::in_order::distinct;
use crate::search::candidate::{self, Candidate, Role};
use crate::search::winner;

#[cfg(test)]
mod tests;

/// The candidates of a situation of files of `file_bytes`: the `baselines`, and of `candidates`
/// those that differ from each other for such a file.
pub(super) fn candidates(
    baselines: Vec<Variant>,
    variants: &[Variant],
    file_bytes: u64,
) -> Vec<Candidate> {
    let baselines = distinct(baselines).into_iter();
    let mut candidates: Vec<Candidate> =
        baselines.map(|variant| Candidate::new(variant, Role::Baseline)).collect();
    for variant in variants {
        if is_new(&candidates, variant, file_bytes) {
            candidates.push(Candidate::new(variant.clone(), Role::Contender));
        }
    }
    candidates
}

/// Whether `variant` does something to a file of `file_bytes` that none of `candidates` does.
fn is_new(candidates: &[Candidate], variant: &Variant, file_bytes: u64) -> bool {
    let rounded = file_bytes.next_power_of_two();
    let own = variant.within(rounded);
    candidates.iter().all(|candidate| {
        candidate.role == Role::OtherCopier || candidate.variant.within(rounded) != own
    })
}

/// The fastest of the longest elimination rounds of those that can be chosen and are `of` a field, and its
/// time.
fn best_in_elimination(
    candidates: &[Candidate],
    of: impl Fn(&Candidate) -> bool,
) -> Option<(usize, f64)> {
    let able = || (0..candidates.len()).filter(|&index| candidates[index].can_be_chosen());
    let longest = able().map(|index| candidates[index].elimination_bytes).max()?;
    able()
        .filter(|&index| of(&candidates[index]))
        .filter_map(|index| Some((index, candidates[index].elimination_ns_at(longest)?)))
        .min_by(|(_, a), (_, b)| a.total_cmp(b))
}

/// The index of the fastest in the longest elimination rounds.
pub(super) fn leader(candidates: &[Candidate]) -> Option<usize> {
    best_in_elimination(candidates, |_| true).map(|(index, _)| index)
}

/// Untried neighbours of the leaders: half and twice their buffers, depths and workers. The leaders
/// are the best candidate and, if `first`, the best of another engine, which may win with more
/// workers or another buffer.
pub(super) fn neighbours(
    candidates: &[Candidate],
    case: &Case,
    workers_max: usize,
    first: bool,
) -> Vec<Candidate> {
    let Some((best, best_ns)) = best_in_elimination(candidates, |_| true) else {
        return Vec::new();
    };
    let bytes = case.file_bytes;
    let mut found: Vec<Candidate> = Vec::new();
    let engine = candidates[best].variant.engine.name;
    let other = best_in_elimination(candidates, |it| it.variant.engine.name != engine);
    let near = other.filter(|(_, ns)| first && *ns <= NEARLY * best_ns);
    let leaders = std::iter::once(best).chain(near.map(|(index, _)| index));
    for variant in leaders.flat_map(|index| candidates[index].variant.neighbours(workers_max)) {
        let is_new = is_new(candidates, &variant, bytes) && is_new(&found, &variant, bytes);
        if is_new && case.may_try(&variant) {
            // As its likely cost, that of the best.
            let cost = candidates[best].cost;
            found.push(Candidate { cost, ..Candidate::new(variant, Role::Contender) });
        }
    }
    found
}

/// The candidates that race in the final and can be chosen.
pub(super) fn racing(candidates: &[Candidate]) -> Vec<usize> {
    candidate::field(candidates, Candidate::can_be_chosen)
}

/// The fastest of the final.
pub(super) fn best(candidates: &[Candidate]) -> Option<usize> {
    candidate::best(candidates, &racing(candidates))
}

/// The choice: the fastest, unless `preferred` (what a copy does by default) or a simpler variant
/// is as good. A choice has to gain something over the default.
pub(super) fn choose(candidates: &[Candidate], preferred: &Variant) -> Option<usize> {
    let best = best(candidates)?;
    let expected = |index: usize| match index == best {
        true => Some(1.0),
        false => winner::expected(&candidates[index].finals_ns, &candidates[best].finals_ns),
    };
    let as_good = |index: usize| {
        let ratio = candidates[index].ratio(&candidates[best]);
        let may_be_noise = ratio.is_some_and(|ratio| ratio.interval.low <= 1.0);
        let allowed = if may_be_noise { DOUBTFUL } else { DELTA };
        expected(index).is_some_and(|ratio| ratio <= 1.0 + allowed)
    };
    let racing = racing(candidates);
    let is_preferred = |&index: &usize| candidates[index].variant == *preferred;
    let preferred = racing.iter().copied().find(is_preferred).filter(|&index| as_good(index));
    // Of the others, one has to be as fast as the best by its estimate.
    let close = |index: usize| expected(index).is_some_and(|ratio| ratio <= 1.0 + DELTA);
    let simplest = || {
        let close = racing.iter().copied().filter(|&index| close(index));
        close.min_by_key(|&index| complexity(&candidates[index].variant)).unwrap_or(best)
    };
    Some(preferred.unwrap_or_else(simplest))
}

/// The complexity of a variant: its workers, then the position of its engine in the table, then its
/// parameters.
fn complexity(variant: &Variant) -> (usize, usize, usize) {
    let place = ENGINES.iter().position(|engine| engine.name == variant.engine.name);
    (variant.workers, place.unwrap_or(ENGINES.len()), variant.to_string().len())
}
