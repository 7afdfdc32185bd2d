//! What a copy does between two file systems of which the user has measured nothing: what a
//! measurement has to better.

use std::os::fd::BorrowedFd;

use engines::Variant;
use engines::profile::{
    Candidate, FileSystems, InFlight, Line, Machine, PairChoices, Profile, Situation, SizeClass,
    Table,
};

use crate::choice::{self, Ways};
use crate::extents;
use crate::options::Options;
use crate::routes::SHARED_BYTES_MIN;

/// The ways between two file systems as the built-in profile and the rule have them.
#[derive(Debug)]
pub struct Unmeasured {
    rule: Ways,
    rule_no_cache: Ways,
    lines: Vec<Line>,
    table: Table,
    table_no_cache: Table,
}

impl Unmeasured {
    /// Between two open files or directories.
    #[must_use]
    pub fn between(src: BorrowedFd<'_>, dst: BorrowedFd<'_>) -> Unmeasured {
        let rule = |no_cache| {
            let options = Options { no_cache, ..Options::default() };
            choice::ways(&options, extents::file_system(src), extents::file_system(dst))
        };
        let same = FileSystems::of(src, dst).same;
        let found = FileSystems::by_type(src, dst, same);
        let profile = Profile::built_in();
        let pairs: Vec<&PairChoices> =
            profile.pairs_of(&Machine::default()).filter(|pair| pair.fits(&found)).collect();
        let usable = |line: &&Line| line.choice.variant().is_some();
        let lines: Vec<Line> =
            pairs.iter().flat_map(|pair| &pair.lines).filter(usable).cloned().collect();
        let candidates: Vec<Candidate<'_>> =
            lines.iter().map(|line| Candidate { line, rank: 0 }).collect();
        let table = |no_cache| Table::new(&candidates, no_cache);
        let (table, table_no_cache) = (table(false), table(true));
        Unmeasured { rule: rule(false), rule_no_cache: rule(true), table, table_no_cache, lines }
    }

    /// What is tried in `situation`, one after another, where `jobs` workers may share a file.
    #[must_use]
    pub fn ways(&self, situation: &Situation, jobs: usize) -> Vec<Variant> {
        let Situation { size, residency, in_flight, no_cache } = *situation;
        let table = if no_cache { &self.table_no_cache } else { &self.table };
        let mut ways = Vec::new();
        if let Some(line) = table.get(size, in_flight, Some(residency)) {
            let way = self.lines[line].choice.variant();
            ways.extend(way.map(|way| match way.workers {
                1 => way,
                _ => way.shared_by(choice::workers(jobs)),
            }));
        }
        ways.extend(self.ways_of_rule(situation, jobs));
        ways
    }

    /// The same without the built-in profile.
    #[must_use]
    pub fn ways_of_rule(&self, situation: &Situation, jobs: usize) -> Vec<Variant> {
        let rule = if situation.no_cache { &self.rule_no_cache } else { &self.rule };
        let alone = situation.in_flight == InFlight::One;
        let shares = alone && is_shared(situation.size) && rule.may_share;
        let shared = choice::shared(&rule.data, jobs).filter(|_| shares);
        shared.unwrap_or_else(|| rule.data.clone())
    }
}

/// Whether the rule has files of that class shared by workers: those of which all are long enough.
fn is_shared(size: SizeClass) -> bool {
    size.over_bytes().is_some_and(|over| over >= SHARED_BYTES_MIN)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use engines::profile::Residency;

    use super::*;

    #[test]
    fn the_ways_of_the_rule_come_behind_what_is_built_in() {
        testfs::each_pair(|src, dst| {
            let (src_kind, dst_kind) = (src.kind, dst.kind);
            let open = |dir: &testfs::Scratch| std::fs::File::open(dir.path()).expect("opened");
            let (src, dst) = (open(src), open(dst));
            let unmeasured = Unmeasured::between(src.as_fd(), dst.as_fd());
            let ways = |bytes: u64, in_flight, no_cache| {
                let size = SizeClass::of(bytes);
                let residency = Residency::Resident;
                let situation = Situation { size, residency, in_flight, no_cache };
                let ways = unmeasured.ways(&situation, 2);
                ways.iter().map(ToString::to_string).collect::<Vec<_>>()
            };
            let last = Some("read_write:256K");
            let pair = format!("{src_kind} to {dst_kind}");
            for no_cache in [false, true] {
                for in_flight in InFlight::ALL {
                    for bytes in [100, 1 << 30] {
                        let ways = ways(bytes, in_flight, no_cache);
                        assert_eq!(ways.last().map(String::as_str), last, "{pair}: {ways:?}");
                        let around = ways.iter().any(|way| way.starts_with("dontcache"));
                        assert_eq!(around, no_cache, "{pair}: {ways:?}");
                    }
                }
            }
            let situation = Situation {
                size: SizeClass::of(1 << 30),
                residency: Residency::Resident,
                in_flight: InFlight::One,
                no_cache: false,
            };
            let by_rule = unmeasured.ways_of_rule(&situation, 2);
            let shared = by_rule.iter().any(|way| way.workers == 2);
            assert_eq!(shared, dst_kind != testfs::FsKind::Tmpfs, "{pair}");
            let all = unmeasured.ways(&situation, 64);
            assert!(all.iter().all(|way| matches!(way.workers, 1 | 4)), "{pair}: {all:?}");
        });
    }
}
