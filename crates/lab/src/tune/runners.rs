//! What is started for a contest, and what it is known to cost.

use std::time::Duration;

use engines::Variant;

use super::candidates::{Arm, Role};
use crate::trial::Runner;

/// What another copier does with each file.
pub(super) struct Foreign {
    pub(super) name: &'static str,
    /// The variant that it leads to where nothing can be shared.
    pub(super) main: Variant,
    pub(super) ways: Vec<Variant>,
}

/// What is kept while a contest is under way: started runners take memory.
pub(super) struct AtWork<'f> {
    /// One a lane.
    pub(super) runners: Vec<Option<Vec<Runner>>>,
    /// What the last run of each took in all.
    pub(super) costs: Vec<Option<Duration>>,
    /// Runs whose state was not reached.
    pub(super) misses: u32,
    foreign: Option<&'f Foreign>,
}

impl<'f> AtWork<'f> {
    /// Nothing is started yet.
    pub(super) fn new(costs: Vec<Option<Duration>>, foreign: Option<&'f Foreign>) -> AtWork<'f> {
        let runners = costs.iter().map(|_| None).collect();
        AtWork { runners, costs, misses: 0, foreign }
    }

    /// One more arm, which is likely to cost `cost`.
    pub(super) fn add(&mut self, cost: Option<Duration>) {
        self.runners.push(None);
        self.costs.push(cost);
    }

    /// What runs `arm`, one a lane.
    ///
    /// # Errors
    /// Why it cannot be started, in words.
    pub(super) fn runners(
        &mut self,
        arm: &Arm,
        index: usize,
        lanes: usize,
    ) -> Result<&mut [Runner], String> {
        let slot = &mut self.runners[index];
        if slot.is_none() {
            let start = |_| match (arm.role, self.foreign) {
                (Role::Foreign, Some(foreign)) => Ok(Runner::of_ways(&foreign.main, &foreign.ways)),
                _ => Runner::start(&arm.variant),
            };
            *slot = Some((0..lanes).map(start).collect::<Result<_, _>>()?);
        }
        Ok(slot.as_mut().expect("it was just started"))
    }

    /// What a run is likely to take: as long as its last one, or as the longest of the others.
    pub(super) fn cost_of(&self, index: usize) -> Option<Duration> {
        self.costs[index].or_else(|| self.costs.iter().flatten().max().copied())
    }
}
