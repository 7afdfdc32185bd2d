//! Predicts which variants a copy will use between two file systems. The lab compares its
//! candidates with them.

use engines::Variant;
use engines::profile::{FileSystems, InFlight, PairChoices, Residency, Situation};

use super::profile::ProfileLines;
use super::rule::{Between, WorkerLoad};
use crate::request::Options;

/// Predicts by the same functions that a copy uses: the user's profile and the rule.
#[derive(Debug)]
pub struct Predictor {
    /// Without and with `--no-cache`.
    by_no_cache: [(Between, ProfileLines); 2],
}

/// The properties of a file by which its variant is chosen.
#[derive(Clone, Copy, Debug)]
pub struct PlannedFile {
    /// The situation of the file.
    pub situation: Situation,
    /// The length of the file, in the size class of the situation.
    pub bytes: u64,
    /// Workers of the run.
    pub jobs: usize,
}

impl Predictor {
    /// For the file systems `found`; `own` are the pairs of the user's profile.
    #[must_use]
    pub fn between(found: &FileSystems, own: &[PairChoices]) -> Predictor {
        // A copy reports what has changed since; it decides nothing.
        let fitting = own.iter().filter(|pair| pair.fits(found));
        let own: Vec<_> = fitting.map(|pair| (pair, Vec::new())).collect();
        let by_no_cache = [false, true].map(|no_cache| {
            // As `haulage cp` copies.
            let options = Options { no_cache, sigbus_handler: true, ..Options::default() };
            let between = Between::new(&options, found.src.number(), found.dst.number());
            (between, ProfileLines::new(&options, &own, found))
        });
        Predictor { by_no_cache }
    }

    /// The variants that are tried with such a file, in order, if blocks are not shared.
    #[must_use]
    pub fn variants(&self, planned: &PlannedFile) -> Vec<Variant> {
        let (between, lines) = &self.by_no_cache[usize::from(planned.situation.no_cache)];
        let jobs = || planned.jobs;
        let others_busy = planned.situation.in_flight == InFlight::Several;
        let load = WorkerLoad { others_busy, jobs: &jobs };
        let residency = planned.situation.residency;
        match lines.choose(planned.bytes, load, between, || Some(residency)) {
            Some(line) => lines.variants(line, between),
            None => {
                let is_absent = || residency == Residency::Absent;
                between.variants(between.row(planned.bytes, load, &is_absent))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use engines::profile::{Choice, FileSystem, Line, Residency, SizeClass};

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
        let rw = "read_write:256K";
        for (src, dst, bytes, in_flight, no_cache, expected) in [
            ("nfs", "nfs", 1 << 30, One, false, format!("copy_file_range {rw}")),
            ("f2fs", "f2fs", 1 << 30, One, false, format!("read_write:512K@2 {rw}")),
            ("f2fs", "f2fs", 1 << 30, Several, false, format!("splice:512K,pipe=512K {rw}")),
            ("f2fs", "f2fs", 1 << 30, One, true, format!("dontcache@2 direct@2 {rw}@2 {rw}")),
        ] {
            let predictor = Predictor::between(&found(src, dst), &[]);
            let planned = planned(bytes, Residency::Resident, in_flight, no_cache);
            assert_eq!(texts(&predictor.variants(&planned)), expected, "{src} {dst} {bytes}");
        }
        let predictor = Predictor::between(&found("f2fs", "f2fs"), &[]);
        let cold = planned(1 << 30, Residency::Absent, One, false);
        assert_eq!(texts(&predictor.variants(&cold)), format!("direct_read:2M,depth=4 {rw}"));
    }

    #[test]
    fn the_users_lines_come_first_then_the_rule() {
        let found = found("ext4", "ext4");
        let own = vec![
            line(Some(100 << 10), None, "splice:1M"),
            line(Some(8 << 20), None, "splice@4"),
            line(Some(1 << 30), None, "mmap:8M@2"),
        ];
        let predictor = Predictor::between(&found, &[pair(&found, own.clone())]);
        let all = |bytes, in_flight, jobs| {
            let planned =
                PlannedFile { jobs, ..planned(bytes, Residency::Resident, in_flight, false) };
            texts(&predictor.variants(&planned))
        };
        use InFlight::{One, Several};
        let rest = "splice:512K,pipe=512K read_write:256K";
        assert_eq!(all(1 << 10, One, 2), "read_write:256K");
        assert_eq!(all(100 << 10, One, 2), format!("splice:1M {rest}"));
        assert_eq!(all(8 << 20, One, 2), format!("splice@2 {rest}"), "as many as there are");
        assert_eq!(all(8 << 20, Several, 8), format!("splice {rest}"));
        // Variants after a refused one are shared if the rule shares them.
        let shared = "mmap:8M@2 read_write:512K@2 read_write:256K";
        assert_eq!(all(1 << 30, One, 2), shared);
        assert_eq!(all(1 << 30, Several, 2), format!("mmap:8M {rest}"));
        let predictor = Predictor::between(&found_elsewhere(), &[pair(&found, own)]);
        let plain = planned(100 << 10, Residency::Resident, InFlight::One, false);
        assert_eq!(texts(&predictor.variants(&plain)), rest);
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
            ("direct_read", "splice:512K,pipe=512K"),
            ("direct", "splice:512K,pipe=512K"),
            ("io_uring:1M,direct", "splice:512K,pipe=512K"),
            ("io_uring:1M", "io_uring:1M"),
        ] {
            let own = |residency| pair(&found, vec![line(None, residency, variant)]);
            let first = |own, residency| {
                let predictor = Predictor::between(&found, &[own]);
                predictor.variants(&planned(1 << 20, residency, InFlight::One, false))[0]
                    .to_string()
            };
            let [absent, partly, resident] =
                [Absent, Mixed, Resident].map(|residency| first(own(Some(Absent)), residency));
            let rule = "splice:512K,pipe=512K";
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
        let predictor = Predictor::between(&found, &[pair(&found, lines)]);
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
