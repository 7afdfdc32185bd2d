//! The started runners of a search, and what a run of each costs.

use std::time::Duration;

use engines::Variant;

use super::candidates::{Candidate, Role};
use crate::trial::Runner;

/// What another copier does with each file.
pub(super) struct OtherCopier {
    pub(super) name: &'static str,
    /// The variant that copies where extents cannot be shared.
    pub(super) main: Variant,
    /// The variants that it tries with each file, in order.
    pub(super) variants: Vec<Variant>,
}

/// The runners that a search has started. They take memory, so they are dropped when it pauses.
pub(super) struct StartedRunners<'f> {
    /// One a copy slot.
    pub(super) runners: Vec<Option<Vec<Runner>>>,
    /// What the last run of each took in all.
    pub(super) costs: Vec<Option<Duration>>,
    /// Runs whose state was not reached.
    pub(super) misses: u32,
    other_copier: Option<&'f OtherCopier>,
}

impl<'f> StartedRunners<'f> {
    /// Nothing is started yet.
    pub(super) fn new(other_copier: Option<&'f OtherCopier>) -> StartedRunners<'f> {
        StartedRunners { runners: Vec::new(), costs: Vec::new(), misses: 0, other_copier }
    }

    /// Space for as many candidates as `costs`, which are what their runs are known to take.
    pub(super) fn expect_costs(&mut self, costs: Vec<Option<Duration>>) {
        self.runners = costs.iter().map(|_| None).collect();
        self.costs = costs;
    }

    /// One more candidate, which is likely to cost `cost`.
    pub(super) fn add(&mut self, cost: Option<Duration>) {
        self.runners.push(None);
        self.costs.push(cost);
    }

    /// What runs `candidate`, one a copy slot.
    ///
    /// # Errors
    /// Why it cannot be started, in words.
    pub(super) fn runners(
        &mut self,
        candidate: &Candidate,
        index: usize,
        slots: usize,
    ) -> Result<&mut [Runner], String> {
        let slot = &mut self.runners[index];
        if slot.is_none() {
            let start = |_| match (candidate.role, self.other_copier) {
                (Role::OtherCopier, Some(other_copier)) => {
                    Ok(Runner::of_variants(&other_copier.main, &other_copier.variants))
                }
                _ => Runner::start(&candidate.variant),
            };
            *slot = Some((0..slots).map(start).collect::<Result<_, _>>()?);
        }
        Ok(slot.as_mut().expect("it was just started"))
    }

    /// What a run is likely to take: as long as its last one, or as the longest of the others.
    pub(super) fn cost_of(&self, index: usize) -> Option<Duration> {
        self.costs[index].or_else(|| self.costs.iter().flatten().max().copied())
    }
}
