//! What a copy will do between two file systems, told before there is a file to copy: what a
//! measurement has to better, and what became of it.

use engines::Variant;
use engines::profile::{FileSystem, FileSystems, InFlight, PairChoices, Profile, Situation};

use crate::choice::{self, Hands, Ways};
use crate::lines::Lines;
use crate::options::Options;

/// The ways between two file systems as a profile, the built-in one and the rule have them.
#[derive(Debug)]
pub struct Outlook {
    cached: Half,
    no_cache: Half,
}

/// For copies that may use the page cache, or for those that may not.
#[derive(Debug)]
struct Half {
    rule: Ways,
    lines: Lines,
}

/// A file to be copied, as far as its way depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Prospect {
    /// Its situation.
    pub situation: Situation,
    /// Its length, which is of the situation's class.
    pub bytes: u64,
    /// Workers of the run.
    pub jobs: usize,
}

impl Outlook {
    /// Between the file systems `found`, of which a user's profile holds `own`; nothing where the user
    /// has measured nothing.
    #[must_use]
    pub fn between(found: &FileSystems, own: &[PairChoices]) -> Outlook {
        Outlook::with(found, own, &Profile::built_in_between(&by_type(found)))
    }

    /// The same if other lines were built in.
    #[must_use]
    pub fn with(found: &FileSystems, own: &[PairChoices], built_in: &[PairChoices]) -> Outlook {
        let by_type = by_type(found);
        let built_in: Vec<PairChoices> =
            built_in.iter().filter(|pair| pair.fits(&by_type)).cloned().collect();
        // What has changed since is told by a copy and decides nothing.
        let fitting = own.iter().filter(|pair| pair.fits(found));
        let own: Vec<_> = fitting.map(|pair| (pair, Vec::new())).collect();
        let half = |no_cache| {
            let options = Options { no_cache, ..Options::default() };
            let rule = choice::ways(&options, found.src.number(), found.dst.number());
            let lines = Lines::new(&options, (&own, found), (&built_in, &by_type));
            Half { rule, lines }
        };
        Outlook { cached: half(false), no_cache: half(true) }
    }

    /// What is tried with such a file, one after another, where blocks are not shared.
    #[must_use]
    pub fn ways(&self, prospect: &Prospect) -> Vec<Variant> {
        let Half { rule, lines } = self.half(prospect);
        let jobs = || prospect.jobs;
        let hands = hands(prospect, &jobs);
        let look = || Some(prospect.situation.residency);
        match lines.pick(prospect.bytes, hands, rule, look) {
            Some(pick) => lines.ways(pick, rule),
            None => rule.of(prospect.bytes, hands),
        }
    }

    /// The same without any profile.
    #[must_use]
    pub fn ways_of_rule(&self, prospect: &Prospect) -> Vec<Variant> {
        let jobs = || prospect.jobs;
        self.half(prospect).rule.of(prospect.bytes, hands(prospect, &jobs))
    }

    fn half(&self, prospect: &Prospect) -> &Half {
        if prospect.situation.no_cache { &self.no_cache } else { &self.cached }
    }
}

fn hands<'c>(prospect: &Prospect, jobs: &'c dyn Fn() -> usize) -> Hands<'c> {
    Hands { others_busy: prospect.situation.in_flight == InFlight::Several, jobs }
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

    fn prospect(bytes: u64, residency: Residency, in_flight: InFlight, no_cache: bool) -> Prospect {
        let situation = Situation { size: SizeClass::of(bytes), residency, in_flight, no_cache };
        Prospect { situation, bytes, jobs: 2 }
    }

    fn texts(ways: &[Variant]) -> String {
        ways.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_rule_serves_where_nothing_was_measured() {
        use InFlight::{One, Several};
        for (src, dst, bytes, in_flight, no_cache, expected) in [
            ("ext4", "vfat", 1 << 20, One, false, "copy_file_range read_write:256K"),
            ("nfs", "nfs", 1 << 30, One, false, "copy_file_range read_write:256K"),
            ("f2fs", "f2fs", 1 << 20, One, false, "read_write:256K"),
            ("f2fs", "f2fs", 1 << 30, One, false, "read_write:256K@2 read_write:256K"),
            ("f2fs", "f2fs", 1 << 30, Several, false, "read_write:256K"),
            ("f2fs", "f2fs", 1 << 20, One, true, "dontcache direct read_write:256K"),
        ] {
            let outlook = Outlook::between(&found(src, dst), &[]);
            let prospect = prospect(bytes, Residency::Resident, in_flight, no_cache);
            assert_eq!(texts(&outlook.ways(&prospect)), expected, "{src} {dst} {bytes}");
            assert_eq!(outlook.ways(&prospect), outlook.ways_of_rule(&prospect));
        }
    }

    #[test]
    fn the_users_lines_come_first_then_those_built_in_then_the_rule() {
        let found = found("ext4", "ext4");
        let own = pair(&found, vec![line(Some(1 << 20), None, "splice:1M")]);
        let built_in = pair(
            &found,
            vec![line(Some(1 << 20), None, "mmap:8M"), line(Some(1 << 30), None, "splice@2")],
        );
        let outlook = Outlook::with(&found, &[own], &[built_in]);
        let first = |bytes, in_flight, jobs| {
            let prospect =
                Prospect { jobs, ..prospect(bytes, Residency::Resident, in_flight, false) };
            outlook.ways(&prospect)[0].to_string()
        };
        assert_eq!(first(1 << 20, InFlight::One, 2), "splice:1M");
        assert_eq!(first(1 << 30, InFlight::One, 2), "splice@2");
        assert_eq!(first(1 << 30, InFlight::One, 8), "splice@4", "as many as there are");
        assert_eq!(first(1 << 30, InFlight::Several, 8), "splice");
        assert_eq!(first(64 << 20, InFlight::One, 2), "read_write:256K@2");
        // What follows a refusal is shared where the rule would have it shared.
        let all = |in_flight| {
            texts(&outlook.ways(&prospect(1 << 30, Residency::Resident, in_flight, false)))
        };
        assert_eq!(all(InFlight::One), "splice@2 read_write:256K@2 read_write:256K");
        assert_eq!(all(InFlight::Several), "splice read_write:256K");
        let elsewhere = found_elsewhere();
        let own = pair(&found, vec![line(None, None, "splice:1M")]);
        let outlook = Outlook::with(&elsewhere, &[own], &[]);
        let plain = prospect(1 << 20, Residency::Resident, InFlight::One, false);
        assert_eq!(outlook.ways(&plain)[0].to_string(), "read_write:256K");
    }

    fn found_elsewhere() -> FileSystems {
        found("xfs", "xfs")
    }

    /// Most of a file that is partly in the page cache may be there.
    #[test]
    fn only_what_is_known_to_be_absent_is_read_past_the_cache() {
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
                let outlook = Outlook::with(&found, &[own], &[]);
                outlook.ways(&prospect(1 << 20, residency, InFlight::One, false))[0].to_string()
            };
            let [absent, partly, resident] =
                [Absent, Mixed, Resident].map(|residency| first(own(Some(Absent)), residency));
            let rule = "read_write:256K";
            assert_eq!([&absent, &partly, &resident], [variant, mixed, rule]);
            // Whoever wrote that it holds always has it so.
            assert_eq!(first(own(None), Mixed), variant);
        }
    }

    /// A profile that tells residencies apart is asked as a copy asks it.
    #[test]
    fn of_short_files_it_is_not_asked_where_they_are() {
        let found = found("ext4", "ext4");
        let lines = vec![
            line(None, Some(Residency::Resident), "sendfile"),
            line(None, Some(Residency::Absent), "direct"),
        ];
        let outlook = Outlook::with(&found, &[pair(&found, lines)], &[]);
        let first = |bytes, residency| {
            outlook.ways(&prospect(bytes, residency, InFlight::One, false))[0].to_string()
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
        let uncached = prospect(1 << 20, Residency::Absent, InFlight::One, true);
        assert_eq!(outlook.ways(&uncached)[0].to_string(), "dontcache", "lines for cached copies");
    }
}
