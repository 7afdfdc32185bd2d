//! The losses of the variants that a copy uses, from the times of a long search. Pure functions of
//! records.

use std::collections::BTreeMap;

use engines::Variant;
use engines::profile::{FileSystem, FileSystems, PairChoices, Profile};
use lab::stats::{Ratio, RoundTimes, median};
use lab::tune::record::{Finding, Record, VariantResult};
use tree::{PlannedFile, Predictor};

use crate::default_profile::derive::profile_text;

/// A situation for which the long search found a best variant.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) words: String,
    /// The fastest variant of the long search.
    pub(super) best: String,
    /// What a copy uses, with each profile.
    pub(super) judgements: Vec<(ProfileKind, Judgement)>,
}

/// The profile that a copy uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProfileKind {
    /// That of the shorter search, and the built-in one for the rest.
    Tuned,
    /// The built-in one.
    BuiltIn,
    /// The one that would be built in without measurements between these two types of file systems.
    Unseen,
}

/// A variant and its loss.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Judgement {
    pub(super) variant: String,
    pub(super) loss: Loss,
}

/// The time of a variant divided by that of the best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Loss {
    /// It is the best.
    None,
    /// The ratio in the final rounds that both ran, and the number of these.
    Rounds(Ratio, usize),
    /// It did not reach the final round: the median of its elimination rounds divided by that of
    /// the best.
    Elimination(f64),
    /// The ratio that the search recorded, if the record has no single runs.
    Found(f64),
    /// The long search did not run it.
    Unknown,
}

impl ProfileKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            ProfileKind::Tuned => "tuned",
            ProfileKind::BuiltIn => "built in",
            ProfileKind::Unseen => "unseen",
        }
    }

    /// The allowed loss, as a ratio to the best.
    pub(super) fn allowed(self) -> f64 {
        match self {
            ProfileKind::Tuned => 1.05,
            ProfileKind::BuiltIn | ProfileKind::Unseen => 1.15,
        }
    }
}

impl Loss {
    /// The ratio of the times. `None` if it is unknown.
    pub(super) fn ratio(self) -> Option<f64> {
        match self {
            Loss::None => Some(1.0),
            Loss::Rounds(ratio, _) => Some(ratio.estimate),
            Loss::Elimination(ratio) | Loss::Found(ratio) => Some(ratio),
            Loss::Unknown => None,
        }
    }

    /// Whether the whole interval is above `limit`.
    fn is_surely_over(self, limit: f64) -> bool {
        matches!(self, Loss::Rounds(ratio, _) if ratio.interval.low > limit)
    }
}

/// The share of situations that must be within the limit.
pub(super) const SHARE_REQUIRED: f64 = 0.9;

/// How often one profile is within its limit.
#[derive(Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) kind: ProfileKind,
    pub(super) situations: usize,
    /// Situations whose estimate is within the limit.
    pub(super) within: usize,
    /// Situations whose whole interval is above it.
    pub(super) surely_over: usize,
    /// The greatest known loss.
    pub(super) worst: f64,
}

impl Verdict {
    pub(super) fn holds(&self) -> bool {
        self.share() >= SHARE_REQUIRED
    }

    pub(super) fn share(&self) -> f64 {
        self.within as f64 / self.situations.max(1) as f64
    }
}

/// Judges each situation for which `long` has a best variant. The built-in profile is derived from
/// `record`.
pub(super) fn judge(long: &Record, tuned: Option<&Record>, record: &[Record]) -> Vec<Judged> {
    let found = file_systems(long);
    let own = tuned.map(|tuned| PairChoices {
        src: found.src.clone(),
        dst: found.dst.clone(),
        same: Some(found.same),
        kernel: None,
        lines: tuned.lines(),
    });
    let unmeasured = Predictor::between(&found, &[]);
    let unseen = Predictor::with(&found, &[], &built_in_without(&found, record));
    let measured = own.map(|own| Predictor::between(&found, &[own]));
    let mut judged = Vec::new();
    for finding in &long.situations {
        let (Some(best), Some(planned)) = (&finding.best, planned_file(long, finding)) else {
            continue;
        };
        let of = |kind, variants: &[Variant]| (kind, judgement(long, finding, variants));
        let tuned =
            measured.iter().map(|predictor| of(ProfileKind::Tuned, &predictor.variants(&planned)));
        let mut judgements: Vec<_> = tuned.collect();
        judgements.push(of(ProfileKind::BuiltIn, &unmeasured.variants(&planned)));
        judgements.push(of(ProfileKind::Unseen, &unseen.variants(&planned)));
        judged.push(Judged { words: finding.words.clone(), best: best.clone(), judgements });
    }
    judged
}

/// The pairs that would be built in without the records between these types of file systems.
fn built_in_without(found: &FileSystems, record: &[Record]) -> Vec<PairChoices> {
    let types = |pair: &FileSystems| (pair.src.fs_type.clone(), pair.dst.fs_type.clone());
    let others: Vec<&Record> =
        record.iter().filter(|it| types(&file_systems(it)) != types(found)).collect();
    let profile = Profile::parse(&profile_text(&others)).expect("a written profile can be parsed");
    profile.profile.machines.into_iter().flat_map(|machine| machine.pairs).collect()
}

/// One verdict for each profile.
pub(super) fn verdicts(judged: &[Judged]) -> Vec<Verdict> {
    let of = |kind: ProfileKind| {
        let judgements = judged.iter().flat_map(|judged| &judged.judgements);
        let losses: Vec<Loss> =
            judgements.filter(|(of, _)| *of == kind).map(|(_, judgement)| judgement.loss).collect();
        let ratios = || losses.iter().filter_map(|loss| loss.ratio());
        Verdict {
            kind,
            situations: losses.len(),
            within: ratios().filter(|ratio| *ratio <= kind.allowed()).count(),
            surely_over: losses.iter().filter(|it| it.is_surely_over(kind.allowed())).count(),
            worst: ratios().fold(1.0, f64::max),
        }
    };
    let all = [ProfileKind::Tuned, ProfileKind::BuiltIn, ProfileKind::Unseen].map(of);
    all.into_iter().filter(|verdict| verdict.situations > 0).collect()
}

/// The search of `records` between the file systems of `record`.
pub(super) fn of_the_same<'r>(record: &Record, records: &'r [Record]) -> Option<&'r Record> {
    // The number of a loop device changes with each mount.
    let place = |record: &Record| {
        let FileSystems { src, dst, .. } = file_systems(record);
        [src, dst].map(|side| (side.fs_type, side.mount_point))
    };
    records.iter().find(|other| place(other) == place(record))
}

/// `ext4 to xfs`.
pub(super) fn place(record: &Record) -> String {
    file_systems(record).in_words()
}

pub(super) fn seed(record: &Record) -> Option<u64> {
    record.environment.get("seed")?.as_u64()
}

/// The loss of the first variant of the chain that is not refused.
fn judgement(long: &Record, finding: &Finding, variants: &[Variant]) -> Judgement {
    let variant = variants.iter().find(|it| !is_refused(long, it)).or(variants.last());
    let Some(variant) = variant else {
        return Judgement { variant: String::new(), loss: Loss::Unknown };
    };
    Judgement { variant: variant.to_string(), loss: loss(finding, variant) }
}

fn is_refused(long: &Record, variant: &Variant) -> bool {
    // If one worker is refused, several are too.
    let alone = variant.shared_by(1);
    let mut refused = long.refused.iter().filter_map(|it| it.variant.parse::<Variant>().ok());
    refused.any(|refused| refused.shared_by(1) == alone)
}

fn loss(finding: &Finding, variant: &Variant) -> Loss {
    let best = finding.best.as_deref().and_then(|best| finding.variant_result(best));
    let (Some(best), Some(result)) = (best, ran(finding, variant)) else {
        return left(finding, variant).map_or(Loss::Unknown, Loss::Found);
    };
    if best.name == result.name {
        return Loss::None;
    }
    let rounds: Vec<BTreeMap<u32, f64>> =
        finding.variants.iter().map(|it| it.rounds_ns.iter().copied().collect()).collect();
    let place = |of: &VariantResult| finding.variants.iter().position(|it| it.name == of.name);
    if let (Some(own), Some(its)) = (place(result), place(best)) {
        // What slowed a whole round is found by all that ran in it. Sharing extents takes no time.
        let none = BTreeMap::new();
        let shares = finding.variants.iter().map(|it| it.shares_extents);
        let times: Vec<_> =
            rounds.iter().zip(shares).map(|(it, shares)| if shares { &none } else { it }).collect();
        if let Some(ratio) = RoundTimes::new(&times).ratio(own, its) {
            let both = rounds[own].keys().filter(|round| rounds[its].contains_key(round)).count();
            return Loss::Rounds(ratio, both);
        }
    }
    let elimination = |result: &VariantResult| median(&result.elimination_ns);
    if let Some((own, best)) = elimination(result).zip(elimination(best)) {
        return Loss::Elimination(own / best);
    }
    result.ratio_to_best.map_or(Loss::Unknown, Loss::Found)
}

/// The ratio of a variant that was dropped, of which the record has nothing else.
fn left(finding: &Finding, variant: &Variant) -> Option<f64> {
    let same = |name: &&String| does_the_same(finding, name, variant);
    let name = variant.to_string();
    let name = finding.left.keys().find(|left| **left == name).or(finding.left.keys().find(same));
    finding.left.get(name?).copied()
}

/// Whether the variants `name` and `variant` do the same to a file of that size.
fn does_the_same(finding: &Finding, name: &str, variant: &Variant) -> bool {
    let bytes = finding.file_bytes.next_power_of_two();
    let own = variant.within(bytes);
    name.parse::<Variant>().is_ok_and(|other| other.within(bytes) == own)
}

/// A variant that ran and does the same to a file of that size.
fn ran<'f>(finding: &'f Finding, variant: &Variant) -> Option<&'f VariantResult> {
    let did_run = |result: &&VariantResult| {
        !result.elimination_ns.is_empty()
            || !result.rounds_ns.is_empty()
            || result.ratio_to_best.is_some()
    };
    let same_name = finding.variant_result(&variant.to_string()).filter(did_run);
    same_name.or_else(|| {
        let does_the_same = |result: &&VariantResult| does_the_same(finding, &result.name, variant);
        finding.variants.iter().filter(did_run).find(does_the_same)
    })
}

fn planned_file(long: &Record, finding: &Finding) -> Option<PlannedFile> {
    let processors = long.environment.get("cpu_count").and_then(serde_json::Value::as_u64);
    let jobs = processors.and_then(|count| usize::try_from(count).ok()).unwrap_or(1);
    Some(PlannedFile { situation: finding.situation()?, bytes: finding.file_bytes, jobs })
}

/// The file systems as a copy finds them, with the type names of profiles.
fn file_systems(record: &Record) -> FileSystems {
    let side = |side: &str| {
        let of = |key: &str| Some(record.environment.get(side)?.get(key)?.as_str()?.to_owned());
        let fs_type = of("fs_type").map(|found| match found.as_str() {
            "ext2" | "ext3" => "ext4".to_owned(),
            "nfs4" => "nfs".to_owned(),
            other => other.split('.').next().unwrap_or(other).to_owned(),
        });
        FileSystem {
            fs_type,
            source: of("device"),
            mount_point: of("mount_point"),
            ..FileSystem::default()
        }
    };
    let (src, dst) = (side("src"), side("dst"));
    let same = src == dst;
    FileSystems { src, dst, same }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A variant with the times of its elimination rounds and final rounds.
    fn result(name: &str, heats: &[f64], rounds: &[f64]) -> Value {
        let rounds: Vec<(usize, f64)> = (1..).zip(rounds.iter().copied()).collect();
        json!({
            "name": name, "standing": "raced", "reason": "", "shares_extents": false,
            "file_ns_median": 1e6, "megabytes_per_second": 1e3, "ratio_to_best": null,
            "ratio_low": null, "ratio_high": null, "heats_ns": heats, "rounds_ns": rounds,
        })
    }

    /// A situation of files of `file_bytes` in the class `size`.
    fn situation(
        (size, file_bytes): (&str, u64),
        residency: &str,
        choice: &str,
        variants: Vec<Value>,
    ) -> Value {
        json!({
            "size": size, "residency": residency, "in_flight": "one", "no_cache": false,
            "words": format!("{size}, {residency}"), "file_bytes": file_bytes, "files": 1,
            "why_not": "", "choice": choice, "best": variants[0]["name"], "default": "-",
            "rule": null, "settled": true, "rounds": 9, "seconds": 1.0, "default_loss": null,
            "gnu_cp_loss": null, "copy_file_range_loss": null, "ways": variants,
        })
    }

    fn record(seed: u64, (src, dst): (&str, &str), refused: &[&str], found: Vec<Value>) -> Record {
        let side = |fs_type: &str| json!({ "fs_type": fs_type, "mount_point": fs_type });
        let refused: Vec<Value> =
            refused.iter().map(|it| json!({ "variant": it, "reason": "EINVAL" })).collect();
        let record = json!({
            "date": "", "seconds_allowed": 1.0, "seconds": 1.0, "at_once": 2, "delta": 0.02,
            "environment":
                { "src": side(src), "dst": side(dst), "cpu_count": 2, "seed": seed },
            "situations": found, "refused": refused,
        });
        serde_json::from_value(record).expect("a record")
    }

    /// Below the size from which a copy measures its engine.
    const LARGE: (&str, u64) = ("16M to 256M", 32 << 20);
    const SMALL: (&str, u64) = ("up to 4K", 4 << 10);

    /// Times around `middle` with the same variation from round to round.
    fn rounds(middle: f64) -> Vec<f64> {
        [1.0, 1.3, 0.9, 1.1, 2.0, 0.95].map(|drift| middle * drift).to_vec()
    }

    fn shown(judged: &Judged) -> String {
        let of = |(kind, judgement): &(ProfileKind, Judgement)| {
            let loss = match judgement.loss {
                Loss::None => "best".to_owned(),
                Loss::Rounds(ratio, rounds) => format!("{:.3} in {rounds}", ratio.estimate),
                Loss::Elimination(ratio) => format!("{ratio:.3} in elimination rounds"),
                Loss::Found(ratio) => format!("{ratio:.3} found"),
                Loss::Unknown => "unknown".to_owned(),
            };
            format!("{}: {} {loss}", kind.name(), judgement.variant)
        };
        judged.judgements.iter().map(of).collect::<Vec<_>>().join("; ")
    }

    /// f2fs is in no record, so the rule applies to it.
    const PLACE: (&str, &str) = ("f2fs", "f2fs");

    #[test]
    fn a_loss_is_from_the_rounds_that_both_ran() {
        let variants = vec![
            result("splice:1M", &[90.0], &rounds(100.0)),
            result("sendfile", &[95.0], &rounds(104.0)),
            result("read_write:256K@2", &[150.0, 130.0], &rounds(140.0)[..3]),
        ];
        let long = record(1, PLACE, &[], vec![situation(LARGE, "resident", "splice:1M", variants)]);
        let choice = |variant: &str| {
            let variants = vec![result(variant, &[1.0], &[1.0, 1.0])];
            record(2, PLACE, &[], vec![situation(LARGE, "resident", variant, variants)])
        };
        let judge = |tuned: &str| shown(&super::judge(&long, Some(&choice(tuned)), &[])[0]);
        let rule = "built in: read_write:256K@2 1.400 in 3; unseen: read_write:256K@2 1.400 in 3";
        assert_eq!(judge("sendfile"), format!("tuned: sendfile 1.040 in 6; {rule}"));
        assert_eq!(judge("splice:1M"), format!("tuned: splice:1M best; {rule}"));
        assert_eq!(judge("mmap:8M"), format!("tuned: mmap:8M unknown; {rule}"));
        // The number of workers is limited to the processors of the machine.
        assert!(judge("read_write:256K@4").starts_with("tuned: read_write:256K@2 1.400"));
        assert_eq!(shown(&super::judge(&long, None, &[])[0]), rule);
    }

    #[test]
    fn a_dropped_variant_has_the_ratio_of_its_elimination_rounds() {
        let variants = vec![
            result("splice:1M", &[100.0, 90.0], &rounds(100.0)),
            result("read_write:256K@2", &[140.0, 107.0], &[]),
            result("direct", &[], &[]),
        ];
        let long = record(1, PLACE, &[], vec![situation(LARGE, "resident", "splice:1M", variants)]);
        let rule = "read_write:256K@2 1.300 in elimination rounds";
        let expected = format!("built in: {rule}; unseen: {rule}");
        assert_eq!(shown(&super::judge(&long, None, &[])[0]), expected);
        let variants = vec![result("direct", &[1.0], &[1.0, 1.0])];
        let tuned = record(2, PLACE, &[], vec![situation(LARGE, "resident", "direct", variants)]);
        let judged = super::judge(&long, Some(&tuned), &[]);
        assert!(shown(&judged[0]).starts_with("tuned: direct unknown"), "it was not tried");
        // A summary has ratios instead of single runs.
        let mut long = long;
        long.situations[0].variants[1].file_ns_median = None;
        let judged = super::judge(&long.summary(), Some(&tuned), &[]);
        let rule = "read_write:256K@2 1.300 found";
        assert_eq!(
            shown(&judged[0]),
            format!("tuned: direct unknown; built in: {rule}; unseen: {rule}")
        );
    }

    #[test]
    fn variants_that_do_the_same_to_a_short_file_are_equal() {
        let variants = || {
            vec![result("read_write:64K", &[9.0], &rounds(10.0)), result("sendfile", &[9.0], &[])]
        };
        let long = record(1, PLACE, &[], vec![situation(SMALL, "resident", "-", variants())]);
        let expected = "built in: read_write:256K best; unseen: read_write:256K best";
        assert_eq!(shown(&super::judge(&long, None, &[])[0]), expected);
    }

    #[test]
    fn a_copy_of_a_short_file_does_not_query_residency() {
        let variants = |first: &str, second: &str| {
            vec![result(first, &[1.0], &rounds(100.0)), result(second, &[1.0], &rounds(150.0))]
        };
        let found = |size, second_size| {
            vec![
                situation(size, "resident", "sendfile", variants("sendfile", "direct")),
                situation(second_size, "absent", "direct", variants("direct", "sendfile")),
            ]
        };
        for (size, absent) in [(SMALL, "tuned: sendfile 1.500 in 6"), (LARGE, "tuned: direct best")]
        {
            let long = record(1, PLACE, &[], found(size, size));
            let tuned = record(2, PLACE, &[], found(size, size));
            let judged = super::judge(&long, Some(&tuned), &[]);
            assert!(shown(&judged[0]).starts_with("tuned: sendfile best"));
            assert!(shown(&judged[1]).starts_with(absent), "{}", shown(&judged[1]));
        }
    }

    #[test]
    fn a_refused_variant_is_followed_by_the_next() {
        let variants = vec![
            result("read_write:256K", &[1.0], &rounds(100.0)),
            result("sendfile", &[1.0], &rounds(110.0)),
        ];
        let found = || vec![situation(LARGE, "resident", "read_write:256K", variants.clone())];
        let long = record(1, ("vfat", "ext4"), &["copy_file_range"], found());
        let best = "built in: read_write:256K best; unseen: read_write:256K best";
        assert_eq!(shown(&super::judge(&long, None, &[])[0]), best);
    }

    #[test]
    fn shares_are_counted_by_the_limit_of_each_profile() {
        let at = |ratio: f64| {
            let variants = vec![
                result("splice:1M", &[1.0], &rounds(100.0)),
                result("sendfile", &[1.0], &rounds(100.0 * ratio)),
                result("read_write:256K@2", &[1.0], &rounds(100.0 * (1.0 + 3.0 * (ratio - 1.0)))),
            ];
            situation(LARGE, "resident", "sendfile", variants)
        };
        // Nine within both limits and one within neither.
        let found: Vec<Value> = (0..10).map(|n| at(if n == 0 { 1.06 } else { 1.04 })).collect();
        let (long, tuned) = (record(1, PLACE, &[], found.clone()), record(2, PLACE, &[], found));
        let judged = super::judge(&long, Some(&tuned), &[]);
        let counted: Vec<_> = verdicts(&judged)
            .iter()
            .map(|it| (it.kind.name(), it.within, it.surely_over, it.holds()))
            .collect();
        let expected = [("tuned", 9, 1, true), ("built in", 9, 1, true), ("unseen", 9, 1, true)];
        assert_eq!(counted, expected);
        let worse = verdicts(&judged[..9]);
        assert_eq!((worse[0].within, worse[0].holds()), (8, false));
        assert!((worse[0].worst - 1.06).abs() < 1e-9, "{worse:?}");
        // A variant that did not run counts as over the limit.
        let unknown = Judgement { variant: "x".into(), loss: Loss::Unknown };
        let one = Judged {
            words: String::new(),
            best: String::new(),
            judgements: vec![(ProfileKind::Tuned, unknown)],
        };
        assert_eq!((verdicts(&[one])[0].within, verdicts(&[]).len()), (0, 0));
    }

    #[test]
    fn records_of_other_file_systems_are_distinguished() {
        let here = record(1, PLACE, &[], Vec::new());
        let there = record(2, ("ext4", "f2fs"), &[], Vec::new());
        let both = [there, record(3, PLACE, &[], Vec::new())];
        assert_eq!(of_the_same(&here, &both).and_then(seed), Some(3));
        assert!(of_the_same(&here, &both[..1]).is_none());
        assert_eq!(place(&both[0]), "ext4 ext4 to f2fs f2fs");
    }
}
