//! Derives the built-in profile from measurements. It is for machines without measurements: in each
//! situation the variant whose worst regret over the measured machines is the least (minimax regret:
//! Savage, Journal of the American Statistical Association 46, 1951). The regret of a variant on a
//! machine is its time over that of the machine's best. The profile differs from the rule only where
//! the worst regret of the rule is much larger.

use std::collections::{BTreeMap, BTreeSet};

use engines::Variant;
use engines::profile::{
    Choice, FileSystem, Line, MachineChoices, Measured, Other, PairChoices, Profile, Residency,
    Situation,
};
use lab::stats::median;
use lab::tune::record::{Finding, Record};

use super::machine::Machine;
use super::store::fs_types;

/// A variant is built in if the worst regret of the rule is larger by at least this ratio, at the
/// lower end of its interval. A smaller gain may be a loss on another machine.
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
        if let Some([src, dst]) = fs_types(record) {
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

/// What one record tells of a situation.
#[derive(Clone, Copy)]
struct Found<'r> {
    finding: &'r Finding,
    record: &'r Record,
}

impl Found<'_> {
    /// The time of the variant called `name` over that of the best. A variant that is refused has
    /// that of the rule, which continues there. `None` if it was not measured.
    fn regret(&self, name: &str) -> Option<f64> {
        let known = self.finding.ratio_to_best(name);
        let is_refused = || self.record.refused.iter().any(|it| it.variant == name);
        known.or_else(|| is_refused().then(|| self.finding.ratio_to_best(self.rule()?)).flatten())
    }

    fn rule(&self) -> Option<&str> {
        self.finding.rule.as_deref()
    }

    /// The lower bound of the rule's regret.
    fn rule_at_least(&self) -> Option<f64> {
        let rule = self.rule()?;
        match self.finding.variant_result(rule) {
            Some(result) => result.ratio_low,
            None => self.finding.ratio_to_best(rule).map(|ratio| ratio / ELIMINATION_ERROR_MAX),
        }
    }
}

fn found<'r>(situation: Situation, records: &[&'r Record]) -> Vec<Found<'r>> {
    let of =
        |record: &'r Record| record.situations.iter().map(move |finding| Found { finding, record });
    let all = records.iter().flat_map(|record| of(record));
    all.filter(|it| it.finding.situation() == Some(situation) && it.finding.choice.is_some())
        .collect()
}

/// The factor by which a ratio from elimination rounds may differ from that of the final round.
const ELIMINATION_ERROR_MAX: f64 = 1.15;

/// The worst regret of the variant called `name` over all machines that measured the situation, each
/// with all of its records. `None` if one of them did not measure it: its regret there is unknown and
/// may be of any size.
fn worst_regret(found: &[Found<'_>], name: &str) -> Option<f64> {
    found.iter().try_fold(1.0, |worst: f64, it| Some(worst.max(it.regret(name)?)))
}

/// The usable variant whose worst regret is the least, with that regret. A variant of unknown regret
/// is not among them.
fn least_worst_regret(
    found: &[Found<'_>],
    is_usable: impl Fn(&str) -> bool,
) -> Option<(String, f64)> {
    let names: BTreeSet<&str> = found.iter().flat_map(|it| it.finding.names()).collect();
    let usable = names.into_iter().filter(|name| is_usable(name));
    let known = usable.filter_map(|name| Some((name, worst_regret(found, name)?)));
    let least = known.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    Some((least.0.to_owned(), least.1))
}

fn is_usable(name: &str, situation: Situation) -> bool {
    name.parse::<Variant>().is_ok_and(|variant| may_be_built_in(&variant, situation))
}

/// The line of `situation`: the variant whose worst regret is the least, if that of the rule is much
/// larger.
fn line(situation: Situation, records: &[&Record]) -> Option<Line> {
    let found = found(situation, records);
    // With a single record, its own choice, which is the simplest of those that are as good.
    let own = found.first()?.finding.choice.as_deref().filter(|own| {
        found.len() == 1 && is_usable(own, situation) && found[0].regret(own).is_some()
    });
    let (variant, worst) = match own {
        Some(own) => (own.to_owned(), found[0].regret(own)?),
        None => least_worst_regret(&found, |name| is_usable(name, situation))?,
    };
    // Where a machine did not measure the rule, its worst regret is at least that of the others.
    let rule_at_least = found.iter().filter_map(Found::rule_at_least).max_by(f64::total_cmp)?;
    if rule_at_least / worst < GAIN_MIN {
        return None;
    }
    let rounds = found.iter().map(|it| it.finding.rounds).min();
    let others = found.iter().filter_map(|it| lost_by_rule(it.finding)).collect();
    let measured = Measured { rounds, others, ..Measured::default() };
    Some(Line::of(situation, Choice { variant, measured }))
}

/// A line with the rule itself, if its worst regret is no larger than that of the general line.
fn rule_line(situation: Situation, records: &[&Record], general: &Line) -> Option<Line> {
    let found = found(situation, records);
    let rule = found.first()?.rule()?.to_owned();
    let own = worst_regret(&found, &rule)?;
    let is_better =
        worst_regret(&found, &general.choice.variant).is_none_or(|general| general >= own);
    let rounds = found.iter().map(|it| it.finding.rounds).min();
    let measured = Measured { rounds, ..Measured::default() };
    is_better.then(|| Line::of(situation, Choice { variant: rule, measured }))
}

/// The minimum gain over the rule for a general line: in the worst regrets over the machines, where
/// each machine has the medians of its records; and in each record.
const GENERAL_GAIN_MIN: f64 = 1.05;
const EACH_GAIN_MIN: f64 = 0.8;

/// The line of `situation` for sources without measurements: the variant whose worst regret over the
/// records is the least. The records must have at least two sources.
fn general_line(situation: Situation, records: &[&Record]) -> Option<Line> {
    let found = found(situation, records);
    let sources: BTreeSet<_> =
        found.iter().filter_map(|it| fs_types(it.record)).map(|[src, _]| src).collect();
    if sources.len() < 2 {
        // One source alone gives no general line.
        return None;
    }
    // Whether a file system can bypass the cache, and how fast, is unknown without a measurement:
    // some cannot, and some send each read to a server.
    let may_be_general =
        |name: &str| is_usable(name, situation) && !name.starts_with("direct_read");
    let (variant, _) = least_worst_regret(&found, may_be_general)?;
    let mut by_machine: BTreeMap<String, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for it in &found {
        let rule = it.rule().and_then(|rule| it.regret(rule));
        let Some((rule, own)) = rule.zip(it.regret(&variant)) else { continue };
        let (gains, owns) = by_machine.entry(Machine::of(it.record).id()).or_default();
        gains.push(rule / own);
        owns.push(own);
    }
    if by_machine.values().flat_map(|(gains, _)| gains).any(|gain| *gain < EACH_GAIN_MIN) {
        return None;
    }
    // Of each machine the middle regret of the variant, and that of the rule by the middle gain.
    let middles = by_machine.values().filter_map(|(gains, owns)| {
        let own = median(owns)?;
        Some((own, own * median(gains)?))
    });
    let (own, rule) =
        middles.reduce(|(own, rule), (its, of_rule)| (own.max(its), rule.max(of_rule)))?;
    let is_gain = rule / own >= GENERAL_GAIN_MIN;
    is_gain.then(|| Line::of(situation, Choice { variant, ..Choice::default() }))
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
        // The records are of images in memory, which have no latency. There a read without readahead, which
        // hides the latency of a disk, costs nothing, and neither does a second read of cached data. On a virtual
        // disk `direct_read` took twice the time of GNU cp where it was the best on an image.
        _ => situation.no_cache || !variant.reads_past_cache(),
    };
    // It measures and chooses by itself, and a copy uses it without a line where that pays.
    let is_adaptive = variant.engine.name == "adaptive";
    variant.is_copier() && !maps && !leaves_no_pages && may_read_so && !is_adaptive
}

/// The bytes in flight that keep a disk as busy as readahead does.
const AHEAD_BYTES_MIN: usize = 1 << 20;

/// The same for `direct_read` with `--no-cache`: it has more reads in flight than readahead, and writes
/// through the page cache.
fn may_read_past_cache(variant: &Variant, situation: Situation) -> bool {
    let depth = variant.tuning.bytes("depth");
    let ahead_bytes = (depth - 1) * variant.tuning.bytes("buffer");
    situation.no_cache
        && situation.residency == Residency::Absent
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

    /// The same record of another machine.
    fn on(mut record: Record, cpu_model: &str) -> Record {
        record.environment["cpu_model"] = cpu_model.into();
        record
    }

    #[test]
    fn only_large_gains_are_built_in() {
        let rule = "read_write:256K";
        let of = |ratio: f64, low: f64| {
            record("ext4", "xfs", "splice", &[("splice", 1.0, 1.0), (rule, ratio, low)])
        };
        assert_eq!(derived(&[of(1.3, 1.2)]), "ext4 xfs splice");
        assert_eq!(derived(&[of(1.03, 1.02)]), "");
        assert_eq!(derived(&[of(1.3, 1.04)]), "");
        let own = record("ext4", "xfs", rule, &[(rule, 1.0, 1.0), ("splice", 1.2, 1.1)]);
        assert_eq!(derived(std::slice::from_ref(&own)), "");
        assert_eq!(derived(&[]), "");
    }

    /// Two machines, each with the ratios of some variants to its best.
    fn on_two_machines(one: &[(&str, f64, f64)], other: &[(&str, f64, f64)]) -> Vec<Record> {
        let best = |of: &[(&str, f64, f64)]| of[0].0.to_owned();
        vec![
            on(record("xfs", "xfs", &best(one), one), "one"),
            on(record("xfs", "xfs", &best(other), other), "other"),
        ]
    }

    #[test]
    fn the_least_worst_regret_is_built_in() {
        let rule = "read_write:256K";
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
        // The variant that is nearly the best on both machines, not the best on one.
        assert_eq!(derived(&on_two_machines(&one, &other)), "xfs xfs sendfile");
        // Two records of one machine count as that machine's worst.
        let both = [record("xfs", "xfs", "splice", &one), record("xfs", "xfs", "stdio:4K", &other)];
        assert_eq!(derived(&both), "xfs xfs sendfile");
        // A loss on one machine is allowed if the rule loses more on another.
        let gains = [("splice", 1.0, 1.0), (rule, 1.3, 1.2)];
        for (loss, expected) in [(1.1, "xfs xfs splice"), (1.16, ""), (1.3, "")] {
            let loses = [(rule, 1.0, 1.0), ("splice", loss, loss)];
            assert_eq!(derived(&on_two_machines(&gains, &loses)), expected, "{loss}");
        }
    }

    /// What a machine did not measure may be of any size there.
    #[test]
    fn a_variant_of_unknown_regret_is_not_built_in() {
        let rule = "read_write:256K";
        let one = [("splice", 1.0, 1.0), ("sendfile", 1.1, 1.0), (rule, 1.4, 1.3)];
        let other = [("sendfile", 1.0, 1.0), (rule, 1.4, 1.3)];
        let records = on_two_machines(&one, &other);
        assert_eq!(derived(&records), "xfs xfs sendfile");
        // Elimination rounds are a measurement.
        let known = with_left(records[1].clone(), &[("splice", 1.02)]);
        assert_eq!(derived(&[records[0].clone(), known]), "xfs xfs splice");
        // A variant that is refused is continued by the rule, whose regret it has.
        let refused = |rule_ratio: f64| {
            let other = [("stdio:4K", 1.0, 1.0), (rule, rule_ratio, rule_ratio)];
            let mut record = on(record("xfs", "xfs", "stdio:4K", &other), "other");
            let reason = "Operation not permitted".to_owned();
            record
                .refused
                .push(lab::tune::record::Refused { variant: "splice".to_owned(), reason });
            record
        };
        assert_eq!(derived(&[records[0].clone(), refused(1.05)]), "xfs xfs splice");
        assert_eq!(derived(&[records[0].clone(), refused(1.4)]), "");
        // The worst regret of the rule is at least the one that is known.
        let no_rule = on(record("xfs", "xfs", "splice", &[("splice", 1.0, 1.0)]), "other");
        assert_eq!(derived(&[records[0].clone(), no_rule]), "xfs xfs splice");
        // No machine but one knows anything but the rule.
        let unknown = on_two_machines(&one, &[(rule, 1.0, 1.0)]);
        assert_eq!(derived(&unknown), "");
        // A pair that another machine did not measure is that of the one that did.
        let elsewhere = on(record("ext4", "ext4", rule, &[(rule, 1.0, 1.0)]), "other");
        assert_eq!(derived(&[records[0].clone(), elsewhere]), "xfs xfs splice");
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
        // It has to gain in the worst case of the machines.
        let like = |record: &Record| on(record.clone(), "other");
        let two = [ext4.clone(), tmpfs.clone(), like(&ext4), like(&tmpfs)];
        assert_eq!(derived(&two), format!("{own}; * xfs splice:1M"));
        let no_gain = |src: &str| {
            let variants = [("splice:1M", 1.0, 1.0), (rule, 1.02, 1.01)];
            with_left(
                on(record(src, "xfs", "splice:1M", &variants), "other"),
                &[("splice:2M", 1.2)],
            )
        };
        let two = [ext4.clone(), tmpfs.clone(), no_gain("ext4"), no_gain("tmpfs")];
        assert_eq!(derived(&two), format!("{own}; * xfs splice:1M"));
        let loss = |src: &str| {
            let variants = [(rule, 1.0, 1.0), ("splice:1M", 1.24, 1.2)];
            with_left(on(record(src, "xfs", rule, &variants), "other"), &[("splice:2M", 1.24)])
        };
        let two = [ext4.clone(), tmpfs.clone(), loss("ext4"), loss("tmpfs")];
        assert_eq!(derived(&two), "");
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
            ("direct_read:1M,depth=4", Residency::Absent, false, false),
            ("direct_read:1M,depth=4", Residency::Absent, true, true),
            ("direct_read:256K,depth=5", Residency::Absent, true, true),
            ("direct_read:1M,depth=1", Residency::Absent, true, false),
            ("direct_read:256K,depth=4", Residency::Absent, true, false),
            ("direct_read:1M,depth=4", Residency::Resident, false, false),
            ("direct_read:1M,depth=4", Residency::Resident, true, false),
            ("splice", Residency::Absent, false, true),
            ("dontcache", Residency::Resident, true, true),
            ("dontcache", Residency::Resident, false, false),
            ("memory", Residency::Resident, false, false),
            ("adaptive", Residency::Resident, false, false),
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
