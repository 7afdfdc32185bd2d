//! Who takes part in the search for one situation, who leaves, and what is chosen in the end: pure
//! decisions without any I/O.

use std::collections::BTreeMap;

use engines::{ENGINES, Variant};

use super::case::Case;
use crate::search::winner::{self, DELTA, Racer};
use crate::stats::Ratio;

/// One way of copying in the search.
#[derive(Clone, Debug)]
pub(super) struct Arm {
    /// What it is called in tables and records.
    pub(super) name: String,
    /// What runs; of another program's way, the variant that it leads to.
    pub(super) variant: Variant,
    pub(super) role: Role,
    /// The times of its heats.
    pub(super) heats_ns: Vec<f64>,
    /// The counted times of its final rounds.
    pub(super) finals_ns: BTreeMap<u32, f64>,
    pub(super) shares_extents: bool,
    pub(super) standing: Standing,
}

/// What an arm is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// To win.
    Candidate,
    /// To be compared with: it is measured however slow it is. It wins all the same if it is the
    /// fastest.
    Baseline,
    /// The way of another program, which no choice can name.
    Foreign,
}

/// How far an arm came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Running,
    /// There was no time to try it so far.
    Waiting,
    /// Left in the heats.
    Slow,
    /// Shown to be slower in the final.
    Beaten,
    /// It does not work here; why.
    Refused(String),
}

/// Rounds of a baseline after which it may leave too: enough for an interval.
const BASELINE_ROUNDS: usize = 7;

/// Rounds before which nothing is taken as settled.
const ROUNDS_TO_SETTLE: usize = 5;

/// After each heat: who is slower than the best by the factor leaves, and so does everyone beyond the
/// number, the slowest first. The last row serves for all further heats.
const HALVING: [(f64, usize); 3] = [(3.0, 16), (1.6, 8), (1.25, 5)];

/// The most candidates of a final, and how close to the best a heat has to be.
const FINALISTS: (f64, usize) = (1.2, 4);

impl Arm {
    pub(super) fn new(variant: Variant, role: Role) -> Arm {
        Arm {
            name: variant.to_string(),
            variant,
            role,
            heats_ns: Vec::new(),
            finals_ns: BTreeMap::new(),
            shares_extents: false,
            standing: Standing::Running,
        }
    }

    pub(super) fn runs(&self) -> bool {
        self.standing == Standing::Running
    }

    /// Whether it can be chosen: it moves bytes, and a copy can be told to go that way.
    fn can_be_chosen(&self) -> bool {
        let refused = matches!(self.standing, Standing::Refused(_));
        !refused && self.role != Role::Foreign && !self.shares_extents
    }

    /// What its heats tell: their middle, of two the lesser. The least would do where runs are only ever
    /// disturbed; but now and then one finds memory that is quicker than any other run's.
    pub(super) fn heat_ns(&self) -> Option<f64> {
        let mut heats = self.heats_ns.clone();
        heats.sort_by(f64::total_cmp);
        heats.get(heats.len().checked_sub(1)? / 2).copied()
    }

    pub(super) fn racer(&self) -> Racer {
        Racer { variant: self.name.clone(), times_ns: self.finals_ns.clone() }
    }
}

/// The arms of a situation of files of `file_bytes`: the `baselines`, and of `candidates` those that
/// differ from each other for such a file.
pub(super) fn arms(baselines: Vec<Variant>, candidates: &[Variant], file_bytes: u64) -> Vec<Arm> {
    let mut arms: Vec<Arm> = Vec::new();
    for variant in baselines {
        if arms.iter().all(|arm| arm.variant != variant) {
            arms.push(Arm::new(variant, Role::Baseline));
        }
    }
    for variant in candidates {
        if is_new(&arms, variant, file_bytes) {
            arms.push(Arm::new(variant.clone(), Role::Candidate));
        }
    }
    arms
}

/// Whether `variant` does something to a file of `file_bytes` that none of `arms` does.
fn is_new(arms: &[Arm], variant: &Variant, file_bytes: u64) -> bool {
    let rounded = file_bytes.next_power_of_two();
    let own = variant.within(rounded);
    arms.iter().all(|arm| arm.role == Role::Foreign || arm.variant.within(rounded) != own)
}

/// The best heat of those that can be chosen.
pub(super) fn best_heat(arms: &[Arm]) -> Option<(usize, f64)> {
    let of = |(index, arm): (usize, &Arm)| Some((index, arm.heat_ns()?));
    let able = arms.iter().enumerate().filter(|(_, arm)| arm.can_be_chosen());
    able.filter_map(of).min_by(|(_, a), (_, b)| a.total_cmp(b))
}

/// Ends the part of those that the heats so far show to be slow. `heat` counts from 1.
pub(super) fn halve(arms: &mut [Arm], heat: usize) {
    let rule = HALVING[(heat - 1).min(HALVING.len() - 1)];
    keep_closest(arms, rule);
}

/// The same before the final.
pub(super) fn admit_to_final(arms: &mut [Arm]) {
    keep_closest(arms, FINALISTS);
}

fn keep_closest(arms: &mut [Arm], (factor, number): (f64, usize)) {
    let Some((_, best_ns)) = best_heat(arms) else { return };
    let mut order: Vec<usize> = (0..arms.len())
        .filter(|&index| arms[index].runs() && arms[index].role == Role::Candidate)
        .filter(|&index| !arms[index].shares_extents)
        .collect();
    let heat = |arm: &Arm| arm.heat_ns().unwrap_or(f64::INFINITY);
    order.sort_by(|&a, &b| heat(&arms[a]).total_cmp(&heat(&arms[b])));
    for (rank, index) in order.into_iter().enumerate() {
        match arms[index].heat_ns() {
            // Whether it is slow nobody knows.
            None => arms[index].standing = Standing::Waiting,
            Some(ns) if rank >= number || ns > factor * best_ns => {
                arms[index].standing = Standing::Slow;
            }
            Some(_) => {}
        }
    }
}

/// Lets those in that there was no time for before; which they are.
pub(super) fn let_in(arms: &mut [Arm]) -> Vec<usize> {
    let waiting = |&index: &usize| arms[index].standing == Standing::Waiting;
    let waiting: Vec<usize> = (0..arms.len()).filter(waiting).collect();
    for &index in &waiting {
        arms[index].standing = Standing::Running;
    }
    waiting
}

/// Begins the final anew, since some come to it that were not in its rounds so far: these become heats, and
/// what is there to be compared with takes part again.
pub(super) fn begin_final_anew(arms: &mut [Arm]) {
    for arm in arms {
        arm.heats_ns.extend(std::mem::take(&mut arm.finals_ns).into_values());
        if arm.standing == Standing::Beaten && arm.role != Role::Candidate {
            arm.standing = Standing::Running;
        }
    }
}

/// How close to the best the best of another engine has to be for the search to go on around it too.
const NEARLY: f64 = 1.3;

/// Those beside the leaders that were not tried yet: half and twice their buffers, depths and workers.
/// Leaders are the best and, at `first`, the best of another engine: with more workers, or another
/// buffer, it may be the better one.
pub(super) fn neighbours(arms: &[Arm], case: &Case, workers_max: usize, first: bool) -> Vec<Arm> {
    let Some((best, best_ns)) = best_heat(arms) else { return Vec::new() };
    let bytes = case.file_bytes;
    let mut found: Vec<Arm> = Vec::new();
    let is_other = |&index: &usize| {
        let (arm, engine) = (&arms[index], arms[best].variant.engine.name);
        let near = arm.heat_ns().is_some_and(|ns| ns <= NEARLY * best_ns);
        first && near && arm.can_be_chosen() && arm.variant.engine.name != engine
    };
    let heat = |index: usize| arms[index].heat_ns().unwrap_or(f64::INFINITY);
    let other = (0..arms.len()).filter(is_other).min_by(|&a, &b| heat(a).total_cmp(&heat(b)));
    let leaders = std::iter::once(best).chain(other);
    for variant in leaders.flat_map(|index| arms[index].variant.neighbours(workers_max)) {
        let is_new = is_new(arms, &variant, bytes) && is_new(&found, &variant, bytes);
        if is_new && case.may_try(&variant) {
            found.push(Arm::new(variant, Role::Candidate));
        }
    }
    found
}

/// The arms that race in the final and can be chosen.
fn racing(arms: &[Arm]) -> Vec<usize> {
    let raced = |&index: &usize| arms[index].can_be_chosen() && !arms[index].finals_ns.is_empty();
    (0..arms.len()).filter(raced).collect()
}

/// The fastest of the final.
pub(super) fn best(arms: &[Arm]) -> Option<usize> {
    let racing = racing(arms);
    let racers: Vec<Racer> = racing.iter().map(|&index| arms[index].racer()).collect();
    winner::best(&racers).map(|place| racing[place])
}

/// Ends the part of those that the final shows to be slower, by an estimate of more than `margin`; the
/// baselines' once they are known well enough.
pub(super) fn drop_beaten(arms: &mut [Arm], margin: f64) {
    let Some(best) = best(arms) else { return };
    let racing = racing(arms);
    let racers: Vec<Racer> = racing.iter().map(|&index| arms[index].racer()).collect();
    let by_much = |place: &usize| {
        let ratio = ratio(&arms[racing[*place]], &arms[best]);
        ratio.is_some_and(|ratio| ratio.estimate > 1.0 + margin)
    };
    let beaten: Vec<usize> = winner::beaten(&racers).into_iter().filter(by_much).collect();
    for place in beaten {
        let arm = &mut arms[racing[place]];
        let known = arm.role == Role::Candidate || arm.finals_ns.len() >= BASELINE_ROUNDS;
        if arm.runs() && known {
            arm.standing = Standing::Beaten;
        }
    }
    for arm in arms.iter_mut().filter(|arm| arm.role == Role::Foreign || arm.shares_extents) {
        if arm.runs() && arm.finals_ns.len() >= BASELINE_ROUNDS {
            arm.standing = Standing::Beaten;
        }
    }
}

/// Whether more rounds would tell nothing that matters: each of those still racing is slower than the
/// best by more than δ, or no further from it than that, and nobody waits to be tried.
pub(super) fn is_settled(arms: &[Arm]) -> bool {
    let Some(best) = best(arms) else { return false };
    let enough = |arm: &Arm| arm.finals_ns.len() >= ROUNDS_TO_SETTLE;
    let settled = |arm: &Arm| {
        let ratio = ratio(arm, &arms[best]);
        ratio.is_some_and(|ratio| {
            ratio.interval.low > 1.0 + DELTA || ratio.interval.high <= 1.0 + DELTA
        })
    };
    enough(&arms[best])
        && arms.iter().all(|arm| arm.standing != Standing::Waiting)
        && (0..arms.len())
            .filter(|&index| index != best && arms[index].runs())
            .all(|index| enough(&arms[index]) && settled(&arms[index]))
}

/// The time of `arm` over that of `best`, in the rounds that both ran.
pub(super) fn ratio(arm: &Arm, best: &Arm) -> Option<Ratio> {
    arm.racer().against(&best.racer()).ratio()
}

/// A loss that may be taken for noise where the interval says so, and no more: what looks like more is
/// likelier to be one than not.
const DOUBTFUL: f64 = 0.05;

/// What is chosen: the fastest, unless `preferred`, which is what a copy does without being told, or a
/// simpler variant is as good as far as was seen. A choice has to gain something.
pub(super) fn choose(arms: &[Arm], preferred: &Variant) -> Option<usize> {
    let best = best(arms)?;
    let as_good = |index: usize| {
        index == best
            || ratio(&arms[index], &arms[best]).is_some_and(|ratio| {
                let may_be_noise = ratio.interval.low <= 1.0;
                let allowed = if may_be_noise { DOUBTFUL } else { DELTA };
                ratio.estimate <= 1.0 + allowed
            })
    };
    let racing = racing(arms);
    let is_preferred = |&index: &usize| arms[index].variant == *preferred;
    let preferred = racing.iter().copied().find(is_preferred).filter(|&index| as_good(index));
    // Of the others, one has to be as fast as the best by its estimate.
    let close = |index: usize| {
        index == best
            || ratio(&arms[index], &arms[best]).is_some_and(|it| it.estimate <= 1.0 + DELTA)
    };
    let simplest = || {
        let close = racing.iter().copied().filter(|&index| close(index));
        close.min_by_key(|&index| complexity(&arms[index].variant)).unwrap_or(best)
    };
    Some(preferred.unwrap_or_else(simplest))
}

/// How much there is to a variant: workers first, then the engine by its place in the table, then the
/// knobs that are turned.
fn complexity(variant: &Variant) -> (usize, usize, usize) {
    let place = ENGINES.iter().position(|engine| engine.name == variant.engine.name);
    (variant.workers, place.unwrap_or(ENGINES.len()), variant.to_string().len())
}

#[cfg(test)]
mod tests {
    use engines::profile::{InFlight, Residency, Situation, SizeClass};

    use super::*;

    fn variant(text: &str) -> Variant {
        text.parse().expect(text)
    }

    fn heated(text: &str, role: Role, heat_ns: f64) -> Arm {
        Arm { heats_ns: vec![heat_ns], ..Arm::new(variant(text), role) }
    }

    fn raced(text: &str, role: Role, times: &[f64]) -> Arm {
        let finals_ns = (1..).zip(times.iter().copied()).collect();
        Arm { finals_ns, ..Arm::new(variant(text), role) }
    }

    fn names(arms: &[Arm]) -> Vec<&str> {
        arms.iter().filter(|arm| arm.runs()).map(|arm| arm.name.as_str()).collect()
    }

    #[test]
    fn what_does_the_same_to_a_short_file_is_tried_once() {
        let candidates = ["read_write:4K", "read_write:64K", "mmap:8M", "mmap:8M,populate"];
        let candidates = candidates.map(variant);
        let of = |file_bytes| {
            let baselines = vec![variant("read_write:256K")];
            arms(baselines, &candidates, file_bytes).len()
        };
        assert_eq!(of(4 << 10), 3, "all buffers hold the whole file");
        assert_eq!(of(64 << 10), 4);
        assert_eq!(of(64 << 20), 5);
    }

    #[test]
    fn the_slow_leave_and_baselines_stay() {
        let mut arms = vec![
            heated("read_write:256K", Role::Baseline, 900.0),
            heated("sendfile", Role::Candidate, 100.0),
            heated("splice", Role::Candidate, 290.0),
            heated("stdio:4K", Role::Candidate, 310.0),
        ];
        halve(&mut arms, 1);
        assert_eq!(names(&arms), ["read_write:256K", "sendfile", "splice"]);
        halve(&mut arms, 2);
        assert_eq!(names(&arms), ["read_write:256K", "sendfile"]);
        // One that shares extents has no place among those that move bytes, and makes none slow.
        arms.push(Arm { shares_extents: true, ..heated("reflink", Role::Candidate, 1.0) });
        halve(&mut arms, 3);
        assert_eq!(names(&arms), ["read_write:256K", "sendfile", "reflink"]);
    }

    #[test]
    fn who_was_not_tried_waits_and_comes_to_a_new_final() {
        let untried = Arm::new(variant("copy_file_range"), Role::Candidate);
        let beaten =
            |role| Arm { standing: Standing::Beaten, ..raced("splice", role, &[9.0, 9.0]) };
        let mut arms = vec![
            raced("direct", Role::Baseline, &[5.0; 6]),
            Arm { heats_ns: vec![5.0], ..Arm::new(variant("sendfile"), Role::Candidate) },
            untried,
            beaten(Role::Baseline),
            beaten(Role::Candidate),
        ];
        halve(&mut arms, 1);
        assert_eq!(arms[2].standing, Standing::Waiting, "nobody knows how fast it is");
        assert_eq!(names(&arms), ["direct", "sendfile"]);
        arms[1].standing = Standing::Slow;
        assert!(!is_settled(&arms), "one was not tried");
        assert_eq!(let_in(&mut arms), [2]);
        arms[2].heats_ns.push(1.0);
        begin_final_anew(&mut arms);
        assert_eq!(names(&arms), ["direct", "copy_file_range", "splice"]);
        assert!(arms.iter().all(|arm| arm.finals_ns.is_empty()));
        assert_eq!(arms[0].heats_ns, [5.0; 6], "no run is lost");
        assert_eq!(arms[4].standing, Standing::Beaten);
    }

    #[test]
    fn one_quick_run_makes_no_winner() {
        let arm = |heats: &[f64]| Arm {
            heats_ns: heats.to_vec(),
            ..Arm::new(variant("splice"), Role::Candidate)
        };
        for (heats, expected) in [
            (&[][..], None),
            (&[5.0], Some(5.0)),
            (&[7.0, 5.0], Some(5.0)),
            (&[7.0, 2.0, 5.0], Some(5.0)),
            (&[7.0, 2.0, 6.0, 5.0], Some(5.0)),
        ] {
            assert_eq!(arm(heats).heat_ns(), expected, "{heats:?}");
        }
    }

    #[test]
    fn only_so_many_go_on() {
        let mut arms: Vec<Arm> = (1..40)
            .map(|n| heated(&format!("read_write:{n}K"), Role::Candidate, 100.0 + f64::from(n)))
            .collect();
        halve(&mut arms, 1);
        assert_eq!(names(&arms).len(), 16);
        halve(&mut arms, 2);
        assert_eq!(names(&arms).len(), 8);
        admit_to_final(&mut arms);
        assert_eq!(
            names(&arms),
            ["read_write:1K", "read_write:2K", "read_write:3K", "read_write:4K"]
        );
    }

    #[test]
    fn the_search_goes_on_around_the_best() {
        let arms = [
            heated("read_write:256K@2", Role::Candidate, 100.0),
            heated("read_write:512K@2", Role::Candidate, 110.0),
        ];
        let case = |in_flight| {
            let size = SizeClass::of(64 << 20);
            let residency = Residency::Resident;
            Case::of(Situation { size, residency, in_flight, no_cache: false })
        };
        let found = |in_flight, workers_max| {
            let found = neighbours(&arms, &case(in_flight), workers_max, false);
            found.iter().map(|arm| arm.name.clone()).collect::<Vec<_>>()
        };
        let (half, one, four) = ("read_write:128K@2", "read_write:256K", "read_write:256K@4");
        assert_eq!(found(InFlight::One, 4), [half, one, four]);
        assert_eq!(found(InFlight::One, 2), [half, one], "no more workers than there are");
        assert_eq!(found(InFlight::Several, 4), [one], "each has a file of its own");
        // At first around another engine too, if it is near.
        let around = |ns: f64, first: bool| {
            let other = heated("splice:1M,pipe=1M", Role::Candidate, ns);
            let arms = [arms[0].clone(), arms[1].clone(), other];
            let found = neighbours(&arms, &case(InFlight::One), 2, first);
            found.iter().any(|arm| arm.name == "splice:1M,pipe=1M@2")
        };
        assert!(around(120.0, true) && !around(120.0, false) && !around(140.0, true));
    }

    #[test]
    fn a_choice_has_to_gain_something() {
        let preferred = variant("read_write:256K");
        let chosen = |arms: &[Arm]| {
            choose(arms, &preferred).map(|index| arms[index].name.clone()).expect("a choice")
        };
        let noise = [0.0, 1.0, -1.0, 0.5, -0.5, 0.2];
        let around = |middle: f64| noise.map(|n| middle + n);
        let default = |middle| raced("read_write:256K", Role::Baseline, &around(middle));
        // A gain of a fifth, and one of a hundredth.
        let faster = raced("sendfile", Role::Candidate, &around(100.0));
        assert_eq!(chosen(&[default(120.0), faster.clone()]), "sendfile");
        assert_eq!(chosen(&[default(101.0), faster.clone()]), "read_write:256K");
        // Noise that could be a gain.
        let wild = raced("splice", Role::Candidate, &[50.0, 200.0, 90.0, 120.0, 60.0, 150.0]);
        assert_eq!(chosen(&[default(103.0), wild.clone()]), "read_write:256K");
        // A loss that is likelier than not.
        assert_eq!(chosen(&[default(130.0), wild]), "splice");
        // Of equals that are both better, the simpler.
        let shared = raced("splice@2", Role::Candidate, &around(99.9));
        assert_eq!(chosen(&[default(150.0), shared, faster]), "sendfile");
        // Another program's way and shared extents are nothing that can be chosen.
        let foreign =
            Arm { role: Role::Foreign, ..raced("sendfile", Role::Foreign, &around(10.0)) };
        let clone = Arm { shares_extents: true, ..raced("reflink", Role::Candidate, &around(1.0)) };
        assert_eq!(chosen(&[default(150.0), foreign, clone]), "read_write:256K");
    }

    #[test]
    fn it_is_settled_when_nothing_is_left_to_tell() {
        let times = |middle: f64, spread: f64| {
            [0.0, 1.0, -1.0, 0.5, -0.5, 0.2].map(|n| middle + spread * n)
        };
        let one = raced("sendfile", Role::Candidate, &times(100.0, 0.1));
        let slower = raced("splice", Role::Candidate, &times(120.0, 0.1));
        let equal = raced("read_write:256K", Role::Baseline, &times(100.2, 0.1));
        let open =
            raced("copy_file_range", Role::Baseline, &[90.0, 130.0, 95.0, 99.0, 140.0, 80.0]);
        assert!(is_settled(&[one.clone(), slower.clone(), equal.clone()]));
        assert!(!is_settled(&[one.clone(), open]));
        let few = raced("read_write:256K", Role::Baseline, &[120.0, 121.0]);
        assert!(!is_settled(&[one.clone(), few]));
        assert!(!is_settled(&[]));
        let mut arms = [one, slower, equal];
        drop_beaten(&mut arms, 0.25);
        assert_eq!(names(&arms).len(), 3, "it is slower, and not by so much");
        drop_beaten(&mut arms, 0.0);
        assert_eq!(names(&arms), ["sendfile", "read_write:256K"]);
    }
}
