//! Derives the built-in profile from measurements. It is for machines without measurements, so it
//! differs from the rule only where that was a large gain on every measured machine.

use std::collections::{BTreeMap, BTreeSet};

use engines::Variant;
use engines::profile::{
    Choice, FileSystem, Line, MachineChoices, Measured, Other, PairChoices, Profile, Residency,
    Situation,
};
use lab::stats::median;
use lab::tune::record::{Finding, Record};

/// A variant is built in if the rule is slower by at least this ratio, at the lower end of the
/// interval. A smaller gain may be a loss on another machine.
const GAIN_MIN: f64 = 1.05;

const HEADING: &str = "\
# The built-in profile of haulage, derived from the measurements in record/ by
# `cargo xtask default-profile`. docs/profile.md describes the form.
";

/// The text of the profile derived from `records`.
pub(crate) fn profile_text(records: &[&Record]) -> String {
    let mut by_pair: BTreeMap<(String, String), Vec<&Record>> = BTreeMap::new();
    let mut by_dst: BTreeMap<String, Vec<&Record>> = BTreeMap::new();
    for record in records {
        if let (Some(src), Some(dst)) = (fs_type(record, "src"), fs_type(record, "dst")) {
            by_pair.entry((src, dst.clone())).or_default().push(record);
            by_dst.entry(dst).or_default().push(record);
        }
    }
    // First the measured pairs, then general lines for sources without measurements.
    let to_any: Vec<PairChoices> =
        by_dst.into_iter().map(|(dst, to_it)| from_any(&dst, &to_it, records)).collect();
    let mut pairs = Vec::new();
    for ((src, dst), records) in by_pair {
        let dst = by_type(&dst);
        let general = to_any.iter().find(|pair| pair.dst == dst).map(|pair| &pair.lines[..]);
        pairs.push(pair(by_type(&src), dst, &records, general.unwrap_or_default()));
    }
    pairs.extend(to_any);
    pairs.retain(|pair| !pair.lines.is_empty());
    let machines = match pairs.is_empty() {
        true => Vec::new(),
        false => vec![MachineChoices { pairs, ..MachineChoices::default() }],
    };
    format!("{HEADING}{}", Profile { machines }.to_toml())
}

fn fs_type(record: &Record, side: &str) -> Option<String> {
    Some(record.environment.get(side)?.get("fs_type")?.as_str()?.to_owned())
}

fn by_type(fs_type: &str) -> FileSystem {
    FileSystem { fs_type: Some(fs_type.to_owned()), ..FileSystem::default() }
}

/// The choices between two types of file systems. `general` has the lines that would apply
/// otherwise.
fn pair(src: FileSystem, dst: FileSystem, records: &[&Record], general: &[Line]) -> PairChoices {
    let same = (src == dst).then_some(true);
    let lines = situations(records).into_iter().filter_map(|situation| {
        let general = general.iter().find(|line| line.fits(&situation));
        line(situation, records).or_else(|| rule_line(situation, records, general?))
    });
    PairChoices { same, kernel: None, lines: lines.collect(), src, dst }
}

/// The choices for any source: from the copies to file systems of the type `dst`, or from all
/// copies if these give no line.
fn from_any(dst: &str, to_it: &[&Record], all: &[&Record]) -> PairChoices {
    let lines = situations(all).into_iter().filter_map(|situation| {
        general_line(situation, to_it).or_else(|| general_line(situation, all))
    });
    PairChoices { dst: by_type(dst), lines: lines.collect(), ..PairChoices::default() }
}

fn situations(records: &[&Record]) -> Vec<Situation> {
    let mut situations: Vec<Situation> = Vec::new();
    for situation in
        records.iter().flat_map(|record| &record.situations).filter_map(Finding::situation)
    {
        // A copy does not query the residency of short files.
        let is_used =
            situation.residency == Residency::Resident || situation.size.asks_for_residency();
        if is_used && !situations.contains(&situation) {
            situations.push(situation);
        }
    }
    situations.sort_by_key(|it| (it.no_cache, it.size, it.in_flight, it.residency));
    situations
}

fn findings<'r>(situation: Situation, records: &[&'r Record]) -> Vec<&'r Finding> {
    records
        .iter()
        .flat_map(|record| &record.situations)
        .filter(|finding| finding.situation() == Some(situation) && finding.choice.is_some())
        .collect()
}

/// The factor by which a ratio from elimination rounds may differ from that of the final round.
const ELIMINATION_ERROR_MAX: f64 = 1.15;

/// The usable variant whose greatest loss over all `findings` is the smallest, and its losses, as
/// ratios to the best.
fn smallest_worst_loss(
    findings: &[&Finding],
    is_usable: impl Fn(&str) -> bool,
) -> Option<(String, Vec<f64>)> {
    let names: BTreeSet<&str> = findings.iter().flat_map(|finding| finding.names()).collect();
    let usable = names.into_iter().filter(|name| is_usable(name));
    let losses = |name: &str| -> Option<Vec<f64>> {
        findings.iter().map(|finding| finding.ratio_to_best(name)).collect()
    };
    let greatest = |losses: &[f64]| losses.iter().copied().fold(1.0, f64::max);
    let known = usable.filter_map(|name| Some((name, losses(name)?)));
    let best = known.min_by(|(_, a), (_, b)| greatest(a).total_cmp(&greatest(b)))?;
    Some((best.0.to_owned(), best.1))
}

fn is_usable(name: &str, situation: Situation) -> bool {
    name.parse::<Variant>().is_ok_and(|variant| may_be_built_in(&variant, situation))
}

/// The lower bound of the rule's loss, as a ratio to the best.
fn rule_at_least(finding: &Finding) -> Option<f64> {
    let rule = finding.rule.as_deref()?;
    match finding.variant_result(rule) {
        Some(result) => result.ratio_low,
        None => finding.ratio_to_best(rule).map(|ratio| ratio / ELIMINATION_ERROR_MAX),
    }
}

/// The line of `situation`: the variant whose greatest loss over all records is the smallest, if
/// the rule is much slower in each of them.
fn line(situation: Situation, records: &[&Record]) -> Option<Line> {
    let findings = findings(situation, records);
    // With a single record, its own choice, which is the simplest of those that are as good.
    let own = findings.first()?.choice.as_deref().filter(|own| {
        let is_known = findings[0].ratio_to_best(own).is_some();
        findings.len() == 1 && is_usable(own, situation) && is_known
    });
    let variant = match own {
        Some(own) => own.to_owned(),
        None => smallest_worst_loss(&findings, |name| is_usable(name, situation))?.0,
    };
    let gains = |finding: &&Finding| {
        let built_in = finding.ratio_to_best(&variant);
        rule_at_least(finding).zip(built_in).is_some_and(|(rule, own)| rule / own >= GAIN_MIN)
    };
    if !findings.iter().all(gains) {
        return None;
    }
    let rounds = findings.iter().map(|finding| finding.rounds).min();
    let others = findings.iter().filter_map(|finding| lost_by_rule(finding)).collect();
    let measured = Measured { rounds, others, ..Measured::default() };
    Some(Line::of(situation, Choice { variant, measured }))
}

/// A line with the rule itself, if it was no slower here than the general line.
fn rule_line(situation: Situation, records: &[&Record], general: &Line) -> Option<Line> {
    let findings = findings(situation, records);
    let is_as_good = |finding: &&Finding| {
        let rule = finding.ratio_to_best(finding.rule.as_deref()?)?;
        let general = finding.ratio_to_best(&general.choice.variant);
        Some(general.is_none_or(|general| general >= rule))
    };
    let is_better = findings.iter().any(|finding| is_as_good(finding) == Some(true));
    let rule = findings.first()?.rule.clone().filter(|_| is_better)?;
    let rounds = findings.iter().map(|finding| finding.rounds).min();
    let measured = Measured { rounds, ..Measured::default() };
    Some(Line::of(situation, Choice { variant: rule, measured }))
}

/// The minimum gain over the rule for a general line: the median over the records, and that of each
/// record.
const GENERAL_GAIN_MIN: f64 = 1.05;
const EACH_GAIN_MIN: f64 = 0.8;

/// The line of `situation` for sources without measurements: the variant whose greatest loss over
/// the records is the smallest. The records must have at least two sources.
fn general_line(situation: Situation, records: &[&Record]) -> Option<Line> {
    let findings = findings(situation, records);
    let has_finding = |record: &&&Record| {
        record.situations.iter().any(|it| it.situation() == Some(situation) && it.choice.is_some())
    };
    let sources: BTreeSet<_> =
        records.iter().filter(has_finding).map(|record| fs_type(record, "src")).collect();
    if sources.len() < 2 {
        // One source alone gives no general line.
        return None;
    }
    // Whether a file system can bypass the cache, and how fast, is unknown without a measurement:
    // some cannot, and some send each read to a server.
    let may_be_general =
        |name: &str| is_usable(name, situation) && !name.starts_with("direct_read");
    let (variant, losses) = smallest_worst_loss(&findings, may_be_general)?;
    let gain = |(finding, loss): (&&Finding, &f64)| {
        Some(finding.ratio_to_best(finding.rule.as_deref()?)? / loss)
    };
    let gains: Vec<f64> = findings.iter().zip(&losses).filter_map(gain).collect();
    let gains_in_each = gains.iter().all(|gain| *gain >= EACH_GAIN_MIN);
    if !gains_in_each || median(&gains)? < GENERAL_GAIN_MIN {
        return None;
    }
    Some(Line::of(situation, Choice { variant, ..Choice::default() }))
}

/// Whether `variant` may be used in `situation` on machines without measurements.
fn may_be_built_in(variant: &Variant, situation: Situation) -> bool {
    // A mapping reports a shrunken file or a failing medium by a signal. Only a measurement on the
    // user's machine can show that the gain is worth that.
    let maps = variant.engine.name == "mmap";
    // It leaves no page of the copy in the cache for the next reader.
    let leaves_no_pages = variant.engine.name == "dontcache" && !situation.no_cache;
    let may_read_so = match variant.engine.name {
        "direct_read" => may_read_past_cache(variant, situation),
        // An image in memory has no latency. There a read without readahead, which hides the
        // latency of a disk, costs nothing, and neither does a second read of cached data.
        _ => situation.no_cache || !variant.reads_past_cache(),
    };
    variant.is_copier() && !maps && !leaves_no_pages && may_read_so
}

/// The bytes in flight that keep a disk as busy as readahead does.
const AHEAD_BYTES_MIN: usize = 1 << 20;

/// The same for `direct_read`, which has more reads in flight than readahead, and writes through
/// the page cache.
fn may_read_past_cache(variant: &Variant, situation: Situation) -> bool {
    let depth = variant.tuning.bytes("depth");
    let ahead_bytes = (depth - 1) * variant.tuning.bytes("buffer");
    situation.residency == Residency::Absent
        && situation.may_read_past_cache()
        && ahead_bytes >= AHEAD_BYTES_MIN
}

/// The loss of the rule against the best.
fn lost_by_rule(finding: &Finding) -> Option<Other> {
    let result = finding.variant_result(finding.rule.as_deref()?)?;
    let rounded = |value: Option<f64>| Some((value? * 1000.0).round() / 1000.0);
    let ratio = rounded(result.ratio_to_best)?;
    let (low, high) = (rounded(result.ratio_low)?, rounded(result.ratio_high)?);
    Some(Other { variant: result.name.clone(), ratio, low, high })
}

#[cfg(test)]
mod tests {
    use engines::profile::{InFlight, SizeClass};

    use super::*;

    fn result(name: &str, ratio: f64, low: f64) -> serde_json::Value {
        serde_json::json!({
            "name": name, "standing": "raced", "reason": "", "shares_extents": false,
            "file_ns_median": 1e6, "megabytes_per_second": 1e3,
            "ratio_to_best": ratio, "ratio_low": low, "ratio_high": 2.0 * ratio,
        })
    }

    fn record(src: &str, dst: &str, choice: &str, variants: &[(&str, f64, f64)]) -> Record {
        let variants: Vec<_> =
            variants.iter().map(|(name, ratio, low)| result(name, *ratio, *low)).collect();
        let situation = serde_json::json!({
            "size": "16M to 256M", "residency": "resident", "in_flight": "one", "no_cache": false,
            "words": "", "file_bytes": 1, "files": 1, "why_not": "", "choice": choice, "best": choice,
            "default": "read_write:256K", "rule": "read_write:256K", "settled": true, "rounds": 9,
            "seconds": 1.0, "default_loss": null, "gnu_cp_loss": null, "copy_file_range_loss": null,
            "ways": variants,
        });
        let record = serde_json::json!({
            "date": "", "environment": { "src": { "fs_type": src }, "dst": { "fs_type": dst } },
            "seconds_allowed": 1.0, "seconds": 1.0, "at_once": 2, "delta": 0.02,
            "situations": [situation], "refused": [],
        });
        serde_json::from_value(record).expect("a record")
    }

    fn derived(records: &[Record]) -> String {
        let text = profile_text(&records.iter().collect::<Vec<_>>());
        let profile = Profile::parse(&text).expect("a profile").profile;
        let lines = profile.machines.iter().flat_map(|machine| &machine.pairs).flat_map(|pair| {
            let (src, dst) = (pair.src.in_words(), pair.dst.in_words());
            pair.lines.iter().map(move |line| format!("{src} {dst} {}", line.choice.variant))
        });
        lines.collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn only_large_gains_on_every_machine_are_built_in() {
        let rule = "read_write:256K";
        let fast = record("ext4", "xfs", "splice", &[("splice", 1.0, 1.0), (rule, 1.3, 1.2)]);
        let little = record("ext4", "xfs", "splice", &[("splice", 1.0, 1.0), (rule, 1.03, 1.02)]);
        let unsure = record("ext4", "xfs", "splice", &[("splice", 1.0, 1.0), (rule, 1.3, 1.04)]);
        let own = record("ext4", "xfs", rule, &[(rule, 1.0, 1.0), ("splice", 1.2, 1.1)]);
        assert_eq!(derived(std::slice::from_ref(&fast)), "ext4 xfs splice");
        for other in [little, unsure, own] {
            assert_eq!(derived(std::slice::from_ref(&other)), "");
            assert_eq!(derived(&[fast.clone(), other]), "");
        }
        assert_eq!(derived(&[]), "");
        // The variant that is nearly the best on both machines, not the best on one.
        let one = [
            ("splice", 1.0, 1.0),
            ("sendfile", 1.1, 1.0),
            ("stdio:4K", 1.3, 1.2),
            (rule, 1.4, 1.3),
        ];
        let other = [
            ("stdio:4K", 1.0, 1.0),
            ("sendfile", 1.1, 1.0),
            ("splice", 1.5, 1.4),
            (rule, 2.0, 1.9),
        ];
        let both = [record("xfs", "xfs", "splice", &one), record("xfs", "xfs", "stdio:4K", &other)];
        assert_eq!(derived(&both), "xfs xfs sendfile");
    }

    /// The same record with variants that elimination rounds dropped, and their ratios.
    fn with_left(mut record: Record, left: &[(&str, f64)]) -> Record {
        let left = left.iter().map(|(name, ratio)| ((*name).to_owned(), *ratio));
        record.situations[0].left.extend(left);
        record
    }

    #[test]
    fn dropped_variants_count_by_their_elimination_rounds() {
        let own = || record("ext4", "xfs", "splice", &[("splice", 1.0, 1.0)]);
        assert_eq!(derived(&[own()]), "", "nothing is known of the rule");
        for (ratio, expected) in [(1.1, ""), (1.2, ""), (1.25, "ext4 xfs splice")] {
            let found = derived(&[with_left(own(), &[("read_write:256K", ratio)])]);
            assert_eq!(found, expected, "the rule took {ratio}");
        }
    }

    #[test]
    fn a_gain_from_several_sources_is_built_in_for_any_source() {
        let rule = "read_write:256K";
        let of = |src: &str, best: &str, loss: f64, other: &str| {
            let own = record(src, "xfs", best, &[(best, 1.0, 1.0), (rule, loss, loss - 0.02)]);
            with_left(own, &[(other, 1.02)])
        };
        let ext4 = of("ext4", "splice:1M", 1.3, "splice:2M");
        let tmpfs = of("tmpfs", "splice:1M", 1.2, "splice:2M");
        let own = "ext4 xfs splice:1M; tmpfs xfs splice:1M";
        let both = derived(&[ext4.clone(), tmpfs.clone()]);
        assert_eq!(both, format!("{own}; * xfs splice:1M"));
        // One source alone gives no general line.
        assert_eq!(derived(&[ext4.clone(), ext4.clone()]), "ext4 xfs splice:1M");
        // A variant that is nowhere the best may have the smallest worst loss.
        let btrfs = with_left(of("btrfs", "splice:2M", 1.25, "sendfile"), &[("splice:1M", 1.4)]);
        let found = derived(&[ext4.clone(), tmpfs.clone(), btrfs]);
        assert_eq!(found, format!("btrfs xfs splice:2M; {own}; * xfs splice:2M"));
        // Where the rule is better there is a line with it, as the general line would apply otherwise.
        let better = record("btrfs", "xfs", rule, &[(rule, 1.0, 1.0), ("splice:1M", 1.01, 1.0)]);
        let found = derived(&[ext4.clone(), tmpfs.clone(), better]);
        assert_eq!(found, format!("btrfs xfs {rule}; {own}; * xfs splice:1M"));
        // A large loss somewhere excludes a variant.
        let worse = record("btrfs", "xfs", rule, &[(rule, 1.0, 1.0), ("splice:1M", 1.3, 1.2)]);
        assert_eq!(derived(&[ext4, tmpfs, worse]), own);
    }

    #[test]
    fn variants_for_special_cases_are_not_built_in() {
        let rule = "read_write:256K";
        let variants = [("mmap:8M", 1.0, 1.0), ("splice", 1.1, 1.0), (rule, 1.3, 1.2)];
        let little = [("mmap:8M", 1.0, 1.0), ("splice", 1.2, 1.1), (rule, 1.3, 1.2)];
        assert_eq!(derived(&[record("ext4", "xfs", "mmap:8M", &variants)]), "ext4 xfs splice");
        assert_eq!(derived(&[record("ext4", "xfs", "mmap:8M", &little)]), "");
        for (variant, residency, no_cache, expected) in [
            ("direct", Residency::Absent, false, false),
            ("direct", Residency::Absent, true, true),
            ("direct", Residency::Resident, false, false),
            ("direct", Residency::Resident, true, true),
            ("io_uring:1M,depth=8,direct", Residency::Absent, false, false),
            ("io_uring:1M,depth=8", Residency::Absent, false, true),
            ("direct_read:1M,depth=4", Residency::Absent, false, true),
            ("direct_read:1M,depth=4", Residency::Absent, true, true),
            ("direct_read:256K,depth=5", Residency::Absent, false, true),
            ("direct_read:1M,depth=1", Residency::Absent, false, false),
            ("direct_read:256K,depth=4", Residency::Absent, false, false),
            ("direct_read:1M,depth=4", Residency::Resident, false, false),
            ("direct_read:1M,depth=4", Residency::Resident, true, false),
            ("splice", Residency::Absent, false, true),
            ("dontcache", Residency::Resident, true, true),
            ("dontcache", Residency::Resident, false, false),
            ("memory", Residency::Resident, false, false),
        ] {
            let size = SizeClass::of(64 << 20);
            let situation = Situation { size, residency, in_flight: InFlight::One, no_cache };
            let variant = variant.parse().expect("a variant");
            assert_eq!(may_be_built_in(&variant, situation), expected, "{variant} {situation:?}");
        }
    }

    #[test]
    fn a_line_is_of_its_situation() {
        let records = [record(
            "ext4",
            "ext4",
            "splice",
            &[("splice", 1.0, 1.0), ("read_write:256K", 1.3, 1.2)],
        )];
        let profile = Profile::parse(&profile_text(&records.iter().collect::<Vec<_>>()))
            .expect("a profile")
            .profile;
        let pair = &profile.machines[0].pairs[0];
        assert_eq!(pair.same, Some(true));
        let situation = Situation {
            size: SizeClass::of(64 << 20),
            residency: Residency::Resident,
            in_flight: InFlight::One,
            no_cache: false,
        };
        assert!(pair.lines[0].fits(&situation));
        assert!(!pair.lines[0].fits(&Situation { no_cache: true, ..situation }));
    }
}
