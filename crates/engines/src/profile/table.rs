//! The lines of a profile for one pair of file systems, determined once.

use super::{InFlight, Line, Residency, Situation, SizeClass};

/// The choice for each situation between two file systems. The lookup for a file is an index.
#[derive(Clone, Debug)]
pub struct Table {
    cells: [[[Option<usize>; Residency::ALL.len()]; InFlight::ALL.len()]; SizeClass::ALL.len()],
}

/// A line that fits the pair of file systems.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'l> {
    /// The line.
    pub line: &'l Line,
    /// Its rank: it is used only if no line of a lower rank fits. The user's lines have a lower
    /// rank than built-in ones.
    pub rank: u8,
}

impl Table {
    /// The table of `candidates`, which are in order of preference. If no line is for a mixed
    /// source, those for an absent source are used: most of the time is spent on the part that is
    /// read from the medium.
    #[must_use]
    pub fn new(candidates: &[Candidate<'_>], no_cache: bool) -> Table {
        let ranks =
            candidates.iter().map(|candidate| candidate.rank).max().map_or(0, |max| max + 1);
        let find = |rank: u8, situation: Situation| {
            candidates
                .iter()
                .position(|candidate| candidate.rank == rank && candidate.line.fits(&situation))
        };
        let choose = |situation: Situation| {
            let instead = Situation { residency: Residency::Absent, ..situation };
            let partly = situation.residency == Residency::Mixed;
            (0..ranks).find_map(|rank| {
                find(rank, situation).or_else(|| find(rank, instead).filter(|_| partly))
            })
        };
        let cells = SizeClass::ALL.map(|size| {
            InFlight::ALL.map(|in_flight| {
                Residency::ALL
                    .map(|residency| choose(Situation { size, residency, in_flight, no_cache }))
            })
        });
        Table { cells }
    }

    /// The index of the candidate for a file. A file of unknown residency is assumed to be
    /// resident.
    #[must_use]
    pub fn get(
        &self,
        size: SizeClass,
        in_flight: InFlight,
        residency: Option<Residency>,
    ) -> Option<usize> {
        let [resident, absent, mixed] = self.cells[size.index()][in_flight as usize];
        match residency {
            Some(Residency::Resident) => resident,
            Some(Residency::Absent) => absent,
            Some(Residency::Mixed) => mixed,
            None => resident.or(absent).or(mixed),
        }
    }

    /// Whether the choice for such a file depends on its residency.
    #[must_use]
    pub fn asks(&self, size: SizeClass, in_flight: InFlight) -> bool {
        let [resident, absent, mixed] = self.cells[size.index()][in_flight as usize];
        resident != absent || resident != mixed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: u64 = 1000;
    const LARGE: u64 = 17 << 20;

    fn line(size: Option<u64>, residency: Option<Residency>, no_cache: bool) -> Line {
        Line { size: size.map(SizeClass::of), residency, no_cache, ..Line::default() }
    }

    fn check(candidates: &[(u8, Line)], bytes: u64, expected: [Option<usize>; 4], asks: bool) {
        let candidates: Vec<_> =
            candidates.iter().map(|(rank, line)| Candidate { line, rank: *rank }).collect();
        let table = Table::new(&candidates, false);
        let asked =
            [None, Some(Residency::Resident), Some(Residency::Absent), Some(Residency::Mixed)];
        for in_flight in InFlight::ALL {
            let size = SizeClass::of(bytes);
            let found = asked.map(|residency| table.get(size, in_flight, residency));
            assert_eq!(found, expected, "{candidates:?}");
            assert_eq!(table.asks(size, in_flight), asks, "{candidates:?}");
        }
    }

    #[test]
    fn the_first_line_of_the_lowest_rank_is_used() {
        use Residency::{Absent, Mixed, Resident};
        let any = || line(None, None, false);
        let of = |residency| line(Some(LARGE), Some(residency), false);
        check(&[], LARGE, [None; 4], false);
        check(&[(0, any())], SMALL, [Some(0); 4], false);
        check(&[(0, any()), (0, any())], LARGE, [Some(0); 4], false);
        check(&[(1, any()), (0, any())], LARGE, [Some(1); 4], false);
        check(&[(0, line(None, None, true)), (0, any())], LARGE, [Some(1); 4], false);
        let warm_and_cold = [(0, of(Resident)), (0, of(Absent))];
        check(&warm_and_cold, LARGE, [Some(0), Some(0), Some(1), Some(1)], true);
        check(&warm_and_cold, SMALL, [None; 4], false);
        let with_mixed = [(0, of(Resident)), (0, of(Absent)), (0, of(Mixed))];
        check(&with_mixed, LARGE, [Some(0), Some(0), Some(1), Some(2)], true);
        // The user's line for an absent source is preferred to a built-in line for any source.
        let user_and_built_in = [(0, of(Absent)), (1, any())];
        check(&user_and_built_in, LARGE, [Some(1), Some(1), Some(0), Some(0)], true);
        check(&[(0, of(Absent))], LARGE, [Some(0), None, Some(0), Some(0)], true);
    }
}
