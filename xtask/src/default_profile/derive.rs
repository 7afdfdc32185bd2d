//! From measurements to the built-in profile. It is for machines that nobody has measured, so that it
//! departs from the rule only where that gained much, on every machine that was.

use std::collections::{BTreeMap, BTreeSet};

use engines::Variant;
use engines::profile::{
    Choice, FileSystem, Line, MachineChoices, Measured, Other, PairChoices, Profile, Residency,
    Situation,
};
use lab::stats::median;
use lab::tune::{Finding, Record, Way};

/// By how much the rule has to be slower, at the near end of the interval, before anything else is
/// built in. Less than that may be the other way round on another machine.
const GAIN_MIN: f64 = 1.05;

const HEADING: &str = "\
# The built-in profile of haulage, derived from the measurements in record/ by
# `cargo xtask default-profile`. docs/profile.md describes the form.
";

/// The text of the profile that follows from `records`.
pub(crate) fn profile_text(records: &[&Record]) -> String {
    let mut by_pair: BTreeMap<(String, String), Vec<&Record>> = BTreeMap::new();
    let mut by_dst: BTreeMap<String, Vec<&Record>> = BTreeMap::new();
    for record in records {
        if let (Some(src), Some(dst)) = (fs_type(record, "src"), fs_type(record, "dst")) {
            by_pair.entry((src, dst.clone())).or_default().push(record);
            by_dst.entry(dst).or_default().push(record);
        }
    }
    // First what was measured, then what that tells of sources that nobody has measured.
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

/// What was measured between two types of file systems. `general` is what would hold for them otherwise.
fn pair(src: FileSystem, dst: FileSystem, records: &[&Record], general: &[Line]) -> PairChoices {
    let same = (src == dst).then_some(true);
    let lines = situations(records).into_iter().filter_map(|situation| {
        let general = general.iter().find(|line| line.fits(&situation));
        line(situation, records).or_else(|| rule_line(situation, records, general?))
    });
    PairChoices { same, kernel: None, lines: lines.collect(), src, dst }
}

/// What holds for every source: by what was copied to file systems of the type `dst`, and where that tells
/// nothing, by all that was copied.
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
        // Of short files no copy asks where they are.
        let asked =
            situation.residency == Residency::Resident || situation.size.asks_for_residency();
        if asked && !situations.contains(&situation) {
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

/// The way may be built in for `situation`, and how long it takes is known.
fn is_usable(way: &Way, situation: Situation) -> bool {
    let suits = way.name.parse().is_ok_and(|variant| may_be_built_in(&variant, situation));
    suits && !way.shares_extents && way.ratio_to_best.is_some()
}

/// The line of `situation`: the variant whose greatest loss over all records is the least, where the
/// rule loses much in each of them.
fn line(situation: Situation, records: &[&Record]) -> Option<Line> {
    let findings = findings(situation, records);
    let usable = |way: &&Way| is_usable(way, situation);
    let worst = |name: &str| {
        let loss = |finding: &&Finding| finding.way(name).and_then(|way| way.ratio_to_best);
        findings.iter().map(loss).collect::<Option<Vec<f64>>>()?.into_iter().max_by(f64::total_cmp)
    };
    // Of a single record its own choice, which is simpler than others that are as good.
    let own = findings.first()?.chosen().filter(|way| findings.len() == 1 && usable(way));
    let variant = match own {
        Some(own) => own.name.clone(),
        None => {
            let names = findings[0].ways.iter().filter(usable).map(|way| way.name.as_str());
            let by_worst = names.filter_map(|name| Some((name, worst(name)?)));
            by_worst.min_by(|(_, a), (_, b)| a.total_cmp(b))?.0.to_owned()
        }
    };
    let gains = |finding: &&Finding| {
        let rule = finding.rule.as_ref().and_then(|rule| finding.way(rule)?.ratio_low);
        let built_in = finding.way(&variant).and_then(|way| way.ratio_to_best);
        rule.zip(built_in).is_some_and(|(rule, built_in)| rule / built_in >= GAIN_MIN)
    };
    if !findings.iter().all(gains) {
        return None;
    }
    let rounds = findings.iter().map(|finding| finding.rounds).min();
    let others = findings.iter().filter_map(|finding| lost_by_rule(finding)).collect();
    let measured = Measured { rounds, others, ..Measured::default() };
    Some(Line::of(situation, Choice { variant, measured }))
}

/// The rule itself, where it was no slower here than what holds in general.
fn rule_line(situation: Situation, records: &[&Record], general: &Line) -> Option<Line> {
    let findings = findings(situation, records);
    let general = Family::of(&general.choice.variant)?;
    let is_as_good = |finding: &&Finding| {
        let rule = finding.way(finding.rule.as_deref()?)?.ratio_to_best?;
        Some(general.loss(finding, situation)? >= rule)
    };
    let is_better = findings.iter().any(|finding| is_as_good(finding) == Some(true));
    let rule = findings.first()?.rule.clone().filter(|_| is_better)?;
    let rounds = findings.iter().map(|finding| finding.rounds).min();
    let measured = Measured { rounds, ..Measured::default() };
    Some(Line::of(situation, Choice { variant: rule, measured }))
}

/// Variants of an engine that differ by their buffers: which of them is the best is decided by noise, and
/// those beside it leave a search before the end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Family {
    is_shared: bool,
    engine: &'static str,
    is_direct: bool,
}

impl Family {
    fn of(variant: &str) -> Option<Family> {
        let variant: Variant = variant.parse().ok()?;
        let engine = variant.engine.name;
        let is_direct = engine == "io_uring" && variant.tuning.flag("direct");
        Some(Family { is_shared: variant.workers > 1, engine, is_direct })
    }

    fn ways<'f>(&self, finding: &'f Finding, situation: Situation) -> Vec<&'f Way> {
        let is_of_it = |way: &&Way| Family::of(&way.name).as_ref() == Some(self);
        let usable = finding.ways.iter().filter(|way| is_usable(way, situation));
        usable.filter(is_of_it).collect()
    }

    /// What the best of it lost.
    fn loss(&self, finding: &Finding, situation: Situation) -> Option<f64> {
        let ways = self.ways(finding, situation);
        ways.iter().filter_map(|way| way.ratio_to_best).min_by(f64::total_cmp)
    }

    /// The variant of it that came to the end most often.
    fn usual(&self, findings: &[&Finding], situation: Situation) -> Option<String> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for way in findings.iter().flat_map(|finding| self.ways(finding, situation)) {
            *counts.entry(&way.name).or_default() += 1;
        }
        let usual = counts.into_iter().rev().max_by_key(|(_, count)| *count)?;
        Some(usual.0.to_owned())
    }
}

/// The least gain over the rule that counts where nothing was measured: the usual one of the records,
/// and that of each of them.
const GENERAL_GAIN_MIN: f64 = 1.05;
const EACH_GAIN_MIN: f64 = 0.95;

/// What a family is taken to have lost where it did not come to the end: those who do are no more than so
/// much behind in the heats.
const LOSS_OF_THE_ABSENT: f64 = 1.2;

/// The line of `situation` for sources that nobody has measured: the family that came to the end in most
/// records, of at least two sources, and whose greatest loss there is the least.
fn general_line(situation: Situation, records: &[&Record]) -> Option<Line> {
    let sources: BTreeSet<_> = records.iter().map(|record| fs_type(record, "src")).collect();
    if sources.len() < 2 {
        // One alone tells of itself only.
        return None;
    }
    let findings = findings(situation, records);
    let names = findings.iter().flat_map(|finding| &finding.ways).map(|way| &way.name);
    let families: BTreeSet<Family> = names.filter_map(|name| Family::of(name)).collect();
    let worst = |family: &Family| {
        let losses: Vec<Option<f64>> =
            findings.iter().map(|finding| family.loss(finding, situation)).collect();
        let most = 2 * losses.iter().flatten().count() > losses.len();
        let losses = losses.into_iter().map(|loss| loss.unwrap_or(LOSS_OF_THE_ABSENT));
        losses.max_by(f64::total_cmp).filter(|_| most)
    };
    let by_worst = families.iter().filter_map(|family| Some((family, worst(family)?)));
    let (family, _) = by_worst.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let gain = |finding: &&Finding| {
        let rule = finding.way(finding.rule.as_deref()?)?.ratio_to_best?;
        Some(rule / family.loss(finding, situation).unwrap_or(LOSS_OF_THE_ABSENT))
    };
    let gains: Vec<f64> = findings.iter().filter_map(gain).collect();
    let gains_in_each = gains.iter().all(|gain| *gain >= EACH_GAIN_MIN);
    if !gains_in_each || median(&gains)? < GENERAL_GAIN_MIN {
        return None;
    }
    let variant = family.usual(&findings, situation)?;
    Some(Line::of(situation, Choice { variant, ..Choice::default() }))
}

/// Whether `variant` may serve in `situation` on machines that nobody has measured.
fn may_be_built_in(variant: &Variant, situation: Situation) -> bool {
    // An image in memory answers at once: there it costs nothing to do without readahead, which hides
    // the latency of a disk.
    let is_direct = match variant.engine.name {
        "direct" => true,
        "io_uring" => variant.tuning.flag("direct"),
        _ => false,
    };
    let forgoes_readahead = is_direct && situation.residency == Residency::Absent;
    // What becomes of a mapping when its file shrinks or its medium fails is told by a signal. That is
    // for those to choose who have measured that it is worth it.
    let maps = variant.engine.name == "mmap";
    // It leaves no page of the copy in the cache, where the next reader may look for them.
    let leaves_nothing = variant.engine.name == "dontcache" && !situation.no_cache;
    variant.is_copier() && !maps && !leaves_nothing && (situation.no_cache || !forgoes_readahead)
}

/// What the rule costs against the best.
fn lost_by_rule(finding: &Finding) -> Option<Other> {
    let way = finding.way(finding.rule.as_deref()?)?;
    let rounded = |value: Option<f64>| Some((value? * 1000.0).round() / 1000.0);
    let ratio = rounded(way.ratio_to_best)?;
    let (low, high) = (rounded(way.ratio_low)?, rounded(way.ratio_high)?);
    Some(Other { variant: way.name.clone(), ratio, low, high })
}

#[cfg(test)]
mod tests {
    use engines::profile::{InFlight, SizeClass};

    use super::*;

    fn way(name: &str, ratio: f64, low: f64) -> serde_json::Value {
        serde_json::json!({
            "name": name, "standing": "raced", "reason": "", "shares_extents": false,
            "file_ns_median": 1e6, "megabytes_per_second": 1e3,
            "ratio_to_best": ratio, "ratio_low": low, "ratio_high": 2.0 * ratio,
        })
    }

    fn record(src: &str, dst: &str, choice: &str, ways: &[(&str, f64, f64)]) -> Record {
        let ways: Vec<_> = ways.iter().map(|(name, ratio, low)| way(name, *ratio, *low)).collect();
        let situation = serde_json::json!({
            "size": "16M to 256M", "residency": "resident", "in_flight": "one", "no_cache": false,
            "words": "", "file_bytes": 1, "files": 1, "why_not": "", "choice": choice, "best": choice,
            "default": "read_write:256K", "rule": "read_write:256K", "settled": true, "rounds": 9,
            "seconds": 1.0, "default_loss": null, "gnu_cp_loss": null, "copy_file_range_loss": null,
            "ways": ways,
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
    fn only_what_gains_much_everywhere_is_built_in() {
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
        // What is nearly as good as the best on both machines rather than best on one.
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

    #[test]
    fn what_gains_from_several_sources_is_built_in_for_every_source() {
        let rule = "read_write:256K";
        let of = |src: &str, splice: &str, loss: f64| {
            record(src, "xfs", splice, &[(splice, 1.0, 1.0), (rule, loss, loss - 0.02)])
        };
        let (ext4, tmpfs) = (of("ext4", "splice:1M", 1.3), of("tmpfs", "splice:2M", 1.2));
        let own = "ext4 xfs splice:1M; tmpfs xfs splice:2M";
        assert_eq!(derived(&[ext4.clone(), tmpfs.clone()]), format!("{own}; * xfs splice:1M"));
        assert_eq!(derived(&[ext4.clone(), ext4.clone()]), "ext4 xfs splice:1M");
        // Where the rule is the better one it says so, since it would not be asked otherwise.
        let better = record("btrfs", "xfs", rule, &[(rule, 1.0, 1.0), ("splice:1M", 1.01, 1.0)]);
        let general = "* xfs splice:1M";
        let found = derived(&[ext4.clone(), tmpfs.clone(), better]);
        assert_eq!(found, format!("btrfs xfs {rule}; {own}; {general}"));
        // What lost much somewhere holds nowhere else.
        let worse = record("btrfs", "xfs", rule, &[(rule, 1.0, 1.0), ("splice:1M", 1.1, 1.0)]);
        assert_eq!(derived(&[ext4, tmpfs, worse]), own);
    }

    #[test]
    fn what_is_good_in_memory_or_for_those_who_know_is_not_built_in() {
        let rule = "read_write:256K";
        let ways = [("mmap:8M", 1.0, 1.0), ("splice", 1.1, 1.0), (rule, 1.3, 1.2)];
        let little = [("mmap:8M", 1.0, 1.0), ("splice", 1.2, 1.1), (rule, 1.3, 1.2)];
        assert_eq!(derived(&[record("ext4", "xfs", "mmap:8M", &ways)]), "ext4 xfs splice");
        assert_eq!(derived(&[record("ext4", "xfs", "mmap:8M", &little)]), "");
        for (variant, residency, no_cache, expected) in [
            ("direct", Residency::Absent, false, false),
            ("direct", Residency::Absent, true, true),
            ("direct", Residency::Resident, false, true),
            ("io_uring:1M,depth=8,direct", Residency::Absent, false, false),
            ("io_uring:1M,depth=8", Residency::Absent, false, true),
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
