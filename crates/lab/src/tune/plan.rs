//! Plans a tuning: which cases fit the space and the time.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use engines::profile::{Residency, SizeClass};

use super::case::Case;
use super::config::Config;
use super::heuristics::{MEMORY_SHARE, SECONDS_FOR_LONG_FILES, SHARE_MIN, SPARE_BYTES};
use crate::error::Error;
use crate::scratch::space::{Space, require_space};
use crate::{environment, words};

/// What is to be measured, and what is not.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Every case, in the order in which they are measured.
    pub cases: Vec<Planned>,
    /// Space that the sources take, in bytes.
    pub src_bytes: u64,
    /// Space that the copies take at most, in bytes.
    pub dst_bytes: u64,
}

/// A case in a plan.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The case.
    pub case: Case,
    /// Seconds that are set aside for it.
    pub seconds: f64,
    /// Why it is not measured.
    pub why_not: Option<String>,
}

impl Plan {
    /// The plan for sources in `src_dir` and copies in `dst_dir`.
    ///
    /// # Errors
    /// When the free space cannot be asked for, or does not suffice for the shortest files.
    pub fn of(config: &Config<'_>, src_dir: &Path, dst_dir: &Path) -> Result<Plan, Error> {
        let space = Space::between(src_dir, dst_dir)?;
        let plan = Plan::with(config.time, config.at_once, &space, environment::memory_bytes());
        if plan.measured().next().is_none() {
            require_space(src_dir, dst_dir, room(&shortest(), config.at_once))?;
        }
        Ok(plan)
    }

    /// The situations that are measured.
    pub fn measured(&self) -> impl Iterator<Item = &Planned> {
        measured(&self.cases)
    }

    fn with(time: Duration, at_once: usize, space: &Space, memory_bytes: u64) -> Plan {
        let short = time.as_secs_f64() < SECONDS_FOR_LONG_FILES;
        let sized = |case: Case| if short { case.shortened() } else { case };
        let planned = |case| Planned { case: sized(case), seconds: 0.0, why_not: None };
        let mut cases: Vec<Planned> = Case::all().into_iter().map(planned).collect();
        for planned in &mut cases {
            let case = planned.case;
            let together = 2 * case.slot_bytes() * case.slots(at_once) as u64;
            let resident = case.situation.residency == Residency::Resident;
            if resident && together as f64 > MEMORY_SHARE * memory_bytes as f64 {
                planned.why_not = Some(format!(
                    "source and copy are {} and would not stay in a memory of {}",
                    words::bytes(together),
                    words::bytes(memory_bytes),
                ));
            }
        }
        leave_out_by_room(&mut cases, space, at_once);
        leave_out_by_time(&mut cases, time.as_secs_f64());
        let (src_bytes, dst_bytes) = room(&cases, at_once);
        Plan { cases, src_bytes, dst_bytes }
    }
}

fn measured(cases: &[Planned]) -> impl Iterator<Item = &Planned> {
    cases.iter().filter(|planned| planned.why_not.is_none())
}

/// What is left when all longer files are left out.
fn shortest() -> Vec<Planned> {
    let shortest = Case::all().into_iter().filter(|case| case.situation.size == SizeClass::ALL[0]);
    shortest.map(|case| Planned { case, seconds: 0.0, why_not: None }).collect()
}

/// Space for the sources and for the copies of those that are measured.
fn room(cases: &[Planned], at_once: usize) -> (u64, u64) {
    let with_slack = |case: &Case, slots: usize| {
        let bytes = case.slot_bytes() + case.slot_bytes() / 50 + 8192 * u64::from(case.files);
        bytes * slots as u64
    };
    // Cases of the same files have them in common.
    let mut sources: BTreeMap<(SizeClass, u32), u64> = BTreeMap::new();
    for Planned { case, .. } in measured(cases) {
        let room = sources.entry((case.situation.size, case.files)).or_default();
        *room = (*room).max(with_slack(case, case.slots(at_once)));
    }
    let src: u64 = sources.values().sum();
    let dst = measured(cases)
        .map(|Planned { case, .. }| with_slack(case, case.slots(at_once) * case.copies_kept()));
    (src + SPARE_BYTES, dst.max().unwrap_or(0) + SPARE_BYTES)
}

/// Leaves the longest files out until the rest fits.
fn leave_out_by_room(cases: &mut [Planned], space: &Space, at_once: usize) {
    loop {
        let sizes = measured(cases).map(|planned| planned.case.situation.size);
        let Some(largest) = sizes.max() else { return };
        let Some(lack) = space.lack(room(cases, at_once)) else { return };
        let why = format!(
            "not enough room: {} are needed and {} are free",
            words::bytes(lack.needed_bytes),
            words::bytes(lack.free_bytes),
        );
        for planned in cases.iter_mut().filter(|p| p.case.situation.size == largest) {
            planned.why_not.get_or_insert_with(|| why.clone());
        }
    }
}

/// Divides the time: the first cases get enough, and a case that would get too little gets none.
fn leave_out_by_time(cases: &mut [Planned], seconds: f64) {
    let mut wanted = 0.0;
    let whole: f64 = measured(cases).map(|planned| planned.case.seconds()).sum();
    let why = format!("no time for it: allow --time {:.0}", (SHARE_MIN * whole).ceil());
    for planned in cases.iter_mut().filter(|planned| planned.why_not.is_none()) {
        let own = planned.case.seconds();
        // The first is measured in any case.
        if wanted > 0.0 && SHARE_MIN * (wanted + own) > seconds {
            planned.why_not = Some(why.clone());
        } else {
            wanted += own;
        }
    }
    for planned in cases.iter_mut().filter(|planned| planned.why_not.is_none()) {
        planned.seconds = seconds * planned.case.seconds() / wanted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    const ENOUGH: Space = Space { src: 10_000 * MIB, dst: 10_000 * MIB, same: true };

    fn plan(seconds: u64, space: &Space, memory_bytes: u64) -> Plan {
        Plan::with(Duration::from_secs(seconds), 2, space, memory_bytes)
    }

    fn out(plan: &Plan, why: &str) -> Vec<String> {
        let out = plan
            .cases
            .iter()
            .filter(|planned| planned.why_not.as_ref().is_some_and(|found| found.starts_with(why)));
        out.map(|planned| planned.case.words()).collect()
    }

    #[test]
    fn with_room_and_time_nothing_is_left_out() {
        let plan = plan(180, &ENOUGH, 16_000 * MIB);
        assert_eq!(plan.measured().count(), plan.cases.len());
        let seconds: f64 = plan.measured().map(|planned| planned.seconds).sum();
        assert!((seconds - 180.0).abs() < 1e-6, "{seconds}");
        // Two sources of each class but of the largest, and a copy of that.
        assert!((480 * MIB..600 * MIB).contains(&plan.src_bytes), "{}", plan.src_bytes);
        assert!((340 * MIB..400 * MIB).contains(&plan.dst_bytes), "{}", plan.dst_bytes);
    }

    #[test]
    fn the_longest_files_are_left_out_where_there_is_no_room() {
        let of = |src: u64, dst: u64, same: bool| {
            let space = Space { src: src * MIB, dst: dst * MIB, same };
            out(&plan(180, &space, 16_000 * MIB), "not enough room")
        };
        assert_eq!(of(600, 400, false), Vec::<String>::new());
        let without_huge = of(700, 700, true);
        assert!(without_huge.iter().all(|words| words.starts_with("over 256 MiB")));
        assert_eq!(without_huge.len(), 4);
        assert_eq!(of(600, 200, false), without_huge);
        assert_eq!(of(1, 1, true).len(), Case::all().len());
        // The figures are those of the end that lacks room, or of both where they are one.
        for (src, dst, same, needed, free) in
            [(700, 700, true, 915, 700), (600, 200, false, 358, 200), (400, 900, false, 557, 400)]
        {
            let space = Space { src: src * MIB, dst: dst * MIB, same };
            let plan = plan(180, &space, 16_000 * MIB);
            let why = plan.cases.into_iter().find_map(|planned| planned.why_not);
            let expected =
                format!("not enough room: {needed} MiB are needed and {free} MiB are free");
            assert_eq!(why, Some(expected));
        }
    }

    #[test]
    fn what_memory_does_not_hold_cannot_be_resident() {
        let out = out(&plan(180, &ENOUGH, 1000 * MIB), "source and copy");
        assert!(out.iter().all(|words| words.contains("over 256 MiB, resident")), "{out:?}");
        assert_eq!(out.len(), 2);
    }

    #[test]
    fn with_little_time_what_matters_most_comes_first() {
        for seconds in [1, 10, 30] {
            let plan = plan(seconds, &ENOUGH, 16_000 * MIB);
            let measured = plan.measured().count();
            assert!(measured >= 1 && measured < plan.cases.len(), "{seconds} s: {measured}");
            let first_left_out = plan.cases.iter().position(|planned| planned.why_not.is_some());
            assert!(first_left_out.is_some_and(|place| place >= 1), "{seconds} s");
            assert!(plan.cases[0].why_not.is_none());
        }
    }
}
