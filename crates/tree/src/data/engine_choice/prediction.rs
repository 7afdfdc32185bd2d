//! Predicts which variants a copy will use between two file systems. The lab compares its
//! candidates with them.

use engines::Variant;
use engines::profile::{
    FileSystem, FileSystems, InFlight, PairChoices, Profile, Residency, Situation,
};

use super::candidates::Candidates;
use super::profile_lines::{LineChoice, ProfileLines};
use super::rule::{RuleVariants, WorkerLoad};
use crate::report::ChosenBy;
use crate::request::Options;

/// Predicts by the same functions that a copy uses: the user's profile, the built-in one, and the
/// rule.
#[derive(Debug)]
pub struct Predictor {
    cached: Half,
    no_cache: Half,
}

/// For copies with or without `--no-cache`.
#[derive(Debug)]
struct Half {
    options: Options,
    rule: RuleVariants,
    lines: ProfileLines,
}

/// The properties of a file by which its variant is chosen.
#[derive(Clone, Copy, Debug)]
pub struct PlannedFile {
    /// Its situation.
    pub situation: Situation,
    /// Its length, in the size class of the situation.
    pub bytes: u64,
    /// Workers of the run.
    pub jobs: usize,
}

impl Predictor {
    /// For the file systems `found`; `own` are the pairs of the user's profile.
    #[must_use]
    pub fn between(found: &FileSystems, own: &[PairChoices]) -> Predictor {
        Predictor::with(found, own, &Profile::built_in_between(&by_type(found)))
    }

    /// The same with other built-in pairs.
    #[must_use]
    pub fn with(found: &FileSystems, own: &[PairChoices], built_in: &[PairChoices]) -> Predictor {
        let by_type = by_type(found);
        let built_in: Vec<PairChoices> =
            built_in.iter().filter(|pair| pair.fits(&by_type)).cloned().collect();
        // A copy reports what has changed since; it decides nothing.
        let fitting = own.iter().filter(|pair| pair.fits(found));
        let own: Vec<_> = fitting.map(|pair| (pair, Vec::new())).collect();
        let half = |no_cache| {
            // As `haulage cp` copies.
            let options = Options { no_cache, sigbus_handler: true, ..Options::default() };
            let rule = RuleVariants::between(&options, found.src.number(), found.dst.number());
            let lines = ProfileLines::new(&options, (&own, found), (&built_in, &by_type));
            Half { options, rule, lines }
        };
        Predictor { cached: half(false), no_cache: half(true) }
    }

    /// The variants that are tried with such a file, in order, if blocks are not shared. `adaptive` stands
    /// for candidates that are measured during the copy; a line of the user's profile for its first one.
    #[must_use]
    pub fn variants(&self, planned: &PlannedFile) -> Vec<Variant> {
        let Half { rule, lines, .. } = self.half(planned);
        let jobs = || planned.jobs;
        let load = load(planned, &jobs);
        let look = || Some(planned.situation.residency);
        let choice = lines.choose(planned.bytes, load, rule, look);
        let is_own = |choice: &LineChoice| matches!(lines.line(*choice).by, ChosenBy::Profile(_));
        match choice {
            Some(own) if is_own(&own) => lines.variants(own, rule),
            choice => self.measured(planned).unwrap_or_else(|| match choice {
                Some(built_in) => lines.variants(built_in, rule),
                None => rule.of(planned.bytes, load),
            }),
        }
    }

    /// The same without any profile.
    #[must_use]
    pub fn rule_variants(&self, planned: &PlannedFile) -> Vec<Variant> {
        let jobs = || planned.jobs;
        let by_rule = || self.half(planned).rule.of(planned.bytes, load(planned, &jobs));
        self.measured(planned).unwrap_or_else(by_rule)
    }

    /// The variants of a file whose engine is measured during the copy.
    fn measured(&self, planned: &PlannedFile) -> Option<Vec<Variant>> {
        let Half { options, rule, .. } = self.half(planned);
        let jobs = || planned.jobs;
        let part = (planned.bytes, load(planned, &jobs));
        let is_cold = || planned.situation.residency == Residency::Absent;
        let candidates = Candidates::of(options, rule, part, None, is_cold)?;
        Some(std::iter::once(candidates.as_variant()).chain(rule.data.clone()).collect())
    }

    fn half(&self, planned: &PlannedFile) -> &Half {
        if planned.situation.no_cache { &self.no_cache } else { &self.cached }
    }
}

fn load<'c>(planned: &PlannedFile, jobs: &'c dyn Fn() -> usize) -> WorkerLoad<'c> {
    WorkerLoad { others_busy: planned.situation.in_flight == InFlight::Several, jobs }
}

fn by_type(found: &FileSystems) -> FileSystems {
    let only_type = |of: &FileSystem| FileSystem { fs_type: of.fs_type.clone(), ..<_>::default() };
    FileSystems { src: only_type(&found.src), dst: only_type(&found.dst), same: found.same }
}

#[cfg(test)]
mod tests {
    use engines::profile::{Choice, Line, Residency, SizeClass};

    use super::*;

    fn found(src: &str, dst: &str) -> FileSystems {
        let side =
            |fs_type: &str| FileSystem { fs_type: Some(fs_type.to_owned()), ..<_>::default() };
        FileSystems { src: side(src), dst: side(dst), same: src == dst }
    }

    fn line(size: Option<u64>, residency: Option<Residency>, variant: &str) -> Line {
        let choice = Choice { variant: variant.to_owned(), ..Choice::default() };
        Line { size: size.map(SizeClass::of), residency, choice, ..Line::default() }
    }

    fn pair(found: &FileSystems, lines: Vec<Line>) -> PairChoices {
        let (src, dst) = (found.src.clone(), found.dst.clone());
        PairChoices { src, dst, same: Some(found.same), kernel: None, lines }
    }

    fn planned(
        bytes: u64,
        residency: Residency,
        in_flight: InFlight,
        no_cache: bool,
    ) -> PlannedFile {
        let situation = Situation { size: SizeClass::of(bytes), residency, in_flight, no_cache };
        PlannedFile { situation, bytes, jobs: 2 }
    }

    fn texts(variants: &[Variant]) -> String {
        variants.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_rule_decides_where_nothing_was_measured() {
        use InFlight::{One, Several};
        for (src, dst, bytes, in_flight, no_cache, expected) in [
            ("ext4", "vfat", 1 << 20, One, false, "copy_file_range read_write:256K"),
            ("nfs", "nfs", 1 << 30, One, false, "copy_file_range read_write:256K"),
            ("f2fs", "f2fs", 1 << 20, One, false, "read_write:256K"),
            ("f2fs", "f2fs", 1 << 30, One, false, "adaptive@2 read_write:256K"),
            ("f2fs", "f2fs", 1 << 30, Several, false, "adaptive read_write:256K"),
            (
                "f2fs",
                "f2fs",
                1 << 30,
                One,
                true,
                "dontcache@2 direct@2 read_write:256K@2 read_write:256K",
            ),
            ("f2fs", "f2fs", 1 << 20, One, true, "dontcache direct read_write:256K"),
        ] {
            let predictor = Predictor::between(&found(src, dst), &[]);
            let planned = planned(bytes, Residency::Resident, in_flight, no_cache);
            assert_eq!(texts(&predictor.variants(&planned)), expected, "{src} {dst} {bytes}");
            assert_eq!(predictor.variants(&planned), predictor.rule_variants(&planned));
        }
    }

    #[test]
    fn the_users_lines_come_first_then_those_built_in_then_the_rule() {
        let found = found("ext4", "ext4");
        let own =
            vec![line(Some(100 << 10), None, "splice:1M"), line(Some(1 << 30), None, "mmap:8M@2")];
        let built_in = vec![
            line(Some(100 << 10), None, "mmap:8M"),
            line(Some(8 << 20), None, "splice@2"),
            line(Some(64 << 20), None, "splice@2"),
        ];
        let (own, built_in) = (pair(&found, own), pair(&found, built_in));
        let predictor = Predictor::with(&found, &[own], &[built_in]);
        let all = |bytes, in_flight, jobs| {
            let planned =
                PlannedFile { jobs, ..planned(bytes, Residency::Resident, in_flight, false) };
            texts(&predictor.variants(&planned))
        };
        use InFlight::{One, Several};
        assert_eq!(all(100 << 10, One, 2), "splice:1M read_write:256K");
        assert_eq!(all(8 << 20, One, 2), "splice@2 read_write:256K");
        assert_eq!(all(8 << 20, One, 8), "splice@4 read_write:256K", "as many as there are");
        assert_eq!(all(8 << 20, Several, 8), "splice read_write:256K");
        assert_eq!(all(64 << 20, One, 2), "adaptive@2 read_write:256K", "measured anew");
        // Variants after a refused one are shared if the rule shares them.
        let shared = "mmap:8M@2 read_write:256K@2 read_write:256K";
        assert_eq!(all(1 << 30, One, 2), shared);
        assert_eq!(all(1 << 30, Several, 2), "mmap:8M read_write:256K");
        let elsewhere = found_elsewhere();
        let own = pair(&found, vec![line(None, None, "splice:1M")]);
        let predictor = Predictor::with(&elsewhere, &[own], &[]);
        let plain = planned(1 << 20, Residency::Resident, InFlight::One, false);
        assert_eq!(predictor.variants(&plain)[0].to_string(), "read_write:256K");
    }

    fn found_elsewhere() -> FileSystems {
        found("xfs", "xfs")
    }

    #[test]
    fn only_a_file_known_to_be_absent_is_read_past_the_cache() {
        use Residency::{Absent, Mixed, Resident};
        let found = found("ext4", "ext4");
        for (variant, mixed) in [
            ("splice", "splice"),
            ("direct_read", "read_write:256K"),
            ("direct", "read_write:256K"),
            ("io_uring:1M,direct", "read_write:256K"),
            ("io_uring:1M", "io_uring:1M"),
        ] {
            let own = |residency| pair(&found, vec![line(None, residency, variant)]);
            let first = |own, residency| {
                let predictor = Predictor::with(&found, &[own], &[]);
                predictor.variants(&planned(1 << 20, residency, InFlight::One, false))[0]
                    .to_string()
            };
            let [absent, partly, resident] =
                [Absent, Mixed, Resident].map(|residency| first(own(Some(Absent)), residency));
            let rule = "read_write:256K";
            assert_eq!([&absent, &partly, &resident], [variant, mixed, rule]);
            // A line without a residency applies to every file.
            assert_eq!(first(own(None), Mixed), variant);
        }
    }

    #[test]
    fn the_residency_of_short_files_is_not_asked_for() {
        let found = found("ext4", "ext4");
        let lines = vec![
            line(None, Some(Residency::Resident), "sendfile"),
            line(None, Some(Residency::Absent), "direct"),
        ];
        let predictor = Predictor::with(&found, &[pair(&found, lines)], &[]);
        let first = |bytes, residency| {
            predictor.variants(&planned(bytes, residency, InFlight::One, false))[0].to_string()
        };
        for (bytes, absent) in [
            (4 << 10, "sendfile"),
            (64 << 10, "sendfile"),
            (65 << 10, "direct"),
            (1 << 30, "direct"),
        ] {
            assert_eq!(first(bytes, Residency::Absent), absent, "{bytes}");
            assert_eq!(first(bytes, Residency::Resident), "sendfile", "{bytes}");
        }
        let uncached = planned(1 << 20, Residency::Absent, InFlight::One, true);
        assert_eq!(
            predictor.variants(&uncached)[0].to_string(),
            "dontcache",
            "lines for cached copies"
        );
    }
}
