//! From measurements to the built-in profile. It is for machines that nobody has measured, so that it
//! departs from the rule only where that gained much, on every machine that was.

use std::collections::BTreeMap;

use engines::Variant;
use engines::profile::{
    Choice, FileSystem, Line, MachineChoices, Measured, Other, PairChoices, Profile, Residency,
    Situation,
};
use lab::tune::{Finding, Record, Way};

/// By how much the rule has to be slower, at the near end of the interval, before anything else is
/// built in. Less than that may be the other way round on another machine.
const GAIN_MIN: f64 = 1.05;

const HEADING: &str = "\
# The built-in profile of haulage, derived from the measurements in record/ by
# `cargo xtask default-profile`. docs/profile.md describes the form.
";

/// The text of the profile that follows from `records`.
pub(super) fn profile_text(records: &[Record]) -> String {
    let mut pairs: BTreeMap<(String, String), Vec<&Record>> = BTreeMap::new();
    for record in records {
        if let (Some(src), Some(dst)) = (fs_type(record, "src"), fs_type(record, "dst")) {
            pairs.entry((src, dst)).or_default().push(record);
        }
    }
    let pairs: Vec<PairChoices> = pairs
        .into_iter()
        .map(|((src, dst), records)| pair(src, dst, &records))
        .filter(|pair| !pair.lines.is_empty())
        .collect();
    let machines = match pairs.is_empty() {
        true => Vec::new(),
        false => vec![MachineChoices { pairs, ..MachineChoices::default() }],
    };
    format!("{HEADING}{}", Profile { machines }.to_toml())
}

fn fs_type(record: &Record, side: &str) -> Option<String> {
    Some(record.environment.get(side)?.get("fs_type")?.as_str()?.to_owned())
}

fn pair(src: String, dst: String, records: &[&Record]) -> PairChoices {
    let by_type =
        |fs_type: &str| FileSystem { fs_type: Some(fs_type.to_owned()), ..FileSystem::default() };
    let same = (src == dst).then_some(true);
    let mut situations: Vec<Situation> = Vec::new();
    for situation in
        records.iter().flat_map(|record| &record.situations).filter_map(Finding::situation)
    {
        if !situations.contains(&situation) {
            situations.push(situation);
        }
    }
    situations.sort_by_key(|it| (it.no_cache, it.size, it.in_flight, it.residency));
    let lines = situations.into_iter().filter_map(|situation| line(situation, records)).collect();
    PairChoices { src: by_type(&src), dst: by_type(&dst), same, kernel: None, lines }
}

/// The line of `situation`: the variant whose greatest loss over all records is the least, where the
/// rule loses much in each of them.
fn line(situation: Situation, records: &[&Record]) -> Option<Line> {
    let findings: Vec<&Finding> = records
        .iter()
        .flat_map(|record| &record.situations)
        .filter(|finding| finding.situation() == Some(situation) && finding.choice.is_some())
        .collect();
    let usable = |way: &&Way| {
        let suits = way.name.parse().is_ok_and(|variant| may_be_built_in(&variant, situation));
        suits && !way.shares_extents && way.ratio_to_best.is_some()
    };
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
    variant.is_copier() && !maps && (situation.no_cache || !forgoes_readahead)
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
        let text = profile_text(records);
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
        let profile = Profile::parse(&profile_text(&records)).expect("a profile").profile;
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
