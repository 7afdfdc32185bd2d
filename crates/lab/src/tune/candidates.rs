//! The candidates of the search for one situation: which are dropped, which reach the final, and
//! which is chosen. Decisions without I/O.

use engines::{ENGINES, Variant};

use super::case::Case;
use super::heuristics::{BASELINE_ROUNDS, DOUBTFUL, FINALISTS, KEPT_AFTER, NEARLY};
use crate::definition::deltas::DELTA_LEAST as DELTA;
use crate::search::candidate::{self, Candidate, Role, Status};
use crate::search::winner::ROUNDS_TO_MEET_A_SLOW_MODE;

#[cfg(test)]
mod tests;

/// GNU cp since version 9.0, by the variant that copies where extents cannot be shared.
pub(super) fn gnu_cp() -> Candidate {
    let main = "copy_file_range".parse().expect("the engine is in the table");
    Candidate { name: "gnu_cp".to_owned(), ..Candidate::new(main, Role::OtherCopier) }
}

/// Whether it can be chosen: it moves bytes, and a profile can name it.
fn can_be_chosen(candidate: &Candidate) -> bool {
    let is_own = candidate.role != Role::OtherCopier;
    is_own && !candidate.is_refused() && !candidate.shares_extents
}

/// The candidates of a situation of files of `file_bytes`: the `baselines`, and of `candidates`
/// those that differ from each other for such a file.
pub(super) fn candidates(
    baselines: Vec<Variant>,
    variants: &[Variant],
    file_bytes: u64,
) -> Vec<Candidate> {
    let mut candidates: Vec<Candidate> = Vec::new();
    for variant in baselines {
        if candidates.iter().all(|candidate| candidate.variant != variant) {
            candidates.push(Candidate::new(variant, Role::Baseline));
        }
    }
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

/// The best elimination round of those that can be chosen.
pub(super) fn best_in_elimination(candidates: &[Candidate]) -> Option<(usize, f64)> {
    let of =
        |(index, candidate): (usize, &Candidate)| Some((index, candidate.elimination_median_ns()?));
    let able = candidates.iter().enumerate().filter(|(_, candidate)| can_be_chosen(candidate));
    able.filter_map(of).min_by(|(_, a), (_, b)| a.total_cmp(b))
}

/// Drops the candidates that are slow in the elimination rounds so far. `round` is the number of
/// the round, from 1.
pub(super) fn drop_slow(candidates: &mut [Candidate], round: usize) {
    let rule = KEPT_AFTER[(round - 1).min(KEPT_AFTER.len() - 1)];
    keep_closest(candidates, rule);
}

/// Drops the candidates that are too slow in the elimination rounds for the final.
pub(super) fn admit_to_final(candidates: &mut [Candidate]) {
    keep_closest(candidates, FINALISTS);
}

/// Each candidate counts by its median, which one disturbed run does not raise, and the best by its
/// mean, which slow runs raise: what is slower than a quick variant, and not slower than that with
/// its slow mode, stays. The candidate with the least mean always stays.
fn keep_closest(candidates: &mut [Candidate], (factor, number): (f64, usize)) {
    let able = candidates.iter().enumerate().filter(|(_, candidate)| can_be_chosen(candidate));
    let means = able.filter_map(|(index, it)| Some((index, it.elimination_mean_ns()?)));
    let Some((steadiest, least_mean_ns)) = means.min_by(|(_, a), (_, b)| a.total_cmp(b)) else {
        return;
    };
    let mut order: Vec<usize> = (0..candidates.len())
        .filter(|&index| candidates[index].runs() && candidates[index].role == Role::Contender)
        .filter(|&index| !candidates[index].shares_extents)
        .collect();
    let time = |candidate: &Candidate| candidate.elimination_median_ns().unwrap_or(f64::INFINITY);
    order.sort_by(|&a, &b| time(&candidates[a]).total_cmp(&time(&candidates[b])));
    for (rank, index) in order.into_iter().enumerate() {
        match candidates[index].elimination_median_ns() {
            // Its speed is unknown.
            None => candidates[index].status = Status::Waiting,
            Some(_) if index == steadiest => {}
            Some(ns) if rank >= number || ns > factor * least_mean_ns => {
                candidates[index].status = Status::Slow(String::new());
            }
            Some(_) => {}
        }
    }
}

/// Admits the candidates that there was no time for before, and returns their indices.
pub(super) fn admit_waiting(candidates: &mut [Candidate]) -> Vec<usize> {
    let waiting = |&index: &usize| candidates[index].status == Status::Waiting;
    let waiting: Vec<usize> = (0..candidates.len()).filter(waiting).collect();
    for &index in &waiting {
        candidates[index].status = Status::Running;
    }
    waiting
}

/// Restarts the final, because candidates join that were not in its rounds so far. The rounds so
/// far become elimination rounds, and baselines take part again.
pub(super) fn restart_final(candidates: &mut [Candidate]) {
    for candidate in candidates {
        candidate.elimination_ns.extend(std::mem::take(&mut candidate.finals_ns).into_values());
        if candidate.status == Status::Beaten && candidate.role != Role::Contender {
            candidate.status = Status::Running;
        }
    }
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
    let Some((best, best_ns)) = best_in_elimination(candidates) else { return Vec::new() };
    let bytes = case.file_bytes;
    let mut found: Vec<Candidate> = Vec::new();
    let is_other = |&index: &usize| {
        let (candidate, engine) = (&candidates[index], candidates[best].variant.engine.name);
        let near = candidate.elimination_median_ns().is_some_and(|ns| ns <= NEARLY * best_ns);
        first && near && can_be_chosen(candidate) && candidate.variant.engine.name != engine
    };
    let time = |index: usize| candidates[index].elimination_median_ns().unwrap_or(f64::INFINITY);
    let other = (0..candidates.len()).filter(is_other).min_by(|&a, &b| time(a).total_cmp(&time(b)));
    let leaders = std::iter::once(best).chain(other);
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
fn racing(candidates: &[Candidate]) -> Vec<usize> {
    candidate::field(candidates, can_be_chosen)
}

/// The fastest of the final.
pub(super) fn best(candidates: &[Candidate]) -> Option<usize> {
    candidate::best(candidates, &racing(candidates))
}

/// Drops the candidates that the final shows to be slower, by an estimate of more than `margin`;
/// baselines only after [`BASELINE_ROUNDS`].
pub(super) fn drop_beaten(candidates: &mut [Candidate], margin: f64) {
    let known = |candidate: &Candidate| candidate.finals_ns.len() >= BASELINE_ROUNDS;
    let racing = racing(candidates);
    candidate::drop_beaten(candidates, &racing, false, |candidate, best| {
        let by_much = candidate.ratio(best).is_some_and(|ratio| ratio.estimate > 1.0 + margin);
        by_much && (candidate.role == Role::Contender || known(candidate))
    });
    for candidate in candidates {
        let beside = candidate.role == Role::OtherCopier || candidate.shares_extents;
        if beside && candidate.runs() && known(candidate) {
            candidate.status = Status::Beaten;
        }
    }
}

/// Whether more rounds would not change the choice: each candidate that still runs is shown to be
/// slower than the best by more than δ, or within δ of it, and no candidate waits to be tried.
pub(super) fn is_settled(candidates: &[Candidate]) -> bool {
    let Some(best) = best(candidates) else { return false };
    let enough =
        |candidate: &Candidate| candidate.finals_ns.len() >= ROUNDS_TO_MEET_A_SLOW_MODE as usize;
    let settled = |index: usize| {
        let ratio = candidates[index].ratio(&candidates[best]);
        ratio.is_some_and(|ratio| {
            ratio.interval.low > 1.0 + DELTA || ratio.interval.high <= 1.0 + DELTA
        })
    };
    enough(&candidates[best])
        && candidates.iter().all(|candidate| candidate.status != Status::Waiting)
        && (0..candidates.len())
            .filter(|&index| index != best && candidates[index].runs())
            .all(|index| enough(&candidates[index]) && settled(index))
}

/// The choice: the fastest, unless `preferred` (what a copy does by default) or a simpler variant
/// is as good. A choice has to gain something over the default.
pub(super) fn choose(candidates: &[Candidate], preferred: &Variant) -> Option<usize> {
    let best = best(candidates)?;
    let expected = |index: usize| {
        let ratio = || candidates[index].times().expected(&candidates[best].times());
        if index == best { Some(1.0) } else { ratio() }
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
