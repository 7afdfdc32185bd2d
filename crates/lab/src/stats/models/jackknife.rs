//! Intervals for estimates whose error has no formula.

use std::collections::BTreeSet;

use super::curve::Point;
use crate::stats::estimate::{squares, t_quantile};
use crate::stats::{Estimated, Interval};

/// The values that `of` computes from all points, each with its interval by Tukey's jackknife over
/// sessions: from the changes when one session is left out, with Student's t of one degree of
/// freedom less than there are sessions. A bootstrap of few sessions gives intervals that are too
/// narrow, as it does for ratios ([`crate::stats::Sessions`]). With fewer than three sessions there
/// is none.
pub(super) fn jackknife<const N: usize>(
    samples: &[&[Point]],
    of: impl Fn(&[Vec<Point>]) -> Option<[f64; N]>,
) -> Option<[Estimated; N]> {
    let all: Vec<Vec<Point>> = samples.iter().map(|points| points.to_vec()).collect();
    let values = of(&all)?;
    let sessions: BTreeSet<u32> = all.iter().flatten().map(|point| point.session).collect();
    let left_out: Option<Vec<[f64; N]>> = sessions
        .iter()
        .map(|&session| {
            let kept = all.iter().map(|points| {
                points.iter().copied().filter(|point| point.session != session).collect()
            });
            of(&kept.collect::<Vec<_>>())
        })
        .collect();
    let left_out = left_out.filter(|it| it.len() >= 3);
    Some(std::array::from_fn(|index| {
        let interval = left_out.as_ref().map(|left_out| {
            let changed: Vec<f64> = left_out.iter().map(|values| values[index]).collect();
            interval(values[index], &changed)
        });
        Estimated::new(values[index], interval)
    }))
}

fn interval(value: f64, left_out: &[f64]) -> Interval {
    let count = left_out.len() as f64;
    let error = (squares(left_out) * (count - 1.0) / count).sqrt();
    let half = error * t_quantile(0.975, count - 1.0);
    Interval { low: value - half, high: value + half }
}
