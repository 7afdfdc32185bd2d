//! Tests whether one line or two lines that meet describe times by size.

use super::{
    curve::{Curve, Point},
    fit::Fit,
    jackknife::jackknife,
    line::{CostLine, Misfit},
};
use crate::stats::{Estimated, Interval, artefacts::p_of_draws, estimate::t_quantile};

/// The fewest sizes on each side of a break: two define a line, and the third tests it.
const SIDE_SIZES_MIN: usize = 3;

/// Positions tried for a break between two neighbouring sizes.
const PLACES_A_GAP: usize = 6;

/// The seed of the simulation, so that the same points have the same answer.
const SEED: u64 = 1;

/// Simulated curves without a break, which give the distribution of the gain from one.
const DRAWS: u32 = 199;

/// The simulation ends after this many curves with as large a gain: even of all draws they are a
/// larger share than the level.
const ENOUGH: u32 = 5;

/// Positions tried for a break in each simulated curve, and in the sample when it is compared with
/// these.
const TEST_PLACES_MAX: usize = 12;

/// The level of the test for a break.
const LEVEL: f64 = 0.01;

/// A fit of two lines that meet where they fit best, and whether one line suffices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segments {
    /// The line up to the break, and how well the two fit.
    pub below: CostLine,
    /// Where they meet, in bytes. The interval contains all positions tried at which the fit is not
    /// significantly worse (profile likelihood). A break nearer to an end than the third size is
    /// not detectable and not in the interval.
    pub break_bytes: Estimated,
    /// The cost of a byte beyond the break, in nanoseconds.
    pub above_byte_ns: Estimated,
    /// The p value of the hypothesis of one line: the largest likelihood ratio over all positions
    /// of the break, compared with that of curves simulated from the one line with the residuals of
    /// the two.
    pub p: f64,
}

impl Segments {
    /// Whether there is a break. One of a hundred lines without a break has one by chance.
    pub fn is_broken(&self) -> bool {
        self.p <= LEVEL
    }
}

/// Fits two lines that meet to `points`, as [`cost_line`](super::cost_line) fits one, and tests
/// whether one suffices. The break is estimated from the points; the intervals of the costs are conditional on
/// it. `None` with fewer than six sizes.
///
/// # Panics
/// When bytes or a time are not positive.
pub fn segments(points: &[Point]) -> Option<Segments> {
    let curve = Curve::of(points);
    let places = places(&curve.bytes)?;
    let (fit, scale) = best(&curve, &places)?;
    let break_bytes = fit.break_bytes?;
    let costs = |samples: &[Vec<Point>]| {
        let fit = Fit::of(&Curve::of(&samples[0]), Some(break_bytes), None)?;
        Some([fit.costs[0], fit.costs[1], fit.costs[2]])
    };
    let [call_ns, byte_ns, above_byte_ns] = jackknife(&[points], costs)?;
    let interval = break_interval(&curve, &places, &fit, scale);
    Some(Segments {
        below: CostLine { call_ns, byte_ns, misfit: Misfit::of(&curve, &fit) },
        break_bytes: Estimated::new(break_bytes, Some(interval)),
        above_byte_ns,
        p: p_of_break(&curve, &fit)?,
    })
}

/// The possible positions of a break: at sizes and between them, with enough sizes on both sides.
fn places(bytes: &[f64]) -> Option<Vec<f64>> {
    let inner = bytes.get(SIDE_SIZES_MIN - 1..=bytes.len().checked_sub(SIDE_SIZES_MIN)?)?;
    let between = |pair: &[f64]| -> Vec<f64> {
        let (low, high) = (pair[0], pair[1]);
        let share = |step: usize| step as f64 / PLACES_A_GAP as f64;
        (0..PLACES_A_GAP).map(|step| low * (high / low).powf(share(step))).collect()
    };
    let last = *inner.last()?;
    Some(inner.windows(2).flat_map(between).chain([last]).collect())
}

/// The best fit with a break at one of `places`, and the scale of its residuals. A first choice by
/// the sum of absolute residuals gives the scale; the final choice is by the loss at that scale.
fn best(curve: &Curve, places: &[f64]) -> Option<(Fit, f64)> {
    let distance = |fit: &Fit| fit.residuals.iter().map(|it| it.abs()).sum::<f64>();
    let first = places
        .iter()
        .filter_map(|&place| Fit::of(curve, Some(place), None))
        .min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
    let scale = first.scale();
    let fit = places
        .iter()
        .filter_map(|&place| Fit::of(curve, Some(place), Some(scale)))
        .min_by(|a, b| a.loss(scale).total_cmp(&b.loss(scale)))?;
    Some((fit, scale))
}

fn break_interval(curve: &Curve, places: &[f64], best: &Fit, scale: f64) -> Interval {
    let freedom = (curve.bytes.len() as f64 - 4.0).max(1.0);
    let scale = curve.error().map_or(scale, |(error, _)| error.max(scale));
    let allowed = best.loss(scale) + t_quantile(0.975, freedom).powi(2);
    let held: Vec<bool> = places
        .iter()
        .map(|&place| {
            let fit = Fit::of(curve, Some(place), Some(scale));
            Some(place) == best.break_bytes || fit.is_some_and(|fit| fit.loss(scale) <= allowed)
        })
        .collect();
    // The ends lie between the outermost position in the interval and the next one outside.
    let first = held.iter().position(|&held| held).expect("the best is held");
    let last = held.iter().rposition(|&held| held).expect("the best is held");
    Interval {
        low: places[first.saturating_sub(1)],
        high: places[(last + 1).min(places.len() - 1)],
    }
}

fn p_of_break(curve: &Curve, broken: &Fit) -> Option<f64> {
    let inner = &curve.bytes[SIDE_SIZES_MIN - 1..=curve.bytes.len() - SIDE_SIZES_MIN];
    let step = inner.len().div_ceil(TEST_PLACES_MAX);
    let places: Vec<f64> = inner.iter().copied().step_by(step).collect();
    let seen = gain(curve, &places)?;
    let one = Fit::of(curve, None, None)?;
    let mut rng = fastrand::Rng::with_seed(SEED);
    let is_as_large = || {
        let logs = curve.logs.iter().zip(&one.residuals).map(|(log, residual)| {
            log - residual + broken.residuals[rng.usize(..broken.residuals.len())]
        });
        let with_noise = curve.with_logs(logs.collect());
        gain(&with_noise, &places).is_some_and(|gain| gain >= seen)
    };
    Some(p_of_draws(DRAWS, ENOUGH, is_as_large))
}

/// How much a break reduces the loss, in units of the remaining residuals.
fn gain(curve: &Curve, places: &[f64]) -> Option<f64> {
    let (two, scale) = best(curve, places)?;
    Some(Fit::of(curve, None, Some(scale))?.loss(scale) - two.loss(scale))
}
